//! The first rows of an order that is known only at the end: a sorted map that forgets what cannot be on the page.

use std::collections::BTreeMap;

use crate::error::QueryError;
use crate::evaluate::{Context, Group};
use crate::limits::{MEMORY_BYTES_MAX, PAUSED_GROUPS_MAX};
use crate::tree::Grouping;

/// Entries by sort key, the least ones only.
#[derive(Debug)]
pub(super) struct Top<T> {
    entries: BTreeMap<Vec<u8>, (T, usize)>,
    /// How many entries are needed at most.
    capacity: usize,
    /// Whether entries may also be dropped for their size. Not if some are to be skipped: then their number counts.
    bytes_max: Option<usize>,
    bytes: usize,
    /// Keys up to this one were given by an earlier page.
    after: Option<Vec<u8>>,
    /// The least key that was dropped after it had been taken. Nothing from there on is taken again: it would be on the
    /// page although something before it is missing, and a group would lack the rows that it had before.
    ceiling: Option<Vec<u8>>,
    /// Whether something was dropped that a later page needs.
    has_dropped: bool,
}

impl<T> Top<T> {
    pub(super) fn new(capacity: usize, bytes_max: Option<usize>, after: Option<Vec<u8>>) -> Self {
        Self {
            entries: BTreeMap::new(),
            capacity,
            bytes_max,
            bytes: 0,
            after,
            ceiling: None,
            has_dropped: false,
        }
    }

    /// Whether an entry of this key would be kept.
    pub(super) fn wants(&mut self, key: &[u8]) -> bool {
        if self.after.as_deref().is_some_and(|after| key <= after) {
            return false;
        }
        let is_full = self.entries.len() >= self.capacity;
        let last = self.entries.last_key_value().map(|(last, _)| last.as_slice());
        let is_above = self.ceiling.as_deref().is_some_and(|ceiling| key >= ceiling);
        if is_above || (is_full && last.is_none_or(|last| key > last)) {
            self.has_dropped = true;
            return false;
        }
        true
    }

    pub(super) fn get_mut(&mut self, key: &[u8]) -> Option<&mut T> {
        self.entries.get_mut(key).map(|(entry, _)| entry)
    }

    /// Adds an entry that is wanted and not there yet, and gives those that are dropped for it.
    pub(super) fn insert(
        &mut self,
        key: Vec<u8>,
        entry: T,
        bytes: usize,
    ) -> Result<Vec<T>, QueryError> {
        let bytes = bytes + key.len();
        self.bytes += bytes;
        if let Some((_, replaced)) = self.entries.insert(key, (entry, bytes)) {
            self.bytes -= replaced;
        }
        let mut dropped = Vec::new();
        while self.is_over() {
            let Some((key, (entry, bytes))) = self.entries.pop_last() else { break };
            dropped.push(entry);
            self.bytes -= bytes;
            self.ceiling = Some(key);
            self.has_dropped = true;
        }
        if self.bytes > MEMORY_BYTES_MAX && self.bytes_max.is_none() {
            let limit = MEMORY_BYTES_MAX / (1024 * 1024);
            let message = format!("The query needs more memory than its limit of {limit} MB.");
            return Err(QueryError::too_large(message));
        }
        Ok(dropped)
    }

    fn is_over(&self) -> bool {
        let too_large = self.bytes_max.is_some_and(|max| self.bytes > max);
        self.entries.len() > self.capacity || (too_large && self.entries.len() > 1)
    }

    /// The entries in their order, and whether more would follow.
    pub(super) fn finish(self) -> (impl Iterator<Item = (Vec<u8>, T)>, bool) {
        (self.entries.into_iter().map(|(key, (entry, _))| (key, entry)), self.has_dropped)
    }
}

impl Top<Group> {
    /// Appends all groups, if none was dropped and they are few: `key that was given last | keys and groups`, each key with its
    /// length in front of it.
    pub(super) fn pause(&self, out: &mut Vec<u8>) -> Option<()> {
        if self.has_dropped || self.entries.len() > PAUSED_GROUPS_MAX {
            return None;
        }
        write_key(self.after.as_deref().unwrap_or_default(), out);
        self.entries.iter().try_for_each(|(key, (group, _))| {
            write_key(key, out);
            group.pause(out)
        })
    }

    /// Reads what [`pause`](Self::pause) has written; false if these are no groups of this query.
    pub(super) fn resume(
        &mut self,
        grouping: &Grouping,
        mut state: &[u8],
        context: &Context,
    ) -> Result<bool, QueryError> {
        let Some(after) = read_key(&mut state) else { return Ok(false) };
        self.after = Some(after).filter(|after| !after.is_empty());
        while !state.is_empty() {
            let Some(key) = read_key(&mut state) else { return Ok(false) };
            let Some(group) = Group::resume(grouping, &mut state, context)? else {
                return Ok(false);
            };
            if self.wants(&key) {
                let bytes = group.bytes();
                self.insert(key, group, bytes)?;
            }
        }
        Ok(true)
    }
}

fn write_key(key: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(key.len() as u32).to_be_bytes());
    out.extend_from_slice(key);
}

fn read_key(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (key, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    *bytes = rest;
    Some(key.to_vec())
}

#[cfg(test)]
mod tests {
    use super::Top;

    fn push(top: &mut Top<u8>, key: u8, bytes: usize) {
        if top.wants(&[key]) {
            top.insert(vec![key], key, bytes).unwrap();
        }
    }

    #[test]
    fn what_was_dropped_for_its_size_is_not_overtaken() {
        let mut top = Top::new(10, Some(100), None);
        push(&mut top, 5, 60);
        push(&mut top, 3, 60);
        push(&mut top, 7, 1);
        push(&mut top, 4, 1);
        let (entries, has_more) = top.finish();
        assert_eq!(entries.map(|(_, it)| it).collect::<Vec<_>>(), [3, 4]);
        assert!(has_more);
    }

    #[test]
    fn only_the_least_behind_the_last_page_are_kept() {
        let mut top = Top::new(2, Some(1000), Some(vec![2]));
        [9, 2, 4, 1, 3, 8].into_iter().for_each(|key| push(&mut top, key, 1));
        let (entries, has_more) = top.finish();
        assert_eq!(entries.map(|(_, it)| it).collect::<Vec<_>>(), [3, 4]);
        assert!(has_more);
    }
}
