//! Measures the block files against plain files. Fails if a bound is missed.
//!
//! `cargo run --release -p lazuli-bench --bin blocks [FOLDER]`: the folder is where the disk is that counts.

use std::process::ExitCode;

use lazuli_bench::blocks::{Size, run};

/// Both sides run on what the server runs on.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let parent = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, Into::into);
    let measured = tempfile::tempdir_in(&parent)
        .map_err(|error| format!("{}: {error}", parent.display()))
        .and_then(|folder| run(folder.path(), Size::FULL).map_err(|error| error.to_string()));
    match measured {
        Ok(report) => {
            println!("{report}");
            if report.is_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
