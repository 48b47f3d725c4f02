//! From the engine's errors to the few kinds of core.

use std::io::ErrorKind;

use lazuli_store::Error;

/// What a failed read, or anything before the store is open, means to the caller.
pub(crate) fn from_engine(error: &fjall::Error) -> Error {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => {
            from_io("the store's files", error)
        }
        fjall::Error::Poisoned => write_failed(&"an earlier write failed"),
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

/// What a failed write means to those who wait for it, and to those who come until writes work again. Its code is not one
/// of a shard that does not answer: reads go on.
pub(crate) fn write_failed(cause: &dyn std::fmt::Display) -> Error {
    let message = format!("a write to disk failed; reads go on, writes are tried again ({cause})");
    Error::unavailable("disk-failed", message)
}
