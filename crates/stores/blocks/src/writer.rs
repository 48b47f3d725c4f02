//! A file that is being written: collects data, writes it in few large pieces, and syncs it at the end.
//!
//! While one piece is being written the next one is collected, so an upload holds at most two. Nothing is written
//! before the first piece is full: a small file is created, written and synced in one call.

use std::fs::{self, File};
use std::io::{IoSlice, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use lazuli_env::BoxFuture;
use lazuli_store::blocks::{BlockFile, BlockWriter, Owner};
use lazuli_store::crc64::Crc64;
use lazuli_store::{Error, Result};
use tokio::runtime::Handle;

use crate::disk::{Call, failed};
use crate::entries::Entries;
use crate::files::Shared;
use crate::generation::Slot;
use crate::layout::remove_if_there;
use crate::room;
use crate::tail;

/// Size of a piece.
const GATHER_BYTES: usize = 256 * 1024;
/// Buffers that are written with one call.
const SLICES_MAX: usize = 64;
/// How much is written before writeback is started.
const AHEAD_BYTES: u64 = 1024 * 1024;

pub(crate) struct Writer {
    shared: Arc<Shared>,
    owner: Owner,
    gathered: Vec<Bytes>,
    gathered_bytes: usize,
    progress: Progress,
}

enum Progress {
    /// No file yet.
    Nothing,
    /// The newest piece is being written, or is written.
    Writing(Call<Part>),
    /// A write failed, or its caller was cancelled: there is no file to continue.
    Failed,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, owner: Owner) -> Self {
        let progress = Progress::Nothing;
        Self { shared, owner, gathered: Vec::new(), gathered_bytes: 0, progress }
    }

    /// The file, once the running write has ended.
    async fn part(&mut self) -> Result<Option<Part>> {
        match std::mem::replace(&mut self.progress, Progress::Failed) {
            Progress::Nothing => Ok(None),
            Progress::Writing(call) => call.outcome().await.map(Some),
            Progress::Failed => Err(Error::unavailable("block-io", "an earlier write failed")),
        }
    }

    async fn flush(&mut self) -> Result<()> {
        let part = self.part().await?;
        let pieces = std::mem::take(&mut self.gathered);
        self.gathered_bytes = 0;
        let shared = self.shared.clone();
        let call = move || {
            room::check(&shared.layout.root)?;
            let mut part = part.map_or_else(|| Part::create(&shared), Ok)?;
            part.write(&pieces)?;
            Ok(part)
        };
        self.progress = Progress::Writing(self.shared.disk.begin(call).await?);
        Ok(())
    }

    async fn end(mut self) -> Result<BlockFile> {
        let part = self.part().await?;
        let pieces = std::mem::take(&mut self.gathered);
        let (shared, owner) = (self.shared.clone(), self.owner.clone());
        let call = move || {
            room::check(&shared.layout.root)?;
            let mut part = part.map_or_else(|| Part::create(&shared), Ok)?;
            part.write(&pieces)?;
            part.finish(&shared, &owner)
        };
        self.shared.disk.run(call).await
    }
}

impl BlockWriter for Writer {
    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        if !bytes.is_empty() {
            self.gathered_bytes += bytes.len();
            self.gathered.push(bytes);
        }
        if self.gathered_bytes < GATHER_BYTES {
            return Box::pin(std::future::ready(Ok(())));
        }
        Box::pin(self.flush())
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<BlockFile>> {
        Box::pin((*self).end())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The last owner of the call removes the file. That takes a while, so it should not happen here if another
        // owner exists.
        if let Progress::Writing(call) = std::mem::replace(&mut self.progress, Progress::Failed)
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn_blocking(move || drop(call));
        }
    }
}

/// A file without references; removed when dropped.
pub(crate) struct Part {
    file: File,
    slot: Slot,
    path: Option<PathBuf>,
    length: u64,
    /// Up to where writeback was started.
    begun: u64,
    sum: Crc64,
}

impl Part {
    pub(crate) fn create(shared: &Shared) -> Result<Self> {
        let slot =
            shared.generations.next().map_err(|error| failed("a folder of blocks", &error))?;
        let path = shared.layout.part(slot.id);
        let file = File::create_new(&path);
        let file = file.map_err(|error| failed(format!("new block file {}", slot.id), &error))?;
        Ok(Self { file, slot, path: Some(path), length: 0, begun: 0, sum: Crc64::new() })
    }

    pub(crate) fn write(&mut self, pieces: &[Bytes]) -> Result<()> {
        for piece in pieces {
            self.sum.update(piece);
            self.length += piece.len() as u64;
        }
        for pieces in pieces.chunks(SLICES_MAX) {
            self.write_all(pieces).map_err(|error| self.failed(&error))?;
        }
        if self.slot.entries.is_some() && self.length - self.begun >= AHEAD_BYTES {
            begin_to_sync(&self.file, self.begun, self.length);
            self.begun = self.length;
        }
        Ok(())
    }

    fn write_all(&mut self, pieces: &[Bytes]) -> std::io::Result<()> {
        let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut rest = slices.as_mut_slice();
        while !rest.is_empty() {
            match self.file.write_vectored(rest) {
                Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut rest, written),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The checksum of the bytes written so far.
    pub(crate) fn sum(&self) -> u64 {
        self.sum.sum()
    }

    /// Renames the file and syncs file and folder, in parallel.
    pub(crate) fn finish(mut self, shared: &Shared, owner: &Owner) -> Result<BlockFile> {
        let file = BlockFile { id: self.slot.id, length: self.length, crc64: self.sum.sum() };
        let written = self.file.write_all(&tail::encode(&file, owner));
        written.and_then(|()| self.publish(shared)).map_err(|error| self.failed(&error))?;
        self.path = None;
        shared.finished.fetch_add(1, Ordering::AcqRel);
        Ok(file)
    }

    fn publish(&mut self, shared: &Shared) -> std::io::Result<()> {
        let path = shared.layout.file(self.slot.id);
        if let Some(part) = &self.path {
            fs::rename(part, &path)?;
            self.path = Some(path);
        }
        let Some(entries) = &self.slot.entries else { return Ok(()) };
        let place = entries.ask();
        self.file.sync_data()?;
        Entries::wait(entries, place)
    }

    fn failed(&self, error: &std::io::Error) -> Error {
        failed(format!("new block file {}", self.slot.id), error)
    }
}

/// Starts writeback of a range that was just written, so that the disk works during the upload and the final fsync is
/// short. Only a hint.
#[cfg(target_os = "linux")]
fn begin_to_sync(file: &File, start: u64, end: u64) {
    use rustix::fs::{Advice, fadvise};
    // Linux starts to write dirty pages, and drops clean ones. These are dirty.
    let _ = fadvise(file, start, std::num::NonZeroU64::new(end - start), Advice::DontNeed);
}

#[cfg(not(target_os = "linux"))]
fn begin_to_sync(_: &File, _: u64, _: u64) {}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // If it cannot be removed now, the next start removes it.
            let _ = remove_if_there(path);
        }
    }
}
