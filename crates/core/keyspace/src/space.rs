//! The keys that a command may use: the stripes that it has locked, in one database, at one time.
//!
//! Commands of every type go through here, so that expiry, watching clients, waiting clients, events and rows for the store
//! are each handled in one place.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use crate::entry::Entry;
use crate::event::{Class, Event};
use crate::keyspace::{Keyspace, stripe_of};
use crate::log::Log;
use crate::rows::Rows;
use crate::slot::slot_of;
use crate::stripe::{Named, Stripe};
use crate::value::{Kind, WrongType};

/// What a command did, beyond its reply.
#[derive(Default)]
pub struct Effects {
    /// How many changes there were, as INFO counts them.
    pub changes: u64,
    pub events: Vec<Event>,
    /// Keys that changed and that clients wait for.
    pub ready: Vec<(usize, Box<[u8]>)>,
    /// Keys that changed and that clients keep copies of.
    pub invalid: Vec<Invalid>,
    /// Whether all copies of all keys are invalid, because a database was cleared.
    pub is_cleared: bool,
    pub(crate) rows: Rows,
}

/// A key that has changed, for clients that keep copies.
pub struct Invalid {
    pub key: Box<[u8]>,
    /// Who changed it; zero is nobody.
    pub by: u64,
    /// The clients that have read it, by their ids.
    pub clients: Vec<u64>,
}

pub(crate) enum Held<'k> {
    None,
    One(usize, MutexGuard<'k, Stripe>),
    /// In the order of their numbers.
    Many(Vec<(usize, MutexGuard<'k, Stripe>)>),
}

/// What becomes of keys whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiring {
    Removed,
    /// Nobody sees them, and they stay until the server that this one is a replica of says that they are gone.
    Hidden,
    /// They are as all others: what that server says is about them as well.
    Shown,
}

pub struct Space<'k> {
    pub(crate) keyspace: &'k Keyspace,
    pub(crate) held: Held<'k>,
    /// The database that keys are looked for in.
    pub database: usize,
    pub now_ms: u64,
    /// The client whose command this is; zero is nobody.
    pub client: u64,
    pub effects: Effects,
    pub(crate) clock: u32,
    expiring: Expiring,
}

impl<'k> Space<'k> {
    pub(crate) fn new(keyspace: &'k Keyspace, database: usize, now_ms: u64) -> Self {
        let mut effects = Effects::default();
        effects.rows.is_on = keyspace.journal.is_some();
        let clock = keyspace.clock();
        let expiring = if keyspace.is_replica() { Expiring::Hidden } else { Expiring::Removed };
        Self { keyspace, held: Held::None, database, now_ms, client: 0, effects, clock, expiring }
    }

    /// Has keys whose time has come as all others: for what the server sends that this one is a replica of.
    pub fn show_expired(&mut self) {
        self.expiring = Expiring::Shown;
    }

    #[inline]
    pub(crate) fn hold_one(&mut self, stripe: usize, guard: MutexGuard<'k, Stripe>) {
        self.held = Held::One(stripe, guard);
    }

    pub(crate) fn hold(&mut self, stripe: usize, guard: MutexGuard<'k, Stripe>) {
        match &mut self.held {
            Held::Many(many) => many.push((stripe, guard)),
            _ => self.held = Held::Many(vec![(stripe, guard)]),
        }
    }

    pub fn keyspace(&self) -> &'k Keyspace {
        self.keyspace
    }

    /// Whether anything is locked: a command without locks shows nothing of keys.
    pub fn holds_any(&self) -> bool {
        !matches!(self.held, Held::None)
    }

    /// Whether the stripe of a slot is locked.
    pub fn holds(&self, slot: u16) -> bool {
        let stripe = stripe_of(slot);
        match &self.held {
            Held::None => false,
            Held::One(number, _) => *number == stripe,
            Held::Many(many) => many.binary_search_by_key(&stripe, |it| it.0).is_ok(),
        }
    }

    /// Goes on to the stripe of a slot, where a command has locked one stripe and looks at one after another.
    pub fn reach(&mut self, slot: u16) {
        if !self.holds(slot) {
            self.publish_bytes();
            self.held = Held::None;
            let stripe = stripe_of(slot);
            self.hold_one(stripe, self.keyspace.lock(stripe));
        }
    }

    /// All locked stripes, for commands on whole databases.
    pub(crate) fn stripes(&mut self) -> Vec<&mut Stripe> {
        match &mut self.held {
            Held::None => Vec::new(),
            Held::One(_, stripe) => vec![&mut *stripe],
            Held::Many(many) => many.iter_mut().map(|(_, stripe)| &mut **stripe).collect(),
        }
    }

    /// Lets others know what the locked stripes take in memory.
    #[inline]
    pub(crate) fn publish_bytes(&self) {
        let publish = |number: usize, stripe: &Stripe| {
            self.keyspace.bytes[number].store(stripe.bytes as u64, Ordering::Relaxed);
        };
        match &self.held {
            Held::None => {}
            Held::One(number, stripe) => publish(*number, stripe),
            Held::Many(many) => many.iter().for_each(|(number, stripe)| publish(*number, stripe)),
        }
    }

    #[inline]
    pub(crate) fn stripe(&mut self, key: &[u8]) -> &mut Stripe {
        held(&mut self.held, stripe_of(slot_of(key)))
    }

    /// The entry of a key. One whose time has come is removed first.
    pub(crate) fn entry(&mut self, key: &[u8]) -> Option<&mut Entry> {
        let (database, now_ms) = (self.database, self.now_ms);
        let keys = &mut self.stripe(key).databases[database].keys;
        let place = keys.place(key);
        let found = keys.find(place, key)?;
        let is_over = found.expires_at_ms().is_some_and(|at| at <= now_ms);
        if is_over && self.expiring != Expiring::Shown {
            if self.expiring == Expiring::Removed {
                self.expire_now(key);
            }
            return None;
        }
        self.stripe(key).databases[database].keys.find_mut(place, key)
    }

    /// The entry of a key that a command reads: counted, and used just now.
    pub fn look(&mut self, key: &[u8]) -> Option<&Entry> {
        let clock = self.clock;
        let is_found = self.entry(key).is_some();
        let counts = &mut self.stripe(key).counts;
        match is_found {
            true => counts.hits += 1,
            false => {
                counts.misses += 1;
                self.event(Class::MISS, "keymiss", key);
                return None;
            }
        }
        let keyspace = self.keyspace;
        let entry = self.entry(key)?;
        entry.set_clock(keyspace.used(entry.clock(), clock));
        Some(entry)
    }

    /// The entry of a key, without counting this as a use.
    pub fn peek(&mut self, key: &[u8]) -> Option<&Entry> {
        self.entry(key).map(|it| &*it)
    }

    pub fn exists(&mut self, key: &[u8]) -> bool {
        self.entry(key).is_some()
    }

    /// The value of a key that a command reads.
    pub fn read<T: Kind>(&mut self, key: &[u8]) -> Result<Option<&T>, WrongType> {
        match self.look(key) {
            None => Ok(None),
            Some(Entry::Packed(_)) => Err(WrongType),
            Some(Entry::Object(object)) => T::of(&object.value).map(Some).ok_or(WrongType),
        }
    }

    /// Changes the value of a key, which is made if `create`; none if it does not exist. The key goes when its value becomes
    /// empty. What the closure reports through the log is all that others learn of the change.
    pub fn with<T: Kind, R>(
        &mut self,
        key: &[u8],
        create: bool,
        change: impl FnOnce(&mut T, &mut Log<'_>) -> R,
    ) -> Result<Option<R>, WrongType> {
        let is_new = match self.entry(key) {
            Some(Entry::Packed(_)) => return Err(WrongType),
            Some(Entry::Object(object)) if T::of(&object.value).is_none() => return Err(WrongType),
            Some(_) => false,
            None if !create => return Ok(None),
            None => true,
        };
        if is_new {
            let generation = self.keyspace.next_generation();
            let entry = Entry::object(key, T::empty(), None, self.clock, generation);
            self.insert(key, entry);
        }
        let stripe = held(&mut self.held, stripe_of(slot_of(key)));
        let place = &mut stripe.databases[self.database];
        let id = place.id;
        let Some(Entry::Object(object)) = place.keys.get_mut(key) else { return Err(WrongType) };
        object.clock = self.keyspace.used(object.clock, self.clock);
        let before = object.value.bytes();
        let Some(value) = T::of_mut(&mut object.value) else { return Err(WrongType) };
        let mut log = Log {
            rows: &mut self.effects.rows,
            events: &mut self.effects.events,
            classes: self.keyspace.classes(),
            database: self.database,
            id,
            key,
            generation: object.generation,
            changes: 0,
            is_head_changed: is_new,
            is_rewritten: false,
        };
        let result = change(value, &mut log);
        let (changes, is_rewritten) = (log.changes, log.is_rewritten);
        let is_head_changed = log.is_head_changed;
        let (is_gone, after) = (value.is_gone(), object.value.bytes());
        stripe.bytes = (stripe.bytes + after).saturating_sub(before);
        if is_gone {
            self.drop_empty(key, is_new);
        } else if is_rewritten {
            self.write_anew(key);
        } else if is_head_changed {
            self.write_head(key);
        }
        if is_new && !is_gone {
            self.event_first(Class::NEW, "new", key);
        }
        if changes > 0 {
            self.touch(key, changes);
        }
        Ok(Some(result))
    }

    /// Removes a key whose value has become empty.
    fn drop_empty(&mut self, key: &[u8], is_new: bool) {
        self.take_entry(key);
        if !is_new {
            self.event(Class::GENERIC, "del", key);
        }
    }

    /// Reports an event.
    #[inline]
    pub fn event(&mut self, class: Class, name: &'static str, key: &[u8]) {
        if self.keyspace.classes().0 & class.0 != 0 {
            let (database, key) = (self.database, key.into());
            self.effects.events.push(Event { class, name, database, key });
        }
    }

    /// Reports an event that comes before those of the change that caused it.
    fn event_first(&mut self, class: Class, name: &'static str, key: &[u8]) {
        if self.keyspace.classes().0 & class.0 != 0 {
            let is_same = |it: &Event| it.database == self.database && *it.key == *key;
            let events = &self.effects.events;
            let first = events.iter().rposition(|it| !is_same(it)).map_or(0, |it| it + 1);
            let (database, key) = (self.database, key.into());
            self.effects.events.insert(first, Event { class, name, database, key });
        }
    }

    /// A key has changed: clients that watch it, wait for it or keep a copy of it learn of that.
    pub(crate) fn touch(&mut self, key: &[u8], changes: u64) {
        self.effects.changes += changes;
        let database = self.database;
        let stripe = held(&mut self.held, stripe_of(slot_of(key)));
        if !stripe.watched.is_empty() || !stripe.waiting.is_empty() {
            let named: Named = (database, key.into());
            stripe.flag(&named);
            if stripe.waiting.contains_key(&named) && !self.effects.ready.contains(&named) {
                self.effects.ready.push(named);
            }
        }
        if !stripe.tracked.is_empty() || self.keyspace.tells_all_changes() {
            self.invalidate(key);
        }
    }
}

#[inline]
pub(crate) fn held<'h>(held: &'h mut Held<'_>, stripe: usize) -> &'h mut Stripe {
    let found = match held {
        Held::None => None,
        Held::One(number, guard) => (*number == stripe).then_some(&mut **guard),
        Held::Many(many) => {
            let found = many.binary_search_by_key(&stripe, |it| it.0).ok();
            found.map(|index| &mut *many[index].1)
        }
    };
    found.expect("the stripes of all keys of a command are locked before it runs")
}
