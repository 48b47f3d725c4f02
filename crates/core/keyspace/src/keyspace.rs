//! All keys in memory, in stripes by their slots, each under a lock of its own.
//!
//! A command takes the locks of the stripes of its keys, in the order of their numbers, and runs on the thread that read it.
//! Transactions and scripts take the locks of all keys that they may use, so that nobody sees them half done.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lazuli_env::Env;

use crate::copies::Copies;
use crate::event::Class;
use crate::journal::Journal;
use crate::slot::{SLOTS, slot_of};
use crate::space::Space;
use crate::stripe::Stripe;

/// The stripes are the slots by their upper bits.
pub(crate) const STRIPE_BITS: u32 = 6;
pub const STRIPES: usize = 1 << STRIPE_BITS;

/// The stripe of a slot.
#[inline]
pub(crate) fn stripe_of(slot: u16) -> usize {
    usize::from(slot) >> (SLOTS.trailing_zeros() - STRIPE_BITS)
}

pub struct Keyspace {
    pub(crate) env: Env,
    pub(crate) stripes: Box<[Mutex<Stripe>]>,
    pub(crate) databases: usize,
    /// The classes of events that anybody wants.
    classes: AtomicU16,
    pub(crate) generation: AtomicU64,
    /// The id of the next database that is cleared.
    pub(crate) next_id: AtomicU32,
    /// The clock of evictions, which a background task sets.
    pub(crate) clock: AtomicU64,
    pub(crate) policy: AtomicUsize,
    pub(crate) memory_max: AtomicU64,
    pub(crate) journal: Option<Arc<Journal>>,
    pub(crate) copies: Copies,
    /// What the entries of each stripe take, as last told.
    pub(crate) bytes: Box<[AtomicU64]>,
    is_replica: AtomicBool,
    /// The code of libraries of functions that were found in the store.
    pub(crate) libraries: Mutex<Vec<Vec<u8>>>,
}

impl Keyspace {
    /// An empty keyspace.
    pub fn new(env: Env, databases: usize, journal: Option<Arc<Journal>>) -> Self {
        let seed = env.random.next_u64();
        let stripes = (0..STRIPES).map(|it| Mutex::new(Stripe::new(it, databases, seed))).collect();
        Self {
            env,
            stripes,
            databases,
            classes: AtomicU16::new(0),
            generation: AtomicU64::new(1),
            next_id: AtomicU32::new(databases as u32),
            clock: AtomicU64::new(0),
            policy: AtomicUsize::new(0),
            memory_max: AtomicU64::new(0),
            journal,
            copies: Copies::default(),
            bytes: (0..STRIPES).map(|_| AtomicU64::new(0)).collect(),
            is_replica: AtomicBool::new(false),
            libraries: Mutex::default(),
        }
    }

    pub fn databases(&self) -> usize {
        self.databases
    }

    /// The time, in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.env.clock.now_ms()
    }

    /// A number drawn by chance.
    pub fn random(&self) -> u64 {
        self.env.random.next_u64()
    }

    /// Whether another server says when keys expire, because this one follows it.
    #[inline]
    pub fn is_replica(&self) -> bool {
        self.is_replica.load(Ordering::Relaxed)
    }

    pub fn set_replica(&self, is_replica: bool) {
        self.is_replica.store(is_replica, Ordering::Relaxed);
    }

    /// The code of the libraries that were found in the store, once.
    pub fn take_libraries(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.libraries.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn classes(&self) -> Class {
        Class(self.classes.load(Ordering::Relaxed))
    }

    pub fn set_classes(&self, classes: Class) {
        self.classes.store(classes.0, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn lock(&self, stripe: usize) -> MutexGuard<'_, Stripe> {
        // A panic in one command must not take the keys of a stripe from everybody else.
        self.stripes[stripe].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What all keys and values take in memory.
    pub fn used_bytes(&self) -> u64 {
        self.bytes.iter().map(|it| it.load(Ordering::Relaxed)).sum()
    }

    /// Without any key: for commands that use none.
    pub fn space(&self, database: usize, now_ms: u64) -> Space<'_> {
        Space::new(self, database, now_ms)
    }

    /// With the stripe of one key.
    #[inline]
    pub fn space_of(&self, database: usize, now_ms: u64, key: &[u8]) -> Space<'_> {
        let stripe = stripe_of(slot_of(key));
        let mut space = Space::new(self, database, now_ms);
        space.hold_one(stripe, self.lock(stripe));
        space
    }

    /// With the stripes of several slots.
    pub fn space_of_slots(
        &self,
        database: usize,
        now_ms: u64,
        slots: impl Iterator<Item = u16>,
    ) -> Space<'_> {
        let stripes: BTreeSet<usize> = slots.map(stripe_of).collect();
        let mut space = Space::new(self, database, now_ms);
        for stripe in stripes {
            space.hold(stripe, self.lock(stripe));
        }
        space
    }

    /// With one stripe, by its number.
    pub fn space_of_stripe(&self, stripe: usize, now_ms: u64) -> Space<'_> {
        let mut space = Space::new(self, 0, now_ms);
        space.hold_one(stripe, self.lock(stripe));
        space
    }

    /// With all keys.
    pub fn space_of_all(&self, database: usize, now_ms: u64) -> Space<'_> {
        let mut space = Space::new(self, database, now_ms);
        for stripe in 0..STRIPES {
            space.hold(stripe, self.lock(stripe));
        }
        space
    }

    pub(crate) fn next_database(&self) -> u32 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn next_generation(&self) -> u64 {
        self.generation.fetch_add(1, Ordering::Relaxed)
    }
}
