//! Measures whether what lies in a queue costs those who use it. Fails if a bound is missed.
//!
//! `cargo run --release -p lazuli-bench --bin queues [FOLDER]`: the folder is where the disk is that counts.

use std::process::ExitCode;

use lazuli_bench::queues::{Size, run};

/// As the server has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let parent = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, Into::into);
    let folder = match tempfile::tempdir_in(&parent) {
        Ok(folder) => folder,
        Err(error) => {
            eprintln!("{}: {error}", parent.display());
            return ExitCode::FAILURE;
        }
    };
    match run(folder.path(), Size::FULL).await {
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
