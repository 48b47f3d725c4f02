//! Why a script failed, with the status that the service gives to it. Whatever it is, the transaction is rolled back.

use std::fmt;

/// The end of a script that did not end well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptError {
    /// The text is no JavaScript, or holds no function.
    Source(String),
    /// An exception that the script did not catch, or the reason it gave to `abort`.
    Thrown(Exception),
    /// It took longer than it may.
    Time,
    /// It needed more memory than it may.
    Memory,
    /// Its result is larger than it may be.
    TooLarge,
    /// All threads for scripts were busy for too long.
    Busy,
    /// The engine failed for a reason that is not the script's.
    Engine(String),
}

/// What a script has thrown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exception {
    /// As the exception says it: `Error: the item is taken`.
    pub text: String,
    /// Where it was thrown, one line for each call; empty if it was no `Error`.
    pub stack: String,
    /// The number of an exception made as `new Error(404, "…")`, and of the errors that the host gives to callbacks. The
    /// service sends it as the substatus.
    pub number: Option<i64>,
}

impl ScriptError {
    /// The HTTP status that the service answers with.
    pub fn status(&self) -> u16 {
        match self {
            Self::Source(_) | Self::Thrown(_) => 400,
            Self::Memory => 403,
            Self::Time => 408,
            Self::TooLarge => 413,
            Self::Engine(_) => 500,
            Self::Busy => 503,
        }
    }

    /// The value of `x-ms-substatus`, if there is one.
    pub fn substatus(&self) -> Option<i64> {
        match self {
            Self::Thrown(exception) => exception.number,
            _ => None,
        }
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(reason) => write!(f, "The script is not valid: {reason}"),
            Self::Thrown(exception) => {
                let Exception { text, stack, .. } = exception;
                write!(f, "Encountered exception while executing function. Exception = {text}")?;
                write!(f, "\r\nStack trace: {text}\n{stack}")
            }
            Self::Time => f.write_str("The script did not complete within its maximum time."),
            Self::Memory => f.write_str("The script needs more memory than it may use."),
            Self::TooLarge => f.write_str("The result of the script is too large."),
            Self::Busy => f.write_str("Too many scripts are running."),
            Self::Engine(reason) => write!(f, "The script engine failed: {reason}"),
        }
    }
}

impl std::error::Error for ScriptError {}
