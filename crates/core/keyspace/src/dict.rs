//! A dictionary that never stops for a resize and can be scanned while it changes.
//!
//! Entries are ordered by position, a number made of their key's hash (and, in the keyspace, of its slot). A segment is a
//! small open-addressing table with all entries whose positions begin with the same bits; a full one is split in two
//! (extendible hashing). So growing touches a few hundred entries at a time, and a cursor of a scan is a position, which
//! means the same whatever was split meanwhile: every entry that is there from the start to the end of a scan is found.

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A segment with more entries is split.
const SEGMENT_ENTRIES_MAX: usize = 512;
/// Segments whose positions share so many bits are not split any more.
const DEPTH_MAX: u32 = 40;
/// The bits of a hash that are used: positions have no room for the others, and name the hash in full so.
const HASH_MASK: u64 = !0x3fff;

/// Entries whose positions differ in so many of the lowest bits alone are never divided by a scan.
const CURSOR_BITS: u32 = 11;

/// Something with a key, as the dictionary keeps it.
pub trait Keyed {
    fn key(&self) -> &[u8];

    /// Where the key stands in the order of scans.
    fn position(_key: &[u8], hash: u64) -> u64 {
        hash
    }

    /// The hash of a key that stands at this position.
    fn hash_at(position: u64) -> u64 {
        position
    }
}

/// Where a key is looked for: computed once for a look-up and an insertion.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub position: u64,
    hash: u64,
}

struct Segment<T> {
    /// How many leading bits the positions of its entries share.
    depth: u32,
    table: HashTable<T>,
}

pub struct Dict<T> {
    seed: u64,
    /// How many leading bits of all positions are the same, and what they are.
    skip: u32,
    base: u64,
    /// The directory has two to the power of this many entries.
    bits: u32,
    directory: Vec<u32>,
    segments: Vec<Segment<T>>,
    len: usize,
}

impl<T: Keyed> Dict<T> {
    /// An empty dictionary. The seed keeps clients from choosing keys that collide.
    pub fn new(seed: u64) -> Self {
        Self::below(seed, 0, 0)
    }

    /// One in which the first `skip` bits of all positions are those of `base`.
    pub fn below(seed: u64, base: u64, skip: u32) -> Self {
        let first = Segment { depth: 0, table: HashTable::new() };
        let (directory, segments) = (vec![0], vec![first]);
        Self { seed, skip, base, bits: 0, directory, segments, len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn place(&self, key: &[u8]) -> Place {
        let hash = hash_of(self.seed, key);
        Place { position: T::position(key, hash), hash: turned(hash) }
    }

    /// The place of the directory that a position belongs to.
    #[inline]
    fn index(&self, position: u64) -> usize {
        if self.bits == 0 { 0 } else { ((position << self.skip) >> (64 - self.bits)) as usize }
    }

    #[inline]
    fn segment(&self, position: u64) -> &Segment<T> {
        &self.segments[self.directory[self.index(position)] as usize]
    }

    #[inline]
    fn segment_mut(&mut self, position: u64) -> &mut Segment<T> {
        let index = self.directory[self.index(position)] as usize;
        &mut self.segments[index]
    }

    #[inline]
    pub fn find(&self, place: Place, key: &[u8]) -> Option<&T> {
        self.segment(place.position).table.find(place.hash, |it| it.key() == key)
    }

    #[inline]
    pub fn find_mut(&mut self, place: Place, key: &[u8]) -> Option<&mut T> {
        self.segment_mut(place.position).table.find_mut(place.hash, |it| it.key() == key)
    }

    /// An entry at a position.
    pub fn find_at(&self, position: u64, is: impl FnMut(&T) -> bool) -> Option<&T> {
        self.segment(position).table.find(turned(T::hash_at(position)), is)
    }

    pub fn get(&self, key: &[u8]) -> Option<&T> {
        self.find(self.place(key), key)
    }

    pub fn get_mut(&mut self, key: &[u8]) -> Option<&mut T> {
        self.find_mut(self.place(key), key)
    }

    /// Adds an entry whose key is not there yet, and returns it.
    pub fn insert_new(&mut self, place: Place, entry: T) -> &mut T {
        let index = self.directory[self.index(place.position)] as usize;
        let segment = &self.segments[index];
        if segment.table.len() >= SEGMENT_ENTRIES_MAX && segment.depth < DEPTH_MAX {
            self.split(place.position);
        }
        self.len += 1;
        let seed = self.seed;
        let segment = self.segment_mut(place.position);
        let inserted =
            segment.table.insert_unique(place.hash, entry, |it| turned(hash_of(seed, it.key())));
        inserted.into_mut()
    }

    pub fn remove(&mut self, place: Place, key: &[u8]) -> Option<T> {
        let seed = self.seed;
        let segment = self.segment_mut(place.position);
        let found = segment.table.find_entry(place.hash, |it| it.key() == key).ok()?;
        let (entry, _) = found.remove();
        let table = &mut segment.table;
        if table.capacity() > 64 && table.len() * 8 < table.capacity() {
            table.shrink_to(table.len() * 2, |it| turned(hash_of(seed, it.key())));
        }
        self.len -= 1;
        Some(entry)
    }

    /// Divides the segment of a position by the next bit.
    fn split(&mut self, position: u64) {
        let old = self.directory[self.index(position)];
        let depth = self.segments[old as usize].depth;
        if depth == self.bits {
            self.directory = self.directory.iter().flat_map(|it| [*it, *it]).collect();
            self.bits += 1;
        }
        let (seed, skip) = (self.seed, self.skip);
        let full = std::mem::replace(&mut self.segments[old as usize].table, HashTable::new());
        let half = full.len() * 5 / 8;
        let mut tables = [HashTable::with_capacity(half), HashTable::with_capacity(half)];
        for entry in full {
            let hash = hash_of(seed, entry.key());
            let position = T::position(entry.key(), hash);
            let side = ((position << (skip + depth)) >> 63) as usize;
            let rehash = |it: &T| turned(hash_of(seed, it.key()));
            tables[side].insert_unique(turned(hash), entry, rehash);
        }
        let [low, high] = tables;
        let new = self.segments.len() as u32;
        self.segments[old as usize] = Segment { depth: depth + 1, table: low };
        self.segments.push(Segment { depth: depth + 1, table: high });
        // The directory's entries of the old segment lie side by side: the upper half of them get the new one.
        let share = 1usize << (self.bits - depth);
        let first = self.index(position) & !(share - 1);
        self.directory[first + share / 2..first + share].fill(new);
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.segments.iter().flat_map(|it| it.table.iter())
    }

    pub fn into_entries(self) -> impl Iterator<Item = T> {
        self.segments.into_iter().flat_map(|it| it.table.into_iter())
    }

    /// Gives `visit` about `count` entries in the order of positions, from `from` on. Where to go on, if there is more.
    pub fn scan<'d>(
        &'d self,
        from: u64,
        count: usize,
        mut visit: impl FnMut(u64, &'d T),
    ) -> Option<u64> {
        let (mut from, mut seen) = (from, 0);
        loop {
            let index = self.index(from);
            let segment = &self.segments[self.directory[index] as usize];
            let mut found: Vec<(u64, &T)> = Vec::with_capacity(segment.table.len());
            let place = |it: &'d T| (T::position(it.key(), self.hash(it.key())), it);
            found.extend(segment.table.iter().map(place).filter(|(at, _)| *at >= from));
            if seen + found.len() > count {
                found.sort_unstable_by_key(|(at, _)| *at);
            }
            let mut last = None;
            for (at, entry) in found {
                // Cursors leave the lowest bits of a position out.
                if seen >= count && last != Some(at >> CURSOR_BITS) {
                    return Some(at);
                }
                visit(at, entry);
                (last, seen) = (Some(at >> CURSOR_BITS), seen + 1);
            }
            from = self.after(index, segment.depth)?;
            if seen >= count {
                return Some(from);
            }
        }
    }

    fn hash(&self, key: &[u8]) -> u64 {
        hash_of(self.seed, key)
    }

    /// Where the segment behind the one at this place of the directory begins, if there is one.
    fn after(&self, index: usize, depth: u32) -> Option<u64> {
        let share = 1usize << (self.bits - depth);
        let next = (index & !(share - 1)) + share;
        if next >= self.directory.len() {
            return None;
        }
        Some(self.base | ((next as u64) << (64 - self.bits)) >> self.skip)
    }

    /// Some entry near a position that was drawn by chance.
    pub fn sample(&self, chance: u64) -> Option<&T> {
        if self.len == 0 {
            return None;
        }
        let first = ((chance >> 20) as usize) % self.segments.len();
        let mut segments = self.segments.iter().cycle().skip(first);
        let segment = segments.find(|it| !it.table.is_empty())?;
        segment.table.iter().nth(chance as usize % segment.table.len())
    }

    /// Entries of one segment that was drawn by chance, at most `count`.
    pub fn samples(&self, chance: u64, count: usize) -> impl Iterator<Item = &T> {
        let segments = if self.len == 0 { &[] } else { &self.segments[..] };
        let first = ((chance >> 20) as usize) % segments.len().max(1);
        let found = segments.iter().cycle().skip(first).take(segments.len());
        let segment = found.into_iter().find(|it| !it.table.is_empty());
        let table = segment.map(|it| &it.table);
        let skipped = table.map_or(0, |it| chance as usize % it.len());
        table
            .into_iter()
            .flat_map(move |it| it.iter().cycle().skip(skipped).take(it.len().min(count)))
    }

    /// What the tables take beside the entries' own memory.
    pub fn table_bytes(&self) -> usize {
        self.segments.iter().map(|it| it.table.allocation_size()).sum::<usize>()
            + self.segments.len() * size_of::<Segment<T>>()
            + self.directory.len() * 4
    }
}

#[inline]
fn hash_of(seed: u64, key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, seed) & HASH_MASK
}

/// The table takes its bits from both ends of what it is given, positions take theirs from the upper end.
#[inline]
fn turned(hash: u64) -> u64 {
    hash.rotate_left(32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    struct Word(Vec<u8>);

    impl Keyed for Word {
        fn key(&self) -> &[u8] {
            &self.0
        }
    }

    fn filled(count: usize) -> Dict<Word> {
        let mut dict = Dict::new(7);
        for number in 0..count {
            add(&mut dict, number);
        }
        dict
    }

    fn add(dict: &mut Dict<Word>, number: usize) {
        let key = format!("key:{number}").into_bytes();
        dict.insert_new(dict.place(&key), Word(key));
    }

    #[test]
    fn what_is_added_is_found_until_it_is_removed() {
        let mut dict = filled(20_000);
        assert_eq!(dict.len(), 20_000);
        assert!(dict.segments.len() > 20);
        for number in 0..20_000 {
            let key = format!("key:{number}").into_bytes();
            assert!(dict.get(&key).is_some(), "{number}");
            if number % 2 == 0 {
                assert!(dict.remove(dict.place(&key), &key).is_some());
                assert!(dict.get(&key).is_none());
            }
        }
        assert_eq!((dict.len(), dict.iter().count()), (10_000, 10_000));
    }

    #[test]
    fn a_scan_finds_all_that_is_there_all_the_time_while_the_dictionary_grows() {
        let mut dict = filled(3000);
        let (mut found, mut from, mut added) = (BTreeSet::new(), Some(0), 3000);
        while let Some(position) = from {
            from = dict.scan(position, 10, |_, it| {
                found.insert(it.0.clone());
            });
            for _ in 0..20 {
                add(&mut dict, added);
                added += 1;
            }
        }
        for number in 0..3000 {
            assert!(found.contains(format!("key:{number}").as_bytes()), "{number}");
        }
    }

    #[test]
    fn samples_come_from_the_dictionary() {
        let dict = filled(1000);
        assert!(dict.sample(u64::MAX).is_some());
        assert_eq!(dict.samples(12345, 5).count(), 5);
        let empty: Dict<Word> = Dict::new(1);
        assert_eq!((empty.sample(3).is_none(), empty.samples(3, 5).count()), (true, 0));
    }
}
