//! Where the store of a shard lives: in a folder beside the catalog, or in a PostgreSQL database. The record of the shard
//! in the catalog says which, as its location.

use std::sync::Arc;

use lazuli_store::{KeyRange, Result, Store};
use lazuli_store_embedded::EmbeddedStore;
use lazuli_store_postgres::{PostgresStore, Settings as Database};

/// Keys that are deleted at once from the database of a removed shard.
const CLEARED_AT_ONCE: usize = 1_000;

/// A home, as the location of a shard names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// The name of a folder beside the catalog.
    Folder(String),
    /// A database, which the address of the shard names.
    Server(Box<Database>),
}

/// A shard's store that is open.
#[derive(Clone)]
pub(crate) enum Opened {
    Folder(Arc<EmbeddedStore>),
    Server(Arc<dyn Store>),
}

impl Home {
    pub(crate) fn of(location: &str) -> Result<Self> {
        match location.contains("://") {
            true => Ok(Self::Server(Box::new(Database::parse(location)?))),
            false => Ok(Self::Folder(location.to_owned())),
        }
    }
}

/// Opens a database. Fails within seconds if it cannot be reached or used.
pub(crate) async fn connect(database: &Database) -> Result<Opened> {
    Ok(Opened::Server(Arc::new(PostgresStore::open(database.clone()).await?)))
}

impl Opened {
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Folder(store) => store.clone(),
            Self::Server(store) => store.clone(),
        }
    }

    /// The store in a folder, if it is one.
    pub(crate) fn folder(&self) -> Option<&Arc<EmbeddedStore>> {
        match self {
            Self::Folder(store) => Some(store),
            Self::Server(_) => None,
        }
    }

    /// Deletes everything in it, what says whose it is first: from then on nobody takes it for a shard.
    pub(crate) async fn clear(&self) -> Result<()> {
        let store = self.store();
        while store.delete_range(&KeyRange::all(), CLEARED_AT_ONCE).await? == CLEARED_AT_ONCE {}
        Ok(())
    }
}
