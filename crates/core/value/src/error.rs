//! Errors of reading values: a text that is no JSON, bytes that are no value.

use std::fmt;

/// Why a text or bytes could not be read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The offset in bytes at which reading stopped.
    pub at: usize,
    pub reason: &'static str,
}

impl ReadError {
    pub(crate) fn new(at: usize, reason: &'static str) -> Self {
        Self { at, reason }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.reason, self.at)
    }
}

impl std::error::Error for ReadError {}
