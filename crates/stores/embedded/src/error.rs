//! From the engine's errors to the few kinds of core.

use std::io::ErrorKind;

use lazuli_store::Error;

/// What a failed read, or anything before the store is open, means to the caller.
pub(crate) fn from_engine(error: &fjall::Error) -> Error {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => {
            from_io("the store's files", error)
        }
        fjall::Error::Poisoned => Error::unavailable("store-failed", POISONED),
        fjall::Error::Locked => Error::unavailable("store-locked", "the engine's lock is taken"),
        other => Error::corrupt("store-corrupt", format!("the engine cannot read it: {other}")),
    }
}

/// An I/O error is the machine's trouble; an end of file where bytes must be is damage, and so is a place before the
/// beginning of a file, where the engine looks for the end of one that is too short.
pub(crate) fn from_io(place: impl std::fmt::Display, error: &std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::UnexpectedEof
        | ErrorKind::InvalidData
        | ErrorKind::InvalidInput
        | ErrorKind::NotFound => Error::corrupt("store-corrupt", format!("{place}: {error}")),
        _ => Error::unavailable("store-io", format!("{place}: {error}")),
    }
}

pub(crate) const POISONED: &str =
    "a write to disk failed earlier; check the disk, then start again";
