//! What errors of the database mean to a caller of the store.

use lazuli_store::{Error, StoreReason, reasons};
use tokio_postgres::error::{Severity, SqlState};

reasons! {
    /// Why a database did not do what it was asked to, beside the reasons that all stores have.
    pub enum DatabaseReason {
        /// Blocks are kept in another place than the one that was named.
        BlocksElsewhere = "blocks-elsewhere",
        /// All connections are in use.
        Busy = "database-busy",
        /// Another transaction has written the same rows.
        Conflict = "database-conflict",
        /// The tables are of a version that is not known.
        Format = "database-format",
        LockTimeout = "database-lock-timeout",
        LoginRefused = "database-login-refused",
        /// The answer to a commit was lost, and nothing says what became of it.
        OutcomeUnknown = "commit-outcome-unknown",
        /// A pooler stands in between.
        Pooler = "database-pooler",
        SnapshotRefused = "snapshot-refused",
        SnapshotTooOld = "snapshot-too-old",
        /// No standby can or may be read at the moment.
        StandbyUnused = "standby-unused",
        StatementTimeout = "database-statement-timeout",
        /// The server was replaced by another one, on a higher timeline.
        TimelineOld = "database-timeline-old",
        /// The version of the server is not supported.
        TooOld = "database-too-old",
    }
}

/// A guard is missing: statements that check guards divide by the answer.
pub(crate) const GUARD_MISSING: &SqlState = &SqlState::DIVISION_BY_ZERO;

/// Whether the connection is of no use any more.
pub(crate) fn is_broken(error: &tokio_postgres::Error) -> bool {
    match error.as_db_error() {
        None => true,
        Some(told) => {
            matches!(told.parsed_severity(), Some(Severity::Fatal | Severity::Panic) | None)
                || is(error, &SqlState::READ_ONLY_SQL_TRANSACTION)
                || is(error, &SqlState::FEATURE_NOT_SUPPORTED)
        }
    }
}

/// Whether the server has said that it did not do what it was asked to. After any other error it may have.
pub(crate) fn is_refusal(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|told| told.parsed_severity() == Some(Severity::Error))
}

pub(crate) fn is(error: &tokio_postgres::Error, state: &SqlState) -> bool {
    error.code().is_some_and(|it| it == state)
}

/// The error of a statement.
pub(crate) fn failed(error: &tokio_postgres::Error) -> Error {
    let Some(told) = error.as_db_error() else {
        return Error::unavailable(StoreReason::Down, format!("the database: {}", chain(error)));
    };
    let state = told.code();
    let text = format!("the database: {} (SQLSTATE {})", told.message(), state.code());
    match *state {
        SqlState::LOCK_NOT_AVAILABLE => Error::unavailable(DatabaseReason::LockTimeout, text),
        SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::T_R_SERIALIZATION_FAILURE
        | SqlState::UNIQUE_VIOLATION => Error::unavailable(DatabaseReason::Conflict, text),
        SqlState::QUERY_CANCELED => Error::unavailable(DatabaseReason::StatementTimeout, text),
        SqlState::DISK_FULL => Error::unavailable("disk-full", text),
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => Error::corrupt("bad-table", text),
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            Error::unavailable(DatabaseReason::LoginRefused, text)
        }
        _ if is_broken(error) => Error::unavailable(StoreReason::Down, text),
        _ => Error::unavailable(StoreReason::Failed, text),
    }
}

/// The whole sentence: the error of the library names only its own part.
fn chain(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

pub(crate) fn moved() -> Error {
    Error::moved("a guard does not exist in the database")
}

pub(crate) fn too_old() -> Error {
    Error::unavailable(DatabaseReason::SnapshotTooOld, "the snapshot has been open for too long")
}

pub(crate) fn timed_out() -> Error {
    Error::unavailable(StoreReason::Down, "the database does not answer")
}

pub(crate) fn closed() -> Error {
    Error::unavailable(StoreReason::Closed, "the store is closed")
}
