//! Where a message goes: into its queue, or to the subscriptions whose rules it passes, changed by their actions.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use lazuli_engine::{Result, Tx};

use crate::ReadMessage;
use crate::config::SubscriptionConfig;
use crate::description::EntityKind;
use crate::filter::action::Overridden;
use crate::filter::{Properties, Value};
use crate::fragment::Fragment;
use crate::message::{Override, PropertyName, SystemProperty};
use crate::rows::{Line, Part, Stored, Transfer};
use crate::send::{after, shorter};

impl Fragment {
    /// Puts a message where it belongs: into the queue, or to the subscriptions whose rules it passes. Its body is placed
    /// already and becomes theirs.
    pub(crate) async fn publish(
        &mut self,
        tx: &mut Tx<'_>,
        mut stored: Stored,
        body: Option<&Bytes>,
        seed: u64,
    ) -> Result<()> {
        let config = self.config.clone();
        stored.enqueued_ms = tx.now_ms();
        stored.scheduled_ms = None;
        if config.entity.kind == EntityKind::Queue {
            stored.expires_ms = after(stored.enqueued_ms, stored.lives_ms);
            let placed = stored.body.clone();
            self.deposit(tx, 0, stored).await?;
            return self.share_body(tx, &placed, 1).await;
        }
        // The topic counts a message as one, whoever gets it.
        let number = self.next_number();
        if stored.origin == 0 {
            stored.origin = number;
        }
        let asks = |it: &SubscriptionConfig| {
            it.rules.iter().any(|rule| rule.filter.asks() || rule.action.is_some())
        };
        let body = match body {
            Some(body) => body.clone(),
            None if config.subscriptions.iter().any(asks) => self.read_body(tx, &stored).await?,
            None => Bytes::new(),
        };
        let read = Reading {
            reader: &*self.shared.clone().reader,
            body: &body,
            partition_key: stored.partition_key.as_deref(),
            session_id: stored.session_id.as_deref(),
            seed,
            drawn: AtomicU64::new(0),
            user: OnceLock::new(),
        };
        let mut owners = 0;
        for subscription in &config.subscriptions {
            for copy in passed(subscription, &read, &stored) {
                owners += 1;
                self.hand_out(tx, subscription, copy).await?;
            }
        }
        self.share_body(tx, &stored.body, owners).await
    }

    /// Gives a subscription its copy of a message.
    async fn hand_out(
        &mut self,
        tx: &mut Tx<'_>,
        subscription: &SubscriptionConfig,
        copy: Passed,
    ) -> Result<()> {
        let owner = subscription.number;
        let mut stored = copy.stored;
        stored.lives_ms = shorter(stored.lives_ms, subscription.description.default_ttl_ms);
        stored.expires_ms = after(stored.enqueued_ms, stored.lives_ms);
        let line = Line::new(owner, Part::Main);
        if let Some(error) = copy.error {
            let reason = Some("FilterEvaluationException");
            return self.bury(tx, line, stored, reason, Some(&error)).await;
        }
        let lacks_session = stored.session_id.is_none();
        if subscription.description.requires_session && lacks_session {
            let reason = Some("Session id is null.");
            let why = Some("The subscription has sessions, and the message has none.");
            return self.bury(tx, line, stored, reason, why).await;
        }
        self.deposit(tx, owner, stored).await
    }

    /// Puts a message into the main line of its owner, or on its way to where the owner forwards it.
    async fn deposit(&mut self, tx: &mut Tx<'_>, owner: u32, mut stored: Stored) -> Result<()> {
        let part = match self.description(owner)?.forward_to {
            Some(_) => {
                stored.transfer = Transfer::Forward;
                Part::Transfer
            }
            None => Part::Main,
        };
        self.append(tx, Line::new(owner, part), stored).await.map(|_| ())
    }
}

/// A message that passed the rules of a subscription, or the error of a rule that is to be a dead letter.
struct Passed {
    stored: Stored,
    error: Option<String>,
}

/// The copies of a message that a subscription gets: one if it passes a rule without an action, and one for each rule
/// with an action that it passes.
fn passed(subscription: &SubscriptionConfig, read: &Reading<'_>, stored: &Stored) -> Vec<Passed> {
    let mut copies = Vec::new();
    let mut is_plain = false;
    let mut failed = None;
    let seen = Overridden { message: read, overrides: &stored.overrides };
    for rule in &subscription.rules {
        let outcome = rule.filter.matches(&seen).and_then(|matches| match &rule.action {
            Some(action) if matches => action.run(&seen, &stored.overrides).map(Some),
            _ => {
                is_plain |= matches;
                Ok(None)
            }
        });
        match outcome {
            Ok(Some(overrides)) => {
                copies.push(Passed { stored: changed(stored, overrides), error: None })
            }
            Ok(None) => {}
            Err(error) => failed = Some(error.message().to_owned()),
        }
    }
    if is_plain {
        copies.insert(0, Passed { stored: stored.clone(), error: None });
    }
    if failed.is_some() && copies.is_empty() && subscription.description.dead_letter_on_filter_error
    {
        copies.push(Passed { stored: stored.clone(), error: failed });
    }
    copies
}

/// A message after an action.
fn changed(stored: &Stored, overrides: Vec<Override>) -> Stored {
    let mut stored = stored.clone();
    for one in &overrides {
        let text = match &one.value {
            Some(Value::Text(text)) => Some(text.clone()),
            _ => None,
        };
        match one.name {
            PropertyName::System(SystemProperty::SessionId) => stored.session_id = text,
            PropertyName::System(SystemProperty::MessageId) => stored.message_id = text,
            _ => {}
        }
    }
    stored.overrides = overrides;
    stored
}

/// A message as filters see it. Its properties are read when the first filter asks for them.
struct Reading<'a> {
    reader: &'a dyn ReadMessage,
    body: &'a [u8],
    partition_key: Option<&'a str>,
    session_id: Option<&'a str>,
    seed: u64,
    drawn: AtomicU64,
    user: OnceLock<Result<Vec<(String, Value)>>>,
}

impl Properties for Reading<'_> {
    fn get(&self, name: &PropertyName) -> Result<Option<Value>> {
        match name {
            PropertyName::System(SystemProperty::PartitionKey) => {
                Ok(self.partition_key.map(Value::text))
            }
            PropertyName::System(SystemProperty::SessionId) => Ok(self.session_id.map(Value::text)),
            PropertyName::System(property) => {
                Ok(self.reader.system(self.body, *property).map(Value::Text))
            }
            PropertyName::User(name) => {
                let user = self.user.get_or_init(|| self.reader.user(self.body));
                let user = user.as_ref().map_err(Clone::clone)?;
                let found = user.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
                Ok(found.map(|(_, value)| value.clone()))
            }
        }
    }

    fn new_id(&self) -> [u8; 16] {
        let nth = self.drawn.fetch_add(1, Ordering::Relaxed);
        let high = lazuli_env::mix(self.seed.wrapping_add(nth.wrapping_mul(2)));
        let low = lazuli_env::mix(high ^ nth);
        let number = u128::from(high) << 64 | u128::from(low);
        // Version 4, as ids that are drawn have.
        let number = number & !(0xf << 76) & !(0b11 << 62) | 4 << 76 | 0b10 << 62;
        number.to_be_bytes()
    }
}
