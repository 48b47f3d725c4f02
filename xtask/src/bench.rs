//! `cargo xtask bench`: the benchmarks, in release mode. Each knows its own bounds and fails when it misses one.

use crate::arguments::Arguments;
use crate::workspace::cargo;
use crate::{Failure, Result, process};

/// The benchmarks: a name, the program that has it, and the program's argument. The one of memory has a program of its own,
/// because it measures another allocator.
const BENCHMARKS: &[(&str, &str, &[&str])] = &[
    ("balance", "bench", &["balance"]),
    ("blocks", "bench", &["blocks"]),
    ("fleet", "bench", &["fleet"]),
    ("history", "bench", &["history"]),
    ("many", "bench", &["many"]),
    ("moving", "bench", &["moving"]),
    ("queues", "bench", &["queues"]),
    ("shardmap", "shardmap", &[]),
    ("store", "bench", &["store"]),
];

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let only = arguments.word();
    arguments.finish()?;
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let chosen: Vec<_> = BENCHMARKS.iter().filter(|(name, ..)| wanted(name)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = BENCHMARKS.iter().map(|(name, ..)| *name).collect();
        return Err(Failure::Usage(format!("the benchmarks are: {}", names.join(", "))));
    }
    let mut missed = Vec::new();
    for (name, program, words) in chosen {
        println!("\n=== bench {name}");
        let run = ["run", "--release", "--locked", "--package", "lazuli-bench", "--bin", program];
        if process::run(cargo().args(run).arg("--").args(*words)).is_err() {
            missed.push(*name);
        }
    }
    if missed.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("bounds missed by: {}", missed.join(", "))))
}
