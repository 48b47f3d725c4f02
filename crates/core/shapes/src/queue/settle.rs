//! How messages end: deleted or updated by their receiver; expired one by one; deleted in slices with a queue that was deleted
//! or cleared. The engine's expiry sweep does the last two, so that they also happen when no request comes.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{
    BoxFuture, Engine, Error, Expirer, Item, ItemKey, KeyRange, PREFIX_BYTES, PageLimit, Result,
    Space, Transaction, Tx, after_key, after_prefix,
};

use super::put::{INLINE_BYTES_MAX, Row};
use super::receive::FORWARD;
use super::rows::{self, Entry, Position, QueueState, Stored};
use super::{Hold, Loaded, MessageId, QueuePlace, QueueReason, Queues, Receipt};

/// What to change of a message.
#[derive(Clone, Debug)]
pub struct Update {
    /// From now until others can receive it.
    pub hidden_ms: u64,
    /// What it says from now on; unchanged if none.
    pub content: Option<Bytes>,
}

/// A message and the right to it.
struct Claim {
    place: QueuePlace,
    id: MessageId,
    receipt: Receipt,
}

impl Claim {
    /// The message, if the right to it still holds.
    async fn check(&self, tx: &Tx<'_>, state: &QueueState) -> Result<(Item, Stored)> {
        let not_found =
            || Error::not_found(QueueReason::MessageNotFound, "there is no such message");
        if self.id.salt != state.salt {
            return Err(not_found());
        }
        let key = self.place.message(state.line, self.id.number);
        let item = tx.get(&key).await?.ok_or_else(not_found)?;
        // The last write of the message gave out the only receipt that is good.
        if self.receipt != (Receipt { number: self.id.number, version: item.version }) {
            let message = "the message was received or changed since the receipt was given out";
            return Err(Error::precondition(QueueReason::ReceiptMismatch, message));
        }
        let stored = Stored::decode(item.payload.clone())?;
        Ok((item, stored))
    }

    fn row(&self, state: &QueueState) -> Row<'_> {
        Row { place: &self.place, line: state.line, number: self.id.number }
    }
}

struct Change {
    claim: Claim,
    update: Update,
}

impl Transaction for Change {
    type Output = Hold;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Hold> {
        let claim = &self.claim;
        let mut loaded = claim.place.load(tx).await?;
        let state = &mut loaded.state;
        let (item, mut stored) = claim.check(tx, state).await?;
        let row = claim.row(state);
        let number = row.number;
        row.leave(tx, stored.visible_ms, item.expires_ms)?;
        let stays_apart =
            self.update.content.as_ref().is_none_or(|new| new.len() > INLINE_BYTES_MAX);
        if stored.content.is_none() && !stays_apart {
            tx.delete(&claim.place.content(state.line, number)).await?;
        }
        if let Some(content) = &self.update.content {
            stored.content = Some(content.clone());
        }
        let visible_ms = tx.now_ms().saturating_add(self.update.hidden_ms);
        stored.visible_ms = visible_ms;
        row.write(tx, Some(&item), stored, item.expires_ms).await?;
        state.placed(Position { visible_ms, number });
        claim.place.save(tx, &loaded)?;
        Ok(Hold { receipt: Receipt { number, version: tx.lsn() }, visible_ms })
    }
}

struct Delete(Claim);

impl Transaction for Delete {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let claim = &self.0;
        let mut loaded = claim.place.load(tx).await?;
        let state = &mut loaded.state;
        let (item, stored) = claim.check(tx, state).await?;
        tx.remove(&claim.place.message(state.line, claim.id.number), &item)?;
        claim.row(state).unhang(tx, &stored, item.expires_ms).await?;
        state.gone();
        claim.place.save(tx, &loaded)
    }
}

impl Queues {
    /// Changes what a message says, or when others can receive it, and answers the new right to it; the old one ends.
    pub async fn update(
        &self,
        account: &str,
        queue: &str,
        id: MessageId,
        receipt: Receipt,
        update: Update,
    ) -> Result<Hold> {
        let change = |place| Change { claim: Claim { place, id, receipt }, update };
        self.write(account, queue, change).await
    }

    /// Deletes a message.
    pub async fn delete_message(
        &self,
        account: &str,
        queue: &str,
        id: MessageId,
        receipt: Receipt,
    ) -> Result<()> {
        self.write(account, queue, |place| Delete(Claim { place, id, receipt })).await
    }
}

/// The messages of a doomed line that one transaction deletes.
const SLICE_MESSAGES: usize = 1_000;
/// A transaction that has written this much leaves doomed lines to the next one.
const SLICE_WRITES: usize = 10_000;

pub(super) fn register(engine: &Engine) {
    engine.on_expiry(Space::QUEUE_MESSAGES, Arc::new(Messages));
    engine.on_expiry(Space::QUEUE_DOOMED, Arc::new(Doomed));
}

/// Ends a message whose time to live is over.
struct Messages;

impl Expirer for Messages {
    fn expired<'a>(
        &'a self,
        tx: &'a mut Tx<'_>,
        key: &'a ItemKey,
        item: Item,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let place = QueuePlace::of(key);
            let (line, number) = rows::split_message_row(key.row())?;
            let stored = Stored::decode(item.payload)?;
            Row { place: &place, line, number }.unhang(tx, &stored, item.expires_ms).await?;
            let Some(item) = tx.get(&place.state()).await? else { return Ok(()) };
            let mut loaded = Loaded { state: QueueState::decode(item.payload.clone())?, item };
            // Messages of a line that is no longer the queue's are not counted any more.
            if loaded.state.line == line {
                loaded.state.gone();
                place.save(tx, &loaded)?;
            }
            Ok(())
        })
    }
}

/// Deletes a slice of a line that is no longer the queue's.
struct Doomed;

impl Expirer for Doomed {
    fn expired<'a>(
        &'a self,
        tx: &'a mut Tx<'_>,
        key: &'a ItemKey,
        item: Item,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if tx.writes() > SLICE_WRITES {
                return doom_again(tx, key, item.payload).await;
            }
            let place = QueuePlace::of(key);
            let line = rows::split_line_row(key.row())?;
            let prefix: Bytes = [key.route(), key.row()].concat().into();
            // What the slices before have deleted is not read again: the store may still have to step over it.
            let start =
                if item.payload.is_empty() { prefix.clone() } else { after_key(&item.payload) };
            let range = KeyRange::new(start, after_prefix(&prefix));
            let limit = PageLimit::items(SLICE_MESSAGES);
            let page = tx.scan(place.container, Space::QUEUE_ORDER, &range, FORWARD, limit).await?;
            for (key, item) in page.items {
                let number = Entry::decode(&key, item.payload)?.position.number;
                let row = rows::message_row(line, number);
                tx.delete(&place.key(Space::QUEUE_MESSAGES, &row)).await?;
                tx.delete(&place.key(Space::QUEUE_CONTENTS, &row)).await?;
                tx.delete(&ItemKey::from_bytes(key, place.route.len())?).await?;
            }
            match page.next {
                Some(last) => doom_again(tx, key, last.slice(PREFIX_BYTES..)).await,
                None => Ok(()),
            }
        })
    }
}

/// Has the next transaction of the sweep continue with a doomed line after this key.
async fn doom_again(tx: &mut Tx<'_>, key: &ItemKey, after: Bytes) -> Result<()> {
    let soon = tx.now_ms() + 1;
    tx.put_until(key, after, Some(soon)).await
}

impl QueuePlace {
    /// Gives a line of messages up: the sweep deletes them.
    pub(super) async fn doom(&self, tx: &mut Tx<'_>, line: u64) -> Result<()> {
        doom_again(tx, &self.doomed(line), Bytes::new()).await
    }
}
