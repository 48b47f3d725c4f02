//! Receiving: the next messages of a line or of a session, or deferred ones by their numbers.

use std::sync::Arc;

use lazuli_engine::{Error, PREFIX_BYTES, PageLimit, Result, Space, Transaction, Tx, after_key};
use lazuli_shardmap::record::{decode, encode};

use crate::fragment::{FORWARD, Found, Fragment, Place, Woken};
use crate::limits::RECEIVE_BYTES_MAX;
use crate::message::{Delivery, Lock, LockToken, Message, MessageState};
use crate::rows::{DeliveryRow, DeliveryState, Line, Part, Stored, number_of};
use crate::session::SessionLock;
use crate::shared::Shared;
use crate::{BusReason, timers};

/// How messages are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveMode {
    PeekLock,
    ReceiveAndDelete,
}

/// The pages of messages that one receive reads to find some that have not expired.
const PAGES_MAX: usize = 8;
/// The messages of a page of which all before had expired.
const EXPIRED_PAGE: usize = 1_000;

pub(crate) struct Receive {
    pub(crate) shared: Arc<Shared>,
    pub(crate) place: Place,
    pub(crate) line: Line,
    pub(crate) session: Option<SessionLock>,
    pub(crate) mode: ReceiveMode,
    pub(crate) most: usize,
}

/// What one fragment had.
pub(crate) struct Received {
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) woken: Woken,
    /// When something may come by itself.
    pub(crate) next_ms: u64,
    /// See [`crate::rows::LineState`].
    pub(crate) wakes: u64,
    /// Whether there may be more at once.
    pub(crate) has_more: bool,
}

impl Transaction for Receive {
    type Output = Received;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Received> {
        let Self { line, mode, most, .. } = *self;
        let mut fragment = Fragment::load(tx, &self.place, &self.shared).await?;
        fragment.check_receive(line)?;
        timers::run_due(&mut fragment, tx).await?;
        let taken = match (&self.session, fragment.has_sessions(line)) {
            (None, false) => fragment.next(tx, line, most).await?,
            (Some(lock), true) => fragment.next_of_session(tx, line, lock, most).await?,
            (None, true) => {
                let message = "a receiver of an entity with sessions accepts a session first";
                return Err(Error::invalid(BusReason::SessionEntity, message));
            }
            (Some(_), false) => return Err(no_sessions()),
        };
        let Batch { taken, is_cut } = taken;
        let has_more = is_cut || taken.len() >= most;
        let deliveries = fragment.deliver(tx, line, taken, mode, self.session.as_ref()).await?;
        let next_ms = fragment.state().timer_ms;
        let wakes = fragment.line(tx, line).await?.wakes;
        Ok(Received { deliveries, woken: fragment.save(tx)?, next_ms, wakes, has_more })
    }
}

pub(crate) fn no_sessions() -> Error {
    Error::invalid(BusReason::NoSessions, "the entity has no sessions")
}

/// Messages that are about to be delivered.
struct Batch {
    taken: Vec<Taken>,
    /// Whether it ended before the line did, because of what had expired or of its size.
    is_cut: bool,
}

/// A message that is about to be delivered.
pub(crate) struct Taken {
    number: u64,
    found: Found,
    /// Its last delivery, if there was one.
    before: Option<(DeliveryRow, lazuli_engine::Item)>,
}

impl Fragment {
    pub(crate) fn check_receive(&self, line: Line) -> Result<()> {
        let status = self.description(line.owner)?.status;
        let topic = self.config.entity.description.status;
        if line.part == Part::Main && !(status.may_receive() && topic.may_receive()) {
            let message = "the entity does not give messages out";
            return Err(Error::precondition(BusReason::EntityDisabled, message));
        }
        Ok(())
    }

    /// The next messages of a line without sessions: first those that came back, then those from the head on.
    async fn next(&mut self, tx: &mut Tx<'_>, line: Line, most: usize) -> Result<Batch> {
        let (mut taken, mut is_cut) = (Vec::new(), true);
        let mut bytes = 0;
        self.next_returned(tx, line, most, &mut taken, &mut bytes).await?;
        let now = tx.now_ms();
        let mut head = self.line(tx, line).await?.head;
        let before = head;
        for page_number in 0..PAGES_MAX {
            if taken.len() >= most || bytes >= RECEIVE_BYTES_MAX {
                break;
            }
            let range = self.place.messages(line, head);
            let wanted = most - taken.len();
            let items = if page_number == 0 { wanted } else { wanted.max(EXPIRED_PAGE) };
            let limit = PageLimit { items, bytes: RECEIVE_BYTES_MAX };
            let page = tx.scan(self.place.container, Space::BUS_MESSAGES, &range, FORWARD, limit);
            let page = page.await?;
            for (key, item) in page.items {
                if taken.len() >= most || bytes >= RECEIVE_BYTES_MAX {
                    break;
                }
                let number = number_of(&key)?;
                head = number + 1;
                let stored: Stored = decode(item.payload.clone())?;
                if stored.expires_ms.is_some_and(|expires_ms| expires_ms <= now) {
                    continue;
                }
                bytes += stored.size() as usize;
                taken.push(Taken { number, found: Found { stored, item }, before: None });
            }
            match page.next {
                // All of a page may have expired: what is hidden is passed over once.
                Some(last) if taken.is_empty() => head = head.max(number_of(&last)? + 1),
                Some(_) => break,
                None => {
                    is_cut = taken.len() >= most || bytes >= RECEIVE_BYTES_MAX;
                    break;
                }
            }
        }
        if head != before {
            self.line_mut(tx, line).await?.head = head;
        }
        Ok(Batch { taken, is_cut })
    }

    async fn next_returned(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        most: usize,
        taken: &mut Vec<Taken>,
        bytes: &mut usize,
    ) -> Result<()> {
        let state = self.line(tx, line).await?;
        if state.returned == 0 {
            return Ok(());
        }
        let first = self.place.returned(line, state.returned_head);
        let range = Place::between(&first, &self.place.returned(line, u64::MAX));
        let limit = PageLimit::items(most);
        let page = tx.scan(self.place.container, Space::BUS_ORDER, &range, FORWARD, limit).await?;
        for (key, _) in page.items {
            if *bytes >= RECEIVE_BYTES_MAX {
                break;
            }
            let number = number_of(&key)?;
            self.unreturn(tx, line, number).await?;
            self.line_mut(tx, line).await?.returned_head = number + 1;
            let before = self.delivery(tx, line, number).await?;
            // One that has expired meanwhile is left to the sweep.
            let now = tx.now_ms();
            match self.find(tx, line, number).await? {
                Some(found) if !found.item.is_expired(now) => {
                    *bytes += found.stored.size() as usize;
                    taken.push(Taken { number, found, before });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The next messages of a session for its holder.
    async fn next_of_session(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        lock: &SessionLock,
        most: usize,
    ) -> Result<Batch> {
        let row = self.held_session(tx, line, lock).await?;
        let session = lock.session_id.as_str();
        let now = tx.now_ms();
        let (mut taken, mut bytes, mut head) = (Vec::new(), 0, row.head);
        let mut low = (row.low == row.head).then_some(row.low);
        let most_deliveries = self.description(line.owner)?.max_delivery_count;
        let last = self.place.session_order(line, session, u64::MAX);
        let mut range = Place::between(&self.place.session_order(line, session, head), &last);
        let mut is_cut = true;
        'pages: for _ in 0..PAGES_MAX {
            let limit = PageLimit::items(most);
            let page = tx.scan(self.place.container, Space::BUS_ORDER, &range, FORWARD, limit);
            let page = page.await?;
            for (key, _) in page.items {
                if taken.len() >= most || bytes >= RECEIVE_BYTES_MAX {
                    break 'pages;
                }
                let number = number_of(&key)?;
                // No message of the session is before the first one that is found after the lock was given.
                if let Some(low) = low.take() {
                    self.session_mut(tx, line, session).await?.low = low.max(number);
                }
                head = number + 1;
                let before = self.delivery(tx, line, number).await?;
                let is_held = before.as_ref().is_some_and(|(row, _)| {
                    row.state == DeliveryState::Locked && row.session == lock.lock
                });
                let found = self.find(tx, line, number).await?;
                let Some(found) = found.filter(|it| !is_held && !it.item.is_expired(now)) else {
                    continue;
                };
                let count = before.as_ref().map_or(0, |(row, _)| row.count);
                if count >= most_deliveries {
                    self.bury_often_delivered(tx, line, number, found, count).await?;
                    continue;
                }
                bytes += found.stored.size() as usize;
                taken.push(Taken { number, found, before });
            }
            match page.next {
                Some(last) => range.start = after_key(&last.slice(PREFIX_BYTES..)),
                None => {
                    is_cut = false;
                    break;
                }
            }
        }
        if head != row.head {
            self.session_mut(tx, line, session).await?.head = head;
        }
        Ok(Batch { taken, is_cut })
    }

    /// Locks messages, or deletes them, and makes them ready to be sent.
    pub(crate) async fn deliver(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        taken: Vec<Taken>,
        mode: ReceiveMode,
        session: Option<&SessionLock>,
    ) -> Result<Vec<Delivery>> {
        let description = self.description(line.owner)?;
        let lock = tx.lsn().0;
        let until_ms = match session {
            Some(session) => self.session(tx, line, &session.session_id).await?.until_ms,
            None => tx.now_ms().saturating_add(description.lock_duration_ms),
        };
        let mut deliveries = Vec::with_capacity(taken.len());
        let mut numbers = Vec::new();
        for Taken { number, found, before } in taken {
            let body = self.read_body(tx, &found.stored).await?;
            let count = before.as_ref().map_or(0, |(row, _)| row.count);
            let deferred = before.as_ref().is_some_and(|(row, _)| row.deferred);
            let given = match mode {
                ReceiveMode::PeekLock => {
                    let row = DeliveryRow {
                        state: DeliveryState::Locked,
                        deferred,
                        until_ms,
                        lock,
                        session: session.map_or(0, |session| session.lock),
                        count: count.saturating_add(1),
                    };
                    let old = before.as_ref().map(|(_, item)| item);
                    tx.replace(&self.place.delivery(line, number), old, encode(&row), None)?;
                    numbers.push(number);
                    let token = LockToken { sequence_number: number, lock };
                    Some(Lock { token, until_ms })
                }
                ReceiveMode::ReceiveAndDelete => {
                    self.end(tx, line, number, &found).await?;
                    None
                }
            };
            let state = if deferred { MessageState::Deferred } else { MessageState::Active };
            let message = message_of(number, found.stored, body, count, state);
            deliveries.push(Delivery { message, lock: given });
        }
        if !numbers.is_empty() && session.is_none() {
            timers::set_locks(self, tx, line, until_ms, &numbers).await?;
        }
        Ok(deliveries)
    }

    pub(crate) async fn bury_often_delivered(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        number: u64,
        found: Found,
        count: u32,
    ) -> Result<()> {
        self.take_out(tx, line, number, &found).await?;
        let why = format!("The message was delivered {count} times without being settled.");
        let reason = Some("MaxDeliveryCountExceeded");
        self.bury(tx, line, found.stored, reason, Some(&why)).await
    }
}

/// A message as callers see it.
pub(crate) fn message_of(
    number: u64,
    stored: Stored,
    body: bytes::Bytes,
    delivery_count: u32,
    state: MessageState,
) -> Message {
    Message {
        sequence_number: number,
        enqueued_sequence_number: stored.origin,
        enqueued_ms: stored.enqueued_ms,
        expires_ms: stored.expires_ms,
        scheduled_ms: stored.scheduled_ms,
        state,
        delivery_count,
        message_id: stored.message_id,
        session_id: stored.session_id,
        partition_key: stored.partition_key,
        dead_letter_source: stored.dead_letter_source,
        overrides: stored.overrides,
        annotations: stored.annotations,
        body,
    }
}

/// Receives deferred messages by their numbers: all, or none.
pub(crate) struct ReceiveDeferred {
    pub(crate) shared: Arc<Shared>,
    pub(crate) place: Place,
    pub(crate) line: Line,
    pub(crate) session: Option<SessionLock>,
    pub(crate) mode: ReceiveMode,
    pub(crate) numbers: Vec<u64>,
}

impl Transaction for ReceiveDeferred {
    type Output = (Vec<Delivery>, Woken);

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Self::Output> {
        let line = self.line;
        let mut fragment = Fragment::load(tx, &self.place, &self.shared).await?;
        fragment.check_receive(line)?;
        timers::run_due(&mut fragment, tx).await?;
        if let Some(lock) = &self.session {
            fragment.held_session(tx, line, lock).await?;
        } else if fragment.has_sessions(line) {
            let message =
                "a deferred message of a session is received by the holder of the session";
            return Err(Error::invalid(BusReason::SessionEntity, message));
        }
        let mut taken = Vec::with_capacity(self.numbers.len());
        for number in &self.numbers {
            let missing = || {
                let message = format!("there is no deferred message {number}");
                Error::not_found(BusReason::MessageNotFound, message)
            };
            let before = fragment.delivery(tx, line, *number).await?;
            let (row, _) = before.as_ref().ok_or_else(missing)?;
            let is_free = match (row.state, &self.session) {
                (DeliveryState::Waiting, _) => true,
                // The session was lost since, and the lock with it.
                (DeliveryState::Locked, Some(lock)) => row.session != lock.lock,
                (DeliveryState::Locked, None) => false,
            };
            if !row.deferred || !is_free {
                return Err(missing());
            }
            let found = fragment.find(tx, line, *number).await?.ok_or_else(missing)?;
            let is_of_session = self.session.as_ref().is_none_or(|lock| {
                found.stored.session_id.as_deref() == Some(lock.session_id.as_str())
            });
            if !is_of_session {
                return Err(missing());
            }
            taken.push(Taken { number: *number, found, before });
        }
        let session = self.session.as_ref();
        let deliveries = fragment.deliver(tx, line, taken, self.mode, session).await?;
        Ok((deliveries, fragment.save(tx)?))
    }
}
