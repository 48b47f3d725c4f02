//! What can go wrong, in the service's own words.

use lazuli_engine::{Error, Kind};
use lazuli_http::{StatusCode, storage_error};
use lazuli_shapes::blob::codes;

pub(crate) use lazuli_http::storage_error::CommonCode as Common;

use crate::codes::Code;

/// A refusal on its way to the client.
pub(crate) type Fault = storage_error::Fault<Code>;

pub(crate) type Result<T> = std::result::Result<T, Fault>;

/// What the shape says, in the service's words.
pub(crate) fn refused(error: Error) -> Fault {
    let named = Code::of_shape(error.code());
    let or = |common: Common| Fault::new(named.unwrap_or(common.into()));
    match error.kind() {
        Kind::NotFound => or(Common::ResourceNotFound),
        Kind::Exists => or(Common::InvalidInput),
        // That nothing has changed since is no failure, though the service calls it one.
        Kind::Precondition if error.code() == codes::NOT_MODIFIED => {
            Fault::new(Common::ConditionNotMet).with_status(StatusCode::NOT_MODIFIED)
        }
        Kind::Precondition => or(Common::ConditionNotMet),
        Kind::Invalid => match named {
            Some(code) => Fault::new(code),
            None => Fault::new(Common::InvalidInput).say(error.message().to_owned()),
        },
        Kind::TooLarge => or(Common::RequestBodyTooLarge),
        Kind::Throttled { retry_after } | Kind::Unavailable { retry_after } => {
            Fault::new(Common::ServerBusy).retry_after(retry_after)
        }
        Kind::Moved => Fault::new(Common::ServerBusy),
        Kind::Corrupt | Kind::Internal => Fault::new(Common::InternalError).because(error),
    }
}
