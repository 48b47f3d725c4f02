//! The durable figures of a partition: how much it holds, and the number of its last write. Every commit of the partition
//! writes the row, so it is also what tells two processes in which order their writes came.

use std::fmt;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_store::{Error, Reader, Result, Write};

use crate::layout::{self, Space};
use crate::{ContainerId, Partition, PartitionId};

/// Bits below the milliseconds: 4,096 writes in a millisecond before the number runs ahead of the clock.
const COUNTER_BITS: u32 = 12;

/// The number of a write: `milliseconds << 12 | counter`, below 2^53, so that it survives a trip through JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    pub const ZERO: Self = Self(0);

    pub fn at_ms(millis: u64) -> Self {
        Self(millis << COUNTER_BITS)
    }

    pub fn millis(self) -> u64 {
        self.0 >> COUNTER_BITS
    }

    /// The place within its millisecond.
    pub fn counter(self) -> u16 {
        (self.0 & ((1 << COUNTER_BITS) - 1)) as u16
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The row `0 | STATS | partition id`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub items: u64,
    /// Keys and values of all rows, and what they stand for outside of the store.
    pub bytes: u64,
    /// Those of the bytes that lie outside of the store: a move does not carry them.
    pub outside: u64,
    pub last_lsn: Lsn,
    /// Whether the partition was counted.
    pub exact: bool,
    /// If not: whether items and bytes were estimated once. Since then, what was written is added to them exactly, modulo
    /// 2^64, so they are wrong by the same amount at all times.
    pub estimated: bool,
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
const ESTIMATED: u8 = 0;
const EXACT: u8 = 1;
const BLANK: u8 = 2;
const COUNTS_BYTES: usize = 34;
const COUNTS_BYTES_1: usize = 26;

impl Counts {
    /// What the partition holds, if it was counted.
    pub fn size(&self) -> Option<Size> {
        let Self { items, bytes, outside, .. } = *self;
        self.exact.then_some(Size { items, bytes, outside })
    }

    /// The part of it that is rows, if that was counted.
    pub fn rows(&self) -> Option<Size> {
        let bytes = self.bytes.saturating_sub(self.outside);
        self.exact.then_some(Size { items: self.items, bytes, outside: 0 })
    }

    /// Whether it says nothing about items and bytes: a split has just made it, or there is no row.
    pub fn is_blank(&self) -> bool {
        !self.exact && !self.estimated
    }

    /// The same with no negative figures, for people.
    #[must_use]
    pub fn shown(self) -> Self {
        let at_least_zero =
            |figure: u64| if self.exact { figure } else { (figure as i64).max(0) as u64 };
        Self {
            items: at_least_zero(self.items),
            bytes: at_least_zero(self.bytes),
            outside: at_least_zero(self.outside),
            ..self
        }
    }

    /// The number that all committed writes of the partition are at or below, and all later ones above. None in a row that
    /// was written by a count alone.
    pub fn settled(&self) -> Option<Lsn> {
        (self.last_lsn > Lsn::ZERO).then_some(self.last_lsn)
    }

    pub fn key(partition: PartitionId) -> Bytes {
        layout::key(ContainerId::SYSTEM, Space::STATS, &partition.0.to_be_bytes())
    }

    /// The row of a partition, if it has one.
    pub async fn read(reader: &dyn Reader, partition: PartitionId) -> Result<Option<Self>> {
        let row = reader.get(&Self::key(partition)).await?;
        row.map(Self::decode).transpose().map_err(|error| error.context(partition))
    }

    pub fn add(&mut self, items: i64, bytes: i64, outside: i64) {
        let add = match self.exact {
            true => u64::saturating_add_signed,
            false => u64::wrapping_add_signed,
        };
        self.items = add(self.items, items);
        self.bytes = add(self.bytes, bytes);
        self.outside = add(self.outside, outside);
    }

    pub fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(COUNTS_BYTES);
        bytes.put_u8(COUNTS_FORMAT);
        bytes.put_u8(match (self.exact, self.estimated) {
            (true, _) => EXACT,
            (false, true) => ESTIMATED,
            (false, false) => BLANK,
        });
        bytes.put_u64(self.items);
        bytes.put_u64(self.bytes);
        bytes.put_u64(self.last_lsn.0);
        bytes.put_u64(self.outside);
        bytes.freeze()
    }

    pub fn decode(mut bytes: Bytes) -> Result<Self> {
        let is_whole = match bytes.first() {
            Some(&COUNTS_FORMAT) => bytes.len() == COUNTS_BYTES,
            Some(&COUNTS_FORMAT_1) => bytes.len() == COUNTS_BYTES_1,
            _ => false,
        };
        if !is_whole {
            return Err(Error::corrupt("bad-stats", "a statistics row does not decode"));
        }
        let is_former = bytes.get_u8() == COUNTS_FORMAT_1;
        let state = bytes.get_u8();
        let (items, size) = (bytes.get_u64(), bytes.get_u64());
        let last_lsn = Lsn(bytes.get_u64());
        let outside = if is_former { 0 } else { bytes.get_u64() };
        let (exact, estimated) = (state == EXACT, state == ESTIMATED);
        Ok(Self { items, bytes: size, outside, last_lsn, exact, estimated })
    }

    /// Whether a row was written before bytes outside of the store were counted.
    pub fn is_of_rows_only(row: &[u8]) -> bool {
        row.first() == Some(&COUNTS_FORMAT_1)
    }
}

/// The rows of partitions that a split or a merge makes of others, whose guards the reader's transaction has. They go on
/// from the last number of those others. What a split makes has to be counted.
pub(crate) async fn inherit(
    reader: &dyn Reader,
    parents: &[Partition],
    children: &[&Partition],
) -> Result<Vec<Write>> {
    let mut figures = Vec::with_capacity(parents.len());
    for parent in parents {
        figures.push((parent, Counts::read(reader, parent.id).await?.unwrap_or_default()));
    }
    let mut writes = Vec::new();
    for child in children {
        let mut sum = Counts { exact: true, ..Counts::default() };
        let of = figures
            .iter()
            .filter(|(it, _)| it.container == child.container && it.routes.overlaps(&child.routes));
        for (parent, counts) in of {
            let is_whole = parent.routes.intersect(&child.routes) == parent.routes;
            sum.exact &= counts.exact && is_whole;
            sum.items = sum.items.saturating_add(counts.items);
            sum.bytes = sum.bytes.saturating_add(counts.bytes);
            sum.outside = sum.outside.saturating_add(counts.outside);
            sum.last_lsn = sum.last_lsn.max(counts.last_lsn);
        }
        if !sum.exact {
            sum = Counts { last_lsn: sum.last_lsn, ..Counts::default() };
        }
        if sum.last_lsn > Lsn::ZERO {
            writes.push(Write::Put(Counts::key(child.id), sum.encode()));
        }
    }
    Ok(writes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_survive_their_row_and_damage_is_corrupt() {
        let (last_lsn, estimated) = (Lsn(7), false);
        let counts = Counts { items: 3, bytes: 99, outside: 50, last_lsn, exact: true, estimated };
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
    fn figures_that_were_not_counted_keep_additions_apart_from_what_was_there() {
        let start = Counts { estimated: true, ..Counts::default() };
        let mut unknown = start;
        unknown.add(-3, -30, 0);
        assert_eq!(unknown.shown(), start);
        assert_eq!(Counts::decode(unknown.encode()).unwrap(), unknown);
        assert!(Counts::decode(Counts::default().encode()).unwrap().is_blank());
        unknown.add(4, 40, 0);
        assert_eq!((unknown.items, unknown.bytes), (1, 10));
        let mut counted = Counts { exact: true, ..Counts::default() };
        counted.add(-3, -30, 0);
        assert_eq!(counted.size(), Some(Size::default()));
    }
}
