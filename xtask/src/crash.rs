//! `cargo xtask crash`: real kill -9 under load, round after round on the same data.
//!
//! The load generator starts the server itself, because it must know the moment of death; here both are only built.

use std::process::Command;

use crate::arguments::Arguments;
use crate::workspace::Workspace;
use crate::{Failure, Result, process};

/// Rounds without `--rounds`.
const ROUNDS: u64 = 20;

/// The fronts that there is a load for, and its name in the program `trial`.
const LOADS: &[(&str, &str)] = &[
    ("blobs", "crash-blobs"),
    ("bus", "crash-bus"),
    ("cache", "crash-cache"),
    ("cache-everysec", "crash-cache-everysec"),
    ("documents", "crash-documents"),
    ("hub", "crash-hub"),
    ("queues", "crash-queues"),
    ("search", "crash-search"),
    ("tables", "crash-tables"),
];

/// The trial of a disk that gets full, which is no load with rounds.
const DISK_FULL: &str = "disk-full";

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let front = arguments.word().unwrap_or("tables".to_owned());
    if front == DISK_FULL {
        arguments.finish()?;
        let test = ["test", "-p", "lazuli", "--test", "it", "--"];
        let test = test.into_iter().chain(["full_disk::", "--ignored", "--nocapture"]);
        return process::run(Command::new("cargo").args(test));
    }
    let count = arguments.number("--rounds")?.unwrap_or(ROUNDS);
    arguments.finish()?;
    rounds(&front, count)
}

pub(crate) fn rounds(front: &str, count: u64) -> Result {
    let Some((_, trial)) = LOADS.iter().find(|(name, _)| *name == front) else {
        let fronts: Vec<&str> = LOADS.iter().map(|(name, _)| *name).collect();
        let fronts = fronts.join(", ");
        return Err(Failure::Usage(format!("say {DISK_FULL}, or one of the fronts: {fronts}")));
    };
    let workspace = Workspace::load()?;
    let server = workspace.program("lazuli")?;
    let load = workspace.program("trial")?;
    let folder = workspace.scratch.join(trial);
    process::fresh_folder(&folder)?;
    let mut command = Command::new(load);
    command.args([trial, "--rounds", &count.to_string()]);
    command.arg("--binary").arg(server).arg("--folder").arg(folder);
    process::run(&mut command)
}
