//! The two keyspaces of the engine, and which keys are in each.
//!
//! ```text
//! data   every key from 00 00 00 01 on, and the anchor before them
//! own    every key before it (container 0: what a shard knows about itself), and the marker behind them
//! ```
//!
//! Every batch writes rows of the shard itself, which are at one end of all keys. In one tree with the data they
//! would make every flushed table overlap all others, and the engine would compact loaded tables over and over.
//!
//! Marker and anchor are outside of the ranges that callers' keys can have in their keyspace. So reads never have
//! to filter them, and callers may use any key.

use std::ops::Bound;

use fjall::{AbstractTree, Keyspace};
use lazuli_store::KeyRange;

use crate::merges::Hurry;

/// The first key of callers' data. All keys before it are the shard's own.
pub(crate) const DATA_START: &[u8] = &[0, 0, 0, 1];

/// The engine's names and numbers of the keyspaces: in the order of creation, from 1.
pub(crate) const DATA: (&str, u64) = ("data", 1);
pub(crate) const OWN: (&str, u64) = ("own", 2);

/// A row of the store in `data`, put by every batch that otherwise only deletes there.
///
/// Compactions drop tombstones. With the last of them the engine would forget that it has flushed the batch: it would keep
/// the batch's journal while nothing else is written, and a dropped tombstone could not be distinguished from a lost one.
pub(crate) const ANCHOR: &[u8] = &[0];

/// The range of callers' keys in a keyspace.
pub(crate) type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

const OWN_BOUNDS: Bounds<'static> = (Bound::Unbounded, Bound::Excluded(DATA_START));
const DATA_BOUNDS: Bounds<'static> = (Bound::Included(DATA_START), Bound::Unbounded);

/// The engine blocks writers at 4 memtables that wait for their flush, and at 30 runs of tables that wait for
/// compaction, and does not notice there that its workers have failed. Waiting below these limits, and checking,
/// turns a hang into an error.
const SEALED_MEMTABLES_MAX: usize = 3;
const RUNS_MAX: usize = 28;

/// A shard's own rows are few compared with its data: their memtable gets this part of the other's size.
const OWN_MEMTABLE_PART: u64 = 4;

pub(crate) struct Keyspaces {
    pub(crate) data: Keyspace,
    pub(crate) own: Keyspace,
    /// Size of a memtable of `data`.
    pub(crate) memtable_bytes: u64,
    /// Tells the compaction filters whether compactions are behind.
    pub(crate) hurry: Hurry,
}

impl Keyspaces {
    /// The keyspace of a caller's key.
    pub(crate) fn of(&self, key: &[u8]) -> &Keyspace {
        if is_data(key) { &self.data } else { &self.own }
    }

    /// Keyspaces whose memtable is full.
    pub(crate) fn full(&self) -> impl Iterator<Item = &Keyspace> {
        let own_bytes = self.memtable_bytes / OWN_MEMTABLE_PART;
        let limits = [(&self.data, self.memtable_bytes), (&self.own, own_bytes)];
        let full = limits.into_iter().filter(|(keyspace, bytes)| {
            let memtable = keyspace.tree.active_memtable();
            memtable.size() > *bytes
        });
        full.map(|(keyspace, _)| keyspace)
    }

    /// Whether the workers are so far behind that the next batch should wait for them.
    pub(crate) fn are_behind(&self) -> bool {
        self.all().iter().any(|(keyspace, _)| {
            keyspace.sealed_memtable_count() >= SEALED_MEMTABLES_MAX
                || keyspace.tree.l0_run_count() >= RUNS_MAX
        })
    }

    /// Both, with the bounds of callers' keys in them, in key order.
    pub(crate) fn all(&self) -> [(&Keyspace, Bounds<'static>); 2] {
        [(&self.own, OWN_BOUNDS), (&self.data, DATA_BOUNDS)]
    }
}

pub(crate) fn is_data(key: &[u8]) -> bool {
    key >= DATA_START
}

/// The part of a range in `own`, and the part in `data`. The range must not be empty.
pub(crate) fn parts(range: &KeyRange) -> [Option<Bounds<'_>>; 2] {
    let start = Bound::Included(&range.start[..]);
    let end = range.end.as_ref().map_or(Bound::Unbounded, |end| Bound::Excluded(&end[..]));
    if is_data(&range.start) {
        return [None, Some((start, end))];
    }
    match &range.end {
        Some(last) if &last[..] <= DATA_START => [Some((start, end)), None],
        _ => [Some((start, OWN_BOUNDS.1)), Some((DATA_BOUNDS.0, end))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bounds: Bounds<'_>) -> (&[u8], Option<&[u8]>) {
        let start = match bounds.0 {
            Bound::Included(start) => start,
            other => panic!("{other:?}"),
        };
        let end = match bounds.1 {
            Bound::Excluded(end) => Some(end),
            Bound::Unbounded => None,
            Bound::Included(end) => panic!("{end:?}"),
        };
        (start, end)
    }

    #[test]
    fn a_range_is_cut_at_the_first_key_of_data() {
        let range = |start: &'static [u8], end: Option<&'static [u8]>| {
            KeyRange::new(start, end.map(bytes::Bytes::from_static))
        };
        type Part<'a> = Option<(&'a [u8], Option<&'a [u8]>)>;
        let cases: [(KeyRange, Part<'_>, Part<'_>); 7] = [
            (KeyRange::all(), Some((b"", Some(DATA_START))), Some((DATA_START, None))),
            (range(b"a", None), None, Some((b"a", None))),
            (range(DATA_START, Some(b"a")), None, Some((DATA_START, Some(b"a")))),
            (range(b"\0", Some(DATA_START)), Some((b"\0", Some(DATA_START))), None),
            (range(b"", Some(b"\0\0")), Some((b"", Some(b"\0\0"))), None),
            (
                range(b"\0\0\0\0x", Some(b"\0\0\0\x01\0")),
                Some((b"\0\0\0\0x", Some(DATA_START))),
                Some((DATA_START, Some(b"\0\0\0\x01\0"))),
            ),
            (
                range(b"\0\0\0\0x", Some(b"\0\0\0\0y")),
                Some((b"\0\0\0\0x", Some(b"\0\0\0\0y"))),
                None,
            ),
        ];
        for (range, own, data) in cases {
            let found = parts(&range);
            assert_eq!(found.map(|part| part.map(keys)), [own, data], "{range:?}");
        }
    }

    #[test]
    fn the_stores_rows_lie_where_no_key_of_a_caller_does() {
        assert!(!is_data(ANCHOR), "readers of data would see it");
        assert!(is_data(&crate::marker::key(&[0; 16])), "readers of own rows would see it");
    }
}
