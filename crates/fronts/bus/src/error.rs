//! What can go wrong, in the service's own words.

use lazuli_amqp::{DecodeError, Error, condition};
use lazuli_bus_shape::BusReason;
use lazuli_engine::Kind;
use lazuli_net::Outcome;

/// A refusal on its way to the client: as the error of a link or a delivery, or as the status of a reply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) status: i32,
    pub(crate) condition: &'static str,
    pub(crate) description: String,
}

pub(crate) type Result<T> = std::result::Result<T, Fault>;

pub(crate) const TIMEOUT: &str = "com.microsoft:timeout";
const ARGUMENT: &str = "com.microsoft:argument-error";
const SERVER_BUSY: &str = "com.microsoft:server-busy";
const MESSAGE_LOCK_LOST: &str = "com.microsoft:message-lock-lost";
pub(crate) const SESSION_LOCK_LOST: &str = "com.microsoft:session-lock-lost";
const SESSION_CANNOT_BE_LOCKED: &str = "com.microsoft:session-cannot-be-locked";
const MESSAGE_NOT_FOUND: &str = "com.microsoft:message-not-found";
const ENTITY_DISABLED: &str = "com.microsoft:entity-disabled";
const ENTITY_EXISTS: &str = "com.microsoft:entity-already-exists";

impl Fault {
    pub(crate) fn new(
        status: i32,
        condition: &'static str,
        description: impl Into<String>,
    ) -> Self {
        Self { status, condition, description: description.into() }
    }

    pub(crate) fn argument(description: impl Into<String>) -> Self {
        Self::new(400, ARGUMENT, description)
    }

    pub(crate) fn not_implemented(description: impl Into<String>) -> Self {
        Self::new(501, condition::NOT_IMPLEMENTED, description)
    }

    pub(crate) fn unauthorized(description: impl Into<String>) -> Self {
        Self::new(401, condition::UNAUTHORIZED, description)
    }

    /// The one text by which a client recognises that an entity is missing.
    pub(crate) fn entity_not_found(address: &str) -> Self {
        let text = format!("The messaging entity 'sb://{address}' could not be found.");
        Self::new(404, condition::NOT_FOUND, text)
    }

    pub(crate) fn session_lock_lost() -> Self {
        let text =
            "The session lock has expired on the MessageSession. Accept a new MessageSession.";
        Self::new(410, SESSION_LOCK_LOST, text)
    }

    pub(crate) fn lock_lost() -> Self {
        let text = "The lock supplied is invalid. Either the lock expired, or the message has already \
                    been removed from the queue, or was received by a different receiver instance.";
        Self::new(410, MESSAGE_LOCK_LOST, text)
    }

    /// For metrics.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.status {
            ..500 => Outcome::Refused(self.condition),
            _ => Outcome::Failed(self.condition),
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::new(fault.condition, fault.description)
    }
}

impl From<DecodeError> for Fault {
    fn from(error: DecodeError) -> Self {
        Self::new(400, condition::DECODE_ERROR, format!("The message cannot be read: {error}."))
    }
}

/// What became of an operation that the shape refused.
pub(crate) fn from_core(error: lazuli_engine::Error) -> Fault {
    if let Some(reason) = error.reason::<BusReason>() {
        return from_reason(reason, error.message());
    }
    let said = || error.message().to_owned();
    match error.kind() {
        Kind::NotFound => Fault::new(404, condition::NOT_FOUND, said()),
        Kind::Exists => Fault::new(409, ENTITY_EXISTS, said()),
        Kind::Precondition => Fault::new(412, condition::PRECONDITION_FAILED, said()),
        Kind::Invalid => Fault::argument(said()),
        Kind::TooLarge => Fault::new(403, condition::RESOURCE_LIMIT, said()),
        Kind::Throttled { .. } | Kind::Unavailable { .. } | Kind::Moved => {
            let text = "The server is busy. Please retry the operation.";
            Fault::new(503, SERVER_BUSY, text)
        }
        Kind::Corrupt | Kind::Internal => {
            tracing::error!(cause = %error, "an operation of the bus failed");
            let text = "The service was unable to process the request.";
            Fault::new(500, condition::INTERNAL_ERROR, text)
        }
    }
}

fn from_reason(reason: BusReason, message: &str) -> Fault {
    let said = message.to_owned();
    match reason {
        BusReason::EntityNotFound => {
            let text = format!("The messaging entity could not be found. {said}");
            Fault::new(404, condition::NOT_FOUND, text)
        }
        BusReason::RuleNotFound => Fault::new(404, condition::NOT_FOUND, said),
        BusReason::EntityExists | BusReason::RuleExists => Fault::new(409, ENTITY_EXISTS, said),
        BusReason::EntityDisabled => Fault::new(403, ENTITY_DISABLED, said),
        BusReason::EntityChanged => Fault::new(412, condition::PRECONDITION_FAILED, said),
        BusReason::WrongKind
        | BusReason::SessionRequired
        | BusReason::SessionEntity
        | BusReason::NoSessions
        | BusReason::PartitionKeyMismatch
        | BusReason::SeveralFragments
        | BusReason::TransactionKey
        | BusReason::TransactionSpans => Fault::new(400, condition::NOT_ALLOWED, said),
        BusReason::BadFilter
        | BusReason::BadProperty
        | BusReason::BadName
        | BusReason::ForwardLoop => Fault::argument(said),
        BusReason::TooManyEntities | BusReason::QuotaExceeded => {
            Fault::new(403, condition::RESOURCE_LIMIT, said)
        }
        BusReason::MessageTooLarge => Fault::new(413, condition::MESSAGE_SIZE, said),
        BusReason::SessionLockLost => Fault::session_lock_lost(),
        BusReason::SessionCannotBeLocked => Fault::new(409, SESSION_CANNOT_BE_LOCKED, said),
        BusReason::MessageLockLost => Fault::lock_lost(),
        BusReason::MessageNotFound => Fault::new(404, MESSAGE_NOT_FOUND, said),
    }
}
