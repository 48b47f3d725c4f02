//! `cargo xtask cache-moving`: keys between Debian's redis-server and the cache, by files and by replication
//! (`crates/trial/src/moving.rs`).

use std::process::Command;

use crate::arguments::Arguments;
use crate::workspace::Workspace;
use crate::{Result, debian, process};

pub(crate) fn run(arguments: Arguments) -> Result {
    arguments.finish()?;
    step()
}

/// The run of the tests.
pub(crate) fn step() -> Result {
    if !debian::has_packaged("redis-server", "redis-server", "--version")? {
        return Ok(());
    }
    let workspace = Workspace::load()?;
    let (server, trial) = (workspace.program("lazuli")?, workspace.program("trial")?);
    let folder = workspace.scratch.join("cache-moving");
    process::fresh_folder(&folder)?;
    let mut command = Command::new(trial);
    command.arg("cache-moving").arg("--binary").arg(server).arg("--folder").arg(folder);
    process::run(&mut command)
}
