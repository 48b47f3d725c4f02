//! Looking at messages without taking them, counting and deleting them.

use std::sync::Arc;

use lazuli_engine::{
    ItemKey, KeyRange, PREFIX_BYTES, PageLimit, Result, Space, Transaction, Tx, View, after_key,
};
use lazuli_shardmap::record::decode;

use crate::description::MessageCounts;
use crate::fragment::{FORWARD, Found, Fragment, Place, not_found};
use crate::limits::RECEIVE_BYTES_MAX;
use crate::message::{Message, MessageState};
use crate::receive::message_of;
use crate::rows::{
    DeliveryRow, DeliveryState, FragmentState, Line, LineState, Part, SessionRow, Stored, number_of,
};
use crate::shared::Shared;

/// Messages of a fragment from a number on, in any state.
pub(crate) async fn peek(
    view: &View,
    place: &Place,
    line: Line,
    session: Option<&str>,
    from: u64,
    most: usize,
) -> Result<Vec<Message>> {
    view.get(&place.state()).await?.ok_or_else(not_found)?;
    if let Some(session) = session {
        return peek_session(view, place, line, session, from, most).await;
    }
    let mut messages = peek_line(view, place, line, from, most).await?;
    if line == Line::new(0, Part::Main) {
        let scheduled = Line::new(0, Part::Scheduled);
        messages.extend(peek_line(view, place, scheduled, from, most).await?);
        messages.sort_by_key(|message| message.sequence_number);
        messages.truncate(most);
    }
    Ok(messages)
}

async fn peek_line(
    view: &View,
    place: &Place,
    line: Line,
    from: u64,
    most: usize,
) -> Result<Vec<Message>> {
    let mut range = place.messages(line, from);
    let mut messages = Vec::new();
    let mut bytes = 0;
    loop {
        let limit = PageLimit { items: most, bytes: RECEIVE_BYTES_MAX };
        let page = view.scan(Space::BUS_MESSAGES, &range, FORWARD, limit).await?;
        for (key, item) in page.items {
            let number = number_of(&key)?;
            let stored: Stored = decode(item.payload)?;
            bytes += stored.size() as usize;
            messages.push(seen(view, place, line, number, stored).await?);
            if messages.len() >= most || bytes >= RECEIVE_BYTES_MAX {
                return Ok(messages);
            }
        }
        match page.next {
            Some(last) => range.start = after_key(&last.slice(PREFIX_BYTES..)),
            None => return Ok(messages),
        }
    }
}

async fn peek_session(
    view: &View,
    place: &Place,
    line: Line,
    session: &str,
    from: u64,
    most: usize,
) -> Result<Vec<Message>> {
    let first = place.session_order(line, session, from);
    let mut range = Place::between(&first, &place.session_order(line, session, u64::MAX));
    let mut messages = Vec::new();
    loop {
        let limit = PageLimit::items(most);
        let page = view.scan(Space::BUS_ORDER, &range, FORWARD, limit).await?;
        for (key, _) in page.items {
            let number = number_of(&key)?;
            let Some(stored) = place.get(view, &place.message(line, number)).await? else {
                continue;
            };
            messages.push(seen(view, place, line, number, stored).await?);
            if messages.len() >= most {
                return Ok(messages);
            }
        }
        match page.next {
            Some(last) => range.start = after_key(&last.slice(PREFIX_BYTES..)),
            None => return Ok(messages),
        }
    }
}

async fn seen(
    view: &View,
    place: &Place,
    line: Line,
    number: u64,
    stored: Stored,
) -> Result<Message> {
    let row: Option<DeliveryRow> = place.get(view, &place.delivery(line, number)).await?;
    let body = place.body_in(view, &stored).await?;
    let state = match (line.part, &row) {
        (Part::Scheduled, _) => MessageState::Scheduled,
        (_, Some(row)) if row.deferred => MessageState::Deferred,
        _ => MessageState::Active,
    };
    Ok(message_of(number, stored, body, row.map_or(0, |row| row.count), state))
}

/// The counts of the owner of a line in one fragment.
pub(crate) async fn counts(view: &View, place: &Place, owner: u32) -> Result<MessageCounts> {
    let state: Option<FragmentState> = place.get(view, &place.state()).await?;
    let state = state.ok_or_else(not_found)?;
    let mut counts = MessageCounts { bytes: state.bytes, ..MessageCounts::default() };
    for part in Part::ALL {
        let line: Option<LineState> = place.get(view, &place.line(Line::new(owner, part))).await?;
        let count = line.map_or(0, |line| line.count);
        match part {
            Part::Main => counts.active = count,
            Part::DeadLetter => counts.dead_letter = count,
            Part::Transfer => counts.transfer = count,
            Part::TransferDeadLetter => counts.transfer_dead_letter = count,
            Part::Scheduled => counts.scheduled = count,
        }
    }
    Ok(counts)
}

/// Ids of the sessions of a fragment with messages, or with a state that was set since a time.
pub(crate) async fn sessions(
    view: &View,
    place: &Place,
    line: Line,
    since_ms: Option<u64>,
    most: usize,
) -> Result<Vec<String>> {
    view.get(&place.state()).await?.ok_or_else(not_found)?;
    let first: ItemKey = place.session(line, "");
    let mut range = KeyRange::prefix(first.bytes().slice(PREFIX_BYTES..));
    let start = first.bytes().len();
    let mut found = Vec::new();
    loop {
        let page = view.scan(Space::BUS_SESSIONS, &range, FORWARD, PageLimit::items(1_000)).await?;
        for (key, item) in page.items {
            let row: SessionRow = decode(item.payload)?;
            let is_wanted = match since_ms {
                None => row.count > 0,
                Some(since_ms) => row.has_state && row.state_ms >= since_ms,
            };
            if is_wanted {
                let damaged = |_| crate::record::damaged("the key of a session");
                found.push(String::from_utf8(key[start..].to_vec()).map_err(damaged)?);
            }
            if found.len() >= most {
                return Ok(found);
            }
        }
        match page.next {
            Some(last) => range.start = after_key(&last.slice(PREFIX_BYTES..)),
            None => return Ok(found),
        }
    }
}

/// Deletes messages that nobody holds, from the beginning of a line on.
pub(crate) struct DeleteMessages {
    pub(crate) shared: Arc<Shared>,
    pub(crate) place: Place,
    pub(crate) line: Line,
    pub(crate) session: Option<String>,
    /// Only those that were enqueued before.
    pub(crate) before_ms: u64,
    pub(crate) with_deferred: bool,
    pub(crate) from: u64,
    pub(crate) most: usize,
}

/// How far a deletion came.
pub(crate) struct Deleted {
    pub(crate) count: usize,
    /// Where to go on; none at the end of the line.
    pub(crate) next: Option<u64>,
}

impl Transaction for DeleteMessages {
    type Output = Deleted;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Deleted> {
        let line = self.line;
        let mut fragment = Fragment::load(tx, &self.place, &self.shared).await?;
        fragment.description(line.owner)?;
        let range = self.place.messages(line, self.from);
        let limit = PageLimit { items: self.most, bytes: RECEIVE_BYTES_MAX };
        let container = self.place.container;
        let page = tx.scan(container, Space::BUS_MESSAGES, &range, FORWARD, limit).await?;
        let mut deleted = Deleted { count: 0, next: None };
        for (key, item) in page.items {
            let number = number_of(&key)?;
            let stored: Stored = decode(item.payload.clone())?;
            if stored.enqueued_ms >= self.before_ms {
                // Numbers grow with time, so all behind it are later.
                fragment.save(tx)?;
                return Ok(deleted);
            }
            let is_of = self.session.is_none() || self.session == stored.session_id;
            if !is_of || self.is_held(&mut fragment, tx, number, &stored).await? {
                continue;
            }
            if line.part == Part::Scheduled {
                fragment.cancel(tx, number).await?;
            } else {
                fragment.end(tx, line, number, &Found { stored, item }).await?;
            }
            deleted.count += 1;
        }
        deleted.next = page.next.map(|last| number_of(&last)).transpose()?.map(|last| last + 1);
        fragment.save(tx)?;
        Ok(deleted)
    }
}

impl DeleteMessages {
    async fn is_held(
        &self,
        fragment: &mut Fragment,
        tx: &Tx<'_>,
        number: u64,
        stored: &Stored,
    ) -> Result<bool> {
        let now = tx.now_ms();
        if fragment.has_sessions(self.line) {
            let session = stored.session_id.as_deref().unwrap_or_default();
            if fragment.session(tx, self.line, session).await?.is_locked(now) {
                return Ok(true);
            }
        }
        let Some((row, _)) = fragment.delivery(tx, self.line, number).await? else {
            return Ok(false);
        };
        let is_locked = row.state == DeliveryState::Locked && row.until_ms > now;
        Ok(is_locked || (row.deferred && !self.with_deferred))
    }
}
