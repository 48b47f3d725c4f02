//! Selects the tables of `data` that can be dropped whole when a range of keys is deleted.
//!
//! A table whose keys are all in the range is dropped without reading it. Rows in other tables and in memtables
//! stay: the caller deletes them key by key.

use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;
use std::sync::Arc;

use fjall::{AbstractTree, Keyspace, SeqNo, Slice};
use lazuli_store::KeyRange;

use crate::keyspaces::{Bounds, parts};

/// How many tables are dropped at once: commits wait meanwhile.
const TABLES_AT_ONCE_MAX: usize = 64;

/// A range with less than this in tables of its own is not dropped: deleting its rows is faster than the flush that
/// dropping requires.
const BYTES_LEAST: u64 = 4 * 1024 * 1024;

/// Tables that are to be dropped.
pub(crate) struct Chosen {
    start: Bound<Slice>,
    /// Their last key. No other table is completely between the start and this key.
    last: Slice,
    pub(crate) paths: Vec<Arc<PathBuf>>,
    /// The highest sequence number that they hold.
    pub(crate) newest: SeqNo,
    /// Whether there are more in the range.
    pub(crate) more: bool,
}

impl Chosen {
    /// The first tables of the range, if it is large enough.
    pub(crate) fn of(data: &Keyspace, range: &KeyRange) -> Option<Self> {
        if range.is_empty() {
            return None;
        }
        let [_, Some(bounds)] = parts(range) else { return None };
        let version = data.tree.current_version();
        let is_inside = |key: &[u8]| RangeBounds::<&[u8]>::contains(&bounds, &key);
        let mut tables: Vec<_> = version
            .iter_tables()
            .filter(|table| {
                let keys = &table.metadata.key_range;
                is_inside(keys.min()) && is_inside(keys.max())
            })
            .collect();
        if tables.iter().map(|table| table.metadata.file_size).sum::<u64>() < BYTES_LEAST {
            return None;
        }
        tables.sort_unstable_by(|a, b| a.metadata.key_range.max().cmp(b.metadata.key_range.max()));
        let last = tables.get(..TABLES_AT_ONCE_MAX).unwrap_or(&tables).last()?;
        let last = last.metadata.key_range.max().clone();
        // Other tables may end with the same key.
        let count = tables.partition_point(|table| table.metadata.key_range.max() <= &last);
        let more = count < tables.len();
        tables.truncate(count);
        let newest = tables.iter().map(|table| table.get_highest_seqno()).max()?;
        let paths = tables.iter().map(|table| table.path.clone()).collect();
        Some(Self { start: bounds.0.map(Slice::from), last, paths, newest, more })
    }

    /// Drops them, and any other table that is now completely between their keys.
    pub(crate) fn drop_from(&self, data: &Keyspace) -> fjall::Result<()> {
        let start = self.start.as_ref().map(|start| &start[..]);
        let bounds: Bounds<'_> = (start, Bound::Included(&self.last[..]));
        Ok(data.tree.drop_range::<&[u8], _>(bounds)?)
    }
}
