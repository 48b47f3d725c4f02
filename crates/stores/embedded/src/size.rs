//! The approximate disk usage of a range: exact for small ranges, by tables and their indexes for large ones.

use std::ops::RangeBounds;

use bytes::Bytes;
use fjall::{AbstractTree, Keyspace, Slice};
use lazuli_store::{KeyRange, Result};
use lsm_tree::Table;
use lsm_tree::table::{Block, IndexBlock};

use crate::error::from_engine;
use crate::keyspaces::{Bounds, parts};
use crate::reader::Open;

/// Ranges up to this many items are scanned. Larger ones are estimated.
const WALK_ITEMS_MAX: u64 = 10_000;

pub(crate) fn size(view: &Open<'_>, range: &KeyRange) -> Result<u64> {
    let walked = view.measure(range, WALK_ITEMS_MAX)?;
    if walked.complete {
        return Ok(walked.bytes);
    }
    let mut bytes = 0.0;
    for ((keyspace, bounds), part) in view.state.keyspaces.all().into_iter().zip(parts(range)) {
        if part.is_some() {
            bytes += estimate(keyspace, bounds, range)?;
        }
    }
    Ok((bytes as u64).max(walked.bytes))
}

/// Bytes of the range in a keyspace, in which callers' keys are within `bounds`.
fn estimate(keyspace: &Keyspace, bounds: Bounds<'_>, range: &KeyRange) -> Result<f64> {
    let version = keyspace.tree.current_version();
    let (mut inside, mut total) = (0.0, 0.0);
    for table in version.iter_tables() {
        let keys = &table.metadata.key_range;
        let (mut min, mut max) = (keys.min().clone(), keys.max().clone());
        // The store's own rows do not show where those of callers begin and end.
        let is_callers = |key: &[u8]| RangeBounds::<&[u8]>::contains(&bounds, &key);
        if !is_callers(&min) || !is_callers(&max) {
            let mut items = table.range((bounds.0.map(Slice::from), bounds.1.map(Slice::from)));
            let Some(first) = items.next() else { continue };
            min = first.map_err(|error| from_engine(&error.into()))?.key.user_key;
            max = match items.next_back() {
                Some(last) => last.map_err(|error| from_engine(&error.into()))?.key.user_key,
                None => min.clone(),
            };
        }
        let bytes = table.metadata.file_size as f64;
        total += bytes;
        inside += bytes * share_of(table, range, &min, &max);
    }
    // Memtables are assumed to be distributed like tables. The engine's own size of memtables ignores those that a
    // load has flushed.
    let memtables = keyspace.tree.version_memtable_size_sum() as f64;
    let share = if total > 0.0 { inside / total } else { 1.0 };
    Ok(inside + memtables * share)
}

/// The part of a table that is in the range: by its index if a bound of the range is between its keys.
fn share_of(table: &Table, range: &KeyRange, min: &[u8], max: &[u8]) -> f64 {
    let is_between = |bound: &[u8]| min < bound && bound <= max;
    let ends = [Some(&range.start), range.end.as_ref()];
    if !ends.into_iter().flatten().any(|bound| is_between(bound)) {
        return share(range, min, max);
    }
    let Some(places) = Places::read(table) else { return share(range, min, max) };
    let start = if is_between(&range.start) { places.before(&range.start) } else { 0.0 };
    let end = range.end.as_ref().filter(|end| is_between(end));
    (end.map_or(1.0, |end| places.before(end)) - start).max(0.0)
}

/// Where the blocks of a table end: the last key of each, and the part of the table up to there.
struct Places(Vec<(Vec<u8>, f64)>);

impl Places {
    /// Reads the index of a table; none if it is not as expected. Then keys are assumed to be spread evenly.
    fn read(table: &Table) -> Option<Self> {
        let file = std::fs::File::open(&*table.path).ok()?;
        let compression = table.metadata.index_block_compression;
        let block = Block::from_file(&file, table.regions.tli, compression).ok()?;
        let index = IndexBlock::new(block);
        let bytes = index.as_slice();
        let mut ends = Vec::with_capacity(index.len());
        for entry in index.iter() {
            let mut key = Vec::new();
            if let Some(prefix) = &entry.prefix {
                key.extend_from_slice(bytes.get(prefix.0..prefix.1)?);
            }
            key.extend_from_slice(bytes.get(entry.end_key.0..entry.end_key.1)?);
            ends.push((key, entry.offset.0 + u64::from(entry.size)));
        }
        let (last, count) = (ends.last()?.1.max(1) as f64, ends.len() as f64);
        // A two-level index has the positions of its blocks, each of which covers about the same part of the table.
        let is_dense = table.regions.index.is_none();
        let part = |(at, (key, end)): (usize, (Vec<u8>, u64))| match is_dense {
            true => (key, end as f64 / last),
            false => (key, (at + 1) as f64 / count),
        };
        Some(Self(ends.into_iter().enumerate().map(part).collect()))
    }

    /// The part of the table before a key, accurate to a block.
    fn before(&self, key: &[u8]) -> f64 {
        let blocks = self.0.partition_point(|(last, _)| &last[..] < key);
        blocks.checked_sub(1).map_or(0.0, |block| self.0[block].1)
    }
}

/// The part of the keys from `min` to `max` that is in the range, assuming an even distribution.
fn share(range: &KeyRange, min: &[u8], max: &[u8]) -> f64 {
    let same = min.iter().zip(max).take_while(|(a, b)| a == b).count();
    let place = |key: &[u8]| match key.get(..same) {
        Some(start) if start == &min[..same] => number(&key[same..]),
        _ if key < min => 0.0,
        _ => number(&[0xff; 8]),
    };
    let (low, high) = (place(min), place(max));
    let start = place(&range.start).clamp(low, high);
    let end = range.end.as_ref().map_or(high, |end: &Bytes| place(end).clamp(low, high));
    if high > low {
        ((end - start) / (high - low)).max(0.0)
    } else {
        f64::from(range.contains(min))
    }
}

/// The first eight bytes as a number.
fn number(bytes: &[u8]) -> f64 {
    let padded = bytes.iter().copied().chain(std::iter::repeat(0)).take(8);
    padded.fold(0u64, |number, byte| number << 8 | u64::from(byte)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_between_nothing_and_all() {
        let range = |start: &'static str, end: &'static str| KeyRange::new(start, Some(end.into()));
        let cases = [
            (range("key-a", "key-z"), 1.0),
            (range("key-c", "key-d"), 0.0),
            (range("a", "b"), 0.0),
            (range("a", "z"), 1.0),
            (range("z", "zz"), 0.0),
        ];
        for (range, expected) in cases {
            let share = share(&range, b"key-m0", b"key-m9");
            assert!((share - expected).abs() < 0.01, "{range:?}: {share}");
        }
        let half = share(&range("key-m0", "key-m5"), b"key-m0", b"key-m9");
        assert!((0.4..0.7).contains(&half), "{half}");
        assert_eq!(share(&KeyRange::all(), b"a", b"a"), 1.0);
    }
}
