//! Measures moves of a partition under load against a plain copy, and splits of small and large ones. Fails if a bound is
//! missed.
//!
//! `cargo run --release -p lazuli-bench --bin moving [FOLDER] [--huge] [--apart] [--quick | --splits]`: the folder is where
//! the disk is that counts. `--huge` splits a partition of 100 M items too, which takes minutes to fill; `--apart` copies
//! tables, as between two file systems; `--quick` makes one move and no splits, `--splits` makes no moves.

use std::process::ExitCode;

use lazuli_bench::moving::{Report, Size, run};
use lazuli_bench::{in_runtime, measure};

/// As the server has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut size = Size::full();
    for word in std::env::args().skip(1).filter(|word| word.starts_with("--")) {
        match word.as_str() {
            "--huge" => size = size.huge(),
            "--apart" => size = size.apart(),
            "--quick" => size = size.quick(),
            "--splits" => size = size.only_splits(),
            other => {
                eprintln!("{other} is not known; --huge, --apart, --quick and --splits are");
                return ExitCode::from(2);
            }
        }
    }
    measure(|folder| in_runtime(run(folder, size)), Report::is_met)
}
