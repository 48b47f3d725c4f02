//! The server as a process, on trial. Each program in `bin/` starts the binary `lazuli`, does to it what the world does
//! (kills it under load, sends it garbage), and looks at what is left.

pub mod blobs;
pub mod client;
pub mod options;
pub mod queues;
pub mod server;
pub mod writers;

/// What went wrong, for a person to read.
pub type Result<T = ()> = std::result::Result<T, String>;
