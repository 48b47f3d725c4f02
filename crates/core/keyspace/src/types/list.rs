//! Lists: a queue of chunks, each a flat buffer of a few kilobytes.
//!
//! In rows an item is named by its position, a number that stays while items are pushed and popped at the ends. An item
//! put in or taken out in between shifts the positions of the shorter side.

use std::collections::VecDeque;

use super::limits::LIST_CHUNK_BYTES;
use super::log::{ElementLog, Unlogged};
use super::pack::Pack;
use crate::value::BadRow;

#[derive(Debug, Clone, Default)]
pub struct List {
    chunks: VecDeque<Pack>,
    len: usize,
    bytes: usize,
    /// The position of the first item.
    first: i64,
}

/// An end of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Front,
    Back,
}

/// The row of a position: signed numbers in the order of their bytes.
fn row(position: i64) -> [u8; 8] {
    ((position as u64) ^ (1 << 63)).to_be_bytes()
}

impl List {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn encoding(&self) -> &'static str {
        "quicklist"
    }

    pub fn memory(&self) -> usize {
        self.bytes + self.chunks.len() * 64
    }

    pub fn push(&mut self, end: End, item: &[u8], log: &mut dyn ElementLog) {
        let chunk = match end {
            End::Front => self.chunks.front_mut(),
            End::Back => self.chunks.back_mut(),
        };
        match (chunk.filter(|chunk| chunk.size_with(item.len()) <= LIST_CHUNK_BYTES), end) {
            (Some(chunk), End::Front) => chunk.push_front(item),
            (Some(chunk), End::Back) => chunk.push_back(item),
            (None, End::Front) => self.chunks.push_front(one(item)),
            (None, End::Back) => self.chunks.push_back(one(item)),
        }
        self.len += 1;
        self.bytes += item.len() + 2;
        if end == End::Front {
            self.first -= 1;
        }
        let index = if end == End::Front { 0 } else { self.len - 1 };
        log.put(&row(self.first + index as i64), item);
    }

    pub fn pop(&mut self, end: End, log: &mut dyn ElementLog) -> Option<Vec<u8>> {
        let (item, is_empty) = match end {
            End::Front => {
                let chunk = self.chunks.front_mut()?;
                (chunk.pop_front()?, chunk.is_empty())
            }
            End::Back => {
                let chunk = self.chunks.back_mut()?;
                (chunk.pop_back()?, chunk.is_empty())
            }
        };
        if is_empty {
            match end {
                End::Front => self.chunks.pop_front(),
                End::Back => self.chunks.pop_back(),
            };
        }
        self.len -= 1;
        self.bytes -= item.len() + 2;
        if end == End::Front {
            log.remove(&row(self.first));
            self.first += 1;
        } else {
            log.remove(&row(self.first + self.len as i64));
        }
        Some(item)
    }

    /// The chunk with an item, and the item's number in it.
    fn locate(&self, index: usize) -> Option<(usize, usize)> {
        if index >= self.len {
            return None;
        }
        if index <= self.len / 2 {
            let mut rest = index;
            for (number, chunk) in self.chunks.iter().enumerate() {
                if rest < chunk.len() {
                    return Some((number, rest));
                }
                rest -= chunk.len();
            }
            return None;
        }
        let mut begin = self.len;
        for (number, chunk) in self.chunks.iter().enumerate().rev() {
            begin -= chunk.len();
            if index >= begin {
                return Some((number, index - begin));
            }
        }
        None
    }

    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let (chunk, within) = self.locate(index)?;
        self.chunks[chunk].get(within)
    }

    pub fn set(&mut self, index: usize, item: &[u8], log: &mut dyn ElementLog) -> bool {
        let Some((number, within)) = self.locate(index) else { return false };
        let chunk = &mut self.chunks[number];
        let Some(offset) = chunk.offset_of(within) else { return false };
        let old = chunk.at(offset).map_or(0, |(old, _)| old.len());
        chunk.replace_at(offset, item);
        self.bytes = self.bytes + item.len() - old;
        self.halve(number);
        log.put(&row(self.first + index as i64), item);
        true
    }

    /// Divides a chunk that has grown over twice its bound.
    fn halve(&mut self, number: usize) {
        let chunk = &mut self.chunks[number];
        if chunk.bytes() > LIST_CHUNK_BYTES * 2 && chunk.len() > 1 {
            let rest = chunk.split_off(chunk.len() / 2);
            self.chunks.insert(number + 1, rest);
        }
    }

    /// Puts an item before the one with a number, or at the end.
    pub fn insert(&mut self, index: usize, item: &[u8], log: &mut dyn ElementLog) {
        let Some((number, within)) = self.locate(index) else {
            return self.push(End::Back, item, log);
        };
        if index == 0 {
            return self.push(End::Front, item, log);
        }
        let chunk = &mut self.chunks[number];
        let offset = chunk.offset_of(within).unwrap_or(chunk.end());
        chunk.insert_at(offset, item);
        self.halve(number);
        self.len += 1;
        self.bytes += item.len() + 2;
        if index <= self.len / 2 {
            self.first -= 1;
            self.write_rows(0, index + 1, log);
        } else {
            self.write_rows(index, self.len - index, log);
        }
    }

    fn write_rows(&self, from: usize, count: usize, log: &mut dyn ElementLog) {
        if !log.is_on() {
            // One change, whatever is written for it.
            return log.put(&[], &[]);
        }
        for (number, item) in self.iter_from(from).take(count).enumerate() {
            log.put(&row(self.first + (from + number) as i64), item);
        }
    }

    pub fn remove(&mut self, index: usize, log: &mut dyn ElementLog) -> bool {
        let Some(length) = self.take_out(index) else { return false };
        self.bytes -= length + 2;
        if index < self.len / 2 {
            log.remove(&row(self.first));
            self.first += 1;
            self.write_rows(0, index, log);
        } else {
            log.remove(&row(self.first + self.len as i64));
            self.write_rows(index, self.len - index, log);
        }
        true
    }

    /// Takes an item out of its chunk and says how long it was.
    fn take_out(&mut self, index: usize) -> Option<usize> {
        let (number, within) = self.locate(index)?;
        let chunk = &mut self.chunks[number];
        let offset = chunk.offset_of(within)?;
        let length = chunk.at(offset)?.0.len();
        chunk.remove_at(offset);
        if chunk.is_empty() {
            self.chunks.remove(number);
        }
        self.len -= 1;
        Some(length)
    }

    /// Keeps the items from one number up to another, both included.
    pub fn trim(&mut self, from: usize, to: usize, log: &mut dyn ElementLog) {
        let behind = self.len.saturating_sub(to.saturating_add(1));
        for _ in 0..from.min(self.len) {
            self.pop(End::Front, log);
        }
        for _ in 0..behind.min(self.len) {
            self.pop(End::Back, log);
        }
    }

    /// Removes up to `count` items that equal one, from an end, and says how many.
    pub fn remove_equal(
        &mut self,
        item: &[u8],
        end: End,
        count: usize,
        log: &mut dyn ElementLog,
    ) -> usize {
        let found: Vec<usize> = match end {
            End::Front => positions(self.iter_from(0), item, count),
            End::Back => {
                let last = self.len.saturating_sub(1);
                let mut found = positions(self.iter_back_from(last), item, count);
                found.iter_mut().for_each(|back| *back = last - *back);
                found.reverse();
                found
            }
        };
        if let [index] = found[..] {
            self.remove(index, log);
        } else if !found.is_empty() {
            self.take_all(&found);
            log.rewrite();
        }
        found.len()
    }

    /// Removes items by their ascending numbers, in one walk.
    fn take_all(&mut self, found: &[usize]) {
        let mut found = found.iter().copied().peekable();
        let mut begin = 0;
        for chunk in &mut self.chunks {
            let end = begin + chunk.len();
            let mut removed = 0;
            while let Some(index) = found.next_if(|index| *index < end) {
                if let Some(offset) = chunk.offset_of(index - begin - removed) {
                    let length = chunk.at(offset).map_or(0, |(item, _)| item.len());
                    chunk.remove_at(offset);
                    removed += 1;
                    self.len -= 1;
                    self.bytes -= length + 2;
                }
            }
            begin = end;
        }
        self.chunks.retain(|chunk| !chunk.is_empty());
    }

    /// Items from a number on, towards the end.
    pub fn iter_from(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        let (mut number, within) = self.locate(index).unwrap_or((self.chunks.len(), 0));
        let mut offset = self.chunks.get(number).and_then(|chunk| chunk.offset_of(within));
        std::iter::from_fn(move || {
            loop {
                let chunk = self.chunks.get(number)?;
                let at = offset.unwrap_or(chunk.start());
                if let Some((item, next)) = chunk.at(at) {
                    offset = Some(next);
                    return Some(item);
                }
                number += 1;
                offset = None;
            }
        })
    }

    /// Items from a number on, towards the front.
    pub fn iter_back_from(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        let located = self.locate(index);
        let mut number = located.map(|(number, _)| number);
        let mut end = located.and_then(|(number, within)| {
            let chunk = &self.chunks[number];
            chunk.at(chunk.offset_of(within)?).map(|(_, next)| next)
        });
        std::iter::from_fn(move || {
            loop {
                let chunk = self.chunks.get(number?)?;
                let at = end.unwrap_or(chunk.end());
                if let Some(offset) = chunk.before(at) {
                    end = Some(offset);
                    return chunk.at(offset).map(|(item, _)| item);
                }
                number = number?.checked_sub(1);
                end = None;
            }
        })
    }

    pub fn rows(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        for (index, item) in self.iter_from(0).enumerate() {
            visit(&row(self.first + index as i64), item);
        }
    }

    /// Takes a row, which must be the one behind the last.
    pub fn load(&mut self, element: &[u8], value: &[u8]) -> Result<(), BadRow> {
        let bytes: [u8; 8] = element.try_into().map_err(|_| BadRow)?;
        let position = (u64::from_be_bytes(bytes) ^ (1 << 63)) as i64;
        if self.len == 0 {
            self.first = position;
        } else if position != self.first.wrapping_add(self.len as i64) {
            return Err(BadRow);
        }
        self.push(End::Back, value, &mut Unlogged);
        Ok(())
    }
}

fn one(item: &[u8]) -> Pack {
    let mut pack = Pack::default();
    pack.push_back(item);
    pack
}

fn positions<'a>(items: impl Iterator<Item = &'a [u8]>, item: &[u8], count: usize) -> Vec<usize> {
    let equal = items.enumerate().filter(|(_, other)| *other == item);
    equal.map(|(index, _)| index).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::super::log::Journaled;
    use super::super::table::tests::random;
    use super::*;

    #[test]
    fn a_list_is_a_vector_and_its_rows_are_too() {
        for seed in 0..60 {
            let mut random = random(seed);
            let (mut list, mut model) = (List::default(), Vec::<Vec<u8>>::new());
            let mut journal = Journaled::default();
            for _ in 0..200 {
                let length = [1, 3, 200, 3000, 9000][(random() % 5) as usize];
                let item = vec![b'a' + (random() % 3) as u8; length];
                let index = random() as usize % (model.len() + 1);
                match random() % 9 {
                    0 | 1 => {
                        list.push(End::Front, &item, &mut journal);
                        model.insert(0, item);
                    }
                    2 | 3 => {
                        list.push(End::Back, &item, &mut journal);
                        model.push(item);
                    }
                    4 => {
                        list.insert(index, &item, &mut journal);
                        model.insert(index, item);
                    }
                    5 if index < model.len() => {
                        assert!(list.remove(index, &mut journal));
                        model.remove(index);
                    }
                    6 if index < model.len() => {
                        assert!(list.set(index, &item, &mut journal));
                        model[index] = item;
                    }
                    7 => {
                        let end = if random().is_multiple_of(2) { End::Front } else { End::Back };
                        let count = 1 + random() as usize % 3;
                        let removed = list.remove_equal(&item, end, count, &mut journal);
                        assert_eq!(removed, remove_from_model(&mut model, &item, end, count));
                    }
                    _ => {
                        let popped = list.pop(End::Front, &mut journal);
                        let expected = if model.is_empty() { None } else { Some(model.remove(0)) };
                        assert_eq!(popped, expected);
                        assert_eq!(list.pop(End::Back, &mut journal), model.pop());
                    }
                }
                check(&list, &model, &mut random);
                journal.settle(&|visit| list.rows(visit));
            }
            let mut loaded = List::default();
            for (element, value) in &journal.rows {
                loaded.load(element, value).unwrap();
            }
            check(&loaded, &model, &mut random);
            assert_eq!(loaded.bytes, list.bytes);
        }
    }

    fn remove_from_model(model: &mut Vec<Vec<u8>>, item: &[u8], end: End, count: usize) -> usize {
        let mut removed = 0;
        while removed < count {
            let same = |other: &Vec<u8>| *other == item;
            let found = match end {
                End::Front => model.iter().position(same),
                End::Back => model.iter().rposition(same),
            };
            let Some(found) = found else { break };
            model.remove(found);
            removed += 1;
        }
        removed
    }

    fn check(list: &List, model: &[Vec<u8>], random: &mut dyn FnMut() -> u64) {
        assert_eq!(list.len(), model.len());
        assert!(list.iter_from(0).eq(model.iter().map(Vec::as_slice)));
        if !model.is_empty() {
            let index = random() as usize % model.len();
            assert_eq!(list.get(index), Some(model[index].as_slice()));
            assert!(list.iter_from(index).eq(model[index..].iter().map(Vec::as_slice)));
            let back = model[..=index].iter().rev().map(Vec::as_slice);
            assert!(list.iter_back_from(index).eq(back));
        }
    }

    #[test]
    fn trimming_keeps_the_middle() {
        let mut list = List::default();
        (0..10).for_each(|n: u8| list.push(End::Back, &[n], &mut Unlogged));
        list.trim(2, 4, &mut Unlogged);
        assert!(list.iter_from(0).eq([&[2_u8][..], &[3], &[4]]));
    }
}
