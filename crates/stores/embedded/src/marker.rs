//! The store's own records: a numbered marker in every batch, and beside the engine's files the number of the last
//! batch that is known to be on disk.
//!
//! Together they distinguish a torn tail, which was never answered, from the loss of an answered commit.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

/// The random id of a store. It makes the marker's key one that no value of a caller can contain.
pub(crate) type StoreId = [u8; 16];

const KEY_PREFIX: &[u8] = b"\xff\xff\xff\xfflazuli-commit\0";
pub(crate) const VALUE_BYTES: usize = 41;
/// Offset of the checksum in a value.
const SUM_AT: usize = 33;

/// The effect of a batch on the keyspace `data`, as bits.
const WRITES: u8 = 1;
const LOADS: u8 = 2;

/// The key of the marker of a store, in the keyspace `own`, where it sorts after all keys of callers.
pub(crate) fn key(id: &StoreId) -> Bytes {
    [KEY_PREFIX, id].concat().into()
}

/// The first item of every batch. Its value has its own checksum, so a marker is valid even if the batch around it is torn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marker {
    /// Counts the batches of a store, from 1, without a gap.
    pub(crate) number: u64,
    /// The last batch that was on disk before this one was written.
    pub(crate) synced: u64,
    /// The engine's sequence number of this batch is not below this one, and that of the previous batch is.
    pub(crate) sequence_least: u64,
    /// Tables of `data` that hold all its changes before this batch reach at least to the sequence number before this
    /// one; 0 if there were none.
    pub(crate) data_end: u64,
    /// Whether this batch changes something in `data`.
    pub(crate) writes_data: bool,
    /// Whether a load into `data` may come right after this batch.
    pub(crate) loads: bool,
}

impl Marker {
    pub(crate) fn encode(&self) -> [u8; VALUE_BYTES] {
        let mut bytes = [0; VALUE_BYTES];
        bytes[..8].copy_from_slice(&self.number.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.synced.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.sequence_least.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.data_end.to_be_bytes());
        let flag = |is: bool, bit: u8| if is { bit } else { 0 };
        bytes[32] = flag(self.writes_data, WRITES) | flag(self.loads, LOADS);
        let sum = xxh3_64(&bytes[..SUM_AT]);
        bytes[SUM_AT..].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; VALUE_BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| u64_at(bytes, at);
        let marker = Self {
            number: word(0),
            synced: word(8),
            sequence_least: word(16),
            data_end: word(24),
            writes_data: bytes[32] & WRITES != 0,
            loads: bytes[32] & LOADS != 0,
        };
        (word(SUM_AT) == xxh3_64(&bytes[..SUM_AT])).then_some(marker)
    }

    /// Like `data_end`, including this batch, but without a load that may have followed it.
    pub(crate) fn data_end_after(&self) -> u64 {
        if self.writes_data { self.sequence_least + 1 } else { self.data_end }
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The file with the number of the last batch that is on disk and answered, or about to be.
///
/// It is written without fsync: after a crash of the machine it may be old or missing, which only makes the next
/// start less strict. It is never ahead of the journal.
pub(crate) struct Answered {
    file: File,
}

const ANSWERED_BYTES: usize = 16;

/// The content of the answered file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// This batch, and all before it, were on disk.
    Known(u64),
    Missing,
    Damaged,
}

impl Promise {
    /// The last batch that was on disk for certain.
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Known(number) => number,
            Self::Missing | Self::Damaged => 0,
        }
    }
}

impl Answered {
    pub(crate) fn open(path: &Path) -> std::io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(Self { file })
    }

    /// The last number written.
    pub(crate) fn read(path: &Path) -> std::io::Result<Promise> {
        let mut bytes = [0; ANSWERED_BYTES];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut bytes));
        match read {
            Ok(()) if u64_at(&bytes, 8) == xxh3_64(&bytes[..8]) => {
                Ok(Promise::Known(u64_at(&bytes, 0)))
            }
            Ok(()) => Ok(Promise::Damaged),
            Err(error) => match error.kind() {
                std::io::ErrorKind::NotFound => Ok(Promise::Missing),
                std::io::ErrorKind::UnexpectedEof => Ok(Promise::Damaged),
                _ => Err(error),
            },
        }
    }

    pub(crate) fn write(&mut self, number: u64) -> std::io::Result<()> {
        let number = number.to_be_bytes();
        let mut bytes = [0; ANSWERED_BYTES];
        bytes[..8].copy_from_slice(&number);
        bytes[8..].copy_from_slice(&xxh3_64(&number).to_be_bytes());
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_survives_the_round_trip() {
        let first = Marker { number: 7, synced: u64::MAX, ..Marker::default() };
        let load = Marker { sequence_least: 1 << 40, data_end: 9, loads: true, ..first };
        for marker in [first, load, Marker { writes_data: true, ..load }] {
            assert_eq!(Marker::decode(&marker.encode()), Some(marker));
        }
        let marker = load;
        assert_eq!(Marker::decode(&marker.encode()[1..]), None);
        for at in 0..VALUE_BYTES {
            let mut bytes = marker.encode();
            bytes[at] ^= 0x10;
            assert_eq!(Marker::decode(&bytes), None);
        }
    }

    #[test]
    fn a_damaged_answered_file_counts_as_none_and_is_told_from_one_that_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("answered");
        assert_eq!(Answered::read(&path).unwrap(), Promise::Missing);
        Answered::open(&path).unwrap().write(77).unwrap();
        assert_eq!(Answered::read(&path).unwrap(), Promise::Known(77));
        for at in 0..ANSWERED_BYTES {
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[at] ^= 1;
            std::fs::write(folder.path().join("flipped"), bytes).unwrap();
            let found = Answered::read(&folder.path().join("flipped")).unwrap();
            assert_eq!((found, found.number()), (Promise::Damaged, 0));
        }
    }
}
