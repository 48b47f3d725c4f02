//! The block store: opens the folder, creates, reads, copies, lists and removes files.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lazuli_env::BoxFuture;
use lazuli_store::blocks::{
    BlockFile, BlockId, BlockReader, BlockWriter, Blocks, FoundFile, Owner,
};
use lazuli_store::limits::KEY_BYTES_MAX;
use lazuli_store::{Error, Result};

use crate::disk::{Disk, failed};
use crate::generation::Generations;
use crate::layout::{Layout, remove_if_there};
use crate::pool::Pool;
use crate::reader::{self, Reader};
use crate::seal::{self, Look, Seal};
use crate::tail;
use crate::writer::{Part, Writer};

/// How much of a file is copied at once.
const COPY_BYTES: usize = 256 * 1024;

/// Durability of a finished file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It is on disk before its id is returned.
    Synced,
    /// When the operating system writes it. A power cut may damage the newest files.
    Relaxed,
}

/// Block files in a folder of their own. Clones share it.
#[derive(Clone)]
pub struct BlockFiles {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) layout: Layout,
    pub(crate) generations: Generations,
    pub(crate) disk: Disk,
    pub(crate) pool: Pool,
    /// The last generation that an earlier process wrote to.
    last_before: u64,
    /// How many files this process has finished.
    pub(crate) finished: AtomicU64,
    /// Held while the seal is replaced.
    sealing: Mutex<()>,
    /// Generations that were swept, and from which files were removed since.
    touched: Mutex<BTreeSet<u64>>,
}

/// A damaged file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    pub id: BlockId,
    pub error: String,
}

impl BlockFiles {
    /// Inspects a folder without opening or changing it. Blocks.
    pub fn look(root: &Path) -> Result<Look> {
        Look::at(root).map_err(|error| failed(root.display(), &error))
    }

    /// Opens the folder, creates it if there is none, and removes unfinished files of earlier processes. Blocks.
    pub fn open(root: &Path, durability: Durability) -> Result<Self> {
        Self::open_from(root, durability, 1)
    }

    /// The same, but new files use no generation below this one: the caller knows that such ids may have been used,
    /// although the folder does not show it.
    pub fn open_from(root: &Path, durability: Durability, generation: u64) -> Result<Self> {
        let shared = Shared::open(root, durability, generation);
        let shared = shared.map_err(|error| failed(root.display(), &error))?;
        Ok(Self { shared: Arc::new(shared) })
    }

    /// How many files this process has finished.
    pub fn files_finished(&self) -> u64 {
        self.shared.finished.load(Ordering::Acquire)
    }

    /// Replaces the seal of the folder. It is on disk when answered.
    pub async fn write_seal(&self, seal: Seal) -> Result<()> {
        let shared = self.shared.clone();
        let write = move || {
            // A caller that was cancelled may have left a write running.
            let _one = shared.sealing.lock().unwrap_or_else(PoisonError::into_inner);
            let written = seal::write(shared.layout.root(), &seal);
            written.map_err(|error| failed("the seal of the folder of blocks", &error))
        };
        self.shared.disk.run(write).await
    }

    /// The generations of earlier processes that may have files without references.
    pub async fn unswept(&self) -> Result<Vec<u64>> {
        let shared = self.shared.clone();
        let look = move || shared.unswept().map_err(|error| failed("the folder of blocks", &error));
        self.shared.disk.run(look).await
    }

    /// Whether a file was written by an earlier process, so that its reference exists by now if it ever will.
    pub fn is_earlier(&self, id: BlockId) -> bool {
        id.generation <= self.shared.last_before
    }

    /// Marks this generation as swept: all its files are referenced, so it is not checked again.
    pub async fn swept(&self, generation: u64) -> Result<()> {
        let shared = self.shared.clone();
        self.shared.disk.run(move || shared.swept(generation)).await
    }

    /// Restores the marks of swept folders from which files were removed, so that the next start does not sweep them.
    pub async fn close(&self) -> Result<()> {
        let touched = std::mem::take(&mut *self.shared.touched());
        for generation in touched {
            self.swept(generation).await?;
        }
        Ok(())
    }

    /// The damaged files after the given one, and the last one checked; none at the end.
    pub async fn damaged(
        &self,
        after: Option<BlockId>,
        most: usize,
    ) -> Result<(Vec<Damaged>, Option<BlockId>)> {
        let shared = self.shared.clone();
        let look = move || {
            let ids = shared.ids(after, most)?;
            let mut found = Vec::new();
            for id in &ids {
                if let Err(error) = shared.look(*id) {
                    found.push(Damaged { id: *id, error: error.to_string() });
                }
            }
            Ok((found, ids.last().copied()))
        };
        self.shared.disk.run(look).await
    }
}

impl Shared {
    fn open(root: &Path, durability: Durability, generation: u64) -> io::Result<Self> {
        let layout = Layout::open(root)?;
        let all = layout.generations()?;
        let last_before = all.last().copied().unwrap_or(0).max(generation.saturating_sub(1));
        for generation in all {
            if !layout.is_swept(generation) {
                for part in layout.contents(generation)?.parts {
                    remove_if_there(&part)?;
                }
            } else if generation < last_before && layout.is_empty(generation)? {
                layout.remove_folder(generation)?;
            }
        }
        let is_synced = durability == Durability::Synced;
        Ok(Self {
            generations: Generations::new(layout.clone(), last_before, is_synced),
            layout,
            disk: Disk::new(),
            pool: Pool::default(),
            last_before,
            finished: AtomicU64::new(0),
            sealing: Mutex::default(),
            touched: Mutex::default(),
        })
    }

    fn touched(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unswept(&self) -> io::Result<Vec<u64>> {
        let touched = self.touched().clone();
        let mut all = self.layout.generations()?;
        all.retain(|it| *it <= self.last_before && !touched.contains(it));
        all.retain(|it| !self.layout.is_swept(*it));
        Ok(all)
    }

    fn swept(&self, generation: u64) -> Result<()> {
        if generation > self.last_before {
            return Ok(());
        }
        // Earlier removals are synced together with the mark; a later removal deletes the mark again.
        let _touched = self.touched();
        let mark = || {
            let is_empty = self.layout.contents(generation)?.files.is_empty();
            if is_empty && generation < self.last_before {
                return self.layout.remove_folder(generation);
            }
            self.layout.mark_swept(generation)
        };
        mark().map_err(|error| failed(format!("generation {generation} of blocks"), &error))
    }

    fn remove(&self, id: BlockId) -> Result<()> {
        let mut touched = self.touched();
        let mut remove = || {
            // The removal itself is not synced. If a power cut undoes it, the next start sweeps this folder again.
            if self.layout.is_swept(id.generation) {
                self.layout.unmark_swept(id.generation)?;
                touched.insert(id.generation);
            }
            remove_if_there(&self.layout.file(id))
        };
        remove().map(drop).map_err(|error| failed(format!("block file {id}"), &error))
    }

    /// Removes a file if its tail matches its owner's row. A file without a readable tail has no owner.
    fn remove_of(&self, owner: &Owner, id: BlockId) -> Result<()> {
        let failed = |error| failed(format!("block file {id}"), &error);
        let is_other = match File::open(self.layout.file(id)) {
            Ok(file) => match tail::read(&file) {
                Ok(tail) => {
                    tail.file.id != id || tail.owner(&file).is_ok_and(|found| found != *owner)
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData => false,
                Err(error) => return Err(failed(error)),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        if is_other { Ok(()) } else { self.remove(id) }
    }

    /// The ids of finished files after the given one, ascending.
    fn ids(&self, after: Option<BlockId>, most: usize) -> Result<Vec<BlockId>> {
        let mut ids = Vec::new();
        let list = |error| failed("the folder of blocks", &error);
        for generation in self.layout.generations().map_err(list)? {
            if ids.len() >= most {
                break;
            }
            if after.is_some_and(|after| generation < after.generation) {
                continue;
            }
            let files = self.layout.contents(generation).map_err(list)?.files;
            let found = files.into_iter().map(|number| BlockId { generation, number });
            let behind = found.filter(|id| after.is_none_or(|after| *id > after));
            ids.extend(behind.take(most - ids.len()));
        }
        Ok(ids)
    }

    /// The tail of a file.
    fn look(&self, id: BlockId) -> io::Result<FoundFile> {
        let file = File::open(self.layout.file(id))?;
        let tail = tail::read(&file)?;
        if tail.file.id != id {
            return Err(tail::damaged("holds another file"));
        }
        Ok(FoundFile { file: tail.file, owner: tail.owner(&file)? })
    }

    /// A page of complete files; incomplete ones are not finished files.
    fn list(&self, after: Option<BlockId>, most: usize) -> Result<Vec<FoundFile>> {
        let mut after = after;
        loop {
            let ids = self.ids(after, most)?;
            let found: Vec<_> = ids.iter().filter_map(|id| self.look(*id).ok()).collect();
            if !found.is_empty() || ids.is_empty() {
                return Ok(found);
            }
            after = ids.last().copied();
        }
    }

    fn copy(&self, block: &BlockFile, owner: &Owner) -> Result<BlockFile> {
        let from = reader::open(self, block);
        let from = from.map_err(|error| failed(reader::named(block), &error))?;
        let mut part = Part::create(self)?;
        let (mut start, mut buffer) = (0, vec![0; COPY_BYTES]);
        while start < block.length {
            let length = (block.length - start).min(COPY_BYTES as u64) as usize;
            let read =
                std::os::unix::fs::FileExt::read_exact_at(&from, &mut buffer[..length], start);
            read.map_err(|error| failed(reader::named(block), &error))?;
            part.write(&[Bytes::copy_from_slice(&buffer[..length])])?;
            start += length as u64;
        }
        if part.sum() != block.crc64 {
            let error = tail::damaged("does not match its sum");
            return Err(failed(reader::named(block), &error));
        }
        part.finish(self, owner)
    }
}

impl Blocks for BlockFiles {
    fn create<'a>(&'a self, owner: &'a Owner) -> BoxFuture<'a, Result<Box<dyn BlockWriter>>> {
        let made = check(owner).map(|()| {
            let writer: Box<dyn BlockWriter> =
                Box::new(Writer::new(self.shared.clone(), owner.clone()));
            writer
        });
        Box::pin(std::future::ready(made))
    }

    fn copy<'a>(
        &'a self,
        file: &'a BlockFile,
        owner: &'a Owner,
    ) -> BoxFuture<'a, Result<BlockFile>> {
        let (shared, file, owner) = (self.shared.clone(), *file, owner.clone());
        Box::pin(async move {
            check(&owner)?;
            self.shared.disk.run(move || shared.copy(&file, &owner)).await
        })
    }

    fn read<'a>(
        &'a self,
        file: &'a BlockFile,
        range: Range<u64>,
    ) -> BoxFuture<'a, Result<Box<dyn BlockReader>>> {
        let (shared, file) = (self.shared.clone(), *file);
        Box::pin(async move {
            let reader = self.shared.disk.run(move || Reader::open(shared, file, range)).await?;
            let reader: Box<dyn BlockReader> = Box::new(reader);
            Ok(reader)
        })
    }

    fn remove(&self, id: BlockId) -> BoxFuture<'_, Result<()>> {
        let shared = self.shared.clone();
        Box::pin(self.shared.disk.run(move || shared.remove(id)))
    }

    fn remove_of<'a>(&'a self, owner: &'a Owner, id: BlockId) -> BoxFuture<'a, Result<()>> {
        let (shared, owner) = (self.shared.clone(), owner.clone());
        Box::pin(self.shared.disk.run(move || shared.remove_of(&owner, id)))
    }

    fn list(&self, after: Option<BlockId>, most: usize) -> BoxFuture<'_, Result<Vec<FoundFile>>> {
        let shared = self.shared.clone();
        Box::pin(self.shared.disk.run(move || shared.list(after, most)))
    }
}

fn check(owner: &Owner) -> Result<()> {
    if owner.route.len() > KEY_BYTES_MAX {
        return Err(Error::too_large("key-too-large", "the owner's route is longer than any key"));
    }
    Ok(())
}
