//! What a node of a fleet is told about the fleet.

use std::sync::Arc;

use lazuli_store::Result as StoreResult;
use lazuli_store::objects::Objects;
use lazuli_store_objects::{RemoteObjects, Settings as ObjectSettings};
use lazuli_store_postgres::Settings as Database;

use super::{Reader, Result, Wrong, value};
use crate::system;

/// The fleet that a node joins.
#[derive(Clone, Debug)]
pub struct Fleet {
    pub catalog: Database,
    /// Where large blobs are.
    pub blocks: BlocksAt,
    pub node_name: String,
}

/// Where large blobs are: their rows, and their bytes if those are not rows too.
#[derive(Clone, Debug)]
pub struct BlocksAt {
    pub database: Database,
    pub objects: Option<ObjectSettings>,
}

impl BlocksAt {
    /// What an address says: a database, or an object store beside the database of the catalog. Without one all of it is in
    /// the database of the catalog.
    pub fn parse(catalog: &Database, address: Option<&str>) -> StoreResult<Self> {
        let beside = |objects| Self { database: catalog.clone(), objects };
        Ok(match address {
            None => beside(None),
            Some(text) if ObjectSettings::is_address(text) => {
                beside(Some(ObjectSettings::parse(text)?))
            }
            Some(text) => Self { database: Database::parse(text)?, objects: None },
        })
    }

    /// The object store, with its key read. No request is sent yet.
    pub(crate) fn objects(&self) -> StoreResult<Option<Arc<dyn Objects>>> {
        let Some(settings) = &self.objects else { return Ok(None) };
        Ok(Some(Arc::new(RemoteObjects::open(settings)?)))
    }
}

pub(super) fn fleet(one: &Reader<'_>) -> Result<Option<Fleet>> {
    let node_name = one.may("node-name", value::name)?;
    let catalog = one.address("catalog", Database::parse)?;
    let Some(catalog) = catalog else {
        let is_set = |name| one.0.get(name).is_some_and(|(text, _)| !text.is_empty());
        return match (is_set("blocks"), node_name) {
            (true, _) => Err(Wrong::new("blocks needs catalog beside it".to_owned())),
            (_, Some(_)) => Err(Wrong::new("node-name needs catalog beside it".to_owned())),
            (false, None) => Ok(None),
        };
    };
    let blocks = match one.address("blocks", |text| BlocksAt::parse(&catalog, Some(text)))? {
        Some(blocks) => blocks,
        None => BlocksAt { database: catalog.clone(), objects: None },
    };
    let node_name = node_name.unwrap_or_else(system::host_name);
    Ok(Some(Fleet { catalog, blocks, node_name }))
}

impl Reader<'_> {
    /// An address. The text is not repeated: somebody may have put a password into it.
    fn address<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> StoreResult<T>,
    ) -> Result<Option<T>> {
        let Some((text, origin)) = self.0.get(name).filter(|(text, _)| !text.is_empty()) else {
            return Ok(None);
        };
        let parsed = parse(text).map_err(|error| {
            Wrong::new(format!("{name}: {} ({})", error.message(), origin.describe(name)))
        })?;
        Ok(Some(parsed))
    }
}
