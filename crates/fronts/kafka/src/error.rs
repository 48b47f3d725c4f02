//! Errors as the protocol numbers them.

use lazuli_engine::{Error, Kind};
use lazuli_kafka_wire::Malformed;
use lazuli_log::LogReason;
use lazuli_net::Outcome;

/// An error code of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) i16, pub(crate) &'static str);

macro_rules! codes {
    ($($name:ident = $number:literal $text:literal,)*) => {
        impl Code {
            $(pub(crate) const $name: Self = Self($number, $text);)*
        }
    };
}

codes! {
    UNKNOWN_SERVER_ERROR = -1 "UNKNOWN_SERVER_ERROR",
    NONE = 0 "NONE",
    OFFSET_OUT_OF_RANGE = 1 "OFFSET_OUT_OF_RANGE",
    CORRUPT_MESSAGE = 2 "CORRUPT_MESSAGE",
    UNKNOWN_TOPIC_OR_PARTITION = 3 "UNKNOWN_TOPIC_OR_PARTITION",
    NOT_LEADER_OR_FOLLOWER = 6 "NOT_LEADER_OR_FOLLOWER",
    MESSAGE_TOO_LARGE = 10 "MESSAGE_TOO_LARGE",
    OFFSET_METADATA_TOO_LARGE = 12 "OFFSET_METADATA_TOO_LARGE",
    COORDINATOR_NOT_AVAILABLE = 15 "COORDINATOR_NOT_AVAILABLE",
    NOT_COORDINATOR = 16 "NOT_COORDINATOR",
    INVALID_TOPIC_EXCEPTION = 17 "INVALID_TOPIC_EXCEPTION",
    INVALID_REQUIRED_ACKS = 21 "INVALID_REQUIRED_ACKS",
    ILLEGAL_GENERATION = 22 "ILLEGAL_GENERATION",
    INCONSISTENT_GROUP_PROTOCOL = 23 "INCONSISTENT_GROUP_PROTOCOL",
    INVALID_GROUP_ID = 24 "INVALID_GROUP_ID",
    UNKNOWN_MEMBER_ID = 25 "UNKNOWN_MEMBER_ID",
    INVALID_SESSION_TIMEOUT = 26 "INVALID_SESSION_TIMEOUT",
    REBALANCE_IN_PROGRESS = 27 "REBALANCE_IN_PROGRESS",
    UNSUPPORTED_SASL_MECHANISM = 33 "UNSUPPORTED_SASL_MECHANISM",
    ILLEGAL_SASL_STATE = 34 "ILLEGAL_SASL_STATE",
    UNSUPPORTED_VERSION = 35 "UNSUPPORTED_VERSION",
    TOPIC_ALREADY_EXISTS = 36 "TOPIC_ALREADY_EXISTS",
    INVALID_PARTITIONS = 37 "INVALID_PARTITIONS",
    INVALID_REPLICATION_FACTOR = 38 "INVALID_REPLICATION_FACTOR",
    INVALID_REPLICA_ASSIGNMENT = 39 "INVALID_REPLICA_ASSIGNMENT",
    INVALID_CONFIG = 40 "INVALID_CONFIG",
    INVALID_REQUEST = 42 "INVALID_REQUEST",
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43 "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    POLICY_VIOLATION = 44 "POLICY_VIOLATION",
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45 "OUT_OF_ORDER_SEQUENCE_NUMBER",
    DUPLICATE_SEQUENCE_NUMBER = 46 "DUPLICATE_SEQUENCE_NUMBER",
    INVALID_PRODUCER_EPOCH = 47 "INVALID_PRODUCER_EPOCH",
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53 "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    SASL_AUTHENTICATION_FAILED = 58 "SASL_AUTHENTICATION_FAILED",
    NON_EMPTY_GROUP = 68 "NON_EMPTY_GROUP",
    GROUP_ID_NOT_FOUND = 69 "GROUP_ID_NOT_FOUND",
    UNKNOWN_LEADER_EPOCH = 75 "UNKNOWN_LEADER_EPOCH",
    MEMBER_ID_REQUIRED = 79 "MEMBER_ID_REQUIRED",
    GROUP_MAX_SIZE_REACHED = 81 "GROUP_MAX_SIZE_REACHED",
    FENCED_INSTANCE_ID = 82 "FENCED_INSTANCE_ID",
    INVALID_RECORD = 87 "INVALID_RECORD",
    THROTTLING_QUOTA_EXCEEDED = 89 "THROTTLING_QUOTA_EXCEEDED",
}

impl Code {
    /// As metrics count it.
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Self::NONE => Outcome::Ok,
            Self::UNKNOWN_SERVER_ERROR | Self::NOT_LEADER_OR_FOLLOWER => Outcome::Failed(self.1),
            _ => Outcome::Refused(self.1),
        }
    }
}

/// What the protocol calls an error of ours.
pub(crate) fn code_of(error: &Error) -> Code {
    if let Some(reason) = error.reason::<LogReason>() {
        return match reason {
            LogReason::HubNotFound | LogReason::NoSuchPartition => Code::UNKNOWN_TOPIC_OR_PARTITION,
            LogReason::HubExists => Code::TOPIC_ALREADY_EXISTS,
            LogReason::BadName => Code::INVALID_TOPIC_EXCEPTION,
            LogReason::BadSettings => Code::INVALID_PARTITIONS,
            LogReason::BatchTooLarge => Code::MESSAGE_TOO_LARGE,
            LogReason::LayoutChanged => Code::NOT_LEADER_OR_FOLLOWER,
            LogReason::ProducerFenced => Code::INVALID_PRODUCER_EPOCH,
            LogReason::OutOfSequence => Code::OUT_OF_ORDER_SEQUENCE_NUMBER,
            LogReason::DuplicateSequence => Code::DUPLICATE_SEQUENCE_NUMBER,
            LogReason::OffsetOutOfRange => Code::OFFSET_OUT_OF_RANGE,
            LogReason::NotCoordinator => Code::NOT_COORDINATOR,
        };
    }
    match error.kind() {
        Kind::NotFound => Code::UNKNOWN_TOPIC_OR_PARTITION,
        Kind::Exists => Code::TOPIC_ALREADY_EXISTS,
        Kind::Precondition | Kind::Invalid => Code::INVALID_REQUEST,
        Kind::TooLarge => Code::MESSAGE_TOO_LARGE,
        Kind::Throttled { .. } => Code::THROTTLING_QUOTA_EXCEEDED,
        // Clients ask for the leader again and repeat the request.
        Kind::Moved | Kind::Unavailable { .. } => Code::NOT_LEADER_OR_FOLLOWER,
        Kind::Corrupt => Code::UNKNOWN_SERVER_ERROR,
        Kind::Internal => Code::UNKNOWN_SERVER_ERROR,
    }
}

/// A request that ends its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hangup {
    Malformed,
    /// A client that has not said who it is asks for something.
    Stranger,
    /// A key or version that was not offered.
    Unknown,
}

impl From<Malformed> for Hangup {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}
