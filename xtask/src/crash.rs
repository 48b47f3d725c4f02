//! `cargo xtask crash`: real kill -9 under load, round after round on the same data.
//!
//! The load generator starts the server itself, because it must know the moment of death; here both are only built.

use crate::arguments::Arguments;
use crate::workspace::{Workspace, cargo};
use crate::{Result, process, server};

/// Rounds when nobody says how many.
const ROUNDS: u64 = 20;

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let count = arguments.number("--rounds")?.unwrap_or(ROUNDS);
    arguments.finish()?;
    rounds(count)
}

pub(crate) fn rounds(count: u64) -> Result {
    let workspace = Workspace::load()?;
    let binary = server::build(&workspace)?;
    let data = workspace.scratch.join("crash");
    process::fresh_folder(&data)?;
    let words = ["run", "--locked", "--package", "lazuli-bench", "--bin", "crash", "--"];
    let mut command = cargo();
    command.args(words).args(["--rounds", &count.to_string()]);
    command.arg("--binary").arg(binary).arg("--folder").arg(&data);
    process::run(&mut command)
}
