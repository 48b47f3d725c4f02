//! Refusals in the words of the service, and the one table that maps the errors of core to them.

use std::time::Duration;

use lazuli_engine::{Error, Kind};
use lazuli_http::{BodyError, StatusCode};
use lazuli_index::IndexReason;
use lazuli_search_engine::{ErrorKind, SearchError};

/// The code of refusals after which the files of a text index are of no use.
pub(crate) const TEXT_INDEX_LOST: &str = "IndexUnavailable";

/// A refusal on its way to the client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) status: StatusCode,
    /// What programs tell refusals apart by.
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) retry_after: Option<Duration>,
    /// What an operator should know and a client should not.
    cause: Option<String>,
}

pub(crate) type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), retry_after: None, cause: None }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "InvalidRequestParameter", message)
    }

    /// The body or a parameter is not what the operation takes.
    pub(crate) fn invalid(parameter: &str, message: &str) -> Self {
        let message = format!("The request is invalid. Details: {parameter} : {message}");
        Self::bad_request(message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "ResourceNotFound", message)
    }

    pub(crate) fn no_index(name: &str) -> Self {
        Self::not_found(format!("No index with the name '{name}' was found in the service."))
    }

    pub(crate) fn exists(what: &str, name: &str) -> Self {
        let message = format!("Cannot create {what} '{name}' because it already exists.");
        Self::new(StatusCode::CONFLICT, "ResourceNameAlreadyInUse", message)
    }

    pub(crate) fn precondition() -> Self {
        let message = "The precondition given in one of the request headers evaluated to false. No \
                       change was made to the resource from this request.";
        Self::new(StatusCode::PRECONDITION_FAILED, "PreconditionFailed", message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", message)
    }

    /// The service has this and Lazuli does not.
    pub(crate) fn gap(what: &str) -> Self {
        let message = format!("{what} are not supported by this server.");
        Self::new(StatusCode::NOT_IMPLEMENTED, "FeatureNotSupported", message)
    }

    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    pub(crate) fn quota(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "QuotaExceeded", message)
    }

    pub(crate) fn busy(message: impl Into<String>, retry_after: Duration) -> Self {
        let fault = Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message);
        Self { retry_after: Some(retry_after), ..fault }
    }

    /// The files of a text index are of no use.
    pub(crate) fn text_index_lost(cause: &str) -> Self {
        SearchError::lost(cause).into()
    }

    pub(crate) fn internal(cause: impl std::fmt::Display) -> Self {
        let message = "The server failed. Please retry.";
        let fault = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", message);
        Self { cause: Some(cause.to_string()), ..fault }
    }

    pub(crate) fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }
}

/// The errors of core. Who knows more of what an error is about maps it before.
impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let busy = "The service is busy. Please retry.";
        match error.kind() {
            Kind::NotFound => Self::not_found(error.message()),
            Kind::Exists => {
                Self::new(StatusCode::CONFLICT, "ResourceNameAlreadyInUse", error.message())
            }
            Kind::Precondition => Self::precondition(),
            Kind::Invalid if error.is(IndexReason::TooMany) => Self::quota(error.message()),
            Kind::Invalid => Self::bad_request(error.message()),
            Kind::TooLarge => Self::too_large(error.message()),
            Kind::Throttled { retry_after } | Kind::Unavailable { retry_after } => {
                Self::busy(busy, retry_after)
            }
            Kind::Moved => Self::busy(busy, Duration::from_millis(100)),
            Kind::Corrupt | Kind::Internal => Self::internal(error),
        }
    }
}

/// The errors of the text index.
impl From<SearchError> for Fault {
    fn from(error: SearchError) -> Self {
        match error.kind {
            ErrorKind::Invalid => Self::bad_request(error.message),
            kind => {
                let message = "The index is not available now. Please retry.";
                let fault = Self::busy(message, Duration::from_secs(1)).because(error.message);
                match kind {
                    ErrorKind::Lost => Self { code: TEXT_INDEX_LOST, ..fault },
                    ErrorKind::Invalid | ErrorKind::Unavailable => fault,
                }
            }
        }
    }
}

impl Fault {
    fn because(self, cause: String) -> Self {
        Self { cause: Some(cause), ..self }
    }
}

impl From<BodyError> for Fault {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => {
                Self::too_large("The request is larger than the service allows.")
            }
            BodyError::TimedOut => Self::new(
                StatusCode::REQUEST_TIMEOUT,
                "RequestTimeout",
                "The body of the request did not come in time.",
            ),
            BodyError::NoRoom => {
                Self::busy("There is no room for the request now.", Duration::from_secs(1))
            }
            BodyError::Broken => Self::bad_request("The body of the request broke off."),
        }
    }
}
