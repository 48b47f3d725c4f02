//! A stripe: the keys of a range of slots under one lock, those who watch them and those who wait for them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::dict::Dict;
use crate::entry::{Entry, POSITION_HASH_BITS};
use crate::keyspace::STRIPE_BITS;
use crate::slot::SLOTS;

/// A database and a key.
pub(crate) type Named = (usize, Box<[u8]>);

/// One database's keys in one stripe.
pub(crate) struct Database {
    /// Its id in rows, which stays when databases are swapped and is another one after it has been cleared.
    pub(crate) id: u32,
    pub(crate) keys: Dict<Entry>,
    /// When keys expire, with their positions.
    pub(crate) expiries: BTreeSet<(u64, u64)>,
}

/// What has been counted in a stripe.
#[derive(Clone, Copy, Debug, Default)]
pub struct StripeCounts {
    pub hits: u64,
    pub misses: u64,
    pub expired: u64,
    pub evicted: u64,
}

pub(crate) struct Stripe {
    number: usize,
    seed: u64,
    pub(crate) databases: Vec<Database>,
    /// Flags of clients that watch a key: set when it changes.
    pub(crate) watched: BTreeMap<Named, Vec<Arc<AtomicBool>>>,
    /// Clients that wait for a key, by their ids, the longest waiting first.
    pub(crate) waiting: BTreeMap<Named, VecDeque<u64>>,
    /// Clients that keep copies of keys that they have read, by their ids.
    pub(crate) tracked: BTreeMap<Box<[u8]>, BTreeSet<u64>>,
    /// What all entries take in memory.
    pub(crate) bytes: usize,
    pub(crate) counts: StripeCounts,
}

impl Stripe {
    pub(crate) fn new(number: usize, databases: usize, seed: u64) -> Self {
        let make = |id| Database::new(id as u32, number, seed);
        Self {
            number,
            seed,
            databases: (0..databases).map(make).collect(),
            watched: BTreeMap::new(),
            waiting: BTreeMap::new(),
            tracked: BTreeMap::new(),
            bytes: 0,
            counts: StripeCounts::default(),
        }
    }

    /// An empty database with this id in the place of one, which is returned.
    pub(crate) fn clear(&mut self, database: usize, id: u32) -> Database {
        let place = &mut self.databases[database];
        let empty = Database::new(id, self.number, self.seed);
        let full = std::mem::replace(place, empty);
        let bytes: usize = full.keys.iter().map(Entry::bytes).sum();
        self.bytes = self.bytes.saturating_sub(bytes);
        full
    }

    /// Whoever watches the key must know that it has changed.
    pub(crate) fn flag(&mut self, named: &Named) {
        for flag in self.watched.get(named).into_iter().flatten() {
            flag.store(true, Ordering::Relaxed);
        }
    }
}

impl Database {
    fn new(id: u32, stripe: usize, seed: u64) -> Self {
        let skip = STRIPE_BITS;
        // The slots of a stripe share their upper bits, and a position begins with the slot.
        let unused = 64 - POSITION_HASH_BITS - SLOTS.trailing_zeros();
        debug_assert_eq!(unused, 0, "a position is a slot and a hash");
        let base = (stripe as u64) << (64 - STRIPE_BITS);
        Self { id, keys: Dict::below(seed, base, skip), expiries: BTreeSet::new() }
    }
}
