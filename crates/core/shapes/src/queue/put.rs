//! Putting messages.

use bytes::Bytes;
use lazuli_engine::{Item, Result, Transaction, Tx};

use super::rows::{Entry, Position, QueueState, Stored};
use super::{Delivery, Hold, Message, MessageId, QueuePlace, Queues, Receipt};

/// What a message says is kept in its own row up to this size, which is written again whenever the message is received.
pub(super) const INLINE_BYTES_MAX: usize = 4 * 1024;

/// A message to put.
#[derive(Clone, Debug)]
pub struct NewMessage {
    pub content: Bytes,
    /// From now until others can receive it.
    pub hidden_ms: u64,
    /// From now until it is gone; never if none.
    pub lives_ms: Option<u64>,
}

struct Put {
    place: QueuePlace,
    new: NewMessage,
}

impl Transaction for Put {
    type Output = Delivery;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Delivery> {
        let mut loaded = self.place.load(tx).await?;
        let state = &mut loaded.state;
        let now = tx.now_ms();
        let number = state.next;
        let visible_ms = now.saturating_add(self.new.hidden_ms);
        let expires_ms = self.new.lives_ms.map(|lives_ms| now.saturating_add(lives_ms));
        let content = self.new.content.clone();
        let stored =
            Stored { inserted_ms: now, visible_ms, dequeues: 0, content: Some(content.clone()) };
        let row = Row { place: &self.place, line: state.line, number };
        row.write(tx, None, stored, expires_ms).await?;
        state.next += 1;
        state.count += 1;
        state.placed(Position { visible_ms, number });
        let id = MessageId { salt: state.salt, number };
        self.place.save(tx, &loaded)?;
        let message = Message { id, inserted_ms: now, expires_ms, dequeues: 0, content };
        let receipt = Receipt { number, version: tx.lsn() };
        Ok(Delivery { message, hold: Hold { receipt, visible_ms } })
    }
}

/// The rows of one message.
pub(super) struct Row<'a> {
    pub(super) place: &'a QueuePlace,
    pub(super) line: u64,
    pub(super) number: u64,
}

impl Row<'_> {
    /// Writes a message over what it was, and enters it in the order, from which it was taken before. What it says stays
    /// as it is if it is kept apart and none is given.
    pub(super) async fn write(
        &self,
        tx: &mut Tx<'_>,
        old: Option<&Item>,
        mut stored: Stored,
        expires_ms: Option<u64>,
    ) -> Result<()> {
        let Self { place, line, number } = *self;
        if let Some(content) = stored.content.take_if(|content| content.len() > INLINE_BYTES_MAX) {
            tx.put(&place.content(line, number), content).await?;
        }
        let position = Position { visible_ms: stored.visible_ms, number };
        tx.replace(&place.message(line, number), old, stored.encode(), expires_ms)?;
        // An entry names its message and its place, and the one that was there is gone.
        tx.replace(&place.order(line, position), None, Entry::payload(expires_ms), None)
    }

    /// Takes a message out of the order.
    pub(super) fn leave(
        &self,
        tx: &mut Tx<'_>,
        visible_ms: u64,
        expires_ms: Option<u64>,
    ) -> Result<()> {
        let position = Position { visible_ms, number: self.number };
        tx.remove(&self.place.order(self.line, position), &Entry::item(expires_ms))
    }

    /// Deletes what hangs on a message that is gone, or goes now: its place in the order, and what it says.
    pub(super) async fn unhang(
        &self,
        tx: &mut Tx<'_>,
        stored: &Stored,
        expires_ms: Option<u64>,
    ) -> Result<()> {
        self.leave(tx, stored.visible_ms, expires_ms)?;
        if stored.content.is_none() {
            tx.delete(&self.place.content(self.line, self.number)).await?;
        }
        Ok(())
    }
}

impl QueueState {
    /// Takes note of a message that is gone.
    pub(super) fn gone(&mut self) {
        self.count = self.count.saturating_sub(1);
    }
}

impl Queues {
    /// Puts a message at the end of those that become visible no later, and answers it with a right to it.
    pub async fn put(&self, account: &str, queue: &str, new: NewMessage) -> Result<Delivery> {
        self.write(account, queue, |place| Put { place, new }).await
    }
}
