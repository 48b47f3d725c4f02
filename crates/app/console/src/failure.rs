//! Why a command failed, and what to do about it.

use std::fmt;
use std::process::ExitCode;

use serde_json::json;

/// A failed command. Prints as `error: …`, and `hint: …` on a line of its own.
#[derive(Debug)]
pub struct Failure {
    usage: bool,
    message: String,
    hint: Option<String>,
}

pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// The command was right and could not be done.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { usage: false, message: message.into(), hint: None }
    }

    /// The command itself was wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { usage: true, message: message.into(), hint: None }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same failure with a hint, if there is one.
    pub fn maybe_hint(self, hint: Option<impl Into<String>>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// What failed, without the hint.
    pub fn reason(self) -> String {
        self.message
    }

    /// The same for programs: one line of JSON.
    pub fn json(&self) -> String {
        let (message, hint) = (&self.message, &self.hint);
        json!({ "error": { "message": message, "hint": hint, "usage": self.usage } }).to_string()
    }

    pub fn exit_code(&self) -> ExitCode {
        if self.usage { ExitCode::from(2) } else { ExitCode::FAILURE }
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
