//! The definitions of containers, read once and kept while they are in use, and what the engine learns from them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use lazuli_engine::{
    Container, ContainerId, Deriver, Error, Item, ItemKey, Result, Rules, Standing,
};

use super::SCHEMA;
use super::definition::{DEFINITION, Definition};
use super::entries::{Indexes, generation_of};

/// The most definitions that are kept; beyond it all are read again.
const KEPT_MAX: usize = 10_000;

/// Definitions by container.
#[derive(Default)]
pub struct DocumentRules {
    kept: Mutex<BTreeMap<ContainerId, Kept>>,
}

struct Kept {
    /// What the definition was read from. The version of a container does not tell: it grows for other reasons too, and a
    /// change of the rules is given its version before it is made.
    text: String,
    definition: Arc<Definition>,
    /// None if its items have no entries.
    rules: Option<Arc<dyn Rules>>,
}

impl DocumentRules {
    /// What is fixed about a container of documents.
    pub fn definition(&self, container: &Container) -> Result<Arc<Definition>> {
        self.kept(container, |kept| kept.definition.clone())
    }

    fn kept<T>(&self, container: &Container, pick: impl Fn(&Kept) -> T) -> Result<T> {
        let none = || Error::corrupt("bad-definition", "a container of documents says nothing");
        let text = container.policies.attributes.get(DEFINITION).ok_or_else(none)?;
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = all.get(&container.id)
            && kept.text == *text
        {
            return Ok(pick(kept));
        }
        let definition = Arc::new(Definition::from_text(text)?);
        let indexes = Indexes::new(&definition);
        let rules: Option<Arc<dyn Rules>> = match indexes.is_empty() && definition.waste.is_empty()
        {
            true => None,
            false => Some(Arc::new(IndexRules { definition: definition.clone(), indexes })),
        };
        if all.len() >= KEPT_MAX {
            all.clear();
        }
        let kept = Kept { text: text.clone(), definition, rules };
        let picked = pick(&kept);
        all.insert(container.id, kept);
        Ok(picked)
    }
}

impl Deriver for DocumentRules {
    fn schema(&self) -> &'static str {
        SCHEMA
    }

    fn rules(&self, container: &Container) -> Result<Option<Arc<dyn Rules>>> {
        self.kept(container, |kept| kept.rules.clone())
    }
}

struct IndexRules {
    definition: Arc<Definition>,
    indexes: Indexes,
}

impl Rules for IndexRules {
    fn entries(&self, _: &ItemKey, item: &Item) -> Result<Vec<Bytes>> {
        self.indexes.entries(item)
    }

    fn standing(&self, entry: &[u8]) -> Standing {
        // One without a generation is of no index, so no item has it.
        let Some(generation) = generation_of(entry) else { return Standing::Complete };
        let found = self.definition.indexes.iter().find(|index| index.generation == generation);
        match found {
            Some(index) if index.is_complete => Standing::Complete,
            Some(_) => Standing::Building,
            None if self.definition.waste.contains(&generation) => Standing::Waste,
            // Unique keys are fixed for good. And a generation is forgotten when its entries are gone: there are none.
            None => Standing::Complete,
        }
    }
}
