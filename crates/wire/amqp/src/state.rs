//! States of deliveries and errors: what the two sides tell each other about a message or a link.

use bytes::{Bytes, BytesMut};

use crate::decode::{DecodeError, Decoder, Result};
use crate::encode;
use crate::field::{Field, composite};
use crate::value::{Map, Symbol, Value};

composite! {
    /// Why something was refused or ended.
    Error = 0x1d {
        condition: Symbol,
        description: Option<String>,
        info: Map,
    }
}

impl Error {
    pub fn new(condition: &str, description: impl Into<String>) -> Self {
        let description = Some(description.into());
        Self { condition: condition.into(), description, info: Map::default() }
    }
}

/// Conditions of the specification.
pub mod condition {
    pub const INTERNAL_ERROR: &str = "amqp:internal-error";
    pub const NOT_FOUND: &str = "amqp:not-found";
    pub const UNAUTHORIZED: &str = "amqp:unauthorized-access";
    pub const DECODE_ERROR: &str = "amqp:decode-error";
    pub const RESOURCE_LIMIT: &str = "amqp:resource-limit-exceeded";
    pub const NOT_ALLOWED: &str = "amqp:not-allowed";
    pub const INVALID_FIELD: &str = "amqp:invalid-field";
    pub const NOT_IMPLEMENTED: &str = "amqp:not-implemented";
    pub const PRECONDITION_FAILED: &str = "amqp:precondition-failed";
    pub const CONNECTION_FORCED: &str = "amqp:connection:forced";
    pub const FRAMING_ERROR: &str = "amqp:connection:framing-error";
    pub const WINDOW_VIOLATION: &str = "amqp:session:window-violation";
    pub const HANDLE_IN_USE: &str = "amqp:session:handle-in-use";
    pub const UNATTACHED_HANDLE: &str = "amqp:session:unattached-handle";
    pub const DETACH_FORCED: &str = "amqp:link:detach-forced";
    pub const MESSAGE_SIZE: &str = "amqp:link:message-size-exceeded";
    pub const STOLEN: &str = "amqp:link:stolen";
    pub const UNKNOWN_TRANSACTION: &str = "amqp:transaction:unknown-id";
    pub const TRANSACTION_ROLLBACK: &str = "amqp:transaction:rollback";
}

composite! {
    /// A message that could not be processed as it was, or not here.
    Modified = 0x27 {
        delivery_failed: Option<bool>,
        undeliverable_here: Option<bool>,
        message_annotations: Map,
    }
}

composite! {
    RejectedFields = 0x25 {
        error: Option<Error>,
    }
}

composite! {
    /// How much of a message has come.
    Received = 0x23 {
        section_number: u32,
        section_offset: u64,
    }
}

composite! {
    DeclaredFields = 0x33 {
        transaction: Bytes,
    }
}

composite! {
    TransactionalFields = 0x34 {
        transaction: Bytes,
        outcome: Option<DeliveryState>,
    }
}

/// What one side says of a delivery.
#[derive(Clone, Debug, PartialEq)]
pub enum DeliveryState {
    Received(Received),
    Accepted,
    Rejected(Option<Error>),
    Released,
    Modified(Modified),
    /// A transaction was begun; this is its name.
    Declared(Bytes),
    /// Said within a transaction.
    Transactional {
        transaction: Bytes,
        outcome: Option<Box<Self>>,
    },
}

impl DeliveryState {
    pub fn rejected(error: Error) -> Self {
        Self::Rejected(Some(error))
    }

    pub(crate) fn write(&self, out: &mut BytesMut) {
        match self {
            Self::Received(received) => received.write(out),
            Self::Accepted => empty(out, 0x24),
            Self::Rejected(error) => RejectedFields { error: error.clone() }.write(out),
            Self::Released => empty(out, 0x26),
            Self::Modified(modified) => modified.write(out),
            Self::Declared(transaction) => {
                DeclaredFields { transaction: transaction.clone() }.write(out);
            }
            Self::Transactional { transaction, outcome } => {
                let outcome = outcome.as_deref().cloned();
                TransactionalFields { transaction: transaction.clone(), outcome }.write(out);
            }
        }
    }

    /// The same as a value, for places that hold any.
    pub fn value(&self) -> Value {
        let mut out = BytesMut::new();
        self.write(&mut out);
        Decoder::new(&out).value().unwrap_or_default()
    }
}

fn empty(out: &mut BytesMut, code: u64) {
    encode::descriptor(out, code);
    let list = encode::begin(out, 0xd0, 0);
    encode::end(out, &list);
}

impl Field for DeliveryState {
    fn read(decoder: &mut Decoder<'_>) -> Result<Self> {
        Ok(match decoder.descriptor()? {
            Received::CODE => Self::Received(Received::read_fields(decoder)?),
            0x24 => {
                decoder.list()?;
                Self::Accepted
            }
            RejectedFields::CODE => Self::Rejected(RejectedFields::read_fields(decoder)?.error),
            0x26 => {
                decoder.list()?;
                Self::Released
            }
            Modified::CODE => Self::Modified(Modified::read_fields(decoder)?),
            DeclaredFields::CODE => {
                Self::Declared(DeclaredFields::read_fields(decoder)?.transaction)
            }
            TransactionalFields::CODE => {
                let fields = TransactionalFields::read_fields(decoder)?;
                let outcome = fields.outcome.map(Box::new);
                Self::Transactional { transaction: fields.transaction, outcome }
            }
            _ => return Err(DecodeError::Expected("a state of a delivery")),
        })
    }

    fn write(&self, out: &mut BytesMut) {
        self.write(out);
    }
}
