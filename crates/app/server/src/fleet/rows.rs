//! Blocks of blobs that a fleet shares, as rows of a database or as objects, written by one node under a generation of its own.
//!
//! A block is written before the row that names it. So others may only take unnamed blocks away of a node that will never
//! name them: one whose row in the catalog is gone. A node that was only silent, and finds its row gone, writes under a new
//! generation from then on and names none of the old one.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lazuli_engine::{BlockFile, BlockId, Blocks, Engine, FoundFile, Owner};
use lazuli_env::BoxFuture;
use lazuli_store::Result;
use lazuli_store::blocks::{BlockReader, BlockWriter};
use lazuli_store::objects::Objects;
use lazuli_store_postgres::{Generation, PostgresBlocks, Settings as Database};

use crate::settings::BlocksAt;

pub(crate) struct RowBlocks {
    database: Database,
    objects: Option<Arc<dyn Objects>>,
    engine: Arc<Engine>,
    current: Mutex<Current>,
    /// Held while a new generation is begun.
    renewing: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Current {
    blocks: Arc<PostgresBlocks>,
    /// How often this node had been removed when the generation began.
    removals: u64,
}

impl RowBlocks {
    /// Opens the blocks. The node must have its row in the catalog already.
    pub(crate) async fn open(at: &BlocksAt, engine: Arc<Engine>) -> Result<Self> {
        let (database, objects) = (at.database.clone(), at.objects()?);
        let current = Mutex::new(begin(&database, objects.clone(), &engine).await?);
        Ok(Self { database, objects, engine, current, renewing: tokio::sync::Mutex::default() })
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        // What this lock guards is whole after every statement.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn newest(&self) -> Arc<PostgresBlocks> {
        self.current().blocks.clone()
    }

    fn is_current(&self) -> bool {
        self.current().removals == self.engine.removals()
    }

    /// The blocks to write to.
    async fn writable(&self) -> Result<Arc<PostgresBlocks>> {
        if self.is_current() {
            return Ok(self.newest());
        }
        let _turn = self.renewing.lock().await;
        if !self.is_current() {
            // Without a row in the catalog the new generation would be swept as well.
            self.engine.may_name()?;
            let begun = begin(&self.database, self.objects.clone(), &self.engine).await?;
            *self.current() = begun;
        }
        Ok(self.newest())
    }

    /// Generations that may have blocks without names, by the nodes that wrote them.
    pub(crate) async fn unswept(&self) -> Result<Vec<Generation>> {
        self.newest().unswept().await
    }

    pub(crate) async fn swept(&self, generation: u64) -> Result<()> {
        self.newest().swept(generation).await
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub(crate) async fn close(&self) -> Result<()> {
        self.newest().close().await
    }
}

async fn begin(
    database: &Database,
    objects: Option<Arc<dyn Objects>>,
    engine: &Engine,
) -> Result<Current> {
    let (removals, node) = (engine.removals(), engine.node().to_string());
    let blocks = PostgresBlocks::open_at(database.clone(), objects, &node).await?;
    Ok(Current { blocks: Arc::new(blocks), removals })
}

impl Blocks for RowBlocks {
    fn create<'a>(&'a self, owner: &'a Owner) -> BoxFuture<'a, Result<Box<dyn BlockWriter>>> {
        Box::pin(async move { self.writable().await?.create(owner).await })
    }

    fn copy<'a>(
        &'a self,
        file: &'a BlockFile,
        owner: &'a Owner,
    ) -> BoxFuture<'a, Result<BlockFile>> {
        Box::pin(async move { self.writable().await?.copy(file, owner).await })
    }

    fn read<'a>(
        &'a self,
        file: &'a BlockFile,
        range: Range<u64>,
    ) -> BoxFuture<'a, Result<Box<dyn BlockReader>>> {
        Box::pin(async move { self.newest().read(file, range).await })
    }

    fn remove(&self, id: BlockId) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.newest().remove(id).await })
    }

    fn remove_of<'a>(&'a self, owner: &'a Owner, id: BlockId) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { self.newest().remove_of(owner, id).await })
    }

    fn may_be_named(&self, id: BlockId) -> bool {
        let current = self.current();
        current.removals == self.engine.removals() && current.blocks.generation() == id.generation
    }

    fn list(&self, after: Option<BlockId>, most: usize) -> BoxFuture<'_, Result<Vec<FoundFile>>> {
        Box::pin(async move { self.newest().list(after, most).await })
    }
}
