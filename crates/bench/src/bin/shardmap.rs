//! `cargo run --release -p lazuli-bench --bin shardmap`: what routing costs. Fails on a missed
//! bound.

use std::process::ExitCode;

use lazuli_bench::shardmap::{Scale, run};
use lazuli_store::Result;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    let mut met = true;
    for figures in run(Scale::FULL).await? {
        println!("{figures}");
        for miss in figures.misses() {
            println!("  MISSED: {miss}");
            met = false;
        }
    }
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
