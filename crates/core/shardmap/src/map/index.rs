//! The chunks of a map in order: the number of each, and its bound. All entries of a chunk begin at
//! or above its bound, and all of the chunk before begin below.

use super::heads::{common, head, search};

#[derive(Clone, Default)]
pub(super) struct Index {
    /// What all bounds begin with.
    prefix: Vec<u8>,
    heads: Vec<u64>,
    numbers: Vec<u32>,
    bounds: Vec<Box<[u8]>>,
}

impl Index {
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    pub(super) fn number(&self, place: usize) -> u32 {
        self.numbers[place]
    }

    /// How many chunks have their bound at or before this route.
    pub(super) fn after(&self, route: &[u8]) -> usize {
        let same = search(&self.heads, &self.prefix, route);
        same.start + self.bounds[same].partition_point(|bound| &bound[..] <= route)
    }

    /// Takes in a chunk with a bound that no other has.
    pub(super) fn insert(&mut self, bound: &[u8], number: u32) {
        if self.numbers.is_empty() {
            self.prefix = bound.to_vec();
        }
        let shared = common(&self.prefix, bound);
        if shared < self.prefix.len() {
            self.prefix.truncate(shared);
            self.heads = self.bounds.iter().map(|bound| head(&bound[shared..])).collect();
        }
        let place = self.after(bound);
        self.heads.insert(place, head(&bound[shared..]));
        self.numbers.insert(place, number);
        self.bounds.insert(place, bound.into());
    }

    /// Takes out the chunk at a place and hands back its number.
    pub(super) fn remove(&mut self, place: usize) -> u32 {
        self.heads.remove(place);
        self.bounds.remove(place);
        self.numbers.remove(place)
    }
}

#[cfg(test)]
impl Index {
    pub(super) fn bound(&self, place: usize) -> Option<&[u8]> {
        self.bounds.get(place).map(|bound| &bound[..])
    }
}
