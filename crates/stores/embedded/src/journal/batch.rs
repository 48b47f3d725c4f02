//! Reads one batch of a journal without trusting it: every tag, length and checksum is checked, and memory stays
//! bounded for any input.
//!
//! The engine writes a batch as follows, numbers little-endian (fjall 3.1.13, `journal/entry.rs`):
//!
//! ```text
//! start   1 | items (4) | sequence number (8)
//! item    2 | kind (1) | compression (1) | keyspace (8) | key length (2) | value length (4)
//!           | stored length (4) | key | value
//! end     3 | xxh3 of all items (8) | "FJL" 3
//! ```
//!
//! The start has no checksum. The marker, which is the first item of each of our batches, bounds the sequence number;
//! the number of items is checked by counting them.

use std::io::{ErrorKind, Read};

use lazuli_store::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use xxhash_rust::xxh3::Xxh3;

use crate::keyspaces::{DATA, OWN};
use crate::marker::{self, Marker};

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const VALUE: u8 = 0;
const TOMBSTONE: u8 = 1;
const UNCOMPRESSED: u8 = 0;
const TRAILER: [u8; 4] = *b"FJL\x03";
const START_BYTES: u64 = 13;
const ITEM_HEAD_BYTES: usize = 20;
/// Offset of the marker's key in a batch: after the start, and the tag and header of the first item.
pub(super) const MARKER_OFFSET: u64 = START_BYTES + 1 + ITEM_HEAD_BYTES as u64;
/// How much of a value is in memory at once.
const CHUNK_BYTES: usize = 32 * 1024;

/// The fields of a complete batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) marker: Marker,
    pub(super) sequence: u64,
    pub(super) bytes: u64,
}

/// The result of reading the next bytes.
pub(super) enum Next {
    Whole(Batch),
    /// Nothing, or a byte that no batch begins with: the rest may be preallocated space.
    NoStart,
    Damaged(&'static str),
}

/// Why reading stopped: an I/O error, or invalid contents.
pub(super) enum Stop {
    Io(std::io::Error),
    Damage(&'static str),
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof => Self::Damage("the file ends inside a batch"),
            _ => Self::Io(error),
        }
    }
}

/// Reads the next batch of the store whose marker has this key.
pub(super) fn read(source: &mut impl Read, marker_key: &[u8]) -> std::io::Result<Next> {
    let mut tag = [0];
    match source.read_exact(&mut tag) {
        Ok(()) if tag[0] == 0 => return Ok(Next::NoStart),
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Next::NoStart),
        Err(error) => return Err(error),
    }
    let mut reader = Reader { source, hasher: Xxh3::new(), bytes: 1 };
    match reader.batch(tag[0], marker_key) {
        Ok(batch) => Ok(Next::Whole(batch)),
        Err(Stop::Damage(what)) => Ok(Next::Damaged(what)),
        Err(Stop::Io(error)) => Err(error),
    }
}

/// The keyspace of an item, and the lengths of its key and value.
struct ItemHead {
    keyspace: u64,
    key_bytes: usize,
    value_bytes: usize,
}

struct Reader<'a, R> {
    source: &'a mut R,
    hasher: Xxh3,
    bytes: u64,
}

impl<R: Read> Reader<'_, R> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes)?;
        self.bytes += N as u64;
        Ok(bytes)
    }

    fn batch(&mut self, tag: u8, marker_key: &[u8]) -> Result<Batch, Stop> {
        if tag != START {
            return Err(Stop::Damage("no batch begins here"));
        }
        let items = u32::from_le_bytes(self.take()?);
        let sequence = u64::from_le_bytes(self.take()?);
        if items == 0 {
            return Err(Stop::Damage("the batch has no items"));
        }
        let marker = self.marker(marker_key)?;
        for _ in 1..items {
            let head = self.item_head()?;
            self.skip(head.key_bytes + head.value_bytes)?;
        }
        if self.take()? != [END] {
            return Err(Stop::Damage("the batch has more items than it says"));
        }
        let sum = u64::from_le_bytes(self.take()?);
        if self.take()? != TRAILER {
            return Err(Stop::Damage("the batch does not end as it should"));
        }
        if sum != self.hasher.digest() {
            return Err(Stop::Damage("the batch does not match its sum"));
        }
        Ok(Batch { marker, sequence, bytes: self.bytes })
    }

    fn marker(&mut self, marker_key: &[u8]) -> Result<Marker, Stop> {
        let ItemHead { keyspace, key_bytes, value_bytes } = self.item_head()?;
        let marker_head = (OWN.1, marker_key.len(), marker::VALUE_BYTES);
        if (keyspace, key_bytes, value_bytes) != marker_head {
            return Err(Stop::Damage("the batch does not begin with the store's marker"));
        }
        let mut bytes = vec![0; key_bytes + value_bytes];
        self.source.read_exact(&mut bytes)?;
        self.bytes += bytes.len() as u64;
        self.hasher.update(&bytes);
        match Marker::decode(&bytes[key_bytes..]) {
            Some(marker) if bytes.starts_with(marker_key) => Ok(marker),
            _ => Err(Stop::Damage("the batch does not begin with the store's marker")),
        }
    }

    fn item_head(&mut self) -> Result<ItemHead, Stop> {
        if self.take()? != [ITEM] {
            return Err(Stop::Damage("the batch has fewer items than it says"));
        }
        let head: [u8; ITEM_HEAD_BYTES] = self.take()?;
        self.hasher.update(&[ITEM]);
        self.hasher.update(&head);
        let (kind, compression) = (head[0], head[1]);
        let keyspace = little_endian(&head[2..10]);
        let key = usize::try_from(little_endian(&head[10..12])).unwrap_or(usize::MAX);
        let value = usize::try_from(little_endian(&head[12..16])).unwrap_or(usize::MAX);
        let stored = usize::try_from(little_endian(&head[16..20])).unwrap_or(usize::MAX);
        let possible = matches!(kind, VALUE | TOMBSTONE)
            && compression == UNCOMPRESSED
            && (keyspace == DATA.1 || keyspace == OWN.1)
            && (1..=KEY_BYTES_MAX).contains(&key)
            && value <= VALUE_BYTES_MAX
            && value == stored;
        if possible {
            Ok(ItemHead { keyspace, key_bytes: key, value_bytes: value })
        } else {
            Err(Stop::Damage("an item cannot be what it says"))
        }
    }

    fn skip(&mut self, mut length: usize) -> Result<(), Stop> {
        let mut chunk = [0; CHUNK_BYTES];
        while length > 0 {
            let part = &mut chunk[..length.min(CHUNK_BYTES)];
            self.source.read_exact(part)?;
            self.hasher.update(part);
            self.bytes += part.len() as u64;
            length -= part.len();
        }
        Ok(())
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
