//! Which tables of `data` go as a whole when a range of keys does.
//!
//! A table of which every key lies in the range can be dropped without a look into it. What tables hold that reach beyond
//! the range, and what is in memory, stays: whoever asked deletes it key by key.

use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;
use std::sync::Arc;

use fjall::{AbstractTree, Keyspace, SeqNo, Slice};
use lazuli_store::KeyRange;

use crate::keyspaces::{Bounds, parts};

/// How many tables go at once: commits wait meanwhile.
const TABLES_AT_ONCE_MAX: usize = 64;

/// With less than this in tables of its own a range is not worth it: deleting it is over sooner than what dropping makes
/// the engine write out.
const BYTES_LEAST: u64 = 4 * 1024 * 1024;

/// Tables that are to be dropped.
pub(crate) struct Chosen {
    start: Bound<Slice>,
    /// The last key that they hold. No other table lies wholly between start and this.
    last: Slice,
    pub(crate) paths: Vec<Arc<PathBuf>>,
    /// The highest sequence number that they hold.
    pub(crate) newest: SeqNo,
    /// Whether there are more in the range.
    pub(crate) more: bool,
}

impl Chosen {
    /// Those of the range that come first, if it is worth it.
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
        // Others may end with the same key.
        let count = tables.partition_point(|table| table.metadata.key_range.max() <= &last);
        let more = count < tables.len();
        tables.truncate(count);
        let newest = tables.iter().map(|table| table.get_highest_seqno()).max()?;
        let paths = tables.iter().map(|table| table.path.clone()).collect();
        Some(Self { start: bounds.0.map(Slice::from), last, paths, newest, more })
    }

    /// Drops them. Whatever else lies wholly between their keys by now goes too.
    pub(crate) fn drop_from(&self, data: &Keyspace) -> fjall::Result<()> {
        let start = self.start.as_ref().map(|start| &start[..]);
        let bounds: Bounds<'_> = (start, Bound::Included(&self.last[..]));
        Ok(data.tree.drop_range::<&[u8], _>(bounds)?)
    }
}
