//! How messages end by themselves: those that expire, one by one, and those of a queue that was deleted or cleared, in
//! slices. Both are the engine's sweep at work, so that they also end where nobody looks.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{
    BoxFuture, Engine, Expirer, Item, ItemKey, KeyRange, PREFIX_BYTES, PageLimit, Result, Space,
    Tx, after_key, after_prefix,
};

use super::put::Row;
use super::receive::FORWARD;
use super::rows::{self, Entry, State, Stored};
use super::{Loaded, Place};

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
            let place = Place::of(key);
            let (line, number) = rows::split_message_row(key.row())?;
            let stored = Stored::decode(item.payload)?;
            Row { place: &place, line, number }.unhang(tx, &stored, item.expires_ms).await?;
            let Some(item) = tx.get(&place.state()).await? else { return Ok(()) };
            let mut loaded = Loaded { state: State::decode(item.payload.clone())?, item };
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
            let place = Place::of(key);
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

/// Goes on with a doomed line behind a key of its order, in the next transaction of the sweep.
async fn doom_again(tx: &mut Tx<'_>, key: &ItemKey, after: Bytes) -> Result<()> {
    let soon = tx.now_ms() + 1;
    tx.put_until(key, after, Some(soon)).await
}

impl Place {
    /// Gives a line of messages up: the sweep deletes them.
    pub(super) async fn doom(&self, tx: &mut Tx<'_>, line: u64) -> Result<()> {
        doom_again(tx, &self.doomed(line), Bytes::new()).await
    }
}
