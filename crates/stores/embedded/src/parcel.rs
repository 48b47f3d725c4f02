//! What a parcel of this store holds: tables as they lie, layer upon layer, and the memtable on top of them.
//!
//! A key may lie in several layers, and the uppermost counts, whatever it says: a value, or that the key is gone. So a
//! parcel that has every layer, in order, is the ranges as they were, and nobody has to know what is in it. Tables of
//! which every key lies in one of the ranges go as they are. Of those that reach beyond, as of the memtable, the rows
//! are written anew.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use fjall::{AbstractTree, Keyspace, SeqNo, Slice};
use lazuli_store::KeyRange;
use lsm_tree::{KeyRange as TableKeys, Memtable, Table};

use crate::keyspaces::{Bounds, is_data};

/// With less than this in tables that can go as they are a parcel is not worth it.
const WHOLE_BYTES_LEAST: u64 = 4 * 1024 * 1024;
/// Sequence numbers must not run out, however often they are passed on.
const SEQUENCE_MAX: SeqNo = 1 << 60;

/// A range of `data`.
pub(crate) type Stretch = (Bound<Slice>, Bound<Slice>);

/// What some ranges of `data` held at one moment.
pub(crate) struct Content {
    pub(crate) stretches: Vec<Stretch>,
    /// The oldest first.
    pub(crate) layers: Vec<Layer>,
    /// Newer than all of them. It may have more by now, and has rows of others.
    pub(crate) memtable: Arc<Memtable>,
    /// Every row has a sequence number below this one.
    pub(crate) until: SeqNo,
}

/// Tables that do not overlap each other, in the order of their keys.
pub(crate) struct Layer {
    /// How deep it lies in the engine's tree. Only in the first level there may be several.
    pub(crate) level: u8,
    pub(crate) tables: Vec<Table>,
}

impl Content {
    /// All that the ranges hold. To be called where nobody writes; none if a memtable is on its way to become a table.
    pub(crate) fn of(data: &Keyspace, ranges: &[KeyRange], until: SeqNo) -> Option<Self> {
        if data.sealed_memtable_count() > 0 {
            return None;
        }
        // While nothing can be written out, a memtable that is sealed meanwhile stays in the line, and is seen below.
        let flushes = data.tree.get_flush_lock();
        let memtable = data.tree.active_memtable();
        let stretches: Vec<_> = ranges.iter().filter_map(stretch).collect();
        let layers = layers(data, &stretches);
        let is_whole = data.sealed_memtable_count() == 0;
        drop(flushes);
        is_whole.then_some(Self { stretches, layers, memtable, until })
    }

    /// What lies in tables that can go as they are.
    pub(crate) fn whole_bytes(&self) -> u64 {
        whole_bytes(&self.layers, &self.stretches)
    }

    /// Whether the row is one of those that were meant.
    pub(crate) fn has(&self, key: &Slice, sequence: SeqNo) -> bool {
        sequence < self.until && self.stretches.iter().any(|stretch| stretch.contains(key))
    }
}

/// Whether so much of the ranges lies in tables of its own that a parcel is worth it.
pub(crate) fn is_worth_it(data: &Keyspace, ranges: &[KeyRange], until: SeqNo) -> bool {
    if !ranges.iter().all(|range| is_data(&range.start)) || until > SEQUENCE_MAX {
        return false;
    }
    let stretches: Vec<_> = ranges.iter().filter_map(stretch).collect();
    whole_bytes(&layers(data, &stretches), &stretches) >= WHOLE_BYTES_LEAST
}

fn whole_bytes(layers: &[Layer], stretches: &[Stretch]) -> u64 {
    let tables = layers.iter().flat_map(|layer| &layer.tables);
    let whole = tables.filter(|table| is_inside(table, stretches));
    whole.map(|table| table.metadata.file_size).sum()
}

/// Whether every key of the table lies in one of the stretches.
pub(crate) fn is_inside(table: &Table, stretches: &[Stretch]) -> bool {
    let keys = &table.metadata.key_range;
    stretches.iter().any(|stretch| stretch.contains(keys.min()) && stretch.contains(keys.max()))
}

/// Whether a row of the stretch may lie among these keys.
pub(crate) fn overlaps(keys: &TableKeys, stretch: &Stretch) -> bool {
    let (start, end) = stretch;
    let bounds: Bounds<'_> =
        (start.as_ref().map(|start| &start[..]), end.as_ref().map(|end| &end[..]));
    keys.overlaps_with_bounds(&bounds)
}

fn stretch(range: &KeyRange) -> Option<Stretch> {
    let end =
        range.end.as_ref().map_or(Bound::Unbounded, |end| Bound::Excluded(Slice::from(&end[..])));
    (!range.is_empty()).then(|| (Bound::Included(Slice::from(&range.start[..])), end))
}

fn layers(data: &Keyspace, stretches: &[Stretch]) -> Vec<Layer> {
    let version = data.tree.current_version();
    let mut layers = Vec::new();
    for (level, runs) in (0..).zip(version.iter_levels()) {
        for run in runs.iter() {
            let is_ours = |table: &&Table| {
                stretches.iter().any(|stretch| overlaps(&table.metadata.key_range, stretch))
            };
            let tables: Vec<_> = run.iter().filter(is_ours).cloned().collect();
            if !tables.is_empty() {
                layers.push(Layer { level, tables });
            }
        }
    }
    // The engine has the newest first.
    layers.reverse();
    layers
}
