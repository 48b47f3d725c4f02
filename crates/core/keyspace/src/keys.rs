//! What any key can be told, whatever it holds: strings set and changed, values put and taken, expiry, deletion.

use crate::entry::Entry;
use crate::event::Class;
use crate::keyspace::stripe_of;
use crate::rows::Row;
use crate::slot::slot_of;
use crate::space::{Space, held};
use crate::value::{Value, WrongType};

/// What becomes of a key's expiry when its value is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// It stays for ever.
    Never,
    Keep,
    At(u64),
}

impl Space<'_> {
    /// The string of a key that a command reads.
    pub fn string(&mut self, key: &[u8]) -> Result<Option<&[u8]>, WrongType> {
        match self.look(key) {
            None => Ok(None),
            Some(entry) => entry.string().map(Some).ok_or(WrongType),
        }
    }

    /// Sets a key to a string, whatever it was.
    pub fn set(&mut self, key: &[u8], value: &[u8], expiry: Expiry) {
        let clock = self.clock;
        let mut old_generation = None;
        let Some(entry) = self.entry(key) else {
            let at = if let Expiry::At(at) = expiry { Some(at) } else { None };
            self.insert(key, Entry::string_of(key, value, at, clock));
            self.event(Class::NEW, "new", key);
            self.write_head(key);
            return self.touch(key, 1);
        };
        let old_expiry = entry.expires_at_ms();
        let at = match expiry {
            Expiry::Never => None,
            Expiry::Keep => old_expiry,
            Expiry::At(at) => Some(at),
        };
        if let Entry::Object(object) = entry {
            old_generation = Some(object.generation).filter(|it| *it != 0);
        }
        let before = entry.bytes();
        entry.set_string(value, at);
        entry.set_clock(clock);
        let after = entry.bytes();
        self.account(key, before, after);
        self.move_expiry(key, old_expiry, at);
        if let Some(generation) = old_generation {
            self.write_garbage(key, generation);
        }
        self.write_head(key);
        self.touch(key, 1);
    }

    /// Changes a string in place, or an empty one that is made if `create`. None if there is no key.
    pub fn change_string<R>(
        &mut self,
        key: &[u8],
        create: bool,
        change: impl FnOnce(&mut Vec<u8>) -> R,
    ) -> Result<Option<R>, WrongType> {
        if !self.exists(key) {
            if !create {
                return Ok(None);
            }
            let value = Value::String(Vec::new());
            self.insert(key, Entry::object(key, value, None, self.clock, 0));
            self.event(Class::NEW, "new", key);
        }
        let Some(entry) = self.entry(key) else { return Ok(None) };
        let before = entry.bytes();
        let result = change(entry.string_mut().ok_or(WrongType)?);
        let after = entry.bytes();
        self.account(key, before, after);
        self.write_head(key);
        self.touch(key, 1);
        Ok(Some(result))
    }

    /// Puts a value of any type in the place of whatever the key was. An empty one deletes it.
    pub fn put(&mut self, key: &[u8], value: Value, expires_at_ms: Option<u64>) {
        let is_new = self.take_entry(key).is_none();
        if value.is_gone() {
            if !is_new {
                self.touch(key, 1);
            }
            return;
        }
        let generation = self.keyspace.next_generation();
        let entry = match value {
            Value::String(string) => Entry::string_of(key, &string, expires_at_ms, self.clock),
            value => Entry::object(key, value, expires_at_ms, self.clock, generation),
        };
        self.insert(key, entry);
        if is_new {
            self.event(Class::NEW, "new", key);
        }
        self.write_all(key);
        self.touch(key, 1);
    }

    /// Takes a key with its value out of the keyspace, with its expiry. Counts as a change.
    pub fn take(&mut self, key: &[u8]) -> Option<(Value, Option<u64>)> {
        self.entry(key)?;
        let entry = self.take_entry(key)?;
        self.touch(key, 1);
        let expiry = entry.expires_at_ms();
        Some((entry.into_value(), expiry))
    }

    /// Deletes a key. What it held is returned, so that it can be freed without the locks.
    pub fn delete(&mut self, key: &[u8]) -> Option<Entry> {
        self.entry(key)?;
        let entry = self.take_entry(key)?;
        self.event(Class::GENERIC, "del", key);
        self.touch(key, 1);
        Some(entry)
    }

    /// When a key expires: none if it does not exist, and none inside if it stays.
    pub fn expires_at_ms(&mut self, key: &[u8]) -> Option<Option<u64>> {
        self.peek(key).map(Entry::expires_at_ms)
    }

    /// Gives a key an expiry or takes it away. Whether the key exists.
    pub fn set_expiry(&mut self, key: &[u8], expires_at_ms: Option<u64>) -> bool {
        let Some(entry) = self.entry(key) else { return false };
        let before = (entry.bytes(), entry.expires_at_ms());
        entry.set_expiry(expires_at_ms);
        let after = entry.bytes();
        self.account(key, before.0, after);
        self.move_expiry(key, before.1, expires_at_ms);
        self.write_head(key);
        self.touch(key, 1);
        true
    }

    /// Removes a key whose time has come.
    pub(crate) fn expire_now(&mut self, key: &[u8]) {
        if self.take_entry(key).is_some() {
            self.stripe(key).counts.expired += 1;
            self.event(Class::EXPIRED, "expired", key);
            self.touch(key, 0);
        }
    }

    /// Removes a key to make room.
    pub(crate) fn evict(&mut self, key: &[u8]) {
        if self.take_entry(key).is_some() {
            self.stripe(key).counts.evicted += 1;
            self.event(Class::EVICTED, "evicted", key);
            self.touch(key, 0);
        }
    }

    pub(crate) fn insert(&mut self, key: &[u8], entry: Entry) {
        let database = self.database;
        let stripe = held(&mut self.held, stripe_of(slot_of(key)));
        stripe.bytes += entry.bytes();
        let place = &mut stripe.databases[database];
        let at = place.keys.place(key);
        if let Some(expires) = entry.expires_at_ms() {
            place.expiries.insert((expires, at.position));
        }
        place.keys.insert_new(at, entry);
    }

    /// Takes an entry out, whatever its time, and writes that down.
    pub(crate) fn take_entry(&mut self, key: &[u8]) -> Option<Entry> {
        let database = self.database;
        let stripe = held(&mut self.held, stripe_of(slot_of(key)));
        let place = &mut stripe.databases[database];
        let at = place.keys.place(key);
        let entry = place.keys.remove(at, key)?;
        if let Some(expires) = entry.expires_at_ms() {
            place.expiries.remove(&(expires, at.position));
        }
        stripe.bytes = stripe.bytes.saturating_sub(entry.bytes());
        let (id, generation) = (stripe.databases[database].id, entry.generation());
        self.effects.rows.push(Row::Gone { database: id, key });
        if generation != 0 {
            self.effects.rows.push(Row::Garbage { database: id, key, generation });
        }
        Some(entry)
    }

    fn account(&mut self, key: &[u8], before: usize, after: usize) {
        let stripe = self.stripe(key);
        stripe.bytes = (stripe.bytes + after).saturating_sub(before);
    }

    fn move_expiry(&mut self, key: &[u8], before: Option<u64>, after: Option<u64>) {
        if before == after {
            return;
        }
        let database = self.database;
        let place = &mut self.stripe(key).databases[database];
        let position = place.keys.place(key).position;
        if let Some(at) = before {
            place.expiries.remove(&(at, position));
        }
        if let Some(at) = after {
            place.expiries.insert((at, position));
        }
    }

    /// Writes down what a key is, without its elements.
    pub(crate) fn write_head(&mut self, key: &[u8]) {
        if !self.effects.rows.is_on {
            return;
        }
        let database = self.database;
        let place = &mut held(&mut self.held, stripe_of(slot_of(key))).databases[database];
        let Some(entry) = place.keys.get(key) else { return };
        let head = entry.head();
        self.effects.rows.push(Row::Head { database: place.id, key, head: &head });
    }

    /// Writes down all of a key: its head and every element.
    pub(crate) fn write_all(&mut self, key: &[u8]) {
        if !self.effects.rows.is_on {
            return;
        }
        self.write_head(key);
        let database = self.database;
        let place = &mut held(&mut self.held, stripe_of(slot_of(key))).databases[database];
        let Some(Entry::Object(object)) = place.keys.get(key) else { return };
        let (rows, generation) = (&mut self.effects.rows, object.generation);
        object.value.rows(&mut |element, row| {
            rows.push(Row::Element { database: place.id, key, generation, element, row });
        });
    }

    /// Writes all of a key under a new generation: its elements so far are garbage.
    pub(crate) fn write_anew(&mut self, key: &[u8]) {
        let (database, new) = (self.database, self.keyspace.next_generation());
        let place = &mut self.stripe(key).databases[database];
        let Some(Entry::Object(object)) = place.keys.get_mut(key) else { return };
        let old = std::mem::replace(&mut object.generation, new);
        self.write_garbage(key, old);
        self.write_all(key);
    }

    fn write_garbage(&mut self, key: &[u8], generation: u64) {
        let database = self.database;
        let id = self.stripe(key).databases[database].id;
        self.effects.rows.push(Row::Garbage { database: id, key, generation });
    }
}
