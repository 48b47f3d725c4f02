//! Measures the block files against plain files. Fails if a bound is missed.
//!
//! `cargo run --release -p lazuli-bench --bin blocks [FOLDER]`: the folder is where the disk is that counts.

use std::process::ExitCode;

use lazuli_bench::blocks::{Report, Size, run};
use lazuli_bench::measure;

/// Both sides run on what the server runs on.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    measure(|folder| run(folder, Size::FULL), Report::is_met)
}
