//! `cargo run --release -p lazuli-bench --bin shardmap`: what routing costs. Fails on a missed
//! bound.

use std::process::ExitCode;

use lazuli_bench::conclude;
use lazuli_bench::shardmap::{Scale, run};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    conclude(run(Scale::FULL).await.map_err(|error| error.to_string()))
}
