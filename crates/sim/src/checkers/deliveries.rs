//! Checks the messages of a queue, from the answers that its clients got.
//!
//! Every answer has times and numbers of the server, so nothing here depends on the clients' clocks. A request
//! without an answer may have happened: the count of dequeues shows later whether a receive without an answer had got
//! a message in between.

use std::collections::{BTreeMap, BTreeSet};

use lazuli_engine::Lsn;
use lazuli_shapes::queue::{Delivery, Hold, MessageId, Receipt};

use crate::ensure;
use crate::scenario::Found;

/// The client's name of a message, which is part of its content.
pub type Tag = u64;

/// A receipt of a message, as given to a client.
#[derive(Clone, Debug)]
struct Held {
    /// When it was given, by the server's clock.
    at_ms: u64,
    visible_ms: u64,
    dequeues: u32,
    /// An update by its holder got no answer: the message may become visible at any time.
    is_in_doubt: bool,
}

#[derive(Clone, Debug, Default)]
struct KnownMessage {
    id: Option<MessageId>,
    expires_ms: Option<u64>,
    /// Whether the put was answered; otherwise the message may not exist.
    is_put: bool,
    /// All receipts, by the number of the write.
    held: BTreeMap<Lsn, Held>,
    /// The receipt with which it was deleted.
    deleted: Option<Receipt>,
    /// A deletion got no answer.
    may_be_deleted: bool,
    /// Deletions that were sent and are not answered yet.
    deleting: usize,
}

/// One answer with messages.
#[derive(Clone, Debug)]
struct Taken {
    version: Lsn,
    at_ms: u64,
    most: usize,
    tags: Vec<Tag>,
}

/// The position of a message in the order.
type QueueOrder = (u64, MessageId);

/// The state of one queue.
#[derive(Debug, Default)]
pub struct History {
    messages: BTreeMap<Tag, KnownMessage>,
    taken: Vec<Taken>,
    /// Settlements that were refused because of a stale receipt.
    refused: Vec<(Tag, Receipt)>,
    /// Receives and updates that got no answer.
    unanswered: usize,
}

impl History {
    pub fn put(&mut self, tag: Tag, delivery: Option<&Delivery>) -> Found {
        let known = self.messages.entry(tag).or_default();
        let Some(delivery) = delivery else { return Ok(()) };
        known.is_put = true;
        known.expires_ms = delivery.message.expires_ms;
        known.note(tag, delivery, delivery.message.inserted_ms)
    }

    /// Records an answer to a receive of `most` messages, hidden for `hidden_ms`; none is no answer.
    pub fn receive(
        &mut self,
        most: usize,
        hidden_ms: u64,
        answer: Option<&[(Tag, Delivery)]>,
    ) -> Found {
        let Some(deliveries) = answer else {
            self.unanswered += 1;
            return Ok(());
        };
        ensure!(deliveries.len() <= most, "{} messages instead of {most}", deliveries.len());
        let Some((_, first)) = deliveries.first() else { return Ok(()) };
        let version = first.hold.receipt.version();
        let at_ms = first.hold.visible_ms - hidden_ms;
        for (tag, delivery) in deliveries {
            let known = self.messages.get_mut(tag);
            let known = known.ok_or(format!("message {tag} was never put"))?;
            known.note(*tag, delivery, at_ms)?;
            let is_late = delivery.message.expires_ms.is_some_and(|end| end <= at_ms);
            ensure!(!is_late, "message {tag} was received at {at_ms}, after its time to live");
        }
        let tags = deliveries.iter().map(|(tag, _)| *tag).collect();
        self.taken.push(Taken { version, at_ms, most, tags });
        Ok(())
    }

    /// Records an update by the holder of a receipt; none is no answer.
    pub fn update(&mut self, tag: Tag, old: Receipt, hidden_ms: u64, new: Option<Hold>) -> Found {
        let known = self.messages.get_mut(&tag).ok_or("an update of nothing")?;
        let held = known.held.get_mut(&old.version()).ok_or("an update with no receipt")?;
        match new {
            None => {
                held.is_in_doubt = true;
                self.unanswered += 1;
            }
            Some(hold) => {
                let held = Held {
                    at_ms: hold.visible_ms - hidden_ms,
                    visible_ms: hold.visible_ms,
                    dequeues: held.dequeues,
                    is_in_doubt: false,
                };
                known.held.insert(hold.receipt.version(), held);
            }
        }
        Ok(())
    }

    /// Records that a deletion is sent: others may find the message gone before its sender gets the answer.
    pub fn deleting(&mut self, tag: Tag) {
        self.messages.entry(tag).or_default().deleting += 1;
    }

    /// Records the outcome of a deletion.
    pub fn deleting_ended(&mut self, tag: Tag) {
        self.messages.entry(tag).or_default().deleting -= 1;
    }

    pub fn delete(&mut self, tag: Tag, receipt: Receipt, is_answered: bool) -> Found {
        let known = self.messages.get_mut(&tag).ok_or("a deletion of nothing")?;
        if is_answered {
            ensure!(known.deleted.is_none(), "message {tag} was deleted twice");
            known.deleted = Some(receipt);
        } else {
            known.may_be_deleted = true;
        }
        Ok(())
    }

    /// Records that a receipt was stale.
    pub fn mismatch(&mut self, tag: Tag, receipt: Receipt) {
        self.refused.push((tag, receipt));
    }

    /// Records that a message was missing, at a time that is later than any server's clock.
    pub fn not_found(&self, tag: Tag, latest_ms: u64) -> Found {
        let known = self.messages.get(&tag).ok_or("a settlement of nothing")?;
        let may_be_gone = known.deleted.is_some()
            || known.may_be_deleted
            || known.deleting > 0
            || known.expires_ms.is_some_and(|end| end <= latest_ms);
        ensure!(may_be_gone, "message {tag} is missing, and was not deleted");
        Ok(())
    }

    /// Messages that must not be seen again, because their deletion was answered.
    pub fn deleted(&self) -> BTreeSet<Tag> {
        let is_deleted = |known: &KnownMessage| known.deleted.is_some();
        self.messages.iter().filter(|(_, known)| is_deleted(known)).map(|(tag, _)| *tag).collect()
    }

    /// A message that must still be in the queue, at a time that is later than any server's clock.
    pub fn missing(&self, latest_ms: u64) -> Option<Tag> {
        let is_missing = |known: &KnownMessage| {
            known.is_put
                && known.deleted.is_none()
                && !known.may_be_deleted
                && known.expires_ms.is_none_or(|end| end > latest_ms)
        };
        self.messages.iter().find(|(_, known)| is_missing(known)).map(|(tag, _)| *tag)
    }

    /// Checks the whole queue, once all clients are done.
    pub fn check(&self) -> Found {
        for (tag, known) in &self.messages {
            known.check(*tag)?;
        }
        for (tag, receipt) in &self.refused {
            let known = &self.messages[tag];
            let is_explained = self.unanswered > 0
                || known.held.keys().any(|version| *version > receipt.version());
            ensure!(is_explained, "message {tag} was lost by its holder without a reason");
        }
        for taken in &self.taken {
            self.check_order(taken)?;
        }
        Ok(())
    }

    /// Messages come in the order of visibility, and no earlier one is skipped.
    fn check_order(&self, taken: &Taken) -> Found {
        let places: Vec<Option<QueueOrder>> =
            taken.tags.iter().map(|tag| self.messages[tag].place_before(taken.version)).collect();
        let mut last = None;
        for (tag, place) in taken.tags.iter().zip(&places) {
            let Some(place) = place else { continue };
            ensure!(last < Some(*place), "message {tag} at {place:?} came after one at {last:?}");
            last = Some(*place);
        }
        for (tag, known) in &self.messages {
            let Some(place) = known.place_around(taken.version) else { continue };
            let is_alive = known.expires_ms.is_none_or(|end| end > taken.at_ms);
            if place.0 > taken.at_ms || !is_alive {
                continue;
            }
            ensure!(
                taken.tags.len() == taken.most && last.is_none_or(|last| last < place),
                "message {tag} was visible at {place:?} and passed over at {}: {taken:?}",
                taken.at_ms
            );
        }
        Ok(())
    }
}

impl KnownMessage {
    fn note(&mut self, tag: Tag, delivery: &Delivery, at_ms: u64) -> Found {
        let Delivery { message, hold } = delivery;
        ensure!(self.id.is_none_or(|id| id == message.id), "message {tag} is there twice");
        self.id = Some(message.id);
        self.expires_ms = message.expires_ms;
        let held = Held {
            at_ms,
            visible_ms: hold.visible_ms,
            dequeues: message.dequeues,
            is_in_doubt: false,
        };
        let before = self.held.insert(hold.receipt.version(), held);
        ensure!(before.is_none(), "message {tag} was given out twice at once");
        Ok(())
    }

    /// Each holder had the message exclusively, and it was not received after its deletion.
    fn check(&self, tag: Tag) -> Found {
        let held: Vec<&Held> = self.held.values().collect();
        for pair in held.windows(2) {
            let (one, next) = (pair[0], pair[1]);
            ensure!(next.dequeues >= one.dequeues, "message {tag} forgot that it was received");
            if next.dequeues > one.dequeues && !one.is_in_doubt {
                ensure!(
                    next.at_ms >= one.visible_ms,
                    "message {tag} was given out at {} while it was held until {}",
                    next.at_ms,
                    one.visible_ms
                );
            }
        }
        if let (Some(deleted), Some((last, _))) = (self.deleted, self.held.last_key_value()) {
            ensure!(*last <= deleted.version(), "message {tag} was given out after its deletion");
        }
        Ok(())
    }

    /// Its position between two known writes, if there was certainly none between them.
    fn stood(&self, one: &Held, next: &Held) -> Option<QueueOrder> {
        let is_certain = !one.is_in_doubt && next.dequeues <= one.dequeues + 1;
        is_certain.then_some((one.visible_ms, self.id?))
    }

    /// Its position before the write that gave it out.
    fn place_before(&self, version: Lsn) -> Option<QueueOrder> {
        let next = self.held.get(&version)?;
        let (_, one) = self.held.range(..version).next_back()?;
        self.stood(one, next)
    }

    /// Its position during a write of another message.
    fn place_around(&self, version: Lsn) -> Option<QueueOrder> {
        if self.held.contains_key(&version) {
            return None;
        }
        let (_, one) = self.held.range(..version).next_back()?;
        let (_, next) = self.held.range(version..).next()?;
        self.stood(one, next)
    }
}
