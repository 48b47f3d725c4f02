//! What senders and receivers of a bus saw, and what must follow from it.
//!
//! Every message whose send was answered is received; no two receivers hold one at the same time; a message id is received
//! as one message only; numbers of a session grow as its one sender sent; transactions come whole.

use std::collections::{BTreeMap, BTreeSet};

use lazuli_bus_shape::Delivery;

use crate::ensure;
use crate::scenario::Found;

/// A message, as its sender numbered it.
pub type Tag = u64;

#[derive(Default)]
pub struct BusHistory {
    /// Whether the send was answered.
    sent: BTreeMap<Tag, bool>,
    /// Messages that were sent together, all or none.
    together: Vec<(Tag, Tag)>,
    /// Those that a receiver has ended, or may have.
    ended: BTreeSet<Tag>,
    /// Until when a receiver holds a message, by the servers' time, as far as its client knows.
    held: BTreeMap<Tag, u64>,
    /// Every message that was ever received.
    seen: BTreeSet<Tag>,
    /// The first number under which a message was received.
    numbers: BTreeMap<Tag, u64>,
}

impl BusHistory {
    /// Before a send, and again with its answer.
    pub fn send(&mut self, tag: Tag, is_answered: bool) {
        *self.sent.entry(tag).or_default() |= is_answered;
    }

    pub fn send_together(&mut self, first: Tag, second: Tag) {
        self.together.push((first, second));
        self.send(first, false);
        self.send(second, false);
    }

    /// A message was received under a lock of so many milliseconds.
    pub fn receive(&mut self, tag: Tag, delivery: &Delivery, lock_ms: u64) -> Found {
        ensure!(self.sent.contains_key(&tag), "message {tag} was received and never sent");
        self.seen.insert(tag);
        let number = delivery.message.sequence_number;
        let first = *self.numbers.entry(tag).or_insert(number);
        ensure!(first == number, "message {tag} is two messages: {first:#x} and {number:#x}");
        let Some(lock) = delivery.lock else { return Ok(()) };
        // Both times are of the partition's own clock, which never steps back.
        let locked_ms = lock.until_ms - lock_ms;
        if let Some(until_ms) = self.held.insert(tag, lock.until_ms) {
            ensure!(
                locked_ms >= until_ms,
                "message {tag} was locked at {locked_ms} while another receiver held it until {until_ms}"
            );
        }
        Ok(())
    }

    /// A dead letter has another number than the message had.
    pub fn dead(&mut self, tag: Tag) {
        self.let_go(tag);
        self.numbers.remove(&tag);
    }

    /// Its holder has given it back, or tries to.
    pub fn let_go(&mut self, tag: Tag) {
        self.held.remove(&tag);
    }

    /// Its holder has completed it, or tries to.
    pub fn end(&mut self, tag: Tag) {
        self.ended.insert(tag);
        self.let_go(tag);
    }

    /// A message was found in the end.
    pub fn see(&mut self, tag: Tag) {
        self.seen.insert(tag);
    }

    /// After everything was received: nothing is missing.
    pub fn check(&self, name: &str) -> Found {
        for (tag, is_answered) in &self.sent {
            let is_there = self.seen.contains(tag);
            ensure!(is_there || !is_answered, "message {tag} of {name} never came");
        }
        for (first, second) in &self.together {
            let (a, b) = (self.seen.contains(first), self.seen.contains(second));
            ensure!(a == b, "of a transaction of {name} came {first}: {a}, {second}: {b}");
        }
        Ok(())
    }
}
