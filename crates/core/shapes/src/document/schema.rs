//! What plans of queries know about a container.

use lazuli_query::plan::{Composite, Path, Schema, Step};

use super::collection::Collection;
use super::definition::Definition;
use super::item::SYSTEM_NAMES;
use super::outline::Everywhere;
use super::path;
use super::spans::steps_of;
use std::sync::Arc;

/// The index that queries use, as plans see it.
pub(super) struct IndexSchema {
    definition: Arc<Definition>,
    key_paths: Vec<Path>,
    composites: Vec<Composite>,
    pub(super) everywhere: Everywhere,
}

impl IndexSchema {
    pub(super) fn new(collection: &Collection) -> Self {
        let definition = collection.definition.clone();
        let key_paths = definition.key_paths.iter().map(path_of).collect();
        let index = definition.index();
        let composites = index.map(|index| index.policy.composites.clone()).unwrap_or_default();
        let composite = |paths: Vec<super::policy::CompositePath>| Composite {
            paths: paths.iter().map(|one| (path_of(&one.path), one.descends)).collect(),
        };
        let composites = composites.into_iter().map(composite).collect();
        Self { definition, key_paths, composites, everywhere: Everywhere::Unknown }
    }
}

fn path_of(path: &path::Path) -> Path {
    let step = |step: &path::Step| match step {
        path::Step::Name(name) => Step::Name(name.clone()),
        path::Step::Element => Step::Element,
    };
    Path(path.steps().iter().map(step).collect())
}

impl Schema for IndexSchema {
    fn partition_key(&self) -> &[Path] {
        &self.key_paths
    }

    fn is_indexed(&self, path: &Path) -> bool {
        // The names of the service are not stored, and only the time of the last write has entries.
        if let Some(Step::Name(name)) = path.0.first()
            && SYSTEM_NAMES.contains(&name.as_str())
            && path.0 != [Step::Name("_ts".into())]
        {
            return false;
        }
        let index = self.definition.index();
        index.is_some_and(|index| index.policy.indexes(&steps_of(path)))
    }

    fn is_everywhere(&self, path: &Path) -> bool {
        self.everywhere.has(&steps_of(path))
    }

    fn composites(&self) -> &[Composite] {
        &self.composites
    }
}
