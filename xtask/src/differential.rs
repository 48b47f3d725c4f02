//! `cargo xtask differential`: requests made from seeds, to an embedded server and to a fleet, whose answers must be the same
//! (`crates/app/cli/tests/fleet/differential`). A short run of it is among the tests.

use crate::arguments::Arguments;
use crate::workspace::cargo;
use crate::{Result, debian, process};

/// Seeds without `--seeds`, and requests of each front per seed without `--requests`.
const SEEDS: u64 = 10;
const REQUESTS: u64 = 1_000;

const TEST: &str = "differential::an_embedded_server_and_a_fleet_answer_the_same";

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let seed = arguments.number("--seed")?.unwrap_or(1);
    let seeds = arguments.number("--seeds")?.unwrap_or(SEEDS);
    let requests = arguments.number("--requests")?.unwrap_or(REQUESTS);
    arguments.finish()?;
    if !debian::has_postgres()? {
        return Ok(());
    }
    let words =
        ["test", "--locked", "--package", "lazuli", "--test", "fleet", "--", "--exact", TEST];
    process::run(
        cargo()
            .args(words)
            .arg("--nocapture")
            .env("LAZULI_DIFFERENTIAL_SEED", seed.to_string())
            .env("LAZULI_DIFFERENTIAL_SEEDS", seeds.to_string())
            .env("LAZULI_DIFFERENTIAL_REQUESTS", requests.to_string()),
    )
}
