//! Benchmarks, a module each, run by the programs in `bin/`. Those of our own parts also run tiny in the tests, so that
//! none of them rots; `compare` needs the emulator, which the tests here must do without.

pub mod balance;
pub mod blocks;
pub mod compare;
mod figures;
pub mod fleet;
pub mod history;
pub mod many;
pub mod moving;
pub mod queues;
mod server;
pub mod shardmap;
pub mod store;

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

/// Runs a benchmark in a fresh folder inside of `parent`, prints its report, and fails if a bound is missed.
pub fn measure<Report: Display>(
    parent: &Path,
    run: impl FnOnce(&Path) -> lazuli_store::Result<Report>,
    is_met: impl FnOnce(&Report) -> bool,
) -> ExitCode {
    let measured = tempfile::tempdir_in(parent)
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

/// Runs a benchmark that is asynchronous.
pub fn in_runtime<T>(
    work: impl Future<Output = lazuli_store::Result<T>>,
) -> lazuli_store::Result<T> {
    figures::runtime()?.block_on(work)
}
