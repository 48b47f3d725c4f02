//! How receivers settle what they hold, renew their locks, and what becomes of locks that end.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{Error, Item, Result, Transaction, Tx};
use lazuli_shardmap::record::encode;

use crate::filter::action;
use crate::fragment::{Found, Fragment, Place, Woken};
use crate::limits::OVERRIDES_MAX;
use crate::message::{LockToken, Outcome, Override, Settlement};
use crate::rows::{DeliveryRow, DeliveryState, Line};
use crate::session::SessionLock;
use crate::shared::Shared;
use crate::{BusReason, timers};

pub(crate) fn lock_lost() -> Error {
    let message = "the lock of the message was given out anew, has ended, or was never given out";
    Error::precondition(BusReason::MessageLockLost, message)
}

pub(crate) struct Settle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) place: Place,
    pub(crate) line: Line,
    pub(crate) session: Option<SessionLock>,
    pub(crate) settlements: Vec<Settlement>,
}

impl Transaction for Settle {
    type Output = (Vec<Result<()>>, Woken);

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Self::Output> {
        let mut fragment = Fragment::load(tx, &self.place, &self.shared).await?;
        let mut outcomes = Vec::with_capacity(self.settlements.len());
        for settlement in &self.settlements {
            let session = self.session.as_ref();
            outcomes.push(settle_one(&mut fragment, tx, self.line, session, settlement).await?);
        }
        Ok((outcomes, fragment.save(tx)?))
    }
}

/// Settles a message, or says why it cannot be. An error of the engine's ends the whole transaction.
pub(crate) async fn settle_one(
    fragment: &mut Fragment,
    tx: &mut Tx<'_>,
    line: Line,
    session: Option<&SessionLock>,
    settlement: &Settlement,
) -> Result<Result<()>> {
    let held = match fragment.held(tx, line, session, settlement.token).await? {
        Ok(held) => held,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if settlement.outcome.changes().len() > OVERRIDES_MAX {
        let message = format!("more than {OVERRIDES_MAX} properties are changed");
        return Ok(Err(Error::invalid(BusReason::BadProperty, message)));
    }
    fragment.settle(tx, line, settlement, held).await.map(Ok)
}

/// A message that a receiver holds.
pub(crate) struct Held {
    row: DeliveryRow,
    item: Item,
    found: Found,
}

impl Outcome {
    fn changes(&self) -> &[Override] {
        match self {
            Self::Complete | Self::Release => &[],
            Self::Abandon { changes }
            | Self::Defer { changes }
            | Self::DeadLetter { changes, .. } => changes,
        }
    }
}

impl Fragment {
    /// The message of a token, if the right to it still holds.
    async fn held(
        &mut self,
        tx: &Tx<'_>,
        line: Line,
        session: Option<&SessionLock>,
        token: LockToken,
    ) -> Result<Result<Held>> {
        let number = token.sequence_number;
        let Some((row, item)) = self.delivery(tx, line, number).await? else {
            return Ok(Err(lock_lost()));
        };
        if row.state != DeliveryState::Locked || row.lock != token.lock {
            return Ok(Err(lock_lost()));
        }
        let Some(found) = self.find(tx, line, number).await? else { return Ok(Err(lock_lost())) };
        if row.session == 0 {
            let is_good = row.until_ms > tx.now_ms();
            return Ok(if is_good { Ok(Held { row, item, found }) } else { Err(lock_lost()) });
        }
        let id = found.stored.session_id.clone().unwrap_or_default();
        let now = self.session(tx, line, &id).await?;
        let is_good = now.lock == row.session
            && now.is_locked(tx.now_ms())
            && session.is_none_or(|lock| lock.lock == row.session);
        Ok(if is_good { Ok(Held { row, item, found }) } else { Err(session_lost()) })
    }

    async fn settle(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        settlement: &Settlement,
        held: Held,
    ) -> Result<()> {
        let number = settlement.token.sequence_number;
        let Held { mut row, item, mut found } = held;
        if matches!(settlement.outcome, Outcome::Complete) {
            return self.end(tx, line, number, &found).await;
        }
        let changes = settlement.outcome.changes();
        for Override { name, value } in changes {
            action::set(&mut found.stored.overrides, name.clone(), value.clone());
        }
        if let Outcome::DeadLetter { reason, description, .. } = &settlement.outcome {
            self.take_out(tx, line, number, &found).await?;
            let (reason, description) = (reason.as_deref(), description.as_deref());
            return self.bury(tx, line, found.stored, reason, description).await;
        }
        if !changes.is_empty() {
            let key = self.place.message(line, number);
            let expires_ms = found.item.expires_ms;
            tx.replace(&key, Some(&found.item), encode(&found.stored), expires_ms)?;
        }
        match settlement.outcome {
            Outcome::Release => {
                row.count = row.count.saturating_sub(1);
                self.let_go(tx, line, number, row, &item).await
            }
            Outcome::Defer { .. } => {
                if self.has_sessions(line) && !row.deferred {
                    let session = found.stored.session_id.as_deref().unwrap_or_default();
                    self.leave_session(tx, line, session, number).await?;
                }
                let row = DeliveryRow { state: DeliveryState::Waiting, deferred: true, ..row };
                tx.replace(&self.place.delivery(line, number), Some(&item), encode(&row), None)
            }
            _ => self.let_go(tx, line, number, row, &item).await,
        }
    }

    /// Ends the lock of a message: it can be received again, or is dead because that has happened too often.
    pub(crate) async fn let_go(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        number: u64,
        row: DeliveryRow,
        item: &Item,
    ) -> Result<()> {
        let Some(found) = self.find(tx, line, number).await? else { return Ok(()) };
        let Some(description) = self.config.description(line.owner) else { return Ok(()) };
        let most = description.max_delivery_count;
        let is_main = line.part == crate::rows::Part::Main;
        if is_main && row.count >= most {
            return self.bury_often_delivered(tx, line, number, found, row.count).await;
        }
        let waiting = DeliveryRow { state: DeliveryState::Waiting, ..row };
        tx.replace(&self.place.delivery(line, number), Some(item), encode(&waiting), None)?;
        let now = tx.now_ms();
        if found.stored.expires_ms.is_some_and(|expires_ms| expires_ms <= now) && is_main {
            // It expired while it was held.
            self.take_out(tx, line, number, &found).await?;
            return self.expire(tx, line, found.stored).await;
        }
        if row.deferred {
            return Ok(());
        }
        if self.has_sessions(line) {
            let session = found.stored.session_id.as_deref().unwrap_or_default();
            let row = self.session_mut(tx, line, session).await?;
            row.head = row.head.min(number);
            return self.wake(tx, line).await;
        }
        self.give_back(tx, line, number).await
    }
}

impl Fragment {
    /// Enters a message among those that came back.
    pub(crate) async fn give_back(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        number: u64,
    ) -> Result<()> {
        tx.put(&self.place.returned(line, number), Bytes::new()).await?;
        let state = self.line_mut(tx, line).await?;
        state.returned_head = match state.returned {
            0 => number,
            _ => state.returned_head.min(number),
        };
        state.returned += 1;
        self.wake(tx, line).await
    }

    pub(crate) async fn unreturn(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        number: u64,
    ) -> Result<()> {
        if tx.delete(&self.place.returned(line, number)).await? {
            let state = self.line_mut(tx, line).await?;
            state.returned = state.returned.saturating_sub(1);
        }
        Ok(())
    }
}

pub(crate) fn session_lost() -> Error {
    let message = "the lock of the session was given out anew, has ended, or was never given out";
    Error::precondition(BusReason::SessionLockLost, message)
}

pub(crate) struct Renew {
    pub(crate) shared: Arc<Shared>,
    pub(crate) place: Place,
    pub(crate) line: Line,
    pub(crate) session: Option<SessionLock>,
    pub(crate) tokens: Vec<LockToken>,
}

impl Transaction for Renew {
    type Output = Vec<Result<u64>>;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Self::Output> {
        let mut fragment = Fragment::load(tx, &self.place, &self.shared).await?;
        let lasts_ms = fragment.description(self.line.owner)?.lock_duration_ms;
        let until_ms = tx.now_ms().saturating_add(lasts_ms);
        let (mut outcomes, mut numbers) = (Vec::new(), Vec::new());
        for token in &self.tokens {
            let number = token.sequence_number;
            let held = fragment.held(tx, self.line, self.session.as_ref(), *token).await?;
            outcomes.push(match held {
                Err(refusal) => Err(refusal),
                // Locks within a session last as long as the session's.
                Ok(held) if held.row.session != 0 => Ok(held.row.until_ms),
                Ok(held) => {
                    let row = DeliveryRow { until_ms, ..held.row };
                    let key = self.place.delivery(self.line, number);
                    tx.replace(&key, Some(&held.item), encode(&row), None)?;
                    numbers.push(number);
                    Ok(until_ms)
                }
            });
        }
        if !numbers.is_empty() {
            timers::set_locks(&mut fragment, tx, self.line, until_ms, &numbers).await?;
        }
        fragment.save(tx)?;
        Ok(outcomes)
    }
}

/// Cancels scheduled messages, all or none of one fragment.
pub(crate) struct Cancel {
    pub(crate) shared: Arc<Shared>,
    pub(crate) place: Place,
    pub(crate) numbers: Vec<u64>,
}

impl Transaction for Cancel {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let mut fragment = Fragment::load(tx, &self.place, &self.shared).await?;
        for number in &self.numbers {
            fragment.cancel(tx, *number).await?;
        }
        fragment.save(tx).map(|_| ())
    }
}
