//! Maps the engine's errors to core's kinds.

use std::io::ErrorKind;

use lazuli_store::{Error, StoreReason};

/// The error of a failed read, or of opening the store.
pub(crate) fn from_engine(error: &fjall::Error) -> Error {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => {
            from_io("the store's files", error)
        }
        fjall::Error::Poisoned => write_failed(&"an earlier write failed"),
        fjall::Error::Locked => {
            Error::unavailable(StoreReason::Locked, "the engine's lock is taken")
        }
        other => Error::corrupt("store-corrupt", format!("the engine cannot read it: {other}")),
    }
}

/// An I/O error is the machine's fault. An unexpected end of file is damage, and so is an offset before the beginning
/// of a file, where the engine looks for the footer of a file that is too short.
pub(crate) fn from_io(place: impl std::fmt::Display, error: &std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::UnexpectedEof
        | ErrorKind::InvalidData
        | ErrorKind::InvalidInput
        | ErrorKind::NotFound => Error::corrupt("store-corrupt", format!("{place}: {error}")),
        _ => Error::unavailable(StoreReason::Io, format!("{place}: {error}")),
    }
}

/// The error of a failed write, for its callers and for later ones until writes work again. It does not mean that the
/// shard is down: reads continue.
pub(crate) fn write_failed(cause: &dyn std::fmt::Display) -> Error {
    let message = format!("a write to disk failed; reads continue, writes are retried ({cause})");
    Error::unavailable("disk-failed", message)
}
