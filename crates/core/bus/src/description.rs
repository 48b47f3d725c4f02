//! What is kept about queues, topics, subscriptions and rules: the properties that their owners choose.

use lazuli_engine::{Error, Lsn, Result};

use crate::BusReason;
use crate::filter::{Action, Filter};
use crate::limits::{FRAGMENTS_MAX, MESSAGE_BYTES_MAX};
use crate::record::{choice, fields};

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;
/// The longest lock of a message or session.
pub const LOCK_DURATION_MS_MAX: u64 = 5 * MINUTE_MS;
/// The longest window of duplicate detection.
pub const DUPLICATE_WINDOW_MS_MAX: u64 = 7 * DAY_MS;
/// The shortest one.
pub const DUPLICATE_WINDOW_MS_MIN: u64 = 20 * SECOND_MS;
/// The shortest time after which an unused entity may delete itself.
pub const AUTO_DELETE_MS_MIN: u64 = 5 * MINUTE_MS;
/// The longest text that an owner keeps with an entity, in characters.
pub const USER_METADATA_CHARS_MAX: usize = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntityKind {
    Queue,
    Topic,
}

/// What an entity may be used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    #[default]
    Active,
    Disabled,
    SendDisabled,
    ReceiveDisabled,
}

impl Status {
    pub fn may_send(self) -> bool {
        matches!(self, Self::Active | Self::ReceiveDisabled)
    }

    pub fn may_receive(self) -> bool {
        matches!(self, Self::Active | Self::SendDisabled)
    }
}

/// A key with which clients may use one entity. The bus keeps it; fronts check signatures with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationRule {
    pub name: String,
    /// `Send`, `Listen`, `Manage`.
    pub rights: Vec<String>,
    pub primary_key: String,
    pub secondary_key: String,
    pub created_ms: u64,
    pub modified_ms: u64,
}

/// The properties of queues, topics and subscriptions. Those that a kind does not have keep their defaults there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    pub lock_duration_ms: u64,
    pub max_size_megabytes: u64,
    pub requires_duplicate_detection: bool,
    pub requires_session: bool,
    /// How long messages live that do not say so themselves; for ever if none.
    pub default_ttl_ms: Option<u64>,
    pub dead_letter_on_expiration: bool,
    /// Of subscriptions.
    pub dead_letter_on_filter_error: bool,
    pub duplicate_window_ms: u64,
    pub max_delivery_count: u32,
    pub batched_operations: bool,
    pub status: Status,
    /// After so long without use the entity is deleted; never if none.
    pub auto_delete_ms: Option<u64>,
    /// The fragments of the entity. One that asks for partitioning without a number gets [`Description::PARTITIONED`].
    pub fragments: u32,
    pub express: bool,
    /// Of topics: kept and shown, without a meaning here.
    pub filters_before_publishing: bool,
    pub support_ordering: bool,
    pub anonymous: bool,
    pub forward_to: Option<String>,
    pub forward_dead_letters_to: Option<String>,
    pub user_metadata: Option<String>,
    pub max_message_kilobytes: Option<u64>,
    pub authorization_rules: Vec<AuthorizationRule>,
}

impl Description {
    /// The fragments of a partitioned entity whose owner names no number.
    pub const PARTITIONED: u32 = 16;

    pub fn queue() -> Self {
        Self {
            lock_duration_ms: MINUTE_MS,
            max_size_megabytes: 1_024,
            requires_duplicate_detection: false,
            requires_session: false,
            default_ttl_ms: None,
            dead_letter_on_expiration: false,
            dead_letter_on_filter_error: true,
            duplicate_window_ms: 10 * MINUTE_MS,
            max_delivery_count: 10,
            batched_operations: true,
            status: Status::Active,
            auto_delete_ms: None,
            fragments: 1,
            express: false,
            filters_before_publishing: false,
            support_ordering: true,
            anonymous: false,
            forward_to: None,
            forward_dead_letters_to: None,
            user_metadata: None,
            max_message_kilobytes: None,
            authorization_rules: Vec::new(),
        }
    }

    pub fn topic() -> Self {
        Self::queue()
    }

    pub fn subscription() -> Self {
        Self::queue()
    }

    /// The longest message that the entity takes.
    pub fn message_bytes_max(&self) -> usize {
        let kilobytes = self.max_message_kilobytes.and_then(|most| usize::try_from(most).ok());
        kilobytes
            .map_or(MESSAGE_BYTES_MAX, |most| most.saturating_mul(1_024))
            .min(MESSAGE_BYTES_MAX)
    }

    /// Refuses values that are out of range.
    pub fn check(&self) -> Result<()> {
        let within = |name: &str, value: u64, least: u64, most: u64| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            let message = format!("{name} is {value}, and may be from {least} to {most}");
            Err(Error::invalid(BusReason::BadProperty, message))
        };
        within("the lock duration in ms", self.lock_duration_ms, SECOND_MS, LOCK_DURATION_MS_MAX)?;
        within("the maximal delivery count", self.max_delivery_count.into(), 1, 2_000)?;
        within("the number of fragments", self.fragments.into(), 1, FRAGMENTS_MAX.into())?;
        within("the maximal size in megabytes", self.max_size_megabytes, 1, 5 * 1_024 * 1_024)?;
        within(
            "the window of duplicate detection in ms",
            self.duplicate_window_ms,
            DUPLICATE_WINDOW_MS_MIN,
            DUPLICATE_WINDOW_MS_MAX,
        )?;
        if let Some(lives_ms) = self.default_ttl_ms {
            within("the time to live in ms", lives_ms, SECOND_MS, u64::MAX)?;
        }
        if let Some(idle_ms) = self.auto_delete_ms {
            within("the time until deletion in ms", idle_ms, AUTO_DELETE_MS_MIN, u64::MAX)?;
        }
        if let Some(kilobytes) = self.max_message_kilobytes {
            within("the maximal message in kilobytes", kilobytes, 1, 102_400)?;
        }
        let metadata = self.user_metadata.as_ref().map_or(0, |text| text.chars().count());
        within("the length of the metadata", metadata as u64, 0, USER_METADATA_CHARS_MAX as u64)
    }

    /// Refuses changes of what is chosen once, when an entity is created.
    pub(crate) fn check_change(&self, new: &Self) -> Result<()> {
        let is_same = self.fragments == new.fragments
            && self.requires_duplicate_detection == new.requires_duplicate_detection
            && self.requires_session == new.requires_session;
        if is_same {
            return Ok(());
        }
        let message = "partitioning, sessions and duplicate detection are chosen at creation only";
        Err(Error::invalid(BusReason::BadProperty, message))
    }
}

/// A queue or topic as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    pub kind: EntityKind,
    /// As its creator wrote it. Names are told apart without regard to case.
    pub name: String,
    pub description: Description,
    pub created_ms: u64,
    pub updated_ms: u64,
    pub accessed_ms: u64,
    pub version: Lsn,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Subscription {
    pub topic: String,
    pub name: String,
    pub description: Description,
    pub created_ms: u64,
    pub updated_ms: u64,
    pub accessed_ms: u64,
    pub version: Lsn,
}

/// Which messages of its topic a subscription gets, and what is changed of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub name: String,
    pub filter: Filter,
    pub action: Option<Action>,
    pub created_ms: u64,
}

/// How many messages an entity or subscription holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// Waiting, locked or deferred.
    pub active: u64,
    pub dead_letter: u64,
    pub scheduled: u64,
    /// On their way to another entity.
    pub transfer: u64,
    pub transfer_dead_letter: u64,
    /// What all messages take up.
    pub bytes: u64,
}

choice!(EntityKind { Queue = 1, Topic = 2 });
choice!(Status { Active = 1, Disabled = 2, SendDisabled = 3, ReceiveDisabled = 4 });
fields!(AuthorizationRule { name, rights, primary_key, secondary_key, created_ms, modified_ms });
fields!(Description {
    lock_duration_ms,
    max_size_megabytes,
    requires_duplicate_detection,
    requires_session,
    default_ttl_ms,
    dead_letter_on_expiration,
    dead_letter_on_filter_error,
    duplicate_window_ms,
    max_delivery_count,
    batched_operations,
    status,
    auto_delete_ms,
    fragments,
    express,
    filters_before_publishing,
    support_ordering,
    anonymous,
    forward_to,
    forward_dead_letters_to,
    user_metadata,
    max_message_kilobytes,
    authorization_rules,
});
