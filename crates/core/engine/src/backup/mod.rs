//! Backups: all that one partition holds at one moment as a stream of bytes, and back into partitions again
//! (`docs/decisions/0072-backups.md`; `docs/formats/backup.md` draws the bytes).
//!
//! `taking` writes the stream from one snapshot, `parser` reads it and refuses whatever is damaged, `restore` brings it
//! into partitions that nobody sees meanwhile. Files, requests and whoever asks are above this.

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

/// What is not as a backup must be. Whoever brings it is to bring another one.
fn damaged(what: impl std::fmt::Display) -> Error {
    Error::invalid("backup-damaged", format!("the backup is damaged: {what}"))
}
