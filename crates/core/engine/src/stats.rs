//! What a partition holds and what is asked of it. Items, bytes and the last LSN are durable, written with every batch;
//! the rest is counted since the partition was last warmed up.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_shardmap::ContainerId;
use lazuli_shardmap::PartitionId;
use lazuli_shardmap::layout::{self, Space};
use lazuli_store::{Error, Reader, Result};

use crate::hot::HotKey;
use crate::latency::LatencyCounters;
use crate::lsn::Lsn;
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

    pub(crate) fn add(&mut self, other: Self) {
        self.items += other.items;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.outside = self.outside.saturating_add(other.outside);
    }
}

/// The durable figures of a partition: the row `0 | STATS | partition id`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub items: u64,
    /// Keys and values of all rows, and what they stand for outside of the store.
    pub bytes: u64,
    /// Those of the bytes that lie outside of the store: a move does not carry them.
    pub outside: u64,
    pub last_lsn: Lsn,
    /// Whether items and bytes are exact; after a split they are estimates until the partition has been counted.
    pub exact: bool,
}

/// What a partition holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub items: u64,
    /// Keys and values of all rows, and what they stand for outside of the store.
    pub bytes: u64,
    /// Those of the bytes that lie outside of the store.
    pub outside: u64,
}

const COUNTS_FORMAT: u8 = 2;
/// Before bytes outside of the store were counted.
const COUNTS_FORMAT_1: u8 = 1;
const COUNTS_BYTES: usize = 34;
const COUNTS_BYTES_1: usize = 26;

impl Counts {
    /// What the partition holds, if it was counted: estimates may be far too low.
    pub(crate) fn size(&self) -> Option<Size> {
        let Self { items, bytes, outside, .. } = *self;
        self.exact.then_some(Size { items, bytes, outside })
    }

    /// What of it are rows, if that was counted.
    pub(crate) fn rows(&self) -> Option<Size> {
        let bytes = self.bytes.saturating_sub(self.outside);
        self.exact.then_some(Size { items: self.items, bytes, outside: 0 })
    }

    /// The number that all committed writes of the partition are at or below, and all later ones above. None in a row that
    /// was written by a count alone.
    pub(crate) fn settled(&self) -> Option<Lsn> {
        (self.last_lsn > Lsn::ZERO).then_some(self.last_lsn)
    }

    pub(crate) fn key(partition: PartitionId) -> Bytes {
        layout::key(ContainerId::SYSTEM, Space::STATS, &partition.0.to_be_bytes())
    }

    /// The row of a partition, if it has one.
    pub(crate) async fn read(reader: &dyn Reader, partition: PartitionId) -> Result<Option<Self>> {
        let row = reader.get(&Self::key(partition)).await?;
        row.map(Self::decode).transpose().map_err(|error| error.context(partition))
    }

    pub(crate) fn apply(&mut self, delta: Delta) {
        self.items = self.items.saturating_add_signed(delta.items);
        self.bytes = self.bytes.saturating_add_signed(delta.bytes);
        self.outside = self.outside.saturating_add_signed(delta.outside);
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(COUNTS_BYTES);
        bytes.put_u8(COUNTS_FORMAT);
        bytes.put_u8(u8::from(self.exact));
        bytes.put_u64(self.items);
        bytes.put_u64(self.bytes);
        bytes.put_u64(self.last_lsn.0);
        bytes.put_u64(self.outside);
        bytes.freeze()
    }

    pub(crate) fn decode(mut bytes: Bytes) -> Result<Self> {
        let is_whole = match bytes.first() {
            Some(&COUNTS_FORMAT) => bytes.len() == COUNTS_BYTES,
            Some(&COUNTS_FORMAT_1) => bytes.len() == COUNTS_BYTES_1,
            _ => false,
        };
        if !is_whole {
            return Err(Error::corrupt("bad-stats", "a statistics row does not decode"));
        }
        let is_former = bytes.get_u8() == COUNTS_FORMAT_1;
        let exact = bytes.get_u8() != 0;
        let (items, size) = (bytes.get_u64(), bytes.get_u64());
        let last_lsn = Lsn(bytes.get_u64());
        let outside = if is_former { 0 } else { bytes.get_u64() };
        Ok(Self { items, bytes: size, outside, last_lsn, exact })
    }

    /// Whether a row was written before bytes outside of the store were counted.
    pub(crate) fn is_of_rows_only(row: &[u8]) -> bool {
        row.first() == Some(&COUNTS_FORMAT_1)
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
        let counts = Counts { items: 3, bytes: 99, outside: 50, last_lsn: Lsn(7), exact: true };
        let row = counts.encode();
        assert_eq!(Counts::decode(row.clone()).unwrap(), counts);
        assert_eq!(counts.rows(), Some(Size { items: 3, bytes: 49, outside: 0 }));
        for length in 0..row.len() {
            assert!(Counts::decode(row.slice(..length)).is_err());
        }
        // The former format is what comes before the bytes outside.
        let mut former = row.slice(..26).to_vec();
        former[0] = 1;
        assert!(Counts::is_of_rows_only(&former) && !Counts::is_of_rows_only(&row));
        let read = Counts::decode(former.clone().into()).unwrap();
        assert_eq!(read, Counts { outside: 0, ..counts });
        for length in 0..former.len() {
            assert!(Counts::decode(former[..length].to_vec().into()).is_err());
        }
    }

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
