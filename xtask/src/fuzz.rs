//! `cargo xtask fuzz`: requests that are nearly right, or not at all, sent to a real server.
//!
//! The sender starts the server itself, because it watches the process; here both are only built.

use std::process::Command;

use crate::arguments::Arguments;
use crate::workspace::Workspace;
use crate::{Result, process};

/// Requests when nobody says how many.
const REQUESTS: u64 = 100_000;
/// The seed when nobody says which: the same requests in every run.
const SEED: u64 = 1;

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let count = arguments.number("--requests")?.unwrap_or(REQUESTS);
    let seed = arguments.number("--seed")?.unwrap_or(SEED);
    arguments.finish()?;
    send(count, seed)
}

/// Sends so many requests of the usual seed.
pub(crate) fn requests(count: u64) -> Result {
    send(count, SEED)
}

fn send(count: u64, seed: u64) -> Result {
    let workspace = Workspace::load()?;
    let server = workspace.program("lazuli")?;
    let sender = workspace.program("fuzz-requests")?;
    let folder = workspace.scratch.join("fuzz");
    process::fresh_folder(&folder)?;
    let mut command = Command::new(sender);
    command.args(["--requests", &count.to_string(), "--seed", &seed.to_string()]);
    command.arg("--binary").arg(server).arg("--folder").arg(folder);
    process::run(&mut command)
}
