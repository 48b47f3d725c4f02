//! Receiving messages, in the lane, and looking at them without taking them (peek), from a snapshot outside the lane.

use bytes::Bytes;
use lazuli_engine::{
    Direction, ItemKey, KeyRange, PREFIX_BYTES, PageLimit, Result, Space, Transaction, Tx, View,
};

use super::put::Row;
use super::rows::{Entry, Position, QueueState, Stored};
use super::{Delivery, Hold, Message, MessageId, QueuePlace, Queues, Receipt, queue_not_found};

/// The most messages that one receive answers.
pub const RECEIVE_MAX: usize = 1_000;
/// The expired messages that one transaction steps over before others have their turn in the lane.
pub(super) const SKIPPED_MAX: usize = 4_096;
/// The transactions of one receive that do nothing but step over expired messages. With more of them in front a receive
/// answers nothing, and the next one goes on where it ended.
pub(super) const SKIPS_MAX: usize = 512;
/// How far the head may stay behind the time of a queue in which nothing is visible, before a receive writes it down.
const HEAD_LATE_MAX_MS: u64 = 1_000;

/// What one look at the front of a line found.
struct Found {
    entries: Vec<Entry>,
    /// No message that anybody may see stands before this place, but for the entries.
    head: Position,
    /// Whether it ended because of what had expired.
    is_cut: bool,
}

struct Receive {
    place: QueuePlace,
    most: usize,
    hidden_ms: u64,
}

/// What one transaction received.
struct Received {
    deliveries: Vec<Delivery>,
    is_cut: bool,
}

impl Transaction for Receive {
    type Output = Received;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Received> {
        let mut loaded = self.place.load(tx).await?;
        let state = &mut loaded.state;
        let now = tx.now_ms();
        let found = self.look(tx, state.line, state.head).await?;
        // Nothing visible in front and nothing to step over either: a head a little late is no reason to write.
        let is_late = state.head.visible_ms.saturating_add(HEAD_LATE_MAX_MS) <= now;
        let is_worth_it = found.is_cut || (is_late && state.head.visible_ms < state.end_ms);
        if found.entries.is_empty() && !is_worth_it {
            return Ok(Received { deliveries: Vec::new(), is_cut: false });
        }
        state.head = found.head;
        let mut deliveries = Vec::with_capacity(found.entries.len());
        for entry in found.entries {
            let number = entry.position.number;
            let row = Row { place: &self.place, line: state.line, number };
            let visible_ms = now.saturating_add(self.hidden_ms);
            let Some(message) = row.take(tx, entry, visible_ms, state.salt).await? else {
                continue;
            };
            state.placed(Position { visible_ms, number });
            let receipt = Receipt { number, version: tx.lsn() };
            let hold = Hold { receipt, visible_ms };
            deliveries.push(Delivery { message, hold });
        }
        self.place.save(tx, &loaded)?;
        Ok(Received { deliveries, is_cut: found.is_cut })
    }
}

impl Receive {
    /// The first messages that are visible now, from the head on.
    async fn look(&self, tx: &Tx<'_>, line: u64, head: Position) -> Result<Found> {
        let now = tx.now_ms();
        let mut found = Found { entries: Vec::new(), head, is_cut: false };
        let mut skipped = 0;
        loop {
            let range = self.place.visible(line, found.head, now);
            let limit = PageLimit::items(page_items(self.most, skipped));
            let container = self.place.container;
            let page = tx.scan(container, Space::QUEUE_ORDER, &range, FORWARD, limit).await?;
            for (key, item) in page.items {
                let entry = Entry::decode(&key, item.payload)?;
                if entry.is_expired(now) {
                    skipped += 1;
                } else if found.entries.len() < self.most {
                    found.entries.push(entry);
                } else {
                    return Ok(found);
                }
                found.head = entry.position.next();
            }
            if self.most > 0 && found.entries.len() >= self.most {
                return Ok(found);
            }
            if page.next.is_none() {
                found.head = found.head.max(Position::at(now.saturating_add(1)));
                return Ok(found);
            }
            if skipped >= SKIPPED_MAX {
                found.is_cut = true;
                return Ok(found);
            }
        }
    }
}

pub(super) const FORWARD: Direction = Direction::Forward;

/// How many entries to read at once: as many as are asked for, and many once it shows that expired ones stand in front.
pub(super) fn page_items(most: usize, skipped: usize) -> usize {
    if skipped == 0 { most.max(1) } else { SKIPPED_MAX }
}

impl QueuePlace {
    /// The part of a line's order from a place on that is visible at a time.
    pub(super) fn visible(&self, line: u64, from: Position, now_ms: u64) -> KeyRange {
        let behind =
            |position| -> Bytes { self.order(line, position).bytes().slice(PREFIX_BYTES..) };
        let end = Position::at(now_ms.saturating_add(1));
        KeyRange::new(behind(from.min(end)), Some(behind(end)))
    }
}

impl Row<'_> {
    /// Moves a message to another place in the order and counts that. None if the message is not there.
    async fn take(
        &self,
        tx: &mut Tx<'_>,
        entry: Entry,
        visible_ms: u64,
        salt: u64,
    ) -> Result<Option<Message>> {
        let Some(item) = tx.get(&self.place.message(self.line, self.number)).await? else {
            return Ok(None);
        };
        let mut stored = Stored::decode(item.payload.clone())?;
        let content = match &stored.content {
            Some(content) => content.clone(),
            None => self.content(tx).await?,
        };
        let (expires_ms, inserted_ms) = (item.expires_ms, stored.inserted_ms);
        self.leave(tx, entry.position.visible_ms, expires_ms)?;
        let dequeues = stored.dequeues.saturating_add(1);
        (stored.dequeues, stored.visible_ms) = (dequeues, visible_ms);
        self.write(tx, Some(&item), stored, expires_ms).await?;
        let id = MessageId { salt, number: self.number };
        Ok(Some(Message { id, inserted_ms, expires_ms, dequeues, content }))
    }

    async fn content(&self, tx: &Tx<'_>) -> Result<Bytes> {
        let found = tx.get(&self.place.content(self.line, self.number)).await?;
        found.map(|item| item.payload).ok_or_else(content_lost)
    }
}

pub(super) fn content_lost() -> lazuli_engine::Error {
    lazuli_engine::Error::corrupt("content-lost", "what a message says is not where it should be")
}

impl Queues {
    /// The first visible messages, at most as many as asked for, hidden from others for a time.
    pub async fn receive(
        &self,
        account: &str,
        queue: &str,
        most: usize,
        hidden_ms: u64,
    ) -> Result<Vec<Delivery>> {
        let place = self.place(account, queue).await?;
        let most = most.clamp(1, RECEIVE_MAX);
        for _ in 0..SKIPS_MAX {
            let receive = Receive { place: place.clone(), most, hidden_ms };
            let received = self.engine.write(place.container, &place.route, receive).await?;
            if !received.is_cut || !received.deliveries.is_empty() {
                return Ok(received.deliveries);
            }
        }
        Ok(Vec::new())
    }

    /// Steps over expired messages at the front of a queue, and says whether there may be more of them.
    pub(super) async fn step_over(&self, place: &QueuePlace) -> Result<bool> {
        let receive = Receive { place: place.clone(), most: 0, hidden_ms: 0 };
        Ok(self.engine.write(place.container, &place.route, receive).await?.is_cut)
    }
}

impl Queues {
    /// The first visible messages, at most as many as asked for. They stay where they are.
    pub async fn peek(&self, account: &str, queue: &str, most: usize) -> Result<Vec<Message>> {
        let place = self.place(account, queue).await?;
        let most = most.clamp(1, RECEIVE_MAX);
        for _ in 0..SKIPS_MAX {
            let view = self.engine.read(place.container, &place.route, 1).await?;
            let looked = place.look(&view, self.engine.env().clock.now_ms(), most).await?;
            if !looked.is_cut || !looked.messages.is_empty() {
                return Ok(looked.messages);
            }
            // So many have expired that the next one to look should not have to step over them again.
            self.step_over(&place).await?;
        }
        Ok(Vec::new())
    }
}

struct Looked {
    messages: Vec<Message>,
    is_cut: bool,
}

impl QueuePlace {
    async fn look(&self, view: &View, now_ms: u64, most: usize) -> Result<Looked> {
        let item = view.get(&self.state()).await?.ok_or_else(queue_not_found)?;
        // What was put is visible at once, also where the writes are ahead of the clock.
        let now_ms = now_ms.max(item.version.millis());
        let state = QueueState::decode(item.payload)?;
        let mut looked = Looked { messages: Vec::new(), is_cut: false };
        let (mut from, mut skipped) = (state.head, 0);
        loop {
            let range = self.visible(state.line, from, now_ms);
            let limit = PageLimit::items(page_items(most, skipped));
            let page = view.scan(Space::QUEUE_ORDER, &range, FORWARD, limit).await?;
            for (key, item) in page.items {
                let entry = Entry::decode(&key, item.payload)?;
                from = entry.position.next();
                if entry.is_expired(now_ms) {
                    skipped += 1;
                    continue;
                }
                looked.messages.extend(self.message_in(view, &state, entry.position.number).await?);
                if looked.messages.len() >= most {
                    return Ok(looked);
                }
            }
            if page.next.is_none() {
                return Ok(looked);
            }
            if skipped >= SKIPPED_MAX {
                looked.is_cut = true;
                return Ok(looked);
            }
        }
    }

    async fn message_in(
        &self,
        view: &View,
        state: &QueueState,
        number: u64,
    ) -> Result<Option<Message>> {
        let payload = |key: ItemKey| async move { view.get(&key).await };
        let Some(item) = payload(self.message(state.line, number)).await? else { return Ok(None) };
        let stored = Stored::decode(item.payload)?;
        let content = match stored.content {
            Some(content) => content,
            None => {
                let apart = payload(self.content(state.line, number)).await?;
                apart.ok_or_else(content_lost)?.payload
            }
        };
        let (inserted_ms, dequeues) = (stored.inserted_ms, stored.dequeues);
        let id = MessageId { salt: state.salt, number };
        Ok(Some(Message { id, inserted_ms, expires_ms: item.expires_ms, dequeues, content }))
    }
}
