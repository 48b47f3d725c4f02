//! Tracks the new parts of growing files. Each part is reported once: requesting writeback of clean pages again would
//! only drop them from the page cache.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A file that has grown by less waits: smaller writes cost the disk more than they save the commits.
const PIECE_BYTES_LEAST: u64 = 128 * 1024;
/// A partial page will be written again, so it waits until it is full. No system has larger pages.
const PAGE_BYTES: u64 = 64 * 1024;
/// An engine writes few tables at once. More than this means that the end of some was missed.
const FILES_MAX: usize = 64;

/// The files that are being written.
#[derive(Default)]
pub(super) struct Growth {
    files: HashMap<PathBuf, Progress>,
}

#[derive(Default)]
struct Progress {
    /// Writeback was requested up to here.
    asked_bytes: u64,
    is_written: bool,
}

impl Growth {
    /// Something was written to the file.
    pub(super) fn note_written(&mut self, path: PathBuf) {
        if self.files.len() >= FILES_MAX && !self.files.contains_key(&path) {
            self.forget_all();
        }
        self.files.entry(path).or_default().is_written = true;
    }

    /// The file is finished, that is synced, or deleted.
    pub(super) fn note_ended(&mut self, path: &Path) {
        self.files.remove(path);
    }

    pub(super) fn forget_all(&mut self) {
        self.files.clear();
    }

    /// The new parts of files that were written since the last call, given the length of each. A deleted file has no
    /// length, and is removed.
    pub(super) fn take_new(
        &mut self,
        length_of: impl Fn(&Path) -> Option<u64>,
    ) -> Vec<(PathBuf, Range<u64>)> {
        let mut new = Vec::new();
        self.files.retain(|path, progress| {
            if !std::mem::take(&mut progress.is_written) {
                return true;
            }
            let Some(file_bytes) = length_of(path) else { return false };
            let (start, end) = (progress.asked_bytes, file_bytes - file_bytes % PAGE_BYTES);
            if end >= start + PIECE_BYTES_LEAST {
                progress.asked_bytes = end;
                new.push((path.clone(), start..end));
            }
            true
        });
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn table(name: u32) -> PathBuf {
        PathBuf::from(format!("tables/{name}"))
    }

    /// The parts that are requested of one file, after it has grown to each of the lengths.
    fn ranges(lengths: &[u64]) -> Vec<Range<u64>> {
        let mut growth = Growth::default();
        let grow = |&length: &u64| {
            growth.note_written(table(1));
            growth.take_new(|_| Some(length)).into_iter().map(|(_, range)| range)
        };
        lengths.iter().flat_map(grow).collect()
    }

    #[test]
    fn every_full_page_is_asked_for_once_and_in_order() {
        let lengths = [MIB + 1, 2 * MIB + PAGE_BYTES - 1, 5 * MIB + 3 * PAGE_BYTES];
        let expected = [0..MIB, MIB..2 * MIB, 2 * MIB..5 * MIB + 3 * PAGE_BYTES];
        assert_eq!(ranges(&lengths), expected);
    }

    #[test]
    fn small_growth_waits_until_it_is_worth_a_write() {
        let nearly = PIECE_BYTES_LEAST - 1;
        assert_eq!(ranges(&[0, 1, nearly]), []);
        let then = 2 * PIECE_BYTES_LEAST;
        let expected = [0..PIECE_BYTES_LEAST, PIECE_BYTES_LEAST..then];
        assert_eq!(ranges(&[nearly, nearly + 1, nearly + 2, then - 1, then]), expected);
        // A file that has become shorter is not a table, but this is not an error.
        assert_eq!(ranges(&[2 * MIB, MIB, 2 * MIB, 3 * MIB]), [0..2 * MIB, 2 * MIB..3 * MIB]);
    }

    #[test]
    fn files_that_nobody_wrote_to_are_not_looked_at() {
        let mut growth = Growth::default();
        growth.note_written(table(1));
        growth.note_written(table(2));
        assert_eq!(growth.take_new(|_| Some(MIB)).len(), 2);
        growth.note_written(table(2));
        assert_eq!(growth.take_new(|_| Some(2 * MIB)), [(table(2), MIB..2 * MIB)]);
        assert_eq!(growth.take_new(|_| panic!("nobody wrote")), []);
    }

    #[test]
    fn finished_and_vanished_files_are_forgotten() {
        let mut growth = Growth::default();
        growth.note_written(table(1));
        growth.note_written(table(2));
        growth.note_ended(&table(1));
        // Also if it was written just before: it is on disk by now.
        assert_eq!(growth.take_new(|path| (path == table(1)).then_some(MIB)), []);
        assert!(growth.files.is_empty());
    }

    #[test]
    fn whatever_is_missed_the_number_of_files_is_bounded() {
        let mut growth = Growth::default();
        for name in 0..10_000 {
            growth.note_written(table(name));
            growth.take_new(|_| Some(MIB));
            assert!(growth.files.len() <= FILES_MAX);
        }
    }
}
