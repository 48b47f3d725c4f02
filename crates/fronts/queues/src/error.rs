//! What can go wrong, in the service's own words.

use lazuli_azure::storage_codes;
use lazuli_azure::storage_error::{self, CommonCode};
use lazuli_engine::{Error, Kind};
use lazuli_shapes::queue::QueueReason;

storage_codes! {
    MessageNotFound 404 "The specified message does not exist.";
    PopReceiptMismatch 400
        "The specified pop receipt did not match the pop receipt for a dequeued message.";
    QueueAlreadyExists 409 "The specified queue already exists.";
    QueueNotFound 404 "The specified queue does not exist.";
}

/// A refusal on its way to the client.
pub(crate) type Fault = storage_error::Fault<Code>;

pub(crate) type Result<T> = std::result::Result<T, Fault>;

/// What became of an operation that the shape refused.
pub(crate) fn from_core(error: Error) -> Fault {
    match error.kind() {
        Kind::NotFound if error.is(QueueReason::MessageNotFound) => {
            Fault::new(Code::MessageNotFound)
        }
        Kind::NotFound => Fault::new(Code::QueueNotFound),
        Kind::Exists => Fault::new(Code::QueueAlreadyExists),
        Kind::Precondition => Fault::new(Code::PopReceiptMismatch),
        Kind::Invalid => Fault::new(CommonCode::InvalidInput).say(error.message().to_owned()),
        Kind::TooLarge => Fault::new(CommonCode::RequestBodyTooLarge),
        Kind::Throttled { retry_after } | Kind::Unavailable { retry_after } => {
            Fault::new(CommonCode::ServerBusy).retry_after(retry_after)
        }
        Kind::Moved => Fault::new(CommonCode::ServerBusy),
        Kind::Corrupt | Kind::Internal => Fault::new(CommonCode::InternalError).because(error),
    }
}
