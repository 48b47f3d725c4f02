//! Refusals of the admin API: a status, and JSON with code, message and hint.

use std::time::Duration;

use lazuli_http::{Response, StatusCode};
use lazuli_store::Kind;
use serde_json::json;

use crate::failure::{Failure, FailureReason};

use super::request::NoOperation;
use super::wait_seconds;

/// An operation that was not done.
pub(super) struct Refusal {
    status: StatusCode,
    failure: Failure,
}

pub(super) type Result<T> = std::result::Result<T, Refusal>;

impl Refusal {
    pub(super) fn new(status: StatusCode, failure: Failure) -> Self {
        Self { status, failure }
    }

    /// Says what to do about it.
    pub(super) fn hint(self, hint: &str) -> Self {
        Self { failure: self.failure.hint(hint), ..self }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Failure::of(FailureReason::BadRequest, message))
    }

    pub(super) fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, Failure::new("too-large", message))
    }

    pub(super) fn not_found(what: &str, name: &str, list: &str) -> Self {
        let failure = Failure::new("not-found", format!("there is no {what} {name}"));
        Self::new(StatusCode::NOT_FOUND, failure.hint(format!("`{list}` lists those there are")))
    }

    /// There is no token, or the one that was given is wrong.
    pub(super) fn token(is_given: bool) -> Self {
        let failure = match is_given {
            true => Failure::new("token-wrong", "this is not the admin token of this server"),
            false => Failure::new("token-needed", "this needs the admin token"),
        };
        let failure = failure
            .hint("send `Authorization: Bearer TOKEN`; it is in admin-token in the data folder");
        Self::new(StatusCode::UNAUTHORIZED, failure)
    }

    pub(super) fn too_many_tokens(wait: Duration) -> Self {
        let seconds = wait_seconds(wait);
        let failure = Failure::new("too-many-wrong-tokens", "there were too many wrong tokens")
            .hint(format!("try again in {seconds} seconds"));
        Self::new(StatusCode::TOO_MANY_REQUESTS, failure)
    }

    pub(super) fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, Failure::new("busy", message))
    }

    pub(super) fn status(&self) -> u16 {
        self.status.as_u16()
    }

    pub(super) fn code(&self) -> &str {
        self.failure.code()
    }

    pub(super) fn message(&self) -> &str {
        self.failure.message()
    }

    pub(super) fn response(&self) -> Response {
        let error = json!({
            "code": self.failure.code(),
            "message": self.failure.message(),
            "hint": self.failure.what_to_do(),
        });
        super::json_response(self.status, &json!({ "error": error }))
    }
}

impl From<lazuli_store::Error> for Refusal {
    fn from(error: lazuli_store::Error) -> Self {
        let status = match error.kind() {
            Kind::NotFound => StatusCode::NOT_FOUND,
            Kind::Exists | Kind::Precondition => StatusCode::CONFLICT,
            Kind::Invalid => StatusCode::BAD_REQUEST,
            Kind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Kind::Throttled { .. } => StatusCode::TOO_MANY_REQUESTS,
            Kind::Moved | Kind::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Kind::Corrupt | Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.into())
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        use FailureReason as Why;
        let status = match failure.reason() {
            Some(Why::AccountNotFound) => StatusCode::NOT_FOUND,
            Some(
                Why::AccountExists | Why::AccountInUse | Why::AccountsGiven | Why::TooManyAccounts,
            ) => StatusCode::CONFLICT,
            Some(Why::BadAccount | Why::BadRequest) => StatusCode::BAD_REQUEST,
            None if failure.is_passing() => StatusCode::SERVICE_UNAVAILABLE,
            None => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, failure)
    }
}

impl From<NoOperation> for Refusal {
    fn from(none: NoOperation) -> Self {
        match none {
            NoOperation::Path => Self::new(
                StatusCode::NOT_FOUND,
                Failure::new("not-found", "the admin API has nothing at this path"),
            ),
            NoOperation::Method => Self::new(
                StatusCode::METHOD_NOT_ALLOWED,
                Failure::new("method-not-allowed", "this path does not take this method"),
            ),
            NoOperation::Query => Self::bad_request("the query cannot be read"),
            NoOperation::Parameter(name) => {
                Self::bad_request(format!("the parameter {name} cannot be read"))
            }
            NoOperation::UnknownParameter(name) => {
                Self::bad_request(format!("there is no parameter {name} here"))
            }
            NoOperation::RepeatedParameter(name) => {
                Self::bad_request(format!("the parameter {name} is there twice"))
            }
        }
    }
}
