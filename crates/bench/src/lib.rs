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
mod report;
mod server;
pub mod shardmap;
pub mod store;

use std::path::Path;
use std::process::ExitCode;

pub use report::Report;

/// Runs a benchmark in a fresh folder inside of `parent`, prints its report, and fails if a bound is missed.
pub fn measure(parent: &Path, run: impl FnOnce(&Path) -> lazuli_store::Result<Report>) -> ExitCode {
    let folder = tempfile::tempdir_in(parent);
    let folder = folder.map_err(|error| format!("{}: {error}", parent.display()));
    conclude(folder.and_then(|folder| run(folder.path()).map_err(|error| error.to_string())))
}

/// Prints what was measured, or why nothing was.
pub fn conclude(measured: Result<Report, String>) -> ExitCode {
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

/// Runs a benchmark that is asynchronous.
pub fn in_runtime<T>(
    work: impl Future<Output = lazuli_store::Result<T>>,
) -> lazuli_store::Result<T> {
    figures::runtime()?.block_on(work)
}
