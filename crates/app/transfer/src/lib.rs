//! Moves tables, blobs and documents between files and a service, over the public protocols: it knows HTTP, signatures and
//! files, and nothing of the engine or the server.
//!
//! [`account`] is which account of which service, [`session`] its requests with retries. [`table`], [`blob`] and [`document`]
//! are the operations on them, with their options as the command line takes them. Imports and exports keep how far they
//! are (`frontier`, `progress`) and share how rows of CSV are read and written (`csv`).

pub mod account;
pub mod blob;
mod csv;
pub mod document;
mod frontier;
mod part;
mod progress;
pub mod session;
pub mod table;
