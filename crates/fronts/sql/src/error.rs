//! Errors of the endpoint's own, as PostgreSQL would word them: a SQLSTATE, a sentence, and how to write it instead.

use std::fmt;

use bytes::BytesMut;
use lazuli_net::Outcome;
use lazuli_pg::Malformed;
use lazuli_pg::server::{Report, write_error};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SqlError {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) detail: Option<String>,
    pub(crate) hint: Option<String>,
    /// Whether the session ends with it.
    pub(crate) is_fatal: bool,
}

/// SQLSTATEs that we give.
pub(crate) mod code {
    pub(crate) const NOT_SUPPORTED: &str = "0A000";
    pub(crate) const PROTOCOL: &str = "08P01";
    pub(crate) const CONNECTION: &str = "08006";
    pub(crate) const CARDINALITY: &str = "23514";
    pub(crate) const KEY_NULL: &str = "23502";
    pub(crate) const IN_FAILED: &str = "25P02";
    pub(crate) const BAD_STATEMENT_NAME: &str = "26000";
    pub(crate) const BAD_LOGIN: &str = "28P01";
    pub(crate) const NO_LOGIN: &str = "28000";
    pub(crate) const NO_DATABASE: &str = "3D000";
    pub(crate) const BAD_CURSOR: &str = "34000";
    pub(crate) const SERIALIZATION: &str = "40001";
    pub(crate) const SYNTAX: &str = "42601";
    pub(crate) const UNDEFINED_TABLE: &str = "42P01";
    pub(crate) const DUPLICATE_STATEMENT: &str = "42P05";
    pub(crate) const DUPLICATE_CURSOR: &str = "42P03";
    pub(crate) const INVALID_VALUE: &str = "22023";
    pub(crate) const BAD_COPY: &str = "22P04";
    pub(crate) const TOO_MANY: &str = "53400";
    pub(crate) const TOO_MANY_CONNECTIONS: &str = "53300";
    pub(crate) const LIMIT: &str = "54000";
    pub(crate) const NOT_READY: &str = "55000";
    pub(crate) const OFFLINE: &str = "57P03";
    pub(crate) const SHUTDOWN: &str = "57P01";
    pub(crate) const UNKNOWN_OUTCOME: &str = "08007";
    pub(crate) const INTERNAL: &str = "XX000";
}

impl SqlError {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), detail: None, hint: None, is_fatal: false }
    }

    /// What the endpoint does not do.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(code::NOT_SUPPORTED, message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    pub(crate) fn fatal(mut self) -> Self {
        self.is_fatal = true;
        self
    }

    pub(crate) fn write(&self, out: &mut BytesMut) {
        let report = Report {
            severity: if self.is_fatal { "FATAL" } else { "ERROR" },
            code: self.code,
            message: &self.message,
            detail: self.detail.as_deref(),
            hint: self.hint.as_deref(),
        };
        write_error(out, &report);
    }

    /// As metrics count it.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.code {
            code::CONNECTION | code::INTERNAL | code::OFFLINE | code::UNKNOWN_OUTCOME => {
                Outcome::Failed(self.code)
            }
            _ => Outcome::Refused(self.code),
        }
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl From<Malformed> for SqlError {
    fn from(error: Malformed) -> Self {
        Self::new(code::PROTOCOL, error.to_string()).fatal()
    }
}

/// Why a statement over several shards is refused, in one sentence for all.
pub(crate) fn two_phase_needed(what: &str) -> SqlError {
    SqlError::refused(format!("{what} would write on more than one shard"))
        .detail("A transaction stays on one shard unless two-phase commit is asked for.")
        .hint("SET lazuli.transaction = 'two-phase', or name one key in the statement.")
}
