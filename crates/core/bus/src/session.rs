//! Sessions: accepted by one receiver at a time, renewed, given back, with a state of their own.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{Error, Kind, PageLimit, Result, Space, Transaction, Tx};

use crate::bus::{Bus, gone};
use crate::endpoint::Endpoint;
use crate::fragment::{FORWARD, Fragment, Place, Woken};
use crate::limits::{RECEIVE_MESSAGES_MAX, SESSION_ID_CHARS_MAX, SESSION_STATE_BYTES_MAX};
use crate::receive::no_sessions;
use crate::rows::{Line, SessionRow, number_of};
use crate::settle::session_lost;
use crate::shared::Shared;
use crate::timers::{self, Timer, TimerKind};
use crate::{BusReason, peek};

/// The exclusive right to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLock {
    pub session_id: String,
    pub until_ms: u64,
    /// The write that gave the right.
    pub(crate) lock: u64,
    pub(crate) fragment: u16,
}

impl Fragment {
    /// The session, if the right to it still holds.
    pub(crate) async fn held_session(
        &mut self,
        tx: &Tx<'_>,
        line: Line,
        lock: &SessionLock,
    ) -> Result<SessionRow> {
        let row = self.session(tx, line, &lock.session_id).await?;
        let is_held = row.lock == lock.lock && row.is_locked(tx.now_ms());
        if is_held { Ok(row) } else { Err(session_lost()) }
    }

    /// Locks a session that nobody holds.
    async fn lock_session(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        session: &str,
    ) -> Result<SessionLock> {
        self.unready(tx, line, session).await?;
        let lasts_ms = self.description(line.owner)?.lock_duration_ms;
        let until_ms = tx.now_ms().saturating_add(lasts_ms);
        let lock = tx.lsn().0;
        let row = self.session_mut(tx, line, session).await?;
        (row.lock, row.until_ms, row.head) = (lock, until_ms, row.low);
        self.time_session(tx, line, session, until_ms, lock).await?;
        let fragment = self.place.fragment;
        Ok(SessionLock { session_id: session.to_owned(), until_ms, lock, fragment })
    }

    async fn time_session(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        session: &str,
        due_ms: u64,
        lock: u64,
    ) -> Result<()> {
        let timer = Timer { due_ms, kind: TimerKind::Session, line, number: lock };
        timer.set(self, tx, Bytes::copy_from_slice(session.as_bytes())).await
    }

    /// Ends the lock of a session. What its holder had received and not settled can be received again.
    pub(crate) async fn unlock_session(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        session: &str,
    ) -> Result<()> {
        let row = self.session_mut(tx, line, session).await?;
        (row.lock, row.until_ms, row.head) = (0, 0, row.low);
        self.make_ready(tx, line, session).await
    }
}

pub(crate) struct Accept {
    pub(crate) shared: Arc<Shared>,
    pub(crate) place: Place,
    pub(crate) line: Line,
    /// None: the next one that waits.
    pub(crate) session: Option<String>,
}

/// A session, if there was one.
pub(crate) struct Accepted {
    pub(crate) lock: Option<SessionLock>,
    pub(crate) woken: Woken,
}

impl Transaction for Accept {
    type Output = Accepted;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Accepted> {
        let line = self.line;
        let mut fragment = Fragment::load(tx, &self.place, &self.shared).await?;
        fragment.check_receive(line)?;
        if !fragment.has_sessions(line) {
            return Err(no_sessions());
        }
        timers::run_due(&mut fragment, tx).await?;
        let lock = match &self.session {
            Some(session) => {
                let row = fragment.session(tx, line, session).await?;
                if row.is_locked(tx.now_ms()) {
                    let message = format!("another receiver holds the session '{session}'");
                    return Err(Error::precondition(BusReason::SessionCannotBeLocked, message));
                }
                Some(fragment.lock_session(tx, line, session).await?)
            }
            None => self.next(&mut fragment, tx).await?,
        };
        Ok(Accepted { lock, woken: fragment.save(tx)? })
    }
}

impl Accept {
    /// The session that has waited longest.
    async fn next(&self, fragment: &mut Fragment, tx: &mut Tx<'_>) -> Result<Option<SessionLock>> {
        let (place, line) = (&self.place, self.line);
        let head = fragment.line(tx, line).await?.ready_head;
        let range = Place::between(&place.ready(line, head), &place.ready(line, u64::MAX));
        let limit = PageLimit::items(1);
        let page = tx.scan(place.container, Space::BUS_ORDER, &range, FORWARD, limit).await?;
        let Some((key, item)) = page.items.into_iter().next() else { return Ok(None) };
        fragment.line_mut(tx, line).await?.ready_head = number_of(&key)? + 1;
        let damaged = |_| crate::record::damaged("a session that waits");
        let session = String::from_utf8(item.payload.into()).map_err(damaged)?;
        fragment.lock_session(tx, line, &session).await.map(Some)
    }
}

/// What the holder of a session does with it.
pub(crate) enum SessionChange {
    Renew,
    Release,
    SetState(Option<Bytes>),
}

pub(crate) struct ChangeSession {
    pub(crate) shared: Arc<Shared>,
    pub(crate) place: Place,
    pub(crate) line: Line,
    pub(crate) lock: SessionLock,
    pub(crate) change: SessionChange,
}

impl Transaction for ChangeSession {
    type Output = (SessionLock, Woken);

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Self::Output> {
        let Self { line, lock, .. } = self;
        let session = lock.session_id.as_str();
        let mut fragment = Fragment::load(tx, &self.place, &self.shared).await?;
        fragment.held_session(tx, *line, lock).await?;
        let mut after = lock.clone();
        match &self.change {
            SessionChange::Renew => {
                let lasts_ms = fragment.description(line.owner)?.lock_duration_ms;
                after.until_ms = tx.now_ms().saturating_add(lasts_ms);
                fragment.session_mut(tx, *line, session).await?.until_ms = after.until_ms;
                fragment.time_session(tx, *line, session, after.until_ms, lock.lock).await?;
            }
            SessionChange::Release => fragment.unlock_session(tx, *line, session).await?,
            SessionChange::SetState(state) => {
                if state.as_ref().is_some_and(|state| state.len() > SESSION_STATE_BYTES_MAX) {
                    let most = SESSION_STATE_BYTES_MAX;
                    let message = format!("the state of a session has at most {most} bytes");
                    return Err(Error::too_large(BusReason::MessageTooLarge, message));
                }
                let key = self.place.session_state(*line, session);
                match state {
                    Some(state) => tx.put(&key, state.clone()).await?,
                    None => _ = tx.delete(&key).await?,
                }
                let now = tx.now_ms();
                let row = fragment.session_mut(tx, *line, session).await?;
                (row.has_state, row.state_ms) = (state.is_some(), now);
            }
        }
        Ok((after, fragment.save(tx)?))
    }
}

impl Bus {
    /// Locks a session, or the next one that has messages. None: there is no such one now; [`Bus::watcher`] tells when to
    /// ask again. A named session that another receiver holds is refused with `SessionCannotBeLocked`.
    pub async fn accept_session(
        &self,
        from: &Endpoint,
        session_id: Option<&str>,
    ) -> Result<Option<SessionLock>> {
        from.check_receives()?;
        if session_id.is_some_and(|id| id.chars().count() > SESSION_ID_CHARS_MAX) {
            let message = "a session id is longer than 128 characters";
            return Err(Error::invalid(BusReason::BadProperty, message));
        }
        let fragments = u64::from(from.fragments());
        let (first, count) = match session_id {
            Some(id) => (from.fragment_of(id).into(), 1),
            None => (self.shared.turn(), fragments),
        };
        let mut failed = None;
        for nth in 0..count {
            let place = from.place((first.wrapping_add(nth) % fragments) as u16)?;
            let accept = Accept {
                shared: self.shared.clone(),
                place: place.clone(),
                line: from.0.line,
                session: session_id.map(str::to_owned),
            };
            match self.engine.write(place.container, &place.route, accept).await {
                Ok(accepted) => {
                    self.shared.fire(place.container, from.0.entity, accepted.woken);
                    if accepted.lock.is_some() {
                        return Ok(accepted.lock);
                    }
                }
                // The next session may be in a fragment that is in use.
                Err(error) if matches!(error.kind(), Kind::Unavailable { .. }) => {
                    failed = Some(error);
                }
                Err(error) => return Err(gone(error)),
            }
        }
        failed.map_or(Ok(None), Err)
    }

    async fn change_session(
        &self,
        from: &Endpoint,
        lock: &SessionLock,
        change: SessionChange,
    ) -> Result<SessionLock> {
        let place = from.place(lock.fragment)?;
        let change = ChangeSession {
            shared: self.shared.clone(),
            place: place.clone(),
            line: from.0.line,
            lock: lock.clone(),
            change,
        };
        let changed = self.engine.write(place.container, &place.route, change).await;
        let (after, woken) = changed.map_err(gone)?;
        self.shared.fire(place.container, from.0.entity, woken);
        Ok(after)
    }

    pub async fn renew_session(&self, from: &Endpoint, lock: &SessionLock) -> Result<SessionLock> {
        self.change_session(from, lock, SessionChange::Renew).await
    }

    /// Gives a session back, with the messages that were received and not settled. A lock that is lost is fine.
    pub async fn release_session(&self, from: &Endpoint, lock: &SessionLock) -> Result<()> {
        match self.change_session(from, lock, SessionChange::Release).await {
            Err(error) if error.is(BusReason::SessionLockLost) => Ok(()),
            done => done.map(|_| ()),
        }
    }

    pub async fn session_state(
        &self,
        from: &Endpoint,
        lock: &SessionLock,
    ) -> Result<Option<Bytes>> {
        let place = from.place(lock.fragment)?;
        let line = from.0.line;
        let view = self.engine.read(place.container, &place.route, 1).await.map_err(gone)?;
        let row: Option<SessionRow> =
            place.get(&view, &place.session(line, &lock.session_id)).await?;
        let now = self.engine.env().clock.now_ms();
        if !row.is_some_and(|row| row.lock == lock.lock && row.is_locked(now)) {
            return Err(session_lost());
        }
        let state = view.get(&place.session_state(line, &lock.session_id)).await?;
        Ok(state.map(|item| item.payload))
    }

    pub async fn set_session_state(
        &self,
        from: &Endpoint,
        lock: &SessionLock,
        state: Option<Bytes>,
    ) -> Result<()> {
        self.change_session(from, lock, SessionChange::SetState(state)).await.map(|_| ())
    }

    /// Ids of sessions with messages, or with a state that was set since a time.
    pub async fn sessions(
        &self,
        from: &Endpoint,
        updated_since_ms: Option<u64>,
        skip: usize,
        most: usize,
    ) -> Result<Vec<String>> {
        let wanted = skip.saturating_add(most.min(RECEIVE_MESSAGES_MAX)).min(100_000);
        let mut found = Vec::new();
        for place in from.places()? {
            let view = self.engine.read(place.container, &place.route, 1).await.map_err(gone)?;
            let rest = wanted.saturating_sub(found.len());
            if rest == 0 {
                break;
            }
            let line = from.0.line;
            found.extend(peek::sessions(&view, &place, line, updated_since_ms, rest).await?);
        }
        Ok(found.into_iter().skip(skip).collect())
    }
}
