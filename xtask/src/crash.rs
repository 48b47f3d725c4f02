//! `cargo xtask crash`: real kill -9 under load, round after round on the same data.
//!
//! The load generator starts the server itself, because it must know the moment of death; here both are only built.

use std::process::Command;

use crate::arguments::Arguments;
use crate::workspace::Workspace;
use crate::{Result, process};

/// Rounds when nobody says how many.
const ROUNDS: u64 = 20;

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let count = arguments.number("--rounds")?.unwrap_or(ROUNDS);
    arguments.finish()?;
    rounds(count)
}

pub(crate) fn rounds(count: u64) -> Result {
    let workspace = Workspace::load()?;
    let server = workspace.program("lazuli")?;
    let load = workspace.program("crash")?;
    let folder = workspace.scratch.join("crash");
    process::fresh_folder(&folder)?;
    let mut command = Command::new(load);
    command.args(["--rounds", &count.to_string()]);
    command.arg("--binary").arg(server).arg("--folder").arg(folder);
    process::run(&mut command)
}
