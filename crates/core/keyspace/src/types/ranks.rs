//! Members of a large sorted set in the order of their scores, with ranks.
//!
//! Entries (a score and the slot of its member) lie in sorted blocks, blocks in shelves. All three levels are plain vectors
//! of bounded length but the topmost, so that an entry is found by three binary searches, and a rank by adding up the
//! lengths of shelves and blocks in front of it.

use std::cmp::Ordering;

/// Entries of a block before it is divided.
const BLOCK_ENTRIES: usize = 128;
/// Blocks of a shelf before it is divided.
const SHELF_BLOCKS: usize = 128;

/// A score, and where the member is that has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) score: f64,
    pub(crate) slot: u32,
}

#[derive(Debug, Clone)]
struct Block {
    /// A copy of the first entry, so that searches touch no other block.
    first: Entry,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Shelf {
    first: Entry,
    len: usize,
    blocks: Vec<Block>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Ranks {
    shelves: Vec<Shelf>,
    len: usize,
}

/// Orders scores: sorted sets hold no number that is not comparable.
pub(crate) fn compare_scores(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}

/// The place of an entry: shelf, block, entry.
type Place = (usize, usize, usize);

impl Ranks {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many entries from the first on meet a condition that all entries meet up to some one and none behind it.
    pub(crate) fn partition(&self, meets: &dyn Fn(Entry) -> bool) -> usize {
        let (shelf, block, entry) = self.place(meets);
        self.rank(shelf, block) + entry
    }

    fn place(&self, meets: &dyn Fn(Entry) -> bool) -> Place {
        let shelf = self.shelves.partition_point(|shelf| meets(shelf.first)).saturating_sub(1);
        let Some(found) = self.shelves.get(shelf) else { return (0, 0, 0) };
        let block = found.blocks.partition_point(|block| meets(block.first)).saturating_sub(1);
        let entry = found.blocks[block].entries.partition_point(|entry| meets(*entry));
        (shelf, block, entry)
    }

    /// How many entries are in front of a block.
    fn rank(&self, shelf: usize, block: usize) -> usize {
        let Some(found) = self.shelves.get(shelf) else { return 0 };
        self.shelves[..shelf].iter().map(|shelf| shelf.len).sum::<usize>()
            + found.blocks[..block].iter().map(|block| block.entries.len()).sum::<usize>()
    }

    /// Adds an entry before the first one that is not `below` it.
    pub(crate) fn insert(&mut self, entry: Entry, below: &dyn Fn(Entry) -> bool) {
        self.len += 1;
        if self.shelves.is_empty() {
            let block = Block { first: entry, entries: vec![entry] };
            self.shelves.push(Shelf { first: entry, len: 1, blocks: vec![block] });
            return;
        }
        let (shelf_at, block_at, at) = self.place(below);
        let shelf = &mut self.shelves[shelf_at];
        let block = &mut shelf.blocks[block_at];
        block.entries.insert(at, entry);
        block.first = block.entries[0];
        shelf.len += 1;
        if block.entries.len() > BLOCK_ENTRIES {
            // Scores often only grow: then the full block stays full.
            let is_last = at + 1 == block.entries.len();
            let cut = if is_last { BLOCK_ENTRIES } else { BLOCK_ENTRIES / 2 };
            let mut rest = Vec::with_capacity(BLOCK_ENTRIES + 1);
            rest.extend(block.entries.drain(cut..));
            shelf.blocks.insert(block_at + 1, Block { first: rest[0], entries: rest });
        }
        shelf.first = shelf.blocks[0].first;
        if shelf.blocks.len() > SHELF_BLOCKS {
            let rest = shelf.blocks.split_off(SHELF_BLOCKS / 2);
            let len = rest.iter().map(|block| block.entries.len()).sum();
            shelf.len -= len;
            let first = rest[0].first;
            self.shelves.insert(shelf_at + 1, Shelf { first, len, blocks: rest });
        }
    }

    /// Removes the first entry that is not `below`.
    pub(crate) fn remove(&mut self, below: &dyn Fn(Entry) -> bool) -> Option<Entry> {
        let (mut shelf_at, mut block_at, mut at) = self.place(below);
        // Behind the last entry of a block is the first one of the next.
        if at == self.shelves.get(shelf_at)?.blocks[block_at].entries.len() {
            at = 0;
            block_at += 1;
            if block_at == self.shelves[shelf_at].blocks.len() {
                block_at = 0;
                shelf_at += 1;
            }
        }
        let shelf = self.shelves.get_mut(shelf_at)?;
        let block = &mut shelf.blocks[block_at];
        let removed = block.entries.remove(at);
        self.len -= 1;
        shelf.len -= 1;
        if let Some(first) = block.entries.first() {
            block.first = *first;
            join(&mut shelf.blocks, block_at);
        } else {
            shelf.blocks.remove(block_at);
        }
        match shelf.blocks.first() {
            Some(block) => shelf.first = block.first,
            None => {
                self.shelves.remove(shelf_at);
            }
        }
        Some(removed)
    }

    /// The place of a rank.
    fn at_rank(&self, mut rank: usize) -> Option<Place> {
        for (shelf_at, shelf) in self.shelves.iter().enumerate() {
            if rank < shelf.len {
                for (block_at, block) in shelf.blocks.iter().enumerate() {
                    if rank < block.entries.len() {
                        return Some((shelf_at, block_at, rank));
                    }
                    rank -= block.entries.len();
                }
            }
            rank -= shelf.len;
        }
        None
    }

    /// Entries from a rank on, upwards.
    pub(crate) fn iter_from(&self, rank: usize) -> impl Iterator<Item = Entry> {
        let mut place = if rank < self.len { self.at_rank(rank) } else { None };
        std::iter::from_fn(move || {
            let (shelf_at, block_at, at) = place?;
            let shelf = &self.shelves[shelf_at];
            let block = &shelf.blocks[block_at];
            let entry = block.entries[at];
            place = if at + 1 < block.entries.len() {
                Some((shelf_at, block_at, at + 1))
            } else if block_at + 1 < shelf.blocks.len() {
                Some((shelf_at, block_at + 1, 0))
            } else if shelf_at + 1 < self.shelves.len() {
                Some((shelf_at + 1, 0, 0))
            } else {
                None
            };
            Some(entry)
        })
    }

    /// Entries from a rank on, downwards.
    pub(crate) fn iter_back_from(&self, rank: usize) -> impl Iterator<Item = Entry> {
        let mut place = if rank < self.len { self.at_rank(rank) } else { None };
        std::iter::from_fn(move || {
            let (shelf_at, block_at, at) = place?;
            let shelf = &self.shelves[shelf_at];
            let entry = shelf.blocks[block_at].entries[at];
            place = if at > 0 {
                Some((shelf_at, block_at, at - 1))
            } else if block_at > 0 {
                Some((shelf_at, block_at - 1, shelf.blocks[block_at - 1].entries.len() - 1))
            } else if shelf_at > 0 {
                let blocks = &self.shelves[shelf_at - 1].blocks;
                let last = blocks.len() - 1;
                Some((shelf_at - 1, last, blocks[last].entries.len() - 1))
            } else {
                None
            };
            Some(entry)
        })
    }
}

/// Joins a block with the one behind it when both are small, so that removals leave no many tiny blocks.
fn join(blocks: &mut Vec<Block>, at: usize) {
    let Some(next) = blocks.get(at + 1) else { return };
    if blocks[at].entries.len() + next.entries.len() <= BLOCK_ENTRIES / 2 {
        let next = blocks.remove(at + 1);
        blocks[at].entries.extend(next.entries);
    }
}
