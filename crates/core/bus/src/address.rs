//! Addresses of what messages are sent to and received from, as clients write them.

use std::fmt;

use lazuli_engine::{Error, Result};

use crate::BusReason;
use crate::limits::{ENTITY_NAME_CHARS_MAX, SUBSCRIPTION_NAME_CHARS_MAX};

/// Which of the queues of an entity is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SubQueue {
    #[default]
    Main,
    DeadLetter,
    TransferDeadLetter,
}

/// A queue, a topic, or a subscription of a topic, and which of its queues.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// The name of the queue or topic.
    pub entity: String,
    pub subscription: Option<String>,
    pub sub_queue: SubQueue,
}

impl Address {
    /// A queue or a topic.
    pub fn entity(name: impl Into<String>) -> Self {
        Self { entity: name.into(), subscription: None, sub_queue: SubQueue::Main }
    }

    pub fn subscription(topic: impl Into<String>, subscription: impl Into<String>) -> Self {
        let subscription = Some(subscription.into());
        Self { entity: topic.into(), subscription, sub_queue: SubQueue::Main }
    }

    #[must_use]
    pub fn dead_letter(self) -> Self {
        Self { sub_queue: SubQueue::DeadLetter, ..self }
    }

    #[must_use]
    pub fn transfer_dead_letter(self) -> Self {
        Self { sub_queue: SubQueue::TransferDeadLetter, ..self }
    }

    /// `queue`, `topic/Subscriptions/name`, each also with `/$DeadLetterQueue` or `/$Transfer/$DeadLetterQueue` behind it,
    /// in any case. Slashes at both ends do not count.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parts: Vec<&str> = text.trim_matches('/').split('/').collect();
        let is = |part: Option<&&str>, word: &str| {
            part.is_some_and(|part| part.eq_ignore_ascii_case(word))
        };
        let mut sub_queue = SubQueue::Main;
        if is(parts.last(), "$DeadLetterQueue") {
            parts.pop();
            sub_queue = SubQueue::DeadLetter;
            if is(parts.last(), "$Transfer") {
                parts.pop();
                sub_queue = SubQueue::TransferDeadLetter;
            }
        }
        let subscriptions = parts.len().checked_sub(2);
        let (entity, subscription) = match subscriptions {
            Some(at) if at > 0 && is(parts.get(at), "Subscriptions") => {
                (parts[..at].join("/"), parts.last().map(|name| (*name).to_owned()))
            }
            _ => (parts.join("/"), None),
        };
        check_entity_name(&entity)?;
        subscription.as_deref().map_or(Ok(()), check_subscription_name)?;
        Ok(Self { entity, subscription, sub_queue })
    }

    /// Without the sub-queue.
    pub fn owner(&self) -> Self {
        Self { sub_queue: SubQueue::Main, ..self.clone() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.entity)?;
        if let Some(subscription) = &self.subscription {
            write!(f, "/Subscriptions/{subscription}")?;
        }
        f.write_str(match self.sub_queue {
            SubQueue::Main => "",
            SubQueue::DeadLetter => "/$DeadLetterQueue",
            SubQueue::TransferDeadLetter => "/$Transfer/$DeadLetterQueue",
        })
    }
}

fn is_part(name: &str) -> bool {
    let is_fine = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '~');
    let ends = |c: char| c.is_alphanumeric() || c == '_';
    name.chars().all(is_fine) && name.starts_with(ends) && name.ends_with(ends)
}

/// Names of queues and topics: parts of letters, digits, `.`, `-`, `_` and `~` between slashes.
pub fn check_entity_name(name: &str) -> Result<()> {
    let is_short = name.chars().count() <= ENTITY_NAME_CHARS_MAX;
    if is_short && name.split('/').all(is_part) {
        return Ok(());
    }
    Err(bad_name(name))
}

/// Names of subscriptions and rules.
pub fn check_subscription_name(name: &str) -> Result<()> {
    let is_rule = name == crate::DEFAULT_RULE;
    if is_rule || name.chars().count() <= SUBSCRIPTION_NAME_CHARS_MAX && is_part(name) {
        return Ok(());
    }
    Err(bad_name(name))
}

fn bad_name(name: &str) -> Error {
    let name: String = name.chars().take(ENTITY_NAME_CHARS_MAX).collect();
    Error::invalid(BusReason::BadName, format!("'{name}' is no name of an entity"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_its_text_in_any_case() {
        for text in [
            "q",
            "a/b.c",
            "t/Subscriptions/s",
            "q/$DeadLetterQueue",
            "t/Subscriptions/s/$DeadLetterQueue",
            "q/$Transfer/$DeadLetterQueue",
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.to_string(), text);
            let shouted = Address::parse(&format!("/{}/", text.to_uppercase())).unwrap();
            assert_eq!(shouted.sub_queue, address.sub_queue);
            assert!(shouted.to_string().eq_ignore_ascii_case(text));
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in ["", "/", "a//b", "$cbs", "q/$management", "-a", "a "] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
        assert!(Address::parse(&"x".repeat(261)).is_err());
        assert!(Address::parse(&format!("t/subscriptions/{}", "x".repeat(51))).is_err());
        assert_eq!(Address::parse("Subscriptions/s").unwrap().subscription, None);
    }
}
