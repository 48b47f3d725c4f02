//! Files into blobs: small ones in one request, large ones in blocks that several connections send at once.
//!
//! The blocks of a file are read one after another, so that the MD5 sum of the whole is computed on the way, and handed to
//! the connections that are free. The connection that sends the last block commits the blob.

use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::BuildHasher;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_console::{Failure, Result};
use lazuli_http::uri::percent_encode;

use super::address::BlobAddress;
use super::digest::{Sum, of_bytes};
use super::local::cannot;
use super::media::content_type;
use crate::session::{Call, Session};

/// How much is sent or fetched in one request.
pub const BLOCK_BYTES: u64 = 8 * 1024 * 1024;
/// The most blocks of a blob that the service takes. Files with more of them have larger ones.
const BLOCKS_MAX: u64 = 50_000;
const MEBIBYTE: u64 = 1024 * 1024;

/// Sends a file in one request.
pub(super) fn whole(session: &mut Session, file: &Path, size: u64, to: &BlobAddress) -> Result<()> {
    let mut input = File::open(file).map_err(|error| cannot(file, &error))?;
    let bytes = read(&mut input, file, size, true)?;
    let (path, md5) = (to.path(), of_bytes(&bytes));
    let headers = [
        ("x-ms-blob-type", "BlockBlob"),
        ("x-ms-blob-content-type", content_type(&to.name)),
        ("content-md5", &md5),
    ];
    session.expect(Call { headers: &headers, body: &bytes, ..Call::new("PUT", &path) })?;
    Ok(())
}

/// A file that is being sent in blocks.
pub struct Upload {
    to: BlobAddress,
    /// The prefix of the ids of its blocks, so that blocks of another upload to the same blob are not mixed in.
    mark: u64,
    state: Mutex<UploadState>,
}

#[derive(Default)]
struct UploadState {
    sent: u64,
    failed: bool,
    /// How many blocks there are, and the sum of them all, before the last of them is handed out.
    whole: Option<(u64, String)>,
}

impl Upload {
    pub fn new(to: &BlobAddress) -> Self {
        let mark = RandomState::new().hash_one(&to.name);
        Self { to: to.clone(), mark, state: Mutex::default() }
    }

    /// Reads a file block by block. `hand_out` says whether to go on.
    pub(super) fn read(
        file: &Path,
        size: u64,
        to: &BlobAddress,
        mut hand_out: impl FnMut(&Arc<Self>, u64, Vec<u8>) -> bool,
    ) -> Result<()> {
        let mut input = File::open(file).map_err(|error| cannot(file, &error))?;
        let upload = Arc::new(Self::new(to));
        let block = block_bytes(size);
        let count = size.div_ceil(block);
        let mut sum = Sum::default();
        for index in 0..count {
            let is_last = index + 1 == count;
            let length = block.min(size - index * block);
            let bytes = read(&mut input, file, length, is_last)?;
            sum.add(&bytes);
            if is_last {
                upload.state().whole = Some((count, std::mem::take(&mut sum).text()));
            }
            if upload.state().failed || !hand_out(&upload, index, bytes) {
                break;
            }
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, UploadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends one block, and after the last one commits the blob. Says whether it is committed now.
    ///
    /// Of several failures the first is reported: an upload that has failed sends and reports nothing more.
    pub(super) fn send(&self, session: &mut Session, index: u64, bytes: &[u8]) -> Result<bool> {
        if self.state().failed {
            return Ok(false);
        }
        let sent = self.block(session, index, bytes).and_then(|()| {
            let mut state = self.state();
            state.sent += 1;
            match &state.whole {
                Some((count, md5)) if *count == state.sent => {
                    let (count, md5) = (*count, md5.clone());
                    drop(state);
                    self.commit(session, count, &md5).map(|()| true)
                }
                _ => Ok(false),
            }
        });
        match sent {
            Err(_) if std::mem::replace(&mut self.state().failed, true) => Ok(false),
            other => other,
        }
    }

    /// Sends one block without committing it.
    pub fn block(&self, session: &mut Session, index: u64, bytes: &[u8]) -> Result<()> {
        let (path, md5) = (self.to.path(), of_bytes(bytes));
        let query = format!("comp=block&blockid={}", percent_encode(&self.id(index)));
        let headers = [("content-md5", md5.as_str())];
        let call =
            Call { query: &query, headers: &headers, body: bytes, ..Call::new("PUT", &path) };
        session.expect(call).map(|_| ())
    }

    /// Commits the first `count` blocks as the blob.
    pub fn commit(&self, session: &mut Session, count: u64, md5: &str) -> Result<()> {
        let path = self.to.path();
        let mut body = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>".to_owned();
        for index in 0..count {
            body.push_str(&format!("<Latest>{}</Latest>", self.id(index)));
        }
        body.push_str("</BlockList>");
        let kind = content_type(&self.to.name);
        let headers = [("x-ms-blob-content-type", kind), ("x-ms-blob-content-md5", md5)];
        session.expect(Call {
            query: "comp=blocklist",
            content_type: "application/xml",
            headers: &headers,
            body: body.as_bytes(),
            ..Call::new("PUT", &path)
        })?;
        Ok(())
    }

    /// All ids of a blob are of one length.
    fn id(&self, index: u64) -> String {
        STANDARD.encode(format!("{:016x}{index:06}", self.mark))
    }
}

fn block_bytes(size: u64) -> u64 {
    BLOCK_BYTES.max(size.div_ceil(BLOCKS_MAX).next_multiple_of(MEBIBYTE))
}

/// Reads so many bytes. With `is_end` the file must end there.
fn read(input: &mut File, file: &Path, length: u64, is_end: bool) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    input.take(length).read_to_end(&mut bytes).map_err(|error| cannot(file, &error))?;
    let is_short = bytes.len() as u64 != length;
    let goes_on = is_end && input.read(&mut [0]).map_err(|error| cannot(file, &error))? > 0;
    if is_short || goes_on {
        return Err(Failure::failed(format!("{} changed while it was read", file.display())));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_in_blocks_whose_last_one_knows_the_sum() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes: Vec<u8> = (0..2 * BLOCK_BYTES + 5).map(|at| (at % 251) as u8).collect();
        std::fs::write(file.path(), &bytes).unwrap();
        let to = BlobAddress { container: "c".to_owned(), name: "n".to_owned() };
        let (mut all, mut sums) = (Vec::new(), Vec::new());
        let size = bytes.len() as u64;
        Upload::read(file.path(), size, &to, |upload, index, block| {
            assert_eq!(index, sums.len() as u64);
            all.extend(block);
            sums.push(upload.state().whole.clone());
            true
        })
        .unwrap();
        assert!(all == bytes);
        assert_eq!(sums, [None, None, Some((3, of_bytes(&bytes)))]);
        for wrong in [size - 1, size + 1] {
            assert!(Upload::read(file.path(), wrong, &to, |_, _, _| true).is_err());
        }
    }

    #[test]
    fn blocks_grow_with_files_that_would_have_too_many() {
        assert_eq!(block_bytes(BLOCK_BYTES + 1), BLOCK_BYTES);
        assert_eq!(block_bytes(BLOCK_BYTES * BLOCKS_MAX), BLOCK_BYTES);
        assert_eq!(block_bytes(BLOCK_BYTES * BLOCKS_MAX + 1), BLOCK_BYTES + MEBIBYTE);
        let upload = |mark| Upload {
            to: BlobAddress { container: "c".to_owned(), name: "n".to_owned() },
            mark,
            state: Mutex::default(),
        };
        assert_eq!(upload(0).id(0).len(), upload(u64::MAX).id(BLOCKS_MAX - 1).len());
    }
}
