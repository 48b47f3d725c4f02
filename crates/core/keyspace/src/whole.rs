//! What commands do with whole databases: count, scan, draw by chance, clear, swap.

use crate::dict::Keyed;
use crate::entry::{Entry, POSITION_HASH_BITS};
use crate::keyspace::stripe_of;
use crate::rows::Row;
use crate::slot::SLOTS;
use crate::space::{Space, held};
use crate::stripe::{Named, StripeCounts};

/// Cursors are positions without their lowest bits, so that programs which read numbers as doubles keep them whole.
const CURSOR_UNUSED_BITS: u32 = 11;

/// About what the index of expiries takes for a key.
const EXPIRY_BYTES: usize = 24;

/// The slot that a scan has come to.
pub fn cursor_slot(cursor: u64) -> u16 {
    ((cursor << CURSOR_UNUSED_BITS) >> POSITION_HASH_BITS) as u16
}

/// What was in databases that have been cleared. Freeing it may take long: drop it without any lock.
#[derive(Default)]
pub struct Cleared {
    entries: Vec<crate::dict::Dict<Entry>>,
}

impl Cleared {
    pub fn keys(&self) -> usize {
        self.entries.iter().map(|it| it.len()).sum()
    }
}

/// How many keys a database has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseCounts {
    pub keys: usize,
    pub expires: usize,
    /// The mean time that keys with an expiry have left.
    pub average_ttl_ms: u64,
}

impl Space<'_> {
    /// Counts the keys of a database in all locked stripes.
    pub fn counts(&mut self, database: usize) -> DatabaseCounts {
        let now_ms = self.now_ms;
        let (mut counts, mut sampled, mut left) = (DatabaseCounts::default(), 0, 0);
        for stripe in self.stripes() {
            let place = &stripe.databases[database];
            counts.keys += place.keys.len();
            counts.expires += place.expiries.len();
            for (at, _) in place.expiries.iter().take(16) {
                (sampled, left) = (sampled + 1, left + at.saturating_sub(now_ms));
            }
        }
        counts.average_ttl_ms = left.checked_div(sampled).unwrap_or_default();
        counts
    }

    /// What the tables of a database take beside its keys, and what its index of expiries takes.
    pub fn table_bytes(&mut self, database: usize) -> (usize, usize) {
        let mut bytes = (0, 0);
        for stripe in self.stripes() {
            let place = &stripe.databases[database];
            bytes.0 += place.keys.table_bytes();
            bytes.1 += place.expiries.len() * EXPIRY_BYTES;
        }
        bytes
    }

    /// Visits about `count` keys from a cursor on, in the stripe of its slot, which must be locked. The cursor to go on with,
    /// which may be in the next stripe; zero at the end. Keys whose time has come are left out.
    pub fn scan(&mut self, cursor: u64, count: usize, mut visit: impl FnMut(&[u8], &Entry)) -> u64 {
        let (database, now_ms) = (self.database, self.now_ms);
        let from = cursor << CURSOR_UNUSED_BITS;
        let stripe = stripe_of(cursor_slot(cursor));
        let keys = &held(&mut self.held, stripe).databases[database].keys;
        let next = keys.scan(from, count, |_, entry| {
            if entry.expires_at_ms().is_none_or(|at| at > now_ms) {
                visit(entry.key(), entry);
            }
        });
        let next = next.or_else(|| first_of_stripe(stripe + 1));
        next.unwrap_or_default() >> CURSOR_UNUSED_BITS
    }

    /// The keys of one slot.
    pub fn slot_keys(&mut self, slot: u16, most: usize) -> Vec<Box<[u8]>> {
        let (database, now_ms) = (self.database, self.now_ms);
        let keys = &held(&mut self.held, stripe_of(slot)).databases[database].keys;
        let mut found = Vec::new();
        let mut from = Some(u64::from(slot) << POSITION_HASH_BITS);
        while let Some(position) = from.filter(|it| (it >> POSITION_HASH_BITS) as u16 == slot) {
            if found.len() >= most {
                break;
            }
            from = keys.scan(position, 256, |at, entry| {
                let is_there = entry.expires_at_ms().is_none_or(|at| at > now_ms);
                if (at >> POSITION_HASH_BITS) as u16 == slot && is_there && found.len() < most {
                    found.push(entry.key().into());
                }
            });
        }
        found
    }

    /// Some key, drawn by chance.
    pub fn random_key(&mut self) -> Option<Box<[u8]>> {
        let (database, now_ms) = (self.database, self.now_ms);
        let random = self.keyspace.env.random.clone();
        let stripes = self.stripes();
        let total: usize = stripes.iter().map(|it| it.databases[database].keys.len()).sum();
        if total == 0 {
            return None;
        }
        // Expired keys are few, since they are removed when their time has come.
        for _ in 0..100 {
            let mut number = random.below(total as u64) as usize;
            for stripe in &stripes {
                let keys = &stripe.databases[database].keys;
                if number < keys.len() {
                    let entry = keys.sample(random.next_u64())?;
                    if entry.expires_at_ms().is_none_or(|at| at > now_ms) {
                        return Some(entry.key().into());
                    }
                    break;
                }
                number -= keys.len();
            }
        }
        None
    }

    /// Deletes all keys of a database in the locked stripes, which must be all.
    pub fn clear(&mut self, database: usize) -> Cleared {
        let mut cleared = Cleared::default();
        let (id, mut old) = (self.keyspace.next_database(), None);
        let mut touched: Vec<Named> = Vec::new();
        for stripe in self.stripes() {
            let watched = stripe.watched.keys().chain(stripe.waiting.keys());
            let there = |it: &&Named| {
                it.0 == database && stripe.databases[database].keys.get(&it.1).is_some()
            };
            touched.extend(watched.filter(there).cloned());
            let full = stripe.clear(database, id);
            old = Some(full.id);
            cleared.entries.push(full.keys);
        }
        self.write_numbers();
        if let Some(old) = old {
            self.effects.rows.push(Row::GarbageDatabase { database: old });
        }
        self.effects.changes += cleared.keys() as u64;
        self.touch_all(touched);
        self.invalidate_all();
        cleared
    }

    fn touch_all(&mut self, touched: Vec<Named>) {
        let database = self.database;
        for (number, key) in touched {
            self.database = number;
            self.touch(&key, 0);
        }
        self.database = database;
    }

    /// Exchanges two databases, for all clients at once. All stripes must be locked.
    pub fn swap(&mut self, first: usize, second: usize) {
        let mut touched: Vec<Named> = Vec::new();
        for stripe in self.stripes() {
            let is_one = |it: &&Named| it.0 == first || it.0 == second;
            touched
                .extend(stripe.watched.keys().chain(stripe.waiting.keys()).filter(is_one).cloned());
            stripe.databases.swap(first, second);
        }
        self.write_numbers();
        self.effects.changes += 1;
        self.touch_all(touched);
    }

    /// Writes down what a library of functions is from now on; nothing, if it is gone. All stripes must be locked, so that
    /// libraries are written in the order of their commands.
    pub fn write_library(&mut self, name: &[u8], code: Option<&[u8]>) {
        self.effects.rows.push(Row::Library { name, code: code.unwrap_or_default() });
        self.effects.changes += 1;
    }

    /// Writes down which database has which number.
    fn write_numbers(&mut self) {
        let stripes = self.stripes();
        let ids = stripes.first().map(|it| it.databases.iter().map(|it| it.id.to_le_bytes()));
        let numbers: Vec<u8> = ids.into_iter().flatten().flatten().collect();
        drop(stripes);
        self.effects.rows.push(Row::Numbers { numbers: &numbers });
    }

    /// What has been counted in the locked stripes.
    pub fn totals(&mut self) -> StripeCounts {
        self.stripes().iter().fold(StripeCounts::default(), |sum, stripe| StripeCounts {
            hits: sum.hits + stripe.counts.hits,
            misses: sum.misses + stripe.counts.misses,
            expired: sum.expired + stripe.counts.expired,
            evicted: sum.evicted + stripe.counts.evicted,
        })
    }

    /// Removes up to `most` keys whose time has come from the locked stripes. Whether there may be more.
    pub fn expire_due(&mut self, most: usize) -> bool {
        let (now_ms, before) = (self.now_ms, self.database);
        let mut due: Vec<Named> = Vec::new();
        for stripe in self.stripes() {
            for (number, place) in stripe.databases.iter().enumerate() {
                let expired = place.expiries.iter().take_while(|(at, _)| *at <= now_ms);
                for (expires, position) in expired.take(most.saturating_sub(due.len())) {
                    let is = |it: &Entry| it.expires_at_ms() == Some(*expires);
                    if let Some(entry) = place.keys.find_at(*position, is) {
                        due.push((number, entry.key().into()));
                    }
                }
            }
        }
        let is_full = due.len() >= most;
        for (number, key) in due {
            self.database = number;
            self.expire_now(&key);
        }
        self.database = before;
        is_full
    }
}

/// Where the first slot of a stripe begins, if there is such a stripe.
fn first_of_stripe(stripe: usize) -> Option<u64> {
    let slots = usize::from(SLOTS) / crate::keyspace::STRIPES;
    let slot = stripe * slots;
    (slot < usize::from(SLOTS)).then_some((slot as u64) << POSITION_HASH_BITS)
}
