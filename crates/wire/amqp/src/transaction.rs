//! What a client sends to the coordinator of transactions: the body of a message on a link whose target is one.

use bytes::Bytes;

use crate::decode::{DecodeError, Decoder, Result};
use crate::field::{Field, composite};
use crate::message::{Body, Sections};
use crate::value::Value;

composite! {
    DeclareFields = 0x31 {
        global_id: Value,
    }
}

composite! {
    DischargeFields = 0x32 {
        transaction: Bytes,
        fail: Option<bool>,
    }
}

/// What is asked of the coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Begin a transaction; to be answered with the state `Declared`.
    Declare,
    /// End it: with everything that was done in it, or with nothing of it.
    Discharge { transaction: Bytes, fail: bool },
}

impl Request {
    pub fn read(message: &Bytes) -> Result<Self> {
        let Body::Value(value) = Sections::split(message)?.body()? else {
            return Err(DecodeError::Expected("a declare or a discharge"));
        };
        let mut bytes = bytes::BytesMut::new();
        crate::encode::value(&mut bytes, &value);
        match value.as_described() {
            Some((DeclareFields::CODE, _)) => Ok(Self::Declare),
            Some((DischargeFields::CODE, _)) => {
                let fields = DischargeFields::read(&mut Decoder::new(&bytes))?;
                let fail = fields.fail.unwrap_or(false);
                Ok(Self::Discharge { transaction: fields.transaction, fail })
            }
            _ => Err(DecodeError::Expected("a declare or a discharge")),
        }
    }

    /// The same as the body of a message.
    pub fn value(&self) -> Value {
        match self {
            Self::Declare => Value::described(DeclareFields::CODE, Value::List(vec![Value::Null])),
            Self::Discharge { transaction, fail } => {
                let fields = vec![transaction.clone().into(), (*fail).into()];
                Value::described(DischargeFields::CODE, Value::List(fields))
            }
        }
    }
}
