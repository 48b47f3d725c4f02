//! Looking at messages without taking them. Reads a snapshot, outside the lane.

use lazuli_engine::{ItemKey, PageLimit, Result, Space, View};

use super::receive::{FORWARD, SKIPPED_MAX, SKIPS_MAX, content_lost, page_items};
use super::rows::{Entry, State, Stored};
use super::{Message, MessageId, Place, Queues, RECEIVE_MAX, queue_not_found};

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

impl Place {
    async fn look(&self, view: &View, now_ms: u64, most: usize) -> Result<Looked> {
        let item = view.get(&self.state()).await?.ok_or_else(queue_not_found)?;
        // What was put is visible at once, also where the writes are ahead of the clock.
        let now_ms = now_ms.max(item.version.millis());
        let state = State::decode(item.payload)?;
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

    async fn message_in(&self, view: &View, state: &State, number: u64) -> Result<Option<Message>> {
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
