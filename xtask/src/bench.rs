//! `cargo xtask bench`: the benchmarks, in release mode. Each knows its own bounds and fails when it misses one.

use crate::arguments::Arguments;
use crate::workspace::{Workspace, cargo};
use crate::{Failure, Result, process};

const PACKAGE: &str = "lazuli-bench";

/// The load generator of `cargo xtask bench-compare`, which lives beside the benchmarks.
const NOT_HERE: &str = "compare";

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let only = arguments.word();
    arguments.finish()?;
    let workspace = Workspace::load()?;
    let programs = workspace
        .targets("bin")
        .into_iter()
        .filter(|(package, target)| package.name == PACKAGE && target.name != NOT_HERE);
    let names: Vec<&str> = programs.map(|(_, target)| target.name.as_str()).collect();
    let chosen: Vec<&str> = match &only {
        None => names.clone(),
        Some(only) => names.iter().copied().filter(|name| name == only).collect(),
    };
    if chosen.is_empty() {
        return Err(Failure::Usage(format!("the benchmarks are: {}", names.join(", "))));
    }
    let mut missed = Vec::new();
    for name in chosen {
        println!("\n=== bench {name}");
        let words = ["run", "--release", "--locked", "--package", PACKAGE, "--bin", name];
        if process::run(cargo().args(words)).is_err() {
            missed.push(name);
        }
    }
    if missed.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("bounds missed by: {}", missed.join(", "))))
}
