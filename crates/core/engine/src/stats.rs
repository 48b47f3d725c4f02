//! What a partition holds and what is asked of it. Items, bytes and the last LSN are durable, written with every batch;
//! the rest is counted since the partition was last warmed up.

use std::sync::atomic::{AtomicU64, Ordering};

use lazuli_shardmap::PartitionId;
pub use lazuli_shardmap::figures::{Counts, Size};

use crate::hot::HotKey;
use crate::latency::LatencyCounters;
use crate::outside::Weight;

/// What one transaction adds to a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delta {
    pub(crate) items: i64,
    /// Those of rows, and those outside.
    pub(crate) bytes: i64,
    /// Those of them that lie outside of the store.
    pub(crate) outside: i64,
}

impl Delta {
    /// A row comes.
    pub(crate) fn put(&mut self, new: Weight) {
        self.add(Self {
            items: 1,
            bytes: new.row.saturating_add(new.outside),
            outside: new.outside,
        });
    }

    /// A row goes.
    pub(crate) fn delete(&mut self, old: Weight) {
        let Weight { row, outside } = old;
        self.add(Self { items: -1, bytes: -row.saturating_add(outside), outside: -outside });
    }

    pub(crate) fn add_to(self, counts: &mut Counts) {
        counts.add(self.items, self.bytes, self.outside);
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.items += other.items;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.outside = self.outside.saturating_add(other.outside);
    }
}

/// Counters since the partition was last warmed up.
#[derive(Default)]
pub(crate) struct Traffic {
    pub(crate) reads: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) throttled: AtomicU64,
    pub(crate) read_times: LatencyCounters,
    pub(crate) write_times: LatencyCounters,
}

impl Traffic {
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// The figures of one partition at one moment.
#[derive(Clone, Debug)]
pub struct PartitionStats {
    pub partition: PartitionId,
    pub counts: Counts,
    pub reads: u64,
    pub writes: u64,
    pub throttled: u64,
    pub hot: Vec<HotKey>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_follow_replacements_and_deletions() {
        let (old, new) = (Weight { row: 25, outside: 0 }, Weight { row: 30, outside: 1_000 });
        let mut delta = Delta::default();
        delta.delete(old);
        delta.put(new);
        assert_eq!(delta, Delta { items: 0, bytes: 1_005, outside: 1_000 });
        delta.delete(new);
        assert_eq!(delta, Delta { items: -1, bytes: -25, outside: 0 });
    }
}
