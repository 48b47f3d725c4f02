//! A stretch of a map: up to [`CHUNK_ENTRIES_MAX`] entries, sorted.
//!
//! A search must not go where memory is slow more often than it has to. So heads and the places of
//! records stand side by side in the chunk itself, and each record has all of an entry in one
//! place: a lookup waits for the chunk and for one record.

use std::ops::Range;

use bytes::Bytes;
use lazuli_store::{KeyRange, after_prefix};

use super::heads::{below, common, head, search};
use super::placed::{PLACED_BYTES, Placed};

/// So many that what a chunk itself costs is little for each, and so few that a search may look at
/// all heads and a change may move them.
pub(super) const CHUNK_ENTRIES_MAX: usize = 64;

/// In place of the length of a high bound: it is `after_prefix` of the low one, as in every list
/// map.
const HIGH_OF_PREFIX: u16 = u16::MAX;
/// In place of the length of a high bound: there is none.
const HIGH_NONE: u16 = u16::MAX - 1;
/// The longest bound that a map takes; every route is much shorter.
pub(super) const BOUND_BYTES_MAX: usize = (HIGH_NONE - 1) as usize;

/// One partition, as its record has it: `placed | length of low (2) | of high (2) | low | high`.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    placed: &'a [u8; PLACED_BYTES],
    pub(super) low: &'a [u8],
    high: High<'a>,
}

#[derive(Clone, Copy)]
enum High<'a> {
    None,
    OfPrefix,
    At(&'a [u8]),
}

impl<'a> Entry<'a> {
    fn read(record: &'a [u8]) -> Option<Self> {
        let (placed, rest) = record.split_first_chunk()?;
        let (low, rest) = rest.split_first_chunk()?;
        let (high, rest) = rest.split_first_chunk()?;
        let (low, rest) = rest.split_at_checked(u16::from_be_bytes(*low).into())?;
        let high = match u16::from_be_bytes(*high) {
            HIGH_NONE => High::None,
            HIGH_OF_PREFIX => High::OfPrefix,
            length => High::At(rest.get(..length.into())?),
        };
        Some(Self { placed, low, high })
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let (length, high) = match self.high {
            High::None => (HIGH_NONE, &[][..]),
            High::OfPrefix => (HIGH_OF_PREFIX, &[][..]),
            High::At(high) => (high.len() as u16, high),
        };
        bytes.extend_from_slice(self.placed);
        bytes.extend_from_slice(&(self.low.len() as u16).to_be_bytes());
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(self.low);
        bytes.extend_from_slice(high);
    }

    fn record_bytes(&self) -> usize {
        let high = if let High::At(high) = self.high { high.len() } else { 0 };
        PLACED_BYTES + 4 + self.low.len() + high
    }

    pub(super) fn placed(&self) -> Placed {
        Placed::from_bytes(self.placed)
    }

    /// Whether the entry, which begins at or before this route, holds it.
    pub(super) fn reaches(&self, route: &[u8]) -> bool {
        match self.high {
            High::None => true,
            High::OfPrefix => route.starts_with(self.low),
            High::At(high) => route < high,
        }
    }

    pub(super) fn end(&self) -> Option<Bytes> {
        match self.high {
            High::None => None,
            High::OfPrefix => after_prefix(self.low),
            High::At(high) => Some(Bytes::copy_from_slice(high)),
        }
    }

    pub(super) fn range(&self) -> KeyRange {
        KeyRange::new(Bytes::copy_from_slice(self.low), self.end())
    }
}

#[derive(Clone)]
#[repr(C)]
pub(super) struct Chunk {
    /// Of each entry the head of its low bound behind the prefix.
    heads: [u64; CHUNK_ENTRIES_MAX],
    /// Of each entry where its record is.
    records: [u32; CHUNK_ENTRIES_MAX],
    /// What all low bounds begin with, and then the records, in any order.
    bytes: Vec<u8>,
    len: u16,
    prefix: u16,
    /// How many of the bytes belonged to entries that are gone.
    unused: u32,
}

impl Chunk {
    /// An empty chunk with room for so many bytes of records.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            heads: [0; CHUNK_ENTRIES_MAX],
            records: [0; CHUNK_ENTRIES_MAX],
            bytes: Vec::with_capacity(bytes),
            len: 0,
            prefix: 0,
            unused: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len.into()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() == CHUNK_ENTRIES_MAX
    }

    pub(super) fn used_bytes(&self) -> usize {
        self.bytes.len() - self.unused as usize
    }

    pub(super) fn entry(&self, nth: usize) -> Entry<'_> {
        let record = &self.bytes[self.records[nth] as usize..];
        Entry::read(record).expect("a record is whole, as it was written")
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        (0..self.len()).map(|nth| self.entry(nth))
    }

    fn heads(&self) -> &[u64] {
        &self.heads[..self.len()]
    }

    fn prefix(&self) -> &[u8] {
        &self.bytes[..self.prefix.into()]
    }

    /// How many entries begin at or before this route.
    pub(super) fn after(&self, route: &[u8]) -> usize {
        let mut same = search(self.heads(), self.prefix(), route);
        same.find(|nth| self.entry(*nth).low > route).unwrap_or(same.end)
    }

    /// The entry that holds this route, or none where it takes a closer look to tell. It does not
    /// ask whether the route has the prefix: ranges do not overlap, so whoever holds it is the
    /// right one.
    pub(super) fn guess(&self, route: &[u8]) -> Option<Entry<'_>> {
        let head = head(route.get(self.prefix.into()..)?);
        let from = below(self.heads(), head);
        let nth = if self.heads().get(from) == Some(&head) { from } else { from.checked_sub(1)? };
        let entry = self.entry(nth);
        (entry.low <= route && entry.reaches(route)).then_some(entry)
    }

    /// Takes in a partition that overlaps none. The chunk is not full, and the bounds are at most
    /// [`BOUND_BYTES_MAX`] long.
    pub(super) fn insert(&mut self, routes: &KeyRange, placed: Placed) {
        let low = &routes.start[..];
        let high = match &routes.end {
            None => High::None,
            end if *end == after_prefix(low) => High::OfPrefix,
            Some(end) => High::At(end),
        };
        self.share_prefix(low);
        let nth = self.after(low);
        let entry = Entry { placed: &placed.to_bytes(), low, high };
        self.insert_at(nth, &entry);
    }

    fn insert_at(&mut self, nth: usize, entry: &Entry<'_>) {
        let len = self.len();
        self.heads.copy_within(nth..len, nth + 1);
        self.records.copy_within(nth..len, nth + 1);
        self.heads[nth] = head(&entry.low[self.prefix.into()..]);
        self.records[nth] = self.bytes.len() as u32;
        self.len += 1;
        entry.write(&mut self.bytes);
    }

    /// Shortens the prefix to what this low bound has in common with it.
    fn share_prefix(&mut self, low: &[u8]) {
        if self.is_empty() {
            self.bytes.clear();
            self.bytes.extend_from_slice(low);
            (self.prefix, self.unused) = (low.len() as u16, 0);
        }
        let shared = common(self.prefix(), low);
        if shared < self.prefix.into() {
            self.prefix = shared as u16;
            for nth in 0..self.len() {
                self.heads[nth] = head(&self.entry(nth).low[shared..]);
            }
        }
    }

    /// Takes out the nth entry and hands back its low bound.
    pub(super) fn remove(&mut self, nth: usize) -> Vec<u8> {
        let entry = self.entry(nth);
        let (low, freed) = (entry.low.to_vec(), entry.record_bytes());
        self.unused += freed as u32;
        let len = self.len();
        self.heads.copy_within(nth + 1..len, nth);
        self.records.copy_within(nth + 1..len, nth);
        self.len -= 1;
        if self.unused as usize > self.bytes.len() / 2 {
            *self = self.copy(0..self.len());
        }
        low
    }

    /// Cuts the chunk in the middle and hands back the upper half.
    pub(super) fn split(&mut self) -> Self {
        let middle = self.len() / 2;
        let upper = self.copy(middle..self.len());
        *self = self.copy(0..middle);
        upper
    }

    /// Some of the entries, with the bytes that they need and no others.
    fn copy(&self, which: Range<usize>) -> Self {
        let bytes: usize = which.clone().map(|nth| self.entry(nth).record_bytes()).sum();
        let mut copy = Self::new(0);
        if !which.is_empty() {
            // What the first and the last have in common, all between them have.
            let (first, last) = (self.entry(which.start).low, self.entry(which.end - 1).low);
            let prefix = &first[..common(first, last)];
            copy.bytes = Vec::with_capacity(prefix.len() + bytes);
            copy.bytes.extend_from_slice(prefix);
            copy.prefix = prefix.len() as u16;
        }
        for nth in which {
            copy.insert_at(copy.len(), &self.entry(nth));
        }
        copy
    }
}

#[cfg(test)]
impl Chunk {
    pub(super) fn kept_bytes(&self) -> usize {
        self.bytes.len()
    }
}
