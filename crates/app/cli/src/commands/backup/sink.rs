//! The target of a backup: a file in a folder, or a blob. It appears under its name when it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use lazuli_console::{Failure, Result};
use lazuli_transfer::blob::{
    BLOCK_BYTES, BlobAddress, Location, PART_SUFFIX, Sum, Upload, cannot, ensure,
};
use lazuli_transfer::session::Session;

use crate::args::service::Service;

/// Blocks of the first size. Later blocks are larger, so that 50,000 of them are enough for every backup.
const BLOCKS_SMALL: u64 = 10_000;
const BLOCK_LARGE_BYTES: u64 = 64 * 1024 * 1024;
const BLOCKS_MAX: u64 = 50_000;

/// The suffix of the names of backups.
pub(super) const SUFFIX: &str = ".lzbackup";

/// A folder or a prefix of blobs for backups.
pub(super) enum Shelf {
    Folder(PathBuf),
    Container { session: Session, below: BlobAddress },
}

impl Shelf {
    pub(super) fn open(place: &str, create: bool, service: &Service) -> Result<Self> {
        match Location::read(place)? {
            Location::Local(folder) => {
                fs::create_dir_all(&folder).map_err(|error| cannot(&folder, &error))?;
                Ok(Self::Folder(folder))
            }
            Location::Remote(address) => {
                let mut session = Session::new(service.blobs()?)?;
                if create {
                    ensure(&mut session, &address.container)?;
                }
                Ok(Self::Container { session, below: address.below() })
            }
        }
    }

    /// Begins a backup of this name.
    pub(super) fn begin(&mut self, name: &str) -> Result<Sink<'_>> {
        match self {
            Self::Folder(folder) => {
                let path = folder.join(name);
                if path.exists() {
                    let message = format!("{} exists already", path.display());
                    return Err(Failure::failed(message));
                }
                let part = folder.join(format!("{name}{PART_SUFFIX}"));
                let file = OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .mode(0o600)
                    .open(&part);
                let file = file.map_err(|error| cannot(&part, &error))?;
                Ok(Sink::File(FileSink { file, part: Some(part), path }))
            }
            Self::Container { session, below } => {
                let to = below.with(name);
                let upload = Upload::new(&to);
                let (block, sum) = (Vec::new(), Sum::default());
                let blob = BlobSink { session, to, upload, block, sent: 0, sum };
                Ok(Sink::Blob(Box::new(blob)))
            }
        }
    }
}

/// A backup that is being written.
pub(super) enum Sink<'a> {
    File(FileSink),
    Blob(Box<BlobSink<'a>>),
}

impl Sink<'_> {
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::File(sink) => {
                sink.file.write_all(bytes).map_err(|error| cannot(&sink.path, &error))
            }
            Self::Blob(sink) => sink.write(bytes),
        }
    }

    /// Makes the backup appear under its name, and returns its location.
    pub(super) fn finish(self) -> Result<String> {
        match self {
            Self::File(sink) => sink.finish(),
            Self::Blob(sink) => sink.finish(),
        }
    }
}

pub(super) struct FileSink {
    file: File,
    /// The part file, which is removed unless the backup is finished.
    part: Option<PathBuf>,
    path: PathBuf,
}

impl FileSink {
    fn finish(mut self) -> Result<String> {
        let path = &self.path;
        self.file.sync_all().map_err(|error| cannot(path, &error))?;
        if let Some(part) = self.part.take() {
            fs::rename(&part, path).map_err(|error| cannot(path, &error))?;
        }
        // The rename is durable once the folder is synced.
        let folder = path.parent().and_then(|folder| File::open(folder).ok());
        folder.map_or(Ok(()), |it| it.sync_all()).map_err(|error| cannot(path, &error))?;
        Ok(path.display().to_string())
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let _ = fs::remove_file(part);
        }
    }
}

pub(super) struct BlobSink<'a> {
    session: &'a mut Session,
    to: BlobAddress,
    upload: Upload,
    /// The bytes of the next block so far.
    block: Vec<u8>,
    sent: u64,
    sum: Sum,
}

impl BlobSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.sum.add(bytes);
        let mut rest = bytes;
        loop {
            let room = block_bytes(self.sent) as usize - self.block.len();
            if rest.len() < room {
                self.block.extend_from_slice(rest);
                return Ok(());
            }
            let (now, later) = rest.split_at(room);
            self.block.extend_from_slice(now);
            self.send()?;
            rest = later;
        }
    }

    fn send(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        if self.sent == BLOCKS_MAX {
            return Err(Failure::failed("the backup is larger than a blob can be"));
        }
        self.upload.block(self.session, self.sent, &self.block)?;
        self.sent += 1;
        self.block.clear();
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<String> {
        self.send()?;
        let sum = std::mem::take(&mut self.sum).text();
        self.upload.commit(self.session, self.sent, &sum)?;
        Ok(self.to.to_string())
    }
}

fn block_bytes(index: u64) -> u64 {
    if index < BLOCKS_SMALL { BLOCK_BYTES } else { BLOCK_LARGE_BYTES }
}
