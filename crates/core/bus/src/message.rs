//! Messages: what is put into an entity, and what comes out of it.

use std::fmt;

use bytes::Bytes;

use crate::filter::Value;

/// A message to send. Its body is kept as it is, byte by byte.
#[derive(Clone, Debug, Default)]
pub struct NewMessage {
    /// Needed where duplicates are detected.
    pub message_id: Option<String>,
    pub session_id: Option<String>,
    pub partition_key: Option<String>,
    /// From now until it has expired; what the entity says if none, and never longer than that.
    pub lives_ms: Option<u64>,
    /// When it is to be put into the entity, in milliseconds since the Unix epoch; at once if none or past.
    pub scheduled_ms: Option<u64>,
    /// Whatever the front wants back beside the body: header and annotations. Not looked at.
    pub annotations: Bytes,
    /// The bare message. [`crate::ReadMessage`] reads from it what filters ask for.
    pub body: Bytes,
}

impl NewMessage {
    /// A message of nothing but a body.
    pub fn new(body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }
}

/// A property of a message that filters can ask for and actions can change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PropertyName {
    /// One of the service's own, in its spelling, such as `Label`.
    System(SystemProperty),
    /// One of the application's.
    User(String),
}

/// The service's own properties that filters and actions can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SystemProperty {
    ContentType,
    CorrelationId,
    Label,
    MessageId,
    ReplyTo,
    ReplyToSessionId,
    SessionId,
    To,
    PartitionKey,
}

impl SystemProperty {
    pub const ALL: [Self; 9] = [
        Self::ContentType,
        Self::CorrelationId,
        Self::Label,
        Self::MessageId,
        Self::ReplyTo,
        Self::ReplyToSessionId,
        Self::SessionId,
        Self::To,
        Self::PartitionKey,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::ContentType => "ContentType",
            Self::CorrelationId => "CorrelationId",
            Self::Label => "Label",
            Self::MessageId => "MessageId",
            Self::ReplyTo => "ReplyTo",
            Self::ReplyToSessionId => "ReplyToSessionId",
            Self::SessionId => "SessionId",
            Self::To => "To",
            Self::PartitionKey => "PartitionKey",
        }
    }

    /// By its name in any case. `Subject` is a newer word for `Label`.
    pub fn parse(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("Subject") {
            return Some(Self::Label);
        }
        Self::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(name))
    }
}

/// A property that differs from what the body says: from now on it has this value, or is not there.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    pub name: PropertyName,
    pub value: Option<Value>,
}

/// The name of an application property that a dead letter has, and so on.
pub const DEAD_LETTER_REASON: &str = "DeadLetterReason";
pub const DEAD_LETTER_DESCRIPTION: &str = "DeadLetterErrorDescription";

/// The right to settle a message: which one, and the write that gave the right.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockToken {
    pub(crate) sequence_number: u64,
    pub(crate) lock: u64,
}

impl LockToken {
    /// The token as 16 bytes, the order in which AMQP writes a UUID.
    pub fn to_bytes(self) -> [u8; 16] {
        let number = u128::from(self.sequence_number) << 64 | u128::from(self.lock);
        number.to_be_bytes()
    }

    /// Any bytes are safe: a token that was never given out is a lock that is lost.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let number = u128::from_be_bytes(bytes);
        Self { sequence_number: (number >> 64) as u64, lock: number as u64 }
    }

    pub fn sequence_number(self) -> u64 {
        self.sequence_number
    }
}

impl fmt::Debug for LockToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{:016x}", self.sequence_number, self.lock)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageState {
    Active,
    Deferred,
    Scheduled,
}

/// A message as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The fragment in the highest 16 bits, then a number that grows within it.
    pub sequence_number: u64,
    /// Its number in the entity that it was first sent to; the same if it was not forwarded.
    pub enqueued_sequence_number: u64,
    pub enqueued_ms: u64,
    /// From when on it has expired; never if none.
    pub expires_ms: Option<u64>,
    /// When it is due, as long as it is scheduled.
    pub scheduled_ms: Option<u64>,
    pub state: MessageState,
    /// How often it was delivered before.
    pub delivery_count: u32,
    pub message_id: Option<String>,
    pub session_id: Option<String>,
    pub partition_key: Option<String>,
    /// Where it became a dead letter, if it is one.
    pub dead_letter_source: Option<String>,
    /// What actions of rules and settlements changed.
    pub overrides: Vec<Override>,
    pub annotations: Bytes,
    pub body: Bytes,
}

impl Message {
    /// The fragment that it is in.
    pub fn fragment(&self) -> u16 {
        fragment_of(self.sequence_number)
    }
}

/// The bits of a sequence number below the fragment.
pub const SEQUENCE_BITS: u32 = 48;

pub fn fragment_of(sequence_number: u64) -> u16 {
    (sequence_number >> SEQUENCE_BITS) as u16
}

/// A message that was received under a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    pub token: LockToken,
    pub until_ms: u64,
}

/// A message that was received. Without a lock it is gone from the entity.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    pub message: Message,
    pub lock: Option<Lock>,
}

/// What becomes of a message that a receiver holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Complete,
    /// Others can receive it at once. This delivery counts.
    Abandon {
        changes: Vec<Override>,
    },
    /// Others can receive it at once. This delivery does not count.
    Release,
    /// From now on it is received by its sequence number only.
    Defer {
        changes: Vec<Override>,
    },
    DeadLetter {
        reason: Option<String>,
        description: Option<String>,
        changes: Vec<Override>,
    },
}

/// One message to settle.
#[derive(Clone, Debug, PartialEq)]
pub struct Settlement {
    pub token: LockToken,
    pub outcome: Outcome,
}
