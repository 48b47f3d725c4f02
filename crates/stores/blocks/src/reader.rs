//! Reads a range of a file in pieces. Cached pages are read at once, others in a thread that may block.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_env::BoxFuture;
use lazuli_store::blocks::{BlockFile, BlockReader};
use lazuli_store::crc64::Crc64;
use lazuli_store::{Error, Result};

use crate::disk::failed;
use crate::files::Shared;
use crate::pool::{BUFFER_BYTES, Buffer};
use crate::tail;

pub(crate) struct Reader {
    shared: Arc<Shared>,
    file: Arc<File>,
    block: BlockFile,
    rest: Range<u64>,
    /// The checksum so far, if all bytes are read.
    sum: Option<Crc64>,
    /// The piece that was read while the file was opened.
    first: Option<Bytes>,
}

impl Reader {
    /// Opens a file and reads the first piece. Blocks.
    pub(crate) fn open(shared: Arc<Shared>, block: BlockFile, range: Range<u64>) -> Result<Self> {
        if range.start > range.end || range.end > block.length {
            return Err(Error::invalid("bad-range", "the range is not inside the file"));
        }
        let file = open(&shared, &block).map_err(|error| failed(named(&block), &error))?;
        let sum = (range == (0..block.length)).then(Crc64::new);
        let (file, rest) = (Arc::new(file), range);
        let mut reader = Self { shared, file, block, rest, sum, first: None };
        reader.first = match reader.buffer() {
            Some(buffer) => {
                let buffer = read(&reader.file, buffer, reader.rest.start);
                let buffer = buffer.map_err(|error| failed(named(&block), &error))?;
                Some(reader.took(buffer)?)
            }
            None => {
                reader.check()?;
                None
            }
        };
        Ok(reader)
    }

    /// A buffer for the next piece; none at the end of the range.
    fn buffer(&self) -> Option<Buffer> {
        let length = (self.rest.end - self.rest.start).min(BUFFER_BYTES as u64) as usize;
        (length > 0).then(|| self.shared.pool.take(length))
    }

    /// Advances past a piece that was read, and verifies the checksum before the last one is returned.
    fn took(&mut self, buffer: Buffer) -> Result<Bytes> {
        let piece = buffer.freeze();
        self.rest.start += piece.len() as u64;
        if let Some(sum) = &mut self.sum {
            sum.update(&piece);
        }
        self.check()?;
        Ok(piece)
    }

    fn check(&self) -> Result<()> {
        match &self.sum {
            Some(sum) if self.rest.is_empty() && sum.sum() != self.block.crc64 => {
                Err(failed(named(&self.block), &tail::damaged("does not match its sum")))
            }
            _ => Ok(()),
        }
    }

    async fn next_piece(&mut self) -> Result<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let Some(mut buffer) = self.buffer() else { return Ok(None) };
        let (start, block) = (self.rest.start, self.block);
        if !read_from_memory(&self.file, buffer.bytes_mut(), start) {
            let file = self.file.clone();
            let call =
                move || read(&file, buffer, start).map_err(|error| failed(named(&block), &error));
            buffer = self.shared.disk.run(call).await?;
        }
        self.took(buffer).map(Some)
    }
}

impl BlockReader for Reader {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>>> {
        Box::pin(self.next_piece())
    }
}

pub(crate) fn named(block: &BlockFile) -> String {
    format!("block file {}", block.id)
}

/// Opens a file and compares its tail with the reference.
pub(crate) fn open(shared: &Shared, block: &BlockFile) -> io::Result<File> {
    let file = File::open(shared.layout.file(block.id))?;
    let found = tail::read(&file)?.file;
    if found == *block {
        return Ok(file);
    }
    Err(tail::damaged(match found {
        BlockFile { id, .. } if id != block.id => "holds another file",
        BlockFile { length, .. } if length != block.length => {
            "has another length than its row says"
        }
        _ => "has another sum than its row says",
    }))
}

fn read(file: &File, mut buffer: Buffer, start: u64) -> io::Result<Buffer> {
    file.read_exact_at(buffer.bytes_mut(), start)?;
    Ok(buffer)
}

/// Reads if that does not block, and returns whether it did.
#[cfg(target_os = "linux")]
fn read_from_memory(file: &File, bytes: &mut [u8], start: u64) -> bool {
    use rustix::io::{ReadWriteFlags, preadv2};
    let length = bytes.len();
    let mut slices = [io::IoSliceMut::new(bytes)];
    // A short read, or none, means that the rest is not cached.
    preadv2(file, &mut slices, start, ReadWriteFlags::NOWAIT).is_ok_and(|read| read == length)
}

#[cfg(not(target_os = "linux"))]
fn read_from_memory(_: &File, _: &mut [u8], _: u64) -> bool {
    false
}
