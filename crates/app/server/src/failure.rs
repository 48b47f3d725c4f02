//! Why the server did not start, or an admin request was refused: a stable code, a sentence, and what to do about it.

use std::borrow::Cow;
use std::fmt;

use lazuli_store::{Kind, Reason};

lazuli_store::reasons! {
    /// Failures that decide the status of an answer of the admin API. All others are the server's own.
    pub enum FailureReason {
        AccountNotFound = "account-not-found",
        AccountExists = "account-exists",
        AccountInUse = "account-in-use",
        AccountsGiven = "accounts-given",
        TooManyAccounts = "too-many-accounts",
        BadAccount = "bad-account",
        BadRequest = "bad-request",
    }
}

/// A failure as operators see it, on the terminal and in the admin API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    code: Cow<'static, str>,
    message: String,
    hint: Option<String>,
    /// Whether it is expected to go away by itself, as when a database is away.
    is_passing: bool,
}

pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        let (code, message) = (code.into(), message.into());
        Self { code, message, hint: None, is_passing: false }
    }

    pub fn of(reason: FailureReason, message: impl Into<String>) -> Self {
        Self::new(<&'static str>::from(reason), message)
    }

    /// Says what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn code(&self) -> &str {
        &self.code
    }

    /// Which of the reasons of `R` this failure has, if any.
    pub fn reason<R: Reason>(&self) -> Option<R> {
        R::ALL.iter().copied().find(|reason| (*reason).into() == self.code)
    }

    pub(crate) fn is_passing(&self) -> bool {
        self.is_passing
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn what_to_do(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<lazuli_store::Error> for Failure {
    fn from(error: lazuli_store::Error) -> Self {
        let is_passing = matches!(error.kind(), Kind::Unavailable { .. } | Kind::Moved);
        Self { is_passing, ..Self::new(error.code(), error.message()) }
    }
}
