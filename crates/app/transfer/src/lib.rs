//! Moves tables, blobs, documents and messages between files and a service, over the public protocols: it knows HTTP,
//! signatures and files, and nothing of the engine or the server.
//!
//! [`account`] is which account of which service, [`session`] its requests with retries. [`table`], [`blob`], [`document`] and
//! [`queue`] are the operations on them, with their options as the command line takes them. Imports and exports keep how far they
//! are (`frontier`, `progress`) and share how rows of CSV are read and written (`csv`).

pub mod account;
pub mod blob;
mod csv;
pub mod document;
mod frontier;
mod pages;
mod part;
mod progress;
pub mod queue;
pub mod session;
pub mod table;
