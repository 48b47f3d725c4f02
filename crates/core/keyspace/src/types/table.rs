//! A table of entries in the order they came, with an index by key: sets and hashes beyond their compact form.
//!
//! Removing puts the last entry in the place of the removed one. So walking from the last entry down meets every entry
//! that stays: what moves has been met already. That is what makes `SCAN` cursors without state possible.

use hashbrown::HashTable;

use super::hash_of::hash_of;

pub(crate) trait Keyed {
    fn key(&self) -> &[u8];
}

impl Keyed for Box<[u8]> {
    fn key(&self) -> &[u8] {
        self
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Table<E> {
    entries: Vec<E>,
    index: HashTable<u32>,
}

impl<E> Default for Table<E> {
    fn default() -> Self {
        Self { entries: Vec::new(), index: HashTable::new() }
    }
}

impl<E: Keyed> Table<E> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn entries(&self) -> &[E] {
        &self.entries
    }

    pub(crate) fn entry_mut(&mut self, position: usize) -> &mut E {
        &mut self.entries[position]
    }

    pub(crate) fn find(&self, key: &[u8]) -> Option<usize> {
        let entries = &self.entries;
        self.index
            .find(hash_of(key), |position| entries[*position as usize].key() == key)
            .map(|position| *position as usize)
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&E> {
        self.find(key).map(|position| &self.entries[position])
    }

    /// Adds an entry whose key is not there yet.
    pub(crate) fn add(&mut self, entry: E) {
        let position = self.entries.len() as u32;
        let hash = hash_of(entry.key());
        self.entries.push(entry);
        let entries = &self.entries;
        self.index.insert_unique(hash, position, |other| hash_of(entries[*other as usize].key()));
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<E> {
        let entries = &self.entries;
        let found = self
            .index
            .find_entry(hash_of(key), |position| entries[*position as usize].key() == key)
            .ok()?;
        let position = found.remove().0;
        Some(self.take(position))
    }

    /// Removes an entry that is out of the index already.
    fn take(&mut self, position: u32) -> E {
        let last = self.entries.len() as u32 - 1;
        if position != last {
            let hash = hash_of(self.entries[last as usize].key());
            if let Some(moved) = self.index.find_mut(hash, |other| *other == last) {
                *moved = position;
            }
        }
        let entry = self.entries.swap_remove(position as usize);
        if self.entries.capacity() > 64 && self.entries.len() * 4 < self.entries.capacity() {
            self.entries.shrink_to(self.entries.len() * 2);
            let entries = &self.entries;
            let room = entries.len() * 2;
            self.index.shrink_to(room, |other| hash_of(entries[*other as usize].key()));
        }
        entry
    }

    /// Visits up to `count` entries from a cursor on; 0 begins, and 0 is the end.
    pub(crate) fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(&E)) -> u64 {
        let from = match cursor {
            0 => self.entries.len(),
            _ => (cursor as usize).min(self.entries.len()),
        };
        let to = from.saturating_sub(count.max(1));
        for entry in self.entries[to..from].iter().rev() {
            visit(entry);
        }
        to as u64
    }

    /// What the table itself takes in memory, without what its entries point to.
    pub(crate) fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<E>() + self.index.capacity() * 6
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Numbers from a seed.
    pub(crate) fn random(seed: u64) -> impl FnMut() -> u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
        }
    }

    fn key(number: u64) -> Box<[u8]> {
        number.to_string().into_bytes().into()
    }

    #[test]
    fn a_table_is_a_set() {
        let mut random = random(2);
        let mut table: Table<Box<[u8]>> = Table::default();
        let mut model = BTreeSet::new();
        for round in 0..30_000 {
            let number = random() % if round < 15_000 { 3000 } else { 300 };
            let is_there = model.contains(&number);
            assert_eq!(table.find(&key(number)).is_some(), is_there);
            if is_there && random().is_multiple_of(2) {
                assert_eq!(table.remove(&key(number)), Some(key(number)));
                model.remove(&number);
            } else if !is_there {
                table.add(key(number));
                model.insert(number);
            }
            assert_eq!(table.len(), model.len());
        }
        let all: BTreeSet<Box<[u8]>> = table.entries().iter().cloned().collect();
        assert_eq!(all, model.iter().map(|number| key(*number)).collect());
    }

    #[test]
    fn a_scan_meets_every_entry_that_is_there_from_its_beginning_to_its_end() {
        let mut random = random(3);
        for _ in 0..200 {
            let mut table: Table<Box<[u8]>> = Table::default();
            (0..200).for_each(|number| table.add(key(number)));
            let mut staying: BTreeSet<Box<[u8]>> = (0..200).map(key).collect();
            let mut met = BTreeSet::new();
            let mut cursor = 0;
            loop {
                cursor = table.scan(cursor, 7, &mut |entry| {
                    met.insert(entry.clone());
                });
                if cursor == 0 {
                    break;
                }
                for _ in 0..random() % 10 {
                    let number = random() % 400;
                    if table.remove(&key(number)).is_some() {
                        staying.remove(&key(number));
                    } else {
                        table.add(key(number));
                    }
                }
            }
            assert!(staying.is_subset(&met));
        }
    }
}
