//! What a node of a fleet is told about the fleet.

use lazuli_store_postgres::Settings as Database;

use super::{Reader, Result, Wrong, value};
use crate::system;

/// The fleet that a node joins.
#[derive(Clone, Debug)]
pub struct Fleet {
    pub catalog: Database,
    /// Where large blobs are.
    pub blocks: Database,
    pub node_name: String,
}

pub(super) fn fleet(one: &Reader<'_>) -> Result<Option<Fleet>> {
    let (catalog, blocks) = (one.database("catalog")?, one.database("blocks")?);
    let node_name = one.may("node-name", value::name)?;
    match (catalog, blocks, node_name) {
        (Some(catalog), blocks, node_name) => Ok(Some(Fleet {
            blocks: blocks.unwrap_or_else(|| catalog.clone()),
            catalog,
            node_name: node_name.unwrap_or_else(system::host_name),
        })),
        (None, None, None) => Ok(None),
        (None, Some(_), _) => Err(Wrong::new("blocks needs catalog beside it".to_owned())),
        (None, None, Some(_)) => Err(Wrong::new("node-name needs catalog beside it".to_owned())),
    }
}

impl Reader<'_> {
    /// The address of a database. The text is not repeated: somebody may have put a password into it.
    fn database(&self, name: &str) -> Result<Option<Database>> {
        let Some((text, origin)) = self.0.get(name).filter(|(text, _)| !text.is_empty()) else {
            return Ok(None);
        };
        let parsed = Database::parse(text).map_err(|error| {
            Wrong::new(format!("{name}: {} ({})", error.message(), origin.describe(name)))
        })?;
        Ok(Some(parsed))
    }
}
