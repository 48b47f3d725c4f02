//! Talking to an account of a storage service, whichever it is: where it is, connections, signed requests that are tried
//! again, and the line that shows how far a transfer is.

pub(super) mod meter;
pub(super) mod place;
pub(super) mod session;
mod sign;
pub(super) mod transport;
