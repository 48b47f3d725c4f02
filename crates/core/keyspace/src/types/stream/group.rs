//! Groups of consumers: how far a group has read, and what was handed out and is not acknowledged yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::log::ElementLog;
use super::{StreamId, rows};

/// An entry that was handed to a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    pub consumer: Arc<[u8]>,
    pub delivered_ms: u64,
    pub deliveries: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consumer {
    pub seen_ms: u64,
    pending: BTreeSet<StreamId>,
}

impl Consumer {
    pub fn pending(&self) -> &BTreeSet<StreamId> {
        &self.pending
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    pub last_id: StreamId,
    /// How many entries were read, if that is known.
    pub entries_read: Option<u64>,
    pending: BTreeMap<StreamId, Pending>,
    consumers: BTreeMap<Arc<[u8]>, Consumer>,
}

/// The journal's log, and the group that is changed.
pub struct GroupLog<'a> {
    name: &'a [u8],
    log: &'a mut dyn ElementLog,
}

impl<'a> GroupLog<'a> {
    pub(super) fn new(name: &'a [u8], log: &'a mut dyn ElementLog) -> Self {
        Self { name, log }
    }
}

impl Group {
    pub fn pending(&self) -> &BTreeMap<StreamId, Pending> {
        &self.pending
    }

    pub fn consumers(&self) -> impl ExactSizeIterator<Item = (&[u8], &Consumer)> {
        self.consumers.iter().map(|(name, consumer)| (&**name, consumer))
    }

    pub fn consumer(&self, name: &[u8]) -> Option<&Consumer> {
        self.consumers.get(name)
    }

    pub fn set_position(
        &mut self,
        last_id: StreamId,
        entries_read: Option<u64>,
        log: &mut GroupLog<'_>,
    ) {
        self.last_id = last_id;
        self.entries_read = entries_read;
        if log.log.is_on() {
            log.log.put(&rows::group(log.name), &rows::group_value(self));
        }
    }

    /// Notes that a consumer was seen, and makes it if it is new; says whether it is.
    pub fn see(&mut self, name: &[u8], now_ms: u64, log: &mut GroupLog<'_>) -> bool {
        let is_new = !self.consumers.contains_key(name);
        self.consumers.entry(name.into()).or_default().seen_ms = now_ms;
        if log.log.is_on() {
            log.log.put(&rows::consumer(log.name, name), &now_ms.to_be_bytes());
        }
        is_new
    }

    /// Removes a consumer and all that is pending for it; says how much that was, if the consumer was there.
    pub fn remove_consumer(&mut self, name: &[u8], log: &mut GroupLog<'_>) -> Option<usize> {
        let consumer = self.consumers.remove(name)?;
        for id in &consumer.pending {
            self.pending.remove(id);
            log.log.remove(&rows::pending(log.name, *id));
        }
        log.log.remove(&rows::consumer(log.name, name));
        Some(consumer.pending.len())
    }

    /// Notes an entry as handed to a consumer that exists, whoever had it before.
    pub fn give(
        &mut self,
        id: StreamId,
        consumer: &[u8],
        delivered_ms: u64,
        deliveries: u64,
        log: &mut GroupLog<'_>,
    ) {
        if let Some(before) = self.pending.get(&id)
            && let Some(former) = self.consumers.get_mut(&before.consumer)
        {
            former.pending.remove(&id);
        }
        let Some((name, _)) = self.consumers.get_key_value(consumer) else { return };
        let pending = Pending { consumer: Arc::clone(name), delivered_ms, deliveries };
        if log.log.is_on() {
            log.log.put(&rows::pending(log.name, id), &rows::pending_value(&pending));
        }
        self.pending.insert(id, pending);
        if let Some(consumer) = self.consumers.get_mut(consumer) {
            consumer.pending.insert(id);
        }
    }

    /// Takes an entry off the pending ones; says whether it was there.
    pub fn acknowledge(&mut self, id: StreamId, log: &mut GroupLog<'_>) -> bool {
        let Some(pending) = self.pending.remove(&id) else { return false };
        if let Some(consumer) = self.consumers.get_mut(&pending.consumer) {
            consumer.pending.remove(&id);
        }
        log.log.remove(&rows::pending(log.name, id));
        true
    }

    /// All rows of the group.
    pub(super) fn each_row(&self, name: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) {
        visit(&rows::group(name), &rows::group_value(self));
        for (consumer, found) in &self.consumers {
            visit(&rows::consumer(name, consumer), &found.seen_ms.to_be_bytes());
        }
        for (id, pending) in &self.pending {
            visit(&rows::pending(name, *id), &rows::pending_value(pending));
        }
    }
}
