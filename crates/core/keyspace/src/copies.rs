//! Clients that keep copies of keys: which of them have read which key, in bounded memory.
//!
//! When the table is full, keys are forgotten as if they had changed: their clients read them again, and nothing else is lost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::keyspace::Keyspace;
use crate::space::{Invalid, Space};

/// What the names of keys and clients in the table may take, and how many keys there may be.
const TABLE_BYTES_MAX: u64 = 128 * 1024 * 1024;
const TABLE_KEYS_MAX: u64 = 1_000_000;
/// What a key takes beside its name, and what a client of it takes.
const KEY_BYTES: u64 = 96;
const CLIENT_BYTES: u64 = 24;

#[derive(Default)]
pub(crate) struct Copies {
    keys: AtomicU64,
    /// Pairs of a key and a client.
    items: AtomicU64,
    bytes: AtomicU64,
    tells_all: AtomicBool,
}

/// What is in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyCounts {
    pub keys: u64,
    pub items: u64,
}

impl Copies {
    fn add(&self, keys: u64, items: u64, name: usize) {
        self.keys.fetch_add(keys, Ordering::Relaxed);
        self.items.fetch_add(items, Ordering::Relaxed);
        let bytes = keys * (name as u64 + KEY_BYTES) + items * CLIENT_BYTES;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn remove(&self, items: u64, name: usize) {
        self.keys.fetch_sub(1, Ordering::Relaxed);
        self.items.fetch_sub(items, Ordering::Relaxed);
        let bytes = name as u64 + KEY_BYTES + items * CLIENT_BYTES;
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > TABLE_BYTES_MAX
            || self.keys.load(Ordering::Relaxed) > TABLE_KEYS_MAX
    }
}

impl Keyspace {
    /// Whether every changed key is reported, read by anybody or not.
    #[inline]
    pub fn tells_all_changes(&self) -> bool {
        self.copies.tells_all.load(Ordering::Relaxed)
    }

    pub fn tell_all_changes(&self, is_on: bool) {
        self.copies.tells_all.store(is_on, Ordering::Relaxed);
    }

    pub fn copy_counts(&self) -> CopyCounts {
        let copies = &self.copies;
        let (keys, items) = (&copies.keys, &copies.items);
        CopyCounts { keys: keys.load(Ordering::Relaxed), items: items.load(Ordering::Relaxed) }
    }
}

impl Space<'_> {
    /// A client keeps a copy of a key, and must be told when it changes.
    pub fn track(&mut self, key: &[u8], client: u64) {
        let copies = &self.keyspace.copies;
        let tracked = &mut self.stripe(key).tracked;
        match tracked.get_mut(key) {
            Some(clients) => copies.add(0, u64::from(clients.insert(client)), key.len()),
            None => {
                tracked.insert(key.into(), [client].into());
                copies.add(1, 1, key.len());
            }
        }
        while copies.is_full() {
            let tracked = &mut self.stripe(key).tracked;
            let Some((forgotten, clients)) = tracked.pop_first() else { break };
            copies.remove(clients.len() as u64, forgotten.len());
            let clients = clients.into_iter().collect();
            self.effects.invalid.push(Invalid { key: forgotten, by: 0, clients });
        }
    }

    /// A key has changed: who has read it must be told, and whoever wants to be told of all.
    pub(crate) fn invalidate(&mut self, key: &[u8]) {
        let by = self.client;
        match self.stripe(key).tracked.remove_entry(key) {
            Some((key, clients)) => {
                self.keyspace.copies.remove(clients.len() as u64, key.len());
                let clients = clients.into_iter().collect();
                self.effects.invalid.push(Invalid { key, by, clients });
            }
            None if self.keyspace.tells_all_changes() => {
                self.effects.invalid.push(Invalid { key: key.into(), by, clients: Vec::new() });
            }
            None => {}
        }
    }

    /// All keys of a database are gone. Names are those of any database, so all are forgotten.
    pub(crate) fn invalidate_all(&mut self) {
        let copies = &self.keyspace.copies;
        for stripe in self.stripes() {
            for (key, clients) in std::mem::take(&mut stripe.tracked) {
                copies.remove(clients.len() as u64, key.len());
            }
        }
        self.effects.is_cleared = true;
    }
}
