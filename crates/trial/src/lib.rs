//! The server as a process, on trial: what the program `trial` and the benchmarks share. They start the binary `lazuli`,
//! send it signed requests over the wire, kill it, and read its memory and its log.

pub mod amqp;
pub mod blobs;
pub mod client;
pub mod documents;
pub mod queues;
pub mod search;
pub mod server;

/// What went wrong, for a person to read.
pub type Result<T = ()> = std::result::Result<T, String>;
