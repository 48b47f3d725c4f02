//! `cargo xtask fuzz`: requests that are nearly right, or not at all, sent to a real server; and a check that the targets of
//! `cargo fuzz` compile.
//!
//! The sender starts the server itself, because it watches the process; here both are only built.

use std::process::Command;

use crate::arguments::Arguments;
use crate::workspace::{self, Workspace, cargo};
use crate::{Failure, Result, process};

/// Requests without `--requests`.
const REQUESTS: u64 = 100_000;
/// The seed without `--seed`: the same requests in every run.
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

/// Compiles all targets of `cargo fuzz` as it does, but on stable and without linking, so that no C++ compiler is needed.
/// Their functions run on the seeds in the tests of their crates.
pub(crate) fn targets() -> Result {
    let folder = workspace::root().join("fuzz");
    let manifest = folder.join("Cargo.toml");
    let text =
        std::fs::read_to_string(&manifest).map_err(|error| process::unusable(&manifest, &error))?;
    for path in workspace::files(&folder.join("fuzz_targets"), ".rs")? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_listed = text.contains(&format!("name = \"{name}\"\n"));
        if !is_listed || !folder.join("seeds").join(&name).is_dir() {
            let message = format!("fuzz target {name} is not in fuzz/Cargo.toml, or has no seeds");
            return Err(Failure::failed(message));
        }
    }
    let mut command = cargo();
    command.args(["check", "--locked", "--bins", "--manifest-path"]).arg(&manifest);
    command.env("CARGO_TARGET_DIR", Workspace::load()?.scratch.join("fuzz-targets"));
    // With this set, libfuzzer-sys does not compile the fuzzer itself, which only linking needs.
    command
        .env("RUSTFLAGS", "--cfg fuzzing")
        .env("CUSTOM_LIBFUZZER_PATH", "not-linked/libfuzzer.a");
    process::run(&mut command)
}

fn send(count: u64, seed: u64) -> Result {
    let workspace = Workspace::load()?;
    let server = workspace.program("lazuli")?;
    let sender = workspace.program("trial")?;
    let folder = workspace.scratch.join("fuzz");
    process::fresh_folder(&folder)?;
    let mut command = Command::new(sender);
    command.args(["fuzz-requests", "--requests", &count.to_string()]);
    command.args(["--seed", &seed.to_string()]);
    command.arg("--binary").arg(server).arg("--folder").arg(folder);
    process::run(&mut command)
}
