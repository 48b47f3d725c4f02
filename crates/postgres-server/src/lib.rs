//! Private PostgreSQL servers for tests and benchmarks: on free ports, in folders of their own, gone with the process.
//!
//! Nothing else on the machine is touched. The programs are those that are installed; a server never runs as root.

#![cfg(unix)]

mod programs;
mod server;

pub use server::{Server, Stop};
