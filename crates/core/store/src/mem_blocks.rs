//! Block files in memory, for tests and the simulator. Clones share the files, so that they outlive the process that opened them.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::{Bytes, BytesMut};
use lazuli_env::BoxFuture;

use crate::blocks::{
    BlockFile, BlockId, BlockReader, BlockWriter, Blocks, FoundFile, Owner, PIECE_BYTES_MAX,
};
use crate::crc64::crc64;
use crate::{Error, Result};

#[derive(Default)]
struct Files {
    /// How often the keeper has been opened.
    generations: u64,
    finished: BTreeMap<BlockId, (Owner, Bytes)>,
    last: u64,
}

/// A keeper whose files live as long as one of its clones does.
#[derive(Clone)]
pub struct MemBlocks {
    files: Arc<Mutex<Files>>,
    generation: u64,
}

impl Default for MemBlocks {
    fn default() -> Self {
        Self::new()
    }
}

impl MemBlocks {
    pub fn new() -> Self {
        Self::open(Arc::default())
    }

    /// The same files as a process finds them that starts after this one has ended.
    #[must_use]
    pub fn reopen(&self) -> Self {
        Self::open(self.files.clone())
    }

    fn open(files: Arc<Mutex<Files>>) -> Self {
        let generation = {
            let mut files = files.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            files.generations += 1;
            files.generations
        };
        Self { files, generation }
    }

    /// Which opening of the files this is.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// How many files there are.
    pub fn count(&self) -> usize {
        self.lock().finished.len()
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn keep(&self, owner: Owner, bytes: Bytes) -> BlockFile {
        let mut files = self.lock();
        files.last += 1;
        let id = BlockId { generation: self.generation, number: files.last };
        let file = BlockFile { id, length: bytes.len() as u64, crc64: crc64(&bytes) };
        files.finished.insert(id, (owner, bytes));
        file
    }

    fn bytes(&self, file: &BlockFile) -> Result<Bytes> {
        match self.lock().finished.get(&file.id) {
            Some((_, bytes)) if bytes.len() as u64 == file.length => Ok(bytes.clone()),
            Some(_) => Err(damaged(file, "has another length than its row says")),
            None => Err(damaged(file, "is missing")),
        }
    }
}

fn damaged(file: &BlockFile, what: &str) -> Error {
    Error::corrupt("bad-block-file", format!("block file {} {what}", file.id))
}

impl Blocks for MemBlocks {
    fn create<'a>(&'a self, owner: &'a Owner) -> BoxFuture<'a, Result<Box<dyn BlockWriter>>> {
        let (blocks, owner) = (self.clone(), owner.clone());
        let writer: Box<dyn BlockWriter> =
            Box::new(MemWriter { blocks, owner, bytes: BytesMut::new() });
        Box::pin(std::future::ready(Ok(writer)))
    }

    fn copy<'a>(
        &'a self,
        file: &'a BlockFile,
        owner: &'a Owner,
    ) -> BoxFuture<'a, Result<BlockFile>> {
        Box::pin(async move { Ok(self.keep(owner.clone(), self.bytes(file)?)) })
    }

    fn read<'a>(
        &'a self,
        file: &'a BlockFile,
        range: Range<u64>,
    ) -> BoxFuture<'a, Result<Box<dyn BlockReader>>> {
        Box::pin(async move {
            let bytes = self.bytes(file)?;
            if range.start > range.end || range.end > file.length {
                return Err(Error::invalid("bad-range", "the range is not inside the file"));
            }
            let is_whole = range == (0..file.length);
            if is_whole && crc64(&bytes) != file.crc64 {
                return Err(damaged(file, "does not match its sum"));
            }
            let bytes = bytes.slice(range.start as usize..range.end as usize);
            let reader: Box<dyn BlockReader> = Box::new(MemReader { bytes });
            Ok(reader)
        })
    }

    fn remove(&self, id: BlockId) -> BoxFuture<'_, Result<()>> {
        self.lock().finished.remove(&id);
        Box::pin(std::future::ready(Ok(())))
    }

    fn remove_of<'a>(&'a self, owner: &'a Owner, id: BlockId) -> BoxFuture<'a, Result<()>> {
        let mut files = self.lock();
        if files.finished.get(&id).is_some_and(|(of, _)| of == owner) {
            files.finished.remove(&id);
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn list(&self, after: Option<BlockId>, most: usize) -> BoxFuture<'_, Result<Vec<FoundFile>>> {
        let files = self.lock();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let found = files.finished.range((from, Bound::Unbounded)).take(most);
        let found = found.map(|(id, (owner, bytes))| FoundFile {
            file: BlockFile { id: *id, length: bytes.len() as u64, crc64: crc64(bytes) },
            owner: owner.clone(),
        });
        Box::pin(std::future::ready(Ok(found.collect())))
    }
}

struct MemWriter {
    blocks: MemBlocks,
    owner: Owner,
    bytes: BytesMut,
}

impl BlockWriter for MemWriter {
    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        self.bytes.extend_from_slice(&bytes);
        Box::pin(std::future::ready(Ok(())))
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<BlockFile>> {
        Box::pin(async move { Ok(self.blocks.keep(self.owner, self.bytes.freeze())) })
    }
}

struct MemReader {
    bytes: Bytes,
}

impl BlockReader for MemReader {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>>> {
        let most = self.bytes.len().min(PIECE_BYTES_MAX);
        let piece = (most > 0).then(|| self.bytes.split_to(most));
        Box::pin(std::future::ready(Ok(piece)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_suite() {
        for (name, case) in crate::blocks_suite::CASES {
            println!("case {name}");
            case(Arc::new(MemBlocks::new())).await;
        }
    }

    #[tokio::test]
    async fn ids_do_not_come_again_after_a_start() {
        let blocks = MemBlocks::new();
        let owner = Owner { container: 1, route: Bytes::from_static(b"r") };
        let first = blocks.create(&owner).await.unwrap().finish().await.unwrap();
        let again = blocks.reopen();
        let second = again.create(&owner).await.unwrap().finish().await.unwrap();
        assert!(second.id > first.id);
        assert_eq!(again.list(None, 9).await.unwrap().len(), 2);
    }
}
