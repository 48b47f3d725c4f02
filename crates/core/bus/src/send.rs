//! Sending: what may be sent, duplicates, schedules, and messages that become dead letters.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{Error, Result, Transaction, Tx};
use lazuli_shardmap::record::{decode, encode};

use crate::BusReason;
use crate::description::{Description, EntityKind};
use crate::filter::{Value, action};
use crate::fragment::{Found, Fragment, Place, Woken};
use crate::limits::{MESSAGE_ID_CHARS_MAX, SESSION_ID_CHARS_MAX};
use crate::message::{DEAD_LETTER_DESCRIPTION, DEAD_LETTER_REASON, NewMessage, PropertyName};
use crate::rows::{Line, Part, Stored, Transfer};
use crate::shared::Shared;
use crate::timers::{Timer, TimerKind};

/// The longest reason and description of a dead letter, in characters.
const REASON_CHARS_MAX: usize = 4_096;

/// Refuses a message that no entity takes.
pub(crate) fn check_message(message: &NewMessage) -> Result<()> {
    let short = |text: &Option<String>, most: usize| {
        text.as_ref().is_none_or(|text| text.chars().count() <= most)
    };
    let is_fine = short(&message.session_id, SESSION_ID_CHARS_MAX)
        && short(&message.partition_key, SESSION_ID_CHARS_MAX)
        && short(&message.message_id, MESSAGE_ID_CHARS_MAX);
    if !is_fine {
        let message = "a message id, session id or partition key is longer than 128 characters";
        return Err(Error::invalid(BusReason::BadProperty, message));
    }
    if let (Some(session), Some(key)) = (&message.session_id, &message.partition_key)
        && session != key
    {
        let message = "session id and partition key are both set and differ";
        return Err(Error::invalid(BusReason::PartitionKeyMismatch, message));
    }
    Ok(())
}

pub(crate) struct Send {
    pub(crate) shared: Arc<Shared>,
    pub(crate) place: Place,
    pub(crate) messages: Vec<NewMessage>,
    /// Drawn by the sender, so that new ids of a transaction that is run again are the same.
    pub(crate) seed: u64,
}

impl Transaction for Send {
    type Output = (Vec<u64>, Woken);

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Self::Output> {
        let mut fragment = Fragment::load(tx, &self.place, &self.shared).await?;
        let mut numbers = Vec::with_capacity(self.messages.len());
        for (nth, message) in self.messages.iter().enumerate() {
            let seed = self.seed.wrapping_add(nth as u64);
            numbers.push(fragment.accept(tx, message, seed).await?);
        }
        Ok((numbers, fragment.save(tx)?))
    }
}

/// The time from now at which something happens, with an end that is not passed.
pub(crate) fn after(now_ms: u64, lives_ms: Option<u64>) -> Option<u64> {
    lives_ms.map(|lives_ms| now_ms.saturating_add(lives_ms))
}

/// The shorter of two times to live.
pub(crate) fn shorter(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl Fragment {
    /// Takes a message from a sender and answers its number.
    pub(crate) async fn accept(
        &mut self,
        tx: &mut Tx<'_>,
        message: &NewMessage,
        seed: u64,
    ) -> Result<u64> {
        let config = self.config.clone();
        let description = &config.entity.description;
        self.check_send(description, message)?;
        if let Some(number) = self.duplicate(tx, description, message).await? {
            return Ok(number);
        }
        let now = tx.now_ms();
        let mut stored = Stored {
            enqueued_ms: now,
            lives_ms: shorter(message.lives_ms, description.default_ttl_ms),
            expires_ms: None,
            scheduled_ms: message.scheduled_ms.filter(|due_ms| *due_ms > now),
            origin: 0,
            hops: 0,
            transfer: Transfer::None,
            message_id: message.message_id.clone(),
            session_id: message.session_id.clone(),
            partition_key: message.partition_key.clone(),
            dead_letter_source: None,
            overrides: Vec::new(),
            annotations: message.annotations.clone(),
            body: self.place_body(tx, &message.body)?,
        };
        let number = match stored.scheduled_ms {
            Some(due_ms) => {
                let line = Line::new(0, Part::Scheduled);
                let number = self.append(tx, line, stored).await?;
                let timer = Timer { due_ms, kind: TimerKind::Due, line, number };
                timer.set(self, tx, Bytes::new()).await?;
                number
            }
            None => {
                let number = self.state().last + 1;
                stored.origin = 0;
                self.publish(tx, stored, Some(&message.body), seed).await?;
                u64::from(self.place.fragment) << crate::SEQUENCE_BITS | number
            }
        };
        self.remember(tx, description, message, number).await?;
        Ok(number)
    }

    fn check_send(&self, description: &Description, message: &NewMessage) -> Result<()> {
        if !description.status.may_send() {
            let message = "the entity does not take messages";
            return Err(Error::precondition(BusReason::EntityDisabled, message));
        }
        if self.config.entity.kind == EntityKind::Queue
            && description.requires_session
            && message.session_id.is_none()
        {
            let message = "a message of an entity with sessions needs a session id";
            return Err(Error::invalid(BusReason::SessionRequired, message));
        }
        let bytes = message.body.len() + message.annotations.len();
        if bytes > description.message_bytes_max() {
            let most = description.message_bytes_max();
            let message = format!("a message of {bytes} bytes; {most} are allowed");
            return Err(Error::too_large(BusReason::MessageTooLarge, message));
        }
        self.check_quota(description, bytes as u64)
    }

    pub(crate) fn check_quota(&self, description: &Description, bytes: u64) -> Result<()> {
        let most = description.max_size_megabytes.saturating_mul(1024 * 1024);
        if self.state().bytes.saturating_add(bytes) > most {
            let message = format!("the entity holds as much as it may, {most} bytes");
            return Err(Error::precondition(BusReason::QuotaExceeded, message));
        }
        Ok(())
    }

    /// The number of a message of the same id that was sent within the window.
    async fn duplicate(
        &self,
        tx: &Tx<'_>,
        description: &Description,
        message: &NewMessage,
    ) -> Result<Option<u64>> {
        match &message.message_id {
            Some(id) if description.requires_duplicate_detection => {
                let seen = tx.get(&self.place.seen(id)).await?;
                seen.map(|item| decode(item.payload)).transpose()
            }
            _ => Ok(None),
        }
    }

    async fn remember(
        &self,
        tx: &mut Tx<'_>,
        description: &Description,
        message: &NewMessage,
        number: u64,
    ) -> Result<()> {
        match &message.message_id {
            Some(id) if description.requires_duplicate_detection => {
                let until_ms = tx.now_ms().saturating_add(description.duplicate_window_ms);
                tx.put_until(&self.place.seen(id), encode(&number), Some(until_ms)).await
            }
            _ => Ok(()),
        }
    }

    /// Makes a message that was taken out of its line a dead letter.
    pub(crate) async fn bury(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        mut stored: Stored,
        reason: Option<&str>,
        description: Option<&str>,
    ) -> Result<()> {
        let reasons = [(DEAD_LETTER_REASON, reason), (DEAD_LETTER_DESCRIPTION, description)];
        for (name, text) in reasons {
            if let Some(text) = text {
                let text: String = text.chars().take(REASON_CHARS_MAX).collect();
                let name = PropertyName::User(name.to_owned());
                action::set(&mut stored.overrides, name, Some(Value::Text(text)));
            }
        }
        stored.dead_letter_source = Some(self.config.address(line.owner));
        stored.expires_ms = None;
        let forwards = self.description(line.owner)?.forward_dead_letters_to.is_some();
        let part = match (line.part, forwards) {
            (Part::Transfer, _) => Part::TransferDeadLetter,
            (_, true) => {
                stored.transfer = Transfer::DeadLetter;
                Part::Transfer
            }
            (_, false) => Part::DeadLetter,
        };
        self.append(tx, Line::new(line.owner, part), stored).await.map(|_| ())
    }

    /// A scheduled message is due.
    pub(crate) async fn activate(
        &mut self,
        tx: &mut Tx<'_>,
        line: Line,
        number: u64,
    ) -> Result<()> {
        let Some(found) = self.find(tx, line, number).await? else { return Ok(()) };
        self.take_out(tx, line, number, &found).await?;
        let Found { mut stored, .. } = found;
        stored.origin = 0;
        self.publish(tx, stored, None, number).await
    }

    /// Cancels a scheduled message.
    pub(crate) async fn cancel(&mut self, tx: &mut Tx<'_>, number: u64) -> Result<()> {
        let line = Line::new(0, Part::Scheduled);
        let missing = || {
            let message = format!("there is no scheduled message {number}");
            Error::not_found(BusReason::MessageNotFound, message)
        };
        let found = self.find(tx, line, number).await?.ok_or_else(missing)?;
        if let Some(due_ms) = found.stored.scheduled_ms {
            let timer = Timer { due_ms, kind: TimerKind::Due, line, number };
            tx.delete(&timer.key(&self.place)).await?;
        }
        self.end(tx, line, number, &found).await
    }
}
