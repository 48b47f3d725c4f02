//! Measures a hundred thousand tables, containers and queues. Fails if a bound is missed.
//!
//! `cargo run --release -p lazuli-bench --bin many [FOLDER]`: the folder is where the disk is that counts.

use std::process::ExitCode;

use lazuli_bench::many::{Report, Size, run};
use lazuli_bench::{in_runtime, measure};

/// As the server has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    measure(|folder| in_runtime(run(folder, Size::FULL)), Report::is_met)
}
