//! The contents of a parcel of this store: its tables, layer upon layer, and the memtable on top of them.
//!
//! A key may be in several layers, and the uppermost entry is valid: a value or a tombstone. So a parcel with
//! every layer, in order, is a complete copy of the ranges without reading any row. Tables whose keys are all in the
//! ranges are adopted whole. From other tables, and from the memtable, the rows are written to new tables.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use fjall::{AbstractTree, Keyspace, SeqNo, Slice};
use lazuli_store::KeyRange;
use lsm_tree::{KeyRange as TableKeys, Memtable, Table};

use crate::keyspaces::{Bounds, is_data};

/// A parcel is not used if less than this is in tables that can be adopted whole.
const WHOLE_BYTES_LEAST: u64 = 4 * 1024 * 1024;
/// Upper limit, so that sequence numbers never run out however often they are passed on.
const SEQUENCE_MAX: SeqNo = 1 << 60;

/// A range of `data`.
pub(crate) type Stretch = (Bound<Slice>, Bound<Slice>);

/// The contents of some ranges of `data` at one moment.
pub(crate) struct Content {
    pub(crate) stretches: Vec<Stretch>,
    /// The oldest first.
    pub(crate) layers: Vec<Layer>,
    /// Newer than all of them. It may have grown since, and has rows of others.
    pub(crate) memtable: Arc<Memtable>,
    /// Every row has a sequence number below this one.
    pub(crate) until: SeqNo,
}

/// Tables that do not overlap each other, in the order of their keys.
pub(crate) struct Layer {
    /// Its level in the engine's tree. Only the first level may have several layers.
    pub(crate) level: u8,
    pub(crate) tables: Vec<Table>,
}

impl Content {
    /// The contents of the ranges. Must be called between two batches; none if a memtable is being flushed.
    pub(crate) fn of(data: &Keyspace, ranges: &[KeyRange], until: SeqNo) -> Option<Self> {
        if data.sealed_memtable_count() > 0 {
            return None;
        }
        // Flushes are blocked here, so a memtable that is sealed meanwhile stays in the queue, and is seen below.
        let flushes = data.tree.get_flush_lock();
        let memtable = data.tree.active_memtable();
        let stretches: Vec<_> = ranges.iter().filter_map(stretch).collect();
        let layers = layers(data, &stretches);
        let is_whole = data.sealed_memtable_count() == 0;
        drop(flushes);
        is_whole.then_some(Self { stretches, layers, memtable, until })
    }

    /// Bytes in tables that can be adopted whole.
    pub(crate) fn whole_bytes(&self) -> u64 {
        whole_bytes(&self.layers, &self.stretches)
    }

    /// Whether the row belongs to the parcel.
    pub(crate) fn has(&self, key: &Slice, sequence: SeqNo) -> bool {
        sequence < self.until && self.stretches.iter().any(|stretch| stretch.contains(key))
    }
}

/// Whether enough of the ranges is in tables of their own.
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

/// Whether every key of the table is in one of the stretches.
pub(crate) fn is_inside(table: &Table, stretches: &[Stretch]) -> bool {
    let keys = &table.metadata.key_range;
    stretches.iter().any(|stretch| stretch.contains(keys.min()) && stretch.contains(keys.max()))
}

/// Whether a row of the stretch may be among these keys.
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
    // The engine lists the newest first.
    layers.reverse();
    layers
}
