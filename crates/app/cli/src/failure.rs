//! Why a command did not do what it was asked to, and what to do about it.

use std::fmt;
use std::process::ExitCode;

use lazuli_server::settings::Wrong;

/// A failed command. Prints as `error: …`, and `hint: …` on a line of its own.
#[derive(Debug)]
pub(crate) struct Failure {
    usage: bool,
    message: String,
    hint: Option<String>,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// The command was right and could not be done.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { usage: false, message: message.into(), hint: None }
    }

    /// The command itself was wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { usage: true, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What failed, without what to do about it.
    pub(crate) fn reason(self) -> String {
        self.message
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        if self.usage { ExitCode::from(2) } else { ExitCode::FAILURE }
    }
}

impl From<Wrong> for Failure {
    fn from(wrong: Wrong) -> Self {
        Self::usage(wrong.to_string())
    }
}

impl From<lazuli_server::failure::Failure> for Failure {
    fn from(failure: lazuli_server::failure::Failure) -> Self {
        let own = Self::failed(failure.message());
        match failure.what_to_do() {
            Some(hint) => own.hint(hint),
            None => own,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}
