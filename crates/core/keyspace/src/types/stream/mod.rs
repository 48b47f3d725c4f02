//! Streams: entries by ascending id, in blocks, and groups of consumers with what is pending for them.

mod block;
mod group;
mod rows;

use std::collections::BTreeMap;

use block::Block;
pub use group::{Consumer, Group, GroupLog, Pending};

use super::limits::{STREAM_BLOCK_BYTES, STREAM_BLOCK_ENTRIES};
use super::log::ElementLog;

/// The id of an entry: milliseconds and a number within them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId {
    pub ms: u64,
    pub seq: u64,
}

impl StreamId {
    pub const MIN: Self = Self { ms: 0, seq: 0 };
    pub const MAX: Self = Self { ms: u64::MAX, seq: u64::MAX };

    pub fn next(self) -> Option<Self> {
        match (self.ms, self.seq) {
            (u64::MAX, u64::MAX) => None,
            (ms, u64::MAX) => Some(Self { ms: ms + 1, seq: 0 }),
            (ms, seq) => Some(Self { ms, seq: seq + 1 }),
        }
    }

    pub fn previous(self) -> Option<Self> {
        match (self.ms, self.seq) {
            (0, 0) => None,
            (ms, 0) => Some(Self { ms: ms - 1, seq: u64::MAX }),
            (ms, seq) => Some(Self { ms, seq: seq - 1 }),
        }
    }

    pub fn to_bytes(self) -> [u8; 16] {
        ((u128::from(self.ms) << 64) | u128::from(self.seq)).to_be_bytes()
    }

    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let number = u128::from_be_bytes(bytes);
        Self { ms: (number >> 64) as u64, seq: number as u64 }
    }
}

impl std::fmt::Display for StreamId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

/// What a trim keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// So many of the newest entries.
    Newest(u64),
    /// Entries with this id and above.
    From(StreamId),
}

#[derive(Debug, Clone, Default)]
pub struct Stream {
    blocks: BTreeMap<StreamId, Block>,
    len: u64,
    bytes: usize,
    pub last_id: StreamId,
    pub max_deleted_id: StreamId,
    pub entries_added: u64,
    groups: BTreeMap<Vec<u8>, Group>,
}

impl Stream {
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn encoding(&self) -> &'static str {
        "stream"
    }

    pub fn memory(&self) -> usize {
        let pending: usize =
            self.groups.values().map(|group| 64 + group.pending().len() * 96).sum();
        self.bytes + self.blocks.len() * 128 + pending
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The id of the first entry, or 0-0.
    pub fn first_id(&self) -> StreamId {
        let first = self.blocks.values().next().and_then(|block| block.iter().next());
        first.map_or(StreamId::MIN, |found| found.id)
    }

    /// The highest id that an entry has, or 0-0.
    pub fn top_id(&self) -> StreamId {
        self.blocks.values().next_back().map_or(StreamId::MIN, |block| block.last)
    }

    /// Adds an entry, fields and values in turn. The id must be above `last_id`.
    pub fn add(&mut self, id: StreamId, texts: &[&[u8]], log: &mut dyn ElementLog) {
        self.append(id, texts);
        self.last_id = id;
        self.entries_added += 1;
        let row = if log.is_on() { rows::entry_value(texts) } else { Vec::new() };
        log.put(&rows::entry(id), &row);
        self.log_header(log);
    }

    fn append(&mut self, id: StreamId, texts: &[&[u8]]) {
        let before = self.blocks.values().next_back().map_or(0, Block::bytes);
        let is_full = |block: &Block| {
            block.bytes() >= STREAM_BLOCK_BYTES
                || block.live + block.deleted >= STREAM_BLOCK_ENTRIES
        };
        match self.blocks.values_mut().next_back().filter(|block| !is_full(block)) {
            Some(block) => {
                block.push(id, texts);
                self.bytes += block.bytes() - before;
            }
            None => {
                let block = Block::new(id, texts);
                self.bytes += block.bytes();
                self.blocks.insert(id, block);
            }
        }
        self.len += 1;
    }

    /// Tells the journal the ids and counts of the stream as a whole.
    pub fn log_header(&self, log: &mut dyn ElementLog) {
        if log.is_on() {
            log.put(&rows::HEADER, &rows::header_value(self));
        }
    }

    fn block_of(&self, id: StreamId) -> Option<StreamId> {
        self.blocks.range(..=id).next_back().map(|(first, _)| *first)
    }

    pub fn contains(&self, id: StreamId) -> bool {
        let mut is_there = false;
        self.range(id, id, false, &mut |_, _| {
            is_there = true;
            false
        });
        is_there
    }

    /// Removes an entry. Whether that moves `max_deleted_id` is the caller's to say.
    pub fn remove(&mut self, id: StreamId, log: &mut dyn ElementLog) -> bool {
        let Some(first) = self.block_of(id) else { return false };
        let Some(block) = self.blocks.get_mut(&first) else { return false };
        let before = block.bytes();
        if !block.remove(id) {
            return false;
        }
        self.bytes -= before - block.bytes();
        if block.live == 0 {
            self.bytes -= block.bytes();
            self.blocks.remove(&first);
        }
        self.len -= 1;
        log.remove(&rows::entry(id));
        true
    }

    /// Visits the entries between two ids, both included, until `visit` says no.
    pub fn range(
        &self,
        from: StreamId,
        to: StreamId,
        is_reverse: bool,
        visit: &mut dyn FnMut(StreamId, &[&[u8]]) -> bool,
    ) {
        if from > to {
            return;
        }
        if is_reverse {
            for (_, block) in self.blocks.range(..=to).rev() {
                if block.last < from {
                    return;
                }
                let found: Vec<_> = block.iter().collect();
                for entry in found.iter().rev().filter(|entry| entry.id <= to) {
                    if entry.id < from || !visit(entry.id, &entry.texts) {
                        return;
                    }
                }
            }
            return;
        }
        let first = self.block_of(from).unwrap_or(from);
        for (_, block) in self.blocks.range(first..=to) {
            for entry in block.iter().filter(|entry| entry.id >= from) {
                if entry.id > to || !visit(entry.id, &entry.texts) {
                    return;
                }
            }
        }
    }

    /// Removes the oldest entries. An approximate trim drops whole blocks only, and at most `most` entries if that is not 0.
    pub fn trim(&mut self, keep: Keep, is_exact: bool, most: u64, log: &mut dyn ElementLog) -> u64 {
        let mut removed = 0;
        while let Some((first, block)) = self.blocks.first_key_value() {
            let first = *first;
            let live = block.live as u64;
            if matches!(keep, Keep::Newest(count) if self.len <= count) {
                break;
            }
            if most > 0 && removed + live > most {
                break;
            }
            let drops_all = match keep {
                Keep::Newest(count) => self.len - live >= count,
                Keep::From(id) => block.last < id,
            };
            if drops_all {
                if log.is_on() {
                    block.iter().for_each(|entry| log.remove(&rows::entry(entry.id)));
                }
                self.bytes -= block.bytes();
                self.len -= live;
                removed += live;
                self.blocks.remove(&first);
                continue;
            }
            if !is_exact {
                break;
            }
            let going = match keep {
                Keep::Newest(count) => self.len - count,
                Keep::From(id) => block.iter().take_while(|entry| entry.id < id).count() as u64,
            };
            let ids: Vec<StreamId> =
                block.iter().take(going as usize).map(|entry| entry.id).collect();
            for id in ids {
                self.remove(id, log);
                removed += 1;
            }
            break;
        }
        removed
    }

    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.groups.get(name)
    }

    pub fn groups(&self) -> impl ExactSizeIterator<Item = (&[u8], &Group)> {
        self.groups.iter().map(|(name, group)| (name.as_slice(), group))
    }

    /// Changes a group, by a closure that gets the journal's log under the group's name.
    pub fn with_group<T>(
        &mut self,
        name: &[u8],
        log: &mut dyn ElementLog,
        change: impl FnOnce(&mut Group, &mut group::GroupLog<'_>) -> T,
    ) -> Option<T> {
        let group = self.groups.get_mut(name)?;
        Some(change(group, &mut group::GroupLog::new(name, log)))
    }

    /// Adds a group; says no if there is one with this name.
    pub fn add_group(
        &mut self,
        name: &[u8],
        last_id: StreamId,
        entries_read: Option<u64>,
        log: &mut dyn ElementLog,
    ) -> bool {
        if self.groups.contains_key(name) {
            return false;
        }
        let mut group = Group::default();
        group.set_position(last_id, entries_read, &mut group::GroupLog::new(name, log));
        self.groups.insert(name.to_vec(), group);
        true
    }

    pub fn remove_group(&mut self, name: &[u8], log: &mut dyn ElementLog) -> bool {
        let Some(group) = self.groups.remove(name) else { return false };
        if log.is_on() {
            group.each_row(name, &mut |element, _| log.remove(element));
        }
        true
    }

    /// Whether entries were deleted, other than by trimming, between an id and the end.
    pub fn has_tombstones_from(&self, id: StreamId) -> bool {
        self.len > 0 && self.max_deleted_id != StreamId::MIN && id <= self.max_deleted_id
    }

    /// How many entries were added up to an id, where that can be told.
    pub fn entries_up_to(&self, id: StreamId) -> Option<u64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        if self.len == 0 && id <= self.last_id || id == self.last_id {
            return Some(self.entries_added);
        }
        if id > self.last_id {
            return None;
        }
        let first = self.first_id();
        if self.max_deleted_id == StreamId::MIN || self.max_deleted_id < first {
            if id < first {
                return Some(self.entries_added - self.len);
            }
            if id == first {
                return Some(self.entries_added - self.len + 1);
            }
        }
        None
    }

    /// How many entries a group has not read yet, where that can be told. A number of entries read that a client has made up
    /// can be too high.
    pub fn lag(&self, group: &Group) -> Option<i64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        let counted = group.entries_read.filter(|_| !self.has_tombstones_from(group.last_id));
        let read = counted.or_else(|| self.entries_up_to(group.last_id))?;
        Some(self.entries_added as i64 - read as i64)
    }

    /// The position of a group after it has read an entry.
    pub fn read_up_to(&self, group: &Group, id: StreamId) -> Option<u64> {
        match group.entries_read {
            Some(read) if !self.has_tombstones_from(id) => Some(read + 1),
            read if self.entries_added == 0 => read,
            _ => self.entries_up_to(id),
        }
    }
}

#[cfg(test)]
mod tests;
