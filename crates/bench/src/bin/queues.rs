//! Measures whether what lies in a queue costs those who use it. Fails if a bound is missed.
//!
//! `cargo run --release -p lazuli-bench --bin queues [FOLDER]`: the folder is where the disk is that counts.

use std::process::ExitCode;

use lazuli_bench::measure;
use lazuli_bench::queues::{Report, Size, run};
use lazuli_store::{Error, Result};

/// As the server has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    measure(|folder| in_runtime(run(folder, Size::FULL)), Report::is_met)
}

fn in_runtime<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(|error| Error::internal("no-runtime", error))?.block_on(work)
}
