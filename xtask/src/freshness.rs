//! `cargo xtask freshness`: how soon searches find a document that was answered, at a steady rate of uploads.

use std::process::Command;

use crate::arguments::Arguments;
use crate::workspace::Workspace;
use crate::{Result, process};

/// What is promised: documents are found 200 ms after they were answered, at so many uploads a second.
const RATE: u64 = 1_000;
const SECONDS: u64 = 20;

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let rate = arguments.number("--rate")?.unwrap_or(RATE);
    let seconds = arguments.number("--seconds")?.unwrap_or(SECONDS);
    arguments.finish()?;
    let workspace = Workspace::load()?;
    let server = workspace.release_program("lazuli")?;
    let load = workspace.release_program("trial")?;
    let folder = workspace.scratch.join("search-freshness");
    process::fresh_folder(&folder)?;
    let mut command = Command::new(load);
    command.args(["search-freshness", "--rate", &rate.to_string()]);
    command.args(["--seconds", &seconds.to_string()]);
    command.arg("--binary").arg(server).arg("--folder").arg(folder);
    process::run(&mut command)
}
