//! Reads of documents: by key, their number, and what each slice holds. They read the documents themselves, so they see every
//! write that was answered.

use bytes::Bytes;
use lazuli_engine::{KeyRange, Lsn, PartitionId, Result, ShardId};

use crate::index::slices;
use crate::{Index, Indexes};

/// A document as it is kept: JSON.
#[derive(Clone, Debug)]
pub struct Document {
    pub text: Bytes,
    pub version: Lsn,
}

/// What one partition of an index holds.
#[derive(Clone, Debug)]
pub struct SliceFigures {
    /// The slice in which the partition begins.
    pub slice: u16,
    pub partition: PartitionId,
    pub shard: ShardId,
    pub documents: u64,
    pub bytes: u64,
}

impl Indexes {
    /// The document of this key.
    pub async fn document(&self, index: &Index, key: &str) -> Result<Option<Document>> {
        let found = self.engine.get(&index.item(key)?, 1).await?;
        Ok(found.map(|item| Document { text: item.payload, version: item.version }))
    }

    /// How many documents there are.
    pub async fn count(&self, index: &Index) -> Result<u64> {
        Ok(self.figures(index).await?.iter().map(|one| one.documents).sum())
    }

    /// What every partition holds, in the order of slices. Each is read in a snapshot that its shard has confirmed to hold it.
    pub async fn figures(&self, index: &Index) -> Result<Vec<SliceFigures>> {
        let slices = slices()?;
        let (mut figures, mut from) = (Vec::new(), Bytes::new());
        loop {
            let view = self.engine.read(index.id(), &from, 1).await?;
            let routes = view.routes().clone();
            let size = match view.size().await? {
                Some(size) => size,
                // Not counted since it was split: count it now.
                None => self.engine.partition_size(view.partition(), view.shard()).await?,
            };
            let slice = slices.iter().position(|slice| slice.contains(&routes.start));
            figures.push(SliceFigures {
                slice: slice.and_then(|at| u16::try_from(at).ok()).unwrap_or(0),
                partition: view.partition(),
                shard: view.shard(),
                documents: size.items,
                bytes: size.bytes,
            });
            match routes.end {
                Some(end) => from = end,
                None => return Ok(figures),
            }
        }
    }

    /// The last write of every partition: a text index that has passed all of them shows everything that was answered before.
    pub async fn last_writes(&self, index: &Index) -> Result<Vec<(KeyRange, Lsn)>> {
        let (mut writes, mut from) = (Vec::new(), Bytes::new());
        loop {
            let view = self.engine.read(index.id(), &from, 1).await?;
            let routes = view.routes().clone();
            writes.push((routes.clone(), view.last_lsn().await?));
            match routes.end {
                Some(end) => from = end,
                None => return Ok(writes),
            }
        }
    }
}
