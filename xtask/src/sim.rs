//! `cargo xtask sim`: the simulator as a program, with its own options.

use std::process::Command;

use crate::arguments::Arguments;
use crate::workspace::Workspace;
use crate::{Result, process};

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let mut options = Vec::new();
    for name in ["--seeds", "--start", "--seed"] {
        if let Some(number) = arguments.number(name)? {
            options.extend([name.to_owned(), number.to_string()]);
        }
    }
    if let Some(scenario) = arguments.value("--scenario")? {
        options.extend(["--scenario".to_owned(), scenario]);
    }
    arguments.finish()?;
    simulate(&options)
}

/// Runs every scenario on this many seeds.
pub(crate) fn seeds(count: u64) -> Result {
    simulate(&["--seeds".to_owned(), count.to_string()])
}

fn simulate(options: &[String]) -> Result {
    let program = Workspace::load()?.program("lazuli-sim")?;
    process::run(Command::new(program).args(options))
}
