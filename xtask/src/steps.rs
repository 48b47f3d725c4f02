//! `cargo xtask test`: everything that CI runs, one step after another.
//!
//! Cheap steps come first, so that a slip of the pen is told in seconds. The first failure ends the run; the summary
//! says which steps passed, which one failed and which were not reached.

use std::process::Command;
use std::time::Instant;

use crate::arguments::Arguments;
use crate::chaos::{self, Fate};
use crate::conformance::Sdk;
use crate::workspace::{Workspace, cargo};
use crate::{
    Failure, Result, azure_storage, conformance, crash, fuzz, portal, process, programs,
    python_programs, sim, tidy, tour,
};

/// Seeds that the simulator runs in the test; `cargo xtask sim --seeds N` runs more.
const SIM_SEEDS: u64 = 300;

/// Rounds of kill -9 in the test; `cargo xtask crash --rounds N` does more.
const CRASH_ROUNDS: u64 = 5;

/// Seconds of chaos in the test, with kills and without; `cargo xtask chaos --minutes N` goes on for longer.
const CHAOS_SECONDS: u64 = 25;

/// Fuzzed requests in the test; `cargo xtask fuzz --requests N` sends more.
const FUZZED_REQUESTS: u64 = 3_000;

struct Step {
    name: &'static str,
    proves: &'static str,
    run: fn() -> Result,
}

const STEPS: &[Step] = &[
    Step { name: "fmt", proves: "the code is laid out by rustfmt", run: fmt },
    Step { name: "clippy", proves: "no lint has anything to say", run: clippy },
    Step {
        name: "tidy",
        proves: "layers, sizes, names and documents are in order",
        run: tidy::check,
    },
    Step {
        name: "cargo-test",
        proves: "unit, property, store suite and doc tests pass",
        run: cargo_test,
    },
    Step { name: "examples", proves: "the examples run to their end", run: examples },
    Step { name: "sim", proves: "no seed finds a lost, doubled or torn write", run: simulation },
    Step {
        name: "tables-python",
        proves: "the official Python SDK works on Tables",
        run: || conformance::judge("tables", Sdk::Python, "ours"),
    },
    Step { name: "tour", proves: "the tour of README.md prints what it says", run: tour::take },
    Step {
        name: "tables-js",
        proves: "the official JavaScript SDK works on Tables",
        run: || conformance::judge("tables", Sdk::Js, "ours"),
    },
    Step {
        name: "tables-azurite",
        proves: "the same tests say the same of the emulator, but for the known gaps",
        run: || twins("tables"),
    },
    Step {
        name: "queues-python",
        proves: "the official Python SDK works on Queues",
        run: || conformance::judge("queues", Sdk::Python, "ours"),
    },
    Step {
        name: "queues-js",
        proves: "the official JavaScript SDK works on Queues",
        run: || conformance::judge("queues", Sdk::Js, "ours"),
    },
    Step {
        name: "queues-azurite",
        proves: "the same tests say the same of the emulator, but for the known gaps",
        run: || twins("queues"),
    },
    Step {
        name: "blobs-python",
        proves: "the official Python SDK works on Blobs",
        run: || conformance::judge("blobs", Sdk::Python, "ours"),
    },
    Step {
        name: "blobs-js",
        proves: "the official JavaScript SDK works on Blobs",
        run: || conformance::judge("blobs", Sdk::Js, "ours"),
    },
    Step {
        name: "blobs-azurite",
        proves: "the same tests say the same of the emulator, but for the known gaps",
        run: || twins("blobs"),
    },
    Step {
        name: "crash",
        proves: "kill -9 loses no answered write and tears no transaction",
        run: || crash::rounds("tables", CRASH_ROUNDS),
    },
    Step {
        name: "crash-queues",
        proves: "kill -9 loses no message, and gives none to two or too late or out of order",
        run: || crash::rounds("queues", CRASH_ROUNDS),
    },
    Step {
        name: "crash-blobs",
        proves: "kill -9 loses and tears no committed blob, and all garbage goes",
        run: || crash::rounds("blobs", CRASH_ROUNDS),
    },
    Step {
        name: "chaos",
        proves: "splits, merges, moves and kill -9 lose, double and tear nothing of the SDKs' load",
        run: || chaos::go_on_for(CHAOS_SECONDS, Fate::Killed, None),
    },
    Step {
        name: "chaos-unharmed",
        proves: "SDK clients need no retry while partitions are split, merged and moved",
        run: || chaos::go_on_for(CHAOS_SECONDS, Fate::Unharmed, None),
    },
    Step {
        name: "object-store",
        proves: "the Azure client of the object_store crate works on Blobs",
        run: programs::object_store,
    },
    Step {
        name: "rclone",
        proves: "rclone brings a tree of 5,000 files to Blobs and back",
        run: programs::rclone,
    },
    Step {
        name: "azure-storage",
        proves: "the JavaScript SDK before today's works on Tables, Queues and Blobs",
        run: azure_storage::run,
    },
    Step {
        name: "adlfs",
        proves: "pandas and pyarrow keep Parquet files on Blobs, through adlfs and pyarrow's own client",
        run: python_programs::adlfs,
    },
    Step {
        name: "portal",
        proves: "a browser gets through the portal, safely and with a screen reader",
        run: portal::all,
    },
    Step {
        name: "fuzz",
        proves: "no request makes the server fail, panic or grow",
        run: fuzzed_requests,
    },
];

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let only = arguments.value("--only")?;
    let list = arguments.flag("--list");
    arguments.finish()?;
    if list {
        for step in STEPS {
            println!("{:<14} {}", step.name, step.proves);
        }
        return Ok(());
    }
    let chosen: Vec<&Step> = match &only {
        None => STEPS.iter().collect(),
        Some(name) => STEPS.iter().filter(|step| step.name == name).collect(),
    };
    if chosen.is_empty() {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        return Err(Failure::Usage(format!("--only takes one of: {}", names.join(", "))));
    }
    run_steps(&chosen)
}

fn run_steps(steps: &[&Step]) -> Result {
    let mut summary = Vec::new();
    let mut failure = None;
    let mut passed = 0;
    for step in steps {
        if failure.is_some() {
            summary.push(format!("  not run  {}", step.name));
            continue;
        }
        println!("\n=== {}: {}", step.name, step.proves);
        let start = Instant::now();
        let result = (step.run)();
        let seconds = start.elapsed().as_secs_f64();
        match result {
            Ok(()) => {
                passed += 1;
                println!("=== {} passed in {seconds:.1} s", step.name);
                summary.push(format!("  passed   {:<14} {seconds:>7.1} s", step.name));
            }
            Err(Failure::Failed(message) | Failure::Usage(message)) => {
                println!("=== {} FAILED after {seconds:.1} s: {message}", step.name);
                summary.push(format!("  FAILED   {:<14} {seconds:>7.1} s", step.name));
                failure = Some(Failure::failed(format!("step {}", step.name)));
            }
        }
    }
    println!("\n=== summary\n{}", summary.join("\n"));
    println!("{passed} passed, {} failed", usize::from(failure.is_some()));
    failure.map_or(Ok(()), Err)
}

fn fmt() -> Result {
    process::run(cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Result {
    let words = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    process::run(cargo().args(words))
}

fn cargo_test() -> Result {
    process::run(cargo().args(["test", "--workspace", "--locked"]))
}

/// Runs every example of every crate; one that ends with anything but exit code 0 fails.
fn examples() -> Result {
    let workspace = Workspace::load()?;
    for (package, example) in workspace.targets("example") {
        println!("--- example {} of {}", example.name, package.name);
        process::run(&mut Command::new(workspace.example(&example.name)?))?;
    }
    Ok(())
}

fn simulation() -> Result {
    sim::seeds(SIM_SEEDS)
}

/// Both SDKs on the emulator.
fn twins(front: &str) -> Result {
    conformance::judge(front, Sdk::Python, "azurite")?;
    conformance::judge(front, Sdk::Js, "azurite")
}

fn fuzzed_requests() -> Result {
    fuzz::requests(FUZZED_REQUESTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_ends_the_run() {
        let good = Step { name: "good", proves: "", run: || Ok(()) };
        let bad = Step { name: "bad", proves: "", run: || Err(Failure::failed("broken")) };
        let never = Step { name: "never", proves: "", run: || panic!("it must not be reached") };
        assert!(run_steps(&[&good, &good]).is_ok());
        let Err(Failure::Failed(message)) = run_steps(&[&good, &bad, &never]) else {
            panic!("a failed step must fail the run");
        };
        assert_eq!(message, "step bad");
    }

    #[test]
    fn an_unknown_step_is_wrong_usage() {
        let words = ["--only", "no-such-step"].map(String::from);
        assert!(matches!(run(Arguments::new(words.into_iter())), Err(Failure::Usage(_))));
    }
}
