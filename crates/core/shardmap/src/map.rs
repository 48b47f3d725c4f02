//! The map of one container in memory: which partition holds which routes.
//!
//! A sorted list of ranges that do not overlap, kept in chunks: each chunk holds up to
//! [`CHUNK_ENTRIES_MAX`] entries side by side and the bytes of their bounds in one buffer. So a lookup
//! touches few cache lines, an entry costs little beyond its bounds, and a change touches one chunk,
//! however large the map is (`docs/decisions/0011-map-structure.md`).
//!
//! Invariants: chunks are never empty; the lows of a chunk are at or above the chunk's own bound in
//! `by_low` and below the next chunk's; `by_id` names the chunk of every entry.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::{Bound, Range};

use bytes::Bytes;
use lazuli_store::{Error, KeyRange, Result, after_prefix};

use crate::{Epoch, Partition, PartitionId, PartitionState, ShardId};

/// Where a route is placed: what a request carries to the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    pub partition: PartitionId,
    pub epoch: Epoch,
    pub shard: ShardId,
    pub state: PartitionState,
}

impl From<&Partition> for Placed {
    fn from(partition: &Partition) -> Self {
        let Partition { id, epoch, shard, state, .. } = *partition;
        Self { partition: id, epoch, shard, state }
    }
}

/// The most entries of a chunk. Large enough to make the chunks' own cost small, small enough that
/// moving half of them costs little.
const CHUNK_ENTRIES_MAX: usize = 128;

/// In place of the length of a high bound: it is `after_prefix` of the low one, as in every list map.
const HIGH_OF_PREFIX: u16 = u16::MAX;
/// In place of the length of a high bound: there is none.
const HIGH_NONE: u16 = u16::MAX - 1;
/// The longest bound that a map takes; every route is much shorter.
const BOUND_BYTES_MAX: usize = (HIGH_NONE - 1) as usize;

/// One partition. Its bounds stand in the chunk's bytes: the low one at `at`, the high one behind it.
#[derive(Clone, Copy)]
struct Entry {
    at: u32,
    low: u16,
    high: u16,
    placed: Placed,
}

/// Entries in order, and the bytes of their bounds in any order.
#[derive(Clone, Default)]
struct Chunk {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    /// How many of the bytes belonged to entries that are gone.
    unused: usize,
}

/// A container's map. Gaps are allowed: a route in none of the ranges has no place.
#[derive(Clone, Default)]
pub struct Map {
    chunks: Vec<Chunk>,
    /// Numbers of chunks that hold nothing and are in no index.
    free: Vec<u32>,
    by_low: BTreeMap<Box<[u8]>, u32>,
    by_id: BTreeMap<PartitionId, u32>,
}

impl Map {
    /// A map of these partitions, in any order. Fails with `map-overlap` if two share a route.
    pub fn build(partitions: &[Partition]) -> Result<Self> {
        let mut sorted: Vec<&Partition> = partitions.iter().collect();
        sorted.sort_unstable_by(|a, b| a.routes.start.cmp(&b.routes.start));
        let mut map = Self::default();
        for partition in &sorted {
            map.put(partition)?;
        }
        if map.len() < sorted.len() {
            return Err(Error::corrupt("map-overlap", "partitions of one map overlap"));
        }
        Ok(map)
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The place of a route; none in a gap.
    pub fn find(&self, route: &[u8]) -> Option<Placed> {
        let up_to_route = (Bound::Unbounded, Bound::Included(route));
        // The second round is only needed where the first entries of a chunk were removed.
        for (_, number) in self.by_low.range::<[u8], _>(up_to_route).rev() {
            let chunk = &self.chunks[*number as usize];
            if let Some(nth) = chunk.after(route).checked_sub(1) {
                let entry = &chunk.entries[nth];
                return chunk.reaches(entry, route).then_some(entry.placed);
            }
        }
        None
    }

    /// A partition by its id.
    pub fn get(&self, id: PartitionId) -> Option<Placed> {
        let chunk = &self.chunks[*self.by_id.get(&id)? as usize];
        chunk.entries.iter().map(|entry| entry.placed).find(|placed| placed.partition == id)
    }

    /// All partitions that hold any of these routes, in order, each with all routes it holds.
    pub fn overlapping(&self, routes: &KeyRange) -> impl Iterator<Item = (KeyRange, Placed)> {
        self.entries(routes).map(|(chunk, entry)| (chunk.range(entry), entry.placed))
    }

    /// Whether every one of these routes has a place.
    pub fn covers(&self, routes: &KeyRange) -> bool {
        let mut open = Some(routes.start.clone());
        for (chunk, entry) in self.entries(routes) {
            match open {
                Some(from) if chunk.low(entry) <= &from[..] => open = chunk.end(entry),
                _ => break,
            }
        }
        match (&open, &routes.end) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(from), Some(end)) => from >= end,
        }
    }

    /// The entries that hold any of these routes, in order.
    fn entries(&self, routes: &KeyRange) -> impl Iterator<Item = (&Chunk, &Entry)> {
        let KeyRange { start, end } = routes.clone();
        let empty = routes.is_empty();
        let up_to_start = (Bound::Unbounded, Bound::Included(&start[..]));
        let mut lower = self.by_low.range::<[u8], _>(up_to_start).rev();
        let first = lower.find(|(_, number)| self.chunks[**number as usize].after(&start) > 0);
        let from = first.map_or(Bound::Unbounded, |(low, _)| Bound::Included(&low[..]));
        let chunks = self.by_low.range::<[u8], _>((from, Bound::Unbounded));
        let chunks = chunks.map(|(_, number)| &self.chunks[*number as usize]);
        chunks
            .flat_map(|chunk| chunk.entries.iter().map(move |entry| (chunk, entry)))
            .skip_while(move |(chunk, entry)| {
                chunk.low(entry) < &start[..] && !chunk.reaches(entry, &start)
            })
            .take_while(move |(chunk, entry)| {
                !empty && end.as_ref().is_none_or(|end| chunk.low(entry) < &end[..])
            })
    }

    /// Takes in a new or changed partition, in place of all that overlap it.
    pub fn put(&mut self, partition: &Partition) -> Result<()> {
        let routes = &partition.routes;
        let longest = routes.end.as_ref().map_or(0, Bytes::len).max(routes.start.len());
        if longest > BOUND_BYTES_MAX || routes.is_empty() {
            let message = format!("partition {} has bounds that no map can have", partition.id);
            return Err(Error::corrupt("map-bounds", message));
        }
        self.remove(partition.id);
        let replaced: Vec<_> =
            self.entries(routes).map(|(_, entry)| entry.placed.partition).collect();
        for id in replaced {
            self.remove(id);
        }
        let number = self.room_for(&routes.start);
        self.chunks[number as usize].insert(routes, partition.into());
        self.by_id.insert(partition.id, number);
        Ok(())
    }

    /// Takes a partition out and says whether it was there.
    pub fn remove(&mut self, id: PartitionId) -> bool {
        let Some(number) = self.by_id.remove(&id) else { return false };
        let chunk = &mut self.chunks[number as usize];
        let low = chunk.remove(id);
        if chunk.entries.is_empty() {
            let up_to_low = (Bound::Unbounded, Bound::Included(&low[..]));
            let bound = self.by_low.range::<[u8], _>(up_to_low).next_back().map(|(bound, _)| bound);
            let bound = bound.expect("the chunk that held an entry has a bound at or below it");
            self.by_low.remove(&bound.clone());
            self.chunks[number as usize] = Chunk::default();
            self.free.push(number);
        }
        true
    }

    /// The chunk that takes an entry with this low bound, with room for it.
    fn room_for(&mut self, low: &[u8]) -> u32 {
        let up_to_low = (Bound::Unbounded, Bound::Included(low));
        let Some((_, number)) = self.by_low.range::<[u8], _>(up_to_low).next_back() else {
            return self.add_chunk(Box::default(), Chunk::default());
        };
        let number = *number;
        let chunk = &mut self.chunks[number as usize];
        if chunk.entries.len() < CHUNK_ENTRIES_MAX {
            return number;
        }
        if chunk.after(low) == chunk.entries.len() {
            // Growing at the end, as a build does, leaves full chunks behind.
            return self.add_chunk(low.into(), Chunk::default());
        }
        let upper = chunk.split_off(CHUNK_ENTRIES_MAX / 2);
        let bound: Box<[u8]> = upper.low(&upper.entries[0]).into();
        let (goes_up, ids) = (low >= &bound[..], upper.ids());
        let added = self.add_chunk(bound, upper);
        for moved in ids {
            self.by_id.insert(moved, added);
        }
        if goes_up { added } else { number }
    }

    fn add_chunk(&mut self, bound: Box<[u8]>, chunk: Chunk) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.chunks.push(Chunk::default());
            u32::try_from(self.chunks.len() - 1).expect("memory ends before 2^32 chunks")
        });
        self.chunks[number as usize] = chunk;
        self.by_low.insert(bound, number);
        number
    }
}

impl Chunk {
    fn low(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.at as usize..][..entry.low as usize]
    }

    fn high(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.at as usize + entry.low as usize..][..entry.high as usize]
    }

    fn stored_bytes(entry: &Entry) -> usize {
        let high = if entry.high >= HIGH_NONE { 0 } else { entry.high };
        usize::from(entry.low) + usize::from(high)
    }

    /// How many entries begin at or before this route.
    fn after(&self, route: &[u8]) -> usize {
        self.entries.partition_point(|entry| self.low(entry) <= route)
    }

    /// Whether the entry, which begins at or before this route, holds it.
    fn reaches(&self, entry: &Entry, route: &[u8]) -> bool {
        match entry.high {
            HIGH_NONE => true,
            HIGH_OF_PREFIX => route.starts_with(self.low(entry)),
            _ => route < self.high(entry),
        }
    }

    fn end(&self, entry: &Entry) -> Option<Bytes> {
        match entry.high {
            HIGH_NONE => None,
            HIGH_OF_PREFIX => after_prefix(self.low(entry)),
            _ => Some(Bytes::copy_from_slice(self.high(entry))),
        }
    }

    fn range(&self, entry: &Entry) -> KeyRange {
        KeyRange::new(Bytes::copy_from_slice(self.low(entry)), self.end(entry))
    }

    fn ids(&self) -> Vec<PartitionId> {
        self.entries.iter().map(|entry| entry.placed.partition).collect()
    }

    /// The caller has checked that the bounds are at most [`BOUND_BYTES_MAX`] long.
    fn insert(&mut self, routes: &KeyRange, placed: Placed) {
        let nth = self.after(&routes.start);
        let at = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&routes.start);
        let high = match &routes.end {
            None => HIGH_NONE,
            end if *end == after_prefix(&routes.start) => HIGH_OF_PREFIX,
            Some(end) => {
                self.bytes.extend_from_slice(end);
                end.len() as u16
            }
        };
        self.entries.insert(nth, Entry { at, low: routes.start.len() as u16, high, placed });
    }

    /// Takes out an entry that is there, and hands back its low bound.
    fn remove(&mut self, id: PartitionId) -> Vec<u8> {
        let nth = self.entries.iter().position(|entry| entry.placed.partition == id);
        let entry = self.entries.remove(nth.expect("by_id names the chunk that holds the entry"));
        let low = self.low(&entry).to_vec();
        self.unused += Self::stored_bytes(&entry);
        if self.unused > self.bytes.len() / 2 {
            *self = self.copy(0..self.entries.len());
        }
        low
    }

    fn split_off(&mut self, nth: usize) -> Self {
        let upper = self.copy(nth..self.entries.len());
        *self = self.copy(0..nth);
        upper
    }

    /// Some of the entries, with the bytes of their bounds and no others.
    fn copy(&self, which: Range<usize>) -> Self {
        let entries = &self.entries[which];
        let mut bytes = Vec::with_capacity(entries.iter().map(Self::stored_bytes).sum());
        let moved = entries.iter().map(|entry| {
            let at = bytes.len() as u32;
            let from = entry.at as usize;
            bytes.extend_from_slice(&self.bytes[from..from + Self::stored_bytes(entry)]);
            Entry { at, ..*entry }
        });
        let entries = moved.collect();
        Self { entries, bytes, unused: 0 }
    }
}
