//! Benchmarks. Each has a module here and a program of the same name in `bin/`. Those of our own parts also run tiny in
//! the tests, so that none of them rots; `compare` needs the emulator, which the tests here must do without.

pub mod balance;
pub mod blocks;
pub mod compare;
mod figures;
pub mod history;
pub mod many;
pub mod moving;
pub mod queues;
pub mod shardmap;
pub mod store;

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

/// What a program in `bin/` does around its benchmark: runs it in a fresh folder inside the one that its first word names,
/// prints the report, and fails if a bound is missed.
pub fn measure<Report: Display>(
    run: impl FnOnce(&Path) -> lazuli_store::Result<Report>,
    is_met: impl FnOnce(&Report) -> bool,
) -> ExitCode {
    let words = std::env::args_os().skip(1);
    let mut folders = words.filter(|word| !word.as_encoded_bytes().starts_with(b"--"));
    let parent = folders.next().map_or_else(std::env::temp_dir, Into::into);
    let measured = tempfile::tempdir_in(&parent)
        .map_err(|error| format!("{}: {error}", parent.display()))
        .and_then(|folder| run(folder.path()).map_err(|error| error.to_string()));
    match measured {
        Ok(report) => {
            println!("{report}");
            if is_met(&report) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a benchmark that is asynchronous, on as many threads as the machines have that the bounds were found on.
pub fn in_runtime<T>(
    work: impl Future<Output = lazuli_store::Result<T>>,
) -> lazuli_store::Result<T> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(|error| lazuli_store::Error::internal("no-runtime", error))?.block_on(work)
}
