//! Moves tables and blobs between files and a storage service, over the public protocols: it knows HTTP, signatures and
//! files, and nothing of the engine or the server.
//!
//! [`account`] is which account of which service, [`session`] its requests with retries. [`table`] and [`blob`] are the
//! operations on them, with their options as the command line takes them.

pub mod account;
pub mod blob;
pub mod session;
pub mod table;
