//! Measures the embedded store against the bare engine. Fails if a bound is missed.
//!
//! `cargo run --release -p lazuli-bench --bin store [FOLDER]`: the folder is where the disk is that counts.

use std::process::ExitCode;

use lazuli_bench::measure;
use lazuli_bench::store::{Report, Size, run};

/// Both sides run on what the server runs on.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    measure(|folder| run(folder, Size::FULL), Report::is_met)
}
