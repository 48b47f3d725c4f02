//! Blobs into files: small ones in one request, large ones in ranges that several connections fetch at once.
//!
//! A file appears under its name only when it is whole and has the sum that the service says; until then it is a part
//! file beside it, which is removed if anything fails.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lazuli_console::{Failure, Result};

use super::address::BlobAddress;
use super::digest::{of_bytes, of_file};
use super::listing::Entry;
use super::local::{PART_PREFIX, PART_SUFFIX, cannot};
use super::upload::BLOCK_BYTES;
use crate::session::{Call, Session};

/// A file that is being written beside the one that it will replace.
struct Part {
    file: File,
    path: PathBuf,
    kept: AtomicBool,
}

impl Part {
    fn create(target: &Path) -> Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PART_PREFIX}{}-{number}{PART_SUFFIX}", std::process::id());
        let path = target.with_file_name(name);
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(|error| cannot(&path, &error))?;
        Ok(Self { file, path, kept: AtomicBool::new(false) })
    }

    fn keep(&self, target: &Path) -> Result<()> {
        fs::rename(&self.path, target).map_err(|error| cannot(target, &error))?;
        self.kept.store(true, Ordering::Release);
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.kept.load(Ordering::Acquire) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Fetches a blob in one request.
pub(super) fn whole(session: &mut Session, from: &BlobAddress, file: &Path) -> Result<u64> {
    let answer = session.expect(Call::new("GET", &from.path()))?;
    check_sum(answer.header("content-md5"), || Ok(of_bytes(&answer.body)))?;
    let part = Part::create(file)?;
    part.file.write_all_at(&answer.body, 0).map_err(|error| cannot(&part.path, &error))?;
    part.keep(file)?;
    Ok(answer.body.len() as u64)
}

/// A blob that is being fetched in ranges.
pub(super) struct Download {
    from: BlobAddress,
    entry: Entry,
    target: PathBuf,
    part: Part,
    bytes_left: AtomicU64,
    failed: AtomicBool,
}

impl Download {
    pub(super) fn begin(from: BlobAddress, entry: Entry, target: PathBuf) -> Result<Self> {
        let part = Part::create(&target)?;
        part.file.set_len(entry.size).map_err(|error| cannot(&part.path, &error))?;
        let (bytes_left, failed) = (AtomicU64::new(entry.size), AtomicBool::new(false));
        Ok(Self { from, entry, target, part, bytes_left, failed })
    }

    /// Where its ranges begin, and how long they are.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let size = self.entry.size;
        (0..size.div_ceil(BLOCK_BYTES)).map(move |index| {
            let begin = index * BLOCK_BYTES;
            (begin, BLOCK_BYTES.min(size - begin))
        })
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Fetches one range, and after the last one lets the file appear. Says whether it is there now.
    ///
    /// Of several failures the first is reported.
    pub(super) fn fetch(&self, session: &mut Session, begin: u64, length: u64) -> Result<bool> {
        if self.has_failed() {
            return Ok(false);
        }
        let fetched = self.range(session, begin, length).and_then(|()| {
            if self.bytes_left.fetch_sub(length, Ordering::AcqRel) > length {
                return Ok(false);
            }
            let sum = || of_file(&self.part.path).map_err(|error| cannot(&self.part.path, &error));
            check_sum(self.entry.md5.as_deref(), sum)?;
            self.part.keep(&self.target).map(|()| true)
        });
        match fetched {
            Err(_) if self.failed.swap(true, Ordering::Relaxed) => Ok(false),
            other => other,
        }
    }

    fn range(&self, session: &mut Session, begin: u64, length: u64) -> Result<()> {
        let (path, range) = (self.from.path(), format!("bytes={begin}-{}", begin + length - 1));
        // All ranges are of one and the same blob, though it may be replaced meanwhile.
        let headers = [("x-ms-range", range.as_str()), ("if-match", &self.entry.etag)];
        let answer = session.expect(Call { headers: &headers, ..Call::new("GET", &path) })?;
        if answer.status != 206 || answer.body.len() as u64 != length {
            return Err(Failure::failed("the service answered with another range"));
        }
        let written = self.part.file.write_all_at(&answer.body, begin);
        written.map_err(|error| cannot(&self.part.path, &error))
    }
}

/// Compares what came with what the service says, if it says anything.
fn check_sum(expected: Option<&str>, sum: impl FnOnce() -> Result<String>) -> Result<()> {
    let Some(expected) = expected else { return Ok(()) };
    if sum()? == expected {
        return Ok(());
    }
    Err(Failure::failed("the content that came has another MD5 sum than the service says"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(size: u64) -> Entry {
        let (name, etag, kind) = ("n".to_owned(), "\"e\"".to_owned(), String::new());
        Entry { name, size, md5: None, etag, modified: 0, kind }
    }

    #[test]
    fn a_part_is_gone_unless_it_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x");
        let files = || fs::read_dir(folder.path()).unwrap().count();
        drop(Part::create(&target).unwrap());
        assert_eq!(files(), 0);
        let part = Part::create(&target).unwrap();
        part.keep(&target).unwrap();
        drop(part);
        assert!(target.is_file() && files() == 1);
        let blocked = folder.path().join("y");
        fs::create_dir(&blocked).unwrap();
        assert!(Part::create(&blocked).unwrap().keep(&blocked).is_err());
        assert_eq!(files(), 2);
    }

    #[test]
    fn ranges_cover_the_blob_without_gap() {
        let folder = tempfile::tempdir().unwrap();
        let from = BlobAddress { container: "c".to_owned(), name: "n".to_owned() };
        let ranges = |size: u64| {
            let target = folder.path().join("x");
            let download = Download::begin(from.clone(), entry(size), target).unwrap();
            download.ranges().collect::<Vec<_>>()
        };
        assert_eq!(ranges(BLOCK_BYTES), [(0, BLOCK_BYTES)]);
        assert_eq!(ranges(BLOCK_BYTES + 1), [(0, BLOCK_BYTES), (BLOCK_BYTES, 1)]);
    }

    #[test]
    fn another_sum_is_refused() {
        let sum = || Ok("a".to_owned());
        assert!(check_sum(None, sum).is_ok() && check_sum(Some("a"), sum).is_ok());
        assert!(check_sum(Some("b"), sum).is_err());
    }
}
