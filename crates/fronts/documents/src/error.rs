//! What can go wrong, in the service's own words: status, substatus, code and sentence, and the errors of core as these.

use std::time::Duration;

use lazuli_engine::{Error, Kind};
use lazuli_http::BodyError;

/// A status of the service above 399. Its code in the body is the name of the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    RequestTimeout,
    Conflict,
    Gone,
    PreconditionFailed,
    RequestEntityTooLarge,
    FailedDependency,
    TooManyRequests,
    RetryWith,
    InternalServerError,
    NotImplemented,
    ServiceUnavailable,
}

impl Status {
    pub(crate) fn number(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::RequestTimeout => 408,
            Self::Conflict => 409,
            Self::Gone => 410,
            Self::PreconditionFailed => 412,
            Self::RequestEntityTooLarge => 413,
            Self::FailedDependency => 424,
            Self::TooManyRequests => 429,
            Self::RetryWith => 449,
            Self::InternalServerError => 500,
            Self::NotImplemented => 501,
            Self::ServiceUnavailable => 503,
        }
    }

    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::BadRequest => "BadRequest",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::RequestTimeout => "RequestTimeout",
            Self::Conflict => "Conflict",
            Self::Gone => "Gone",
            Self::PreconditionFailed => "PreconditionFailed",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::FailedDependency => "FailedDependency",
            Self::TooManyRequests => "429",
            Self::RetryWith => "RetryWith",
            Self::InternalServerError => "InternalServerError",
            Self::NotImplemented => "NotImplemented",
            Self::ServiceUnavailable => "ServiceUnavailable",
        }
    }
}

/// The numbers that tell errors of one status apart. Clients act on them.
pub(crate) mod substatus {
    /// 400: the partition key of the header is not the one of the item.
    pub(crate) const KEY_MISMATCH: u32 = 1001;
    /// 400: the client means a container of the same name that is gone.
    pub(crate) const OTHER_CONTAINER: u32 = 1024;
    /// 403: the partition key has as much as it may have.
    pub(crate) const KEY_FULL: u32 = 1014;
    /// 404: nothing here is as new as what the client has seen.
    pub(crate) const NOT_THAT_FAR: u32 = 1002;
    /// 404: what the item would be in does not exist.
    pub(crate) const OWNER_NOT_FOUND: u32 = 1003;
    /// 410: the range is gone.
    pub(crate) const RANGE_GONE: u32 = 1002;
    /// 412: the condition of a patch does not hold.
    pub(crate) const PATCH_CONDITION: u32 = 1110;
    /// 429: the budget of request units is used up.
    pub(crate) const OVER_BUDGET: u32 = 3200;
}

/// A refusal on its way to the client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) status: Status,
    pub(crate) substatus: Option<u32>,
    pub(crate) message: String,
    pub(crate) retry_after: Option<Duration>,
    /// What the request has cost all the same.
    pub(crate) charge: f64,
    /// What an operator should know and a client should not.
    cause: Option<String>,
}

pub(crate) type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { status, substatus: None, message, retry_after: None, charge: 0.0, cause: None }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Status::BadRequest, message)
    }

    /// One of the inputs is not as the service wants it.
    pub(crate) fn bad_input(what: &str) -> Self {
        Self::bad_request(format!("One of the input values is invalid: {what}"))
    }

    pub(crate) fn bad_header(name: &str) -> Self {
        Self::bad_request(format!("The value of the header '{name}' is invalid."))
    }

    pub(crate) fn not_found() -> Self {
        Self::new(Status::NotFound, "Entity with the specified id does not exist in the system.")
    }

    /// What an operation would take place in does not exist.
    pub(crate) fn no_owner() -> Self {
        Self::new(Status::NotFound, "Owner resource does not exist")
            .substatus(substatus::OWNER_NOT_FOUND)
    }

    pub(crate) fn exists() -> Self {
        let message = "Entity with the specified id already exists in the system.";
        Self::new(Status::Conflict, message)
    }

    pub(crate) fn precondition() -> Self {
        let message = "One of the specified pre-condition is not met";
        Self::new(Status::PreconditionFailed, message)
    }

    pub(crate) fn too_large() -> Self {
        Self::new(Status::RequestEntityTooLarge, "Request size is too large")
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(Status::Unauthorized, message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(Status::Forbidden, message)
    }

    /// The service has this and Lazuli does not.
    pub(crate) fn gap(what: &str) -> Self {
        Self::new(Status::NotImplemented, format!("{what} is not supported by this server."))
    }

    pub(crate) fn range_gone(id: &str) -> Self {
        Self::new(Status::Gone, format!("The partition key range '{id}' is not there any more."))
            .substatus(substatus::RANGE_GONE)
    }

    /// The budget of request units is used up.
    pub(crate) fn over_budget(retry_after: Duration) -> Self {
        let message = "Request rate is large. More Request Units may be needed, so no changes were made. \
                       Please retry this request later.";
        let fault = Self::new(Status::TooManyRequests, message).substatus(substatus::OVER_BUDGET);
        Self { retry_after: Some(retry_after), ..fault }
    }

    pub(crate) fn internal(cause: impl std::fmt::Display) -> Self {
        let fault = Self::new(Status::InternalServerError, "The server failed. Please retry.");
        Self { cause: Some(cause.to_string()), ..fault }
    }

    pub(crate) fn substatus(self, substatus: u32) -> Self {
        Self { substatus: Some(substatus), ..self }
    }

    pub(crate) fn charged(self, charge: f64) -> Self {
        Self { charge, ..self }
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
            Kind::NotFound => Self::not_found(),
            Kind::Exists => Self::exists(),
            Kind::Precondition => Self::precondition(),
            Kind::Invalid => Self::bad_request(error.message()),
            Kind::TooLarge => Self::new(Status::RequestEntityTooLarge, error.message()),
            Kind::Throttled { retry_after } => Self::over_budget(retry_after),
            Kind::Unavailable { retry_after } => {
                let fault = Self::new(Status::ServiceUnavailable, busy);
                Self { retry_after: Some(retry_after), ..fault }
            }
            Kind::Moved => Self::new(Status::ServiceUnavailable, busy),
            Kind::Corrupt | Kind::Internal => Self::internal(error),
        }
    }
}

impl From<BodyError> for Fault {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => Self::too_large(),
            BodyError::TimedOut => {
                Self::new(Status::RequestTimeout, "The body of the request did not come in time.")
            }
            BodyError::NoRoom => {
                Self::new(Status::ServiceUnavailable, "There is no room for the request now.")
            }
            BodyError::Broken => Self::bad_request("The body of the request broke off."),
        }
    }
}
