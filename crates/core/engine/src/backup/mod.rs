//! Backups: all that one partition holds at one moment as a stream of bytes, and back into partitions again
//! (`docs/decisions/0072-backups.md`; `docs/formats/backup.md` draws the bytes).
//!
//! `taking` writes the stream from one snapshot, `parser` reads it and refuses whatever is damaged, `restore` brings it
//! into partitions that are offline meanwhile. Files and requests are handled above this.

mod clearing;
mod examine;
mod filed;
mod format;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod loading;
mod parser;
mod restore;
mod taking;
mod verify;

pub use examine::BackupExaminer;
pub use filed::{Filed, Hold};
pub use format::{BACKUP_FORMAT, BackupHead, BackupRow, BackupTotals};
pub use parser::{BackupParser, BackupPart};
pub use restore::{LSN_AHEAD_MAX, Restore, RestoreProgress, RestoreTarget};
pub use taking::Backup;

pub(crate) use filed::FiledShapes;

use lazuli_store::Error;

lazuli_store::reasons! {
    /// Why a backup cannot be restored.
    pub enum BackupReason {
        /// There are items where the backup is to go.
        RoutesNotEmpty = "routes-not-empty",
        Damaged = "backup-damaged",
        Truncated = "backup-truncated",
    }
}

/// The backup is damaged: the caller needs another one.
fn damaged(what: impl std::fmt::Display) -> Error {
    Error::invalid(BackupReason::Damaged, format!("the backup is damaged: {what}"))
}
