//! What commands print: lines, aligned tables, JSON, progress, and failures with their exit codes. It knows a terminal and
//! nothing of servers.

pub mod confirm;
pub mod failure;
pub mod output;
pub mod progress;

pub use failure::{Failure, Result};
