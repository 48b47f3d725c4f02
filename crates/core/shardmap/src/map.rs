//! The map of one container in memory: which partition holds which routes.
//!
//! A sorted list of ranges that do not overlap, in two levels: chunks of some dozens of entries,
//! and an index of the chunks. So a lookup touches few cache lines, an entry costs little beyond
//! its bounds, and a change touches one chunk, however large the map is
//! (`docs/decisions/0011-map-structure.md`).
//!
//! Invariants: chunks are never empty; the lows of a chunk are at or above the chunk's own bound
//! and below the next chunk's; `by_id` names the chunk of every entry.

mod chunk;
mod heads;
mod index;
mod placed;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bytes::Bytes;
use lazuli_store::{Error, KeyRange, Result};

use self::chunk::{BOUND_BYTES_MAX, Chunk, Entry};
use self::index::Index;
pub use self::placed::Placed;
use crate::{Partition, PartitionId};

/// A container's map. Gaps are allowed: a route in none of the ranges has no place.
#[derive(Clone, Default)]
pub struct Map {
    /// By their numbers, which stay the same while the chunks' order changes.
    #[expect(clippy::vec_box, reason = "the list of chunks grows without moving the chunks")]
    chunks: Vec<Box<Chunk>>,
    /// Numbers of chunks that hold nothing and are in no index.
    free: Vec<u32>,
    index: Index,
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
        let place = self.index.after(route).checked_sub(1)?;
        let entry = match self.chunk(place).guess(route) {
            Some(entry) => entry,
            None => {
                let (place, nth) = self.last_before(route)?;
                Some(self.chunk(place).entry(nth)).filter(|entry| entry.reaches(route))?
            }
        };
        Some(entry.placed())
    }

    /// A partition by its id.
    pub fn get(&self, id: PartitionId) -> Option<Placed> {
        let chunk = &self.chunks[*self.by_id.get(&id)? as usize];
        let mut placed = chunk.entries().map(|entry| entry.placed());
        placed.find(|placed| placed.partition == id)
    }

    /// All partitions that hold any of these routes, in order, each with all routes it holds.
    pub fn overlapping<'a>(
        &'a self,
        routes: &'a KeyRange,
    ) -> impl Iterator<Item = (KeyRange, Placed)> + use<'a> {
        self.entries(routes).map(|entry| (entry.range(), entry.placed()))
    }

    /// Whether every one of these routes has a place.
    pub fn covers(&self, routes: &KeyRange) -> bool {
        let mut open = Some(routes.start.clone());
        for entry in self.entries(routes) {
            match open {
                Some(from) if entry.low <= &from[..] => open = entry.end(),
                _ => break,
            }
        }
        match (&open, &routes.end) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(from), Some(end)) => from >= end,
        }
    }

    /// Takes in a new or changed partition, in place of all that overlap it.
    pub fn put(&mut self, partition: &Partition) -> Result<()> {
        let KeyRange { start, end } = &partition.routes;
        let longest = end.as_ref().map_or(0, Bytes::len).max(start.len());
        if longest > BOUND_BYTES_MAX || partition.routes.is_empty() {
            let message = format!("partition {} has bounds that no map can have", partition.id);
            return Err(Error::corrupt("map-bounds", message));
        }
        self.remove(partition.id);
        let replaced = self.entries(&partition.routes).map(|entry| entry.placed());
        for placed in replaced.collect::<Vec<_>>() {
            self.remove(placed.partition);
        }
        let number = self.room_for(start);
        self.chunks[number as usize].insert(&partition.routes, partition.into());
        self.by_id.insert(partition.id, number);
        Ok(())
    }

    /// Takes a partition out and says whether it was there.
    pub fn remove(&mut self, id: PartitionId) -> bool {
        let Some(number) = self.by_id.remove(&id) else { return false };
        let chunk = &mut self.chunks[number as usize];
        let nth = chunk.entries().position(|entry| entry.placed().partition == id);
        let low = chunk.remove(nth.expect("the index by id names the chunk that holds the entry"));
        if chunk.is_empty() {
            **chunk = Chunk::new(0);
            let freed = self.index.remove(self.index.after(&low) - 1);
            debug_assert_eq!(freed, number, "the chunk is the last with a bound at or below");
            self.free.push(freed);
        }
        true
    }

    /// The chunk at a place of the index.
    fn chunk(&self, place: usize) -> &Chunk {
        &self.chunks[self.index.number(place) as usize]
    }

    /// Where the last entry is that begins at or before this route: the chunk's place, and its own.
    fn last_before(&self, route: &[u8]) -> Option<(usize, usize)> {
        // The second round is only needed where the first entries of a chunk were removed.
        (0..self.index.after(route)).rev().find_map(|place| {
            let nth = self.chunk(place).after(route).checked_sub(1)?;
            Some((place, nth))
        })
    }

    /// The entries that hold any of these routes, in order.
    fn entries<'a>(&'a self, routes: &'a KeyRange) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let KeyRange { start, end } = routes;
        let (first, skipped) = self.last_before(start).unwrap_or((0, 0));
        let until = if routes.is_empty() { 0 } else { self.index.len() };
        (first..until)
            .flat_map(|place| self.chunk(place).entries())
            .skip(skipped)
            .skip_while(|entry| entry.low < &start[..] && !entry.reaches(start))
            .take_while(|entry| end.as_ref().is_none_or(|end| entry.low < &end[..]))
    }

    /// The chunk that takes an entry with this low bound, with room for it.
    fn room_for(&mut self, low: &[u8]) -> u32 {
        if self.index.len() == 0 {
            return self.add_chunk(low, Chunk::new(0));
        }
        let place = self.index.after(low).checked_sub(1);
        let number = self.index.number(place.unwrap_or(0));
        if place.is_none() {
            // Below all bounds: from now on the first chunk reaches down to it.
            self.index.remove(0);
            self.index.insert(low, number);
        }
        let chunk = &mut self.chunks[number as usize];
        if !chunk.is_full() {
            return number;
        }
        if chunk.after(low) == chunk.len() {
            // Growing at the end, as a build does, leaves full chunks behind, and the next one will
            // be as large.
            let next = Chunk::new(chunk.used_bytes());
            return self.add_chunk(low, next);
        }
        let upper = chunk.split();
        let bound = upper.entry(0).low.to_vec();
        let added = self.add_chunk(&bound, upper);
        for entry in self.chunks[added as usize].entries() {
            self.by_id.insert(entry.placed().partition, added);
        }
        if low >= &bound[..] { added } else { number }
    }

    fn add_chunk(&mut self, bound: &[u8], chunk: Chunk) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.chunks.push(Box::new(Chunk::new(0)));
            u32::try_from(self.chunks.len() - 1).expect("memory ends before 2^32 chunks")
        });
        *self.chunks[number as usize] = chunk;
        self.index.insert(bound, number);
        number
    }
}
