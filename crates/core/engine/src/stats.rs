//! What a partition holds and what is asked of it. Items, bytes and the last LSN are durable, written with every batch;
//! the rest is counted since the partition was last warmed up.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_shardmap::ContainerId;
use lazuli_shardmap::PartitionId;
use lazuli_shardmap::layout::{self, Space};
use lazuli_store::{Error, Result};

use crate::hot::HotKey;
use crate::item::Item;
use crate::latency::LatencyCounters;
use crate::lsn::Lsn;

/// What one transaction adds to a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delta {
    pub(crate) items: i64,
    pub(crate) bytes: i64,
}

impl Delta {
    pub(crate) fn put(&mut self, key_bytes: usize, old: Option<&Item>, value_bytes: usize) {
        if let Some(old) = old {
            self.delete(key_bytes, old);
        }
        self.items += 1;
        self.bytes += (key_bytes + value_bytes) as i64;
    }

    pub(crate) fn delete(&mut self, key_bytes: usize, old: &Item) {
        self.items -= 1;
        self.bytes -= (key_bytes + old.encoded_bytes()) as i64;
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.items += other.items;
        self.bytes += other.bytes;
    }
}

/// The durable figures of a partition: the row `0 | STATS | partition id`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub items: u64,
    pub bytes: u64,
    pub last_lsn: Lsn,
    /// Whether items and bytes are exact; after a split they are estimates until the partition has been counted.
    pub exact: bool,
}

/// What a partition holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub items: u64,
    pub bytes: u64,
}

const COUNTS_FORMAT: u8 = 1;

impl Counts {
    /// What the partition holds, if it was counted: estimates may be far too low.
    pub(crate) fn size(&self) -> Option<Size> {
        self.exact.then_some(Size { items: self.items, bytes: self.bytes })
    }

    pub(crate) fn key(partition: PartitionId) -> Bytes {
        layout::key(ContainerId::SYSTEM, Space::STATS, &partition.0.to_be_bytes())
    }

    pub(crate) fn apply(&mut self, delta: Delta) {
        self.items = self.items.saturating_add_signed(delta.items);
        self.bytes = self.bytes.saturating_add_signed(delta.bytes);
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(26);
        bytes.put_u8(COUNTS_FORMAT);
        bytes.put_u8(u8::from(self.exact));
        bytes.put_u64(self.items);
        bytes.put_u64(self.bytes);
        bytes.put_u64(self.last_lsn.0);
        bytes.freeze()
    }

    pub(crate) fn decode(mut bytes: Bytes) -> Result<Self> {
        if bytes.len() != 26 || bytes.get_u8() != COUNTS_FORMAT {
            return Err(Error::corrupt("bad-stats", "a statistics row does not decode"));
        }
        let exact = bytes.get_u8() != 0;
        let (items, size) = (bytes.get_u64(), bytes.get_u64());
        Ok(Self { items, bytes: size, last_lsn: Lsn(bytes.get_u64()), exact })
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
    fn counts_survive_their_row_and_damage_is_corrupt() {
        let counts = Counts { items: 3, bytes: 99, last_lsn: Lsn(7), exact: true };
        let row = counts.encode();
        assert_eq!(Counts::decode(row.clone()).unwrap(), counts);
        for length in 0..row.len() {
            assert!(Counts::decode(row.slice(..length)).is_err());
        }
    }

    #[test]
    fn deltas_follow_replacements_and_deletions() {
        let old =
            Item { version: Lsn(1), expires_ms: None, written_ms: None, payload: "12345".into() };
        let mut delta = Delta::default();
        delta.put(10, Some(&old), 20);
        assert_eq!(delta, Delta { items: 0, bytes: 20 - 15 });
        delta.delete(10, &old);
        assert_eq!(delta, Delta { items: -1, bytes: 20 - 15 - 25 });
    }
}
