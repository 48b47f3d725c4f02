//! `cargo xtask differential-cache`: commands made from seeds, to Debian's redis-server and to the cache, whose replies must be
//! the same (`crates/trial/src/differential`).

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use crate::arguments::Arguments;
use crate::process::Background;
use crate::workspace::Workspace;
use crate::{Failure, Result, debian, process, server};

/// Sequences in the test; `cargo xtask differential-cache --sequences N` runs more.
const SEQUENCES: u64 = 2_000;
/// The seed without `--seed`: the same sequences in every run.
const SEED: u64 = 1;

/// How long Redis may take until it accepts connections.
const READY_WAIT: Duration = Duration::from_secs(10);

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let seed = arguments.number("--seed")?.unwrap_or(SEED);
    let first = arguments.number("--first")?.unwrap_or(0);
    let sequences = arguments.number("--sequences")?.unwrap_or(SEQUENCES);
    arguments.finish()?;
    compare(seed, first, sequences)
}

/// The run of the tests.
pub(crate) fn step() -> Result {
    compare(SEED, 0, SEQUENCES)
}

fn compare(seed: u64, first: u64, sequences: u64) -> Result {
    if !debian::has_packaged("redis-server", "redis-server", "--version")? {
        return Ok(());
    }
    let workspace = Workspace::load()?;
    let folder = workspace.scratch.join("differential-cache");
    process::fresh_folder(&folder)?;
    let (redis, theirs) = start_redis(&folder)?;
    let (lazuli, endpoints) = server::start(&workspace, &folder.join("server"))?;
    let ours = endpoints.get("cache").and_then(|url| url.split("://").nth(1));
    let ours = ours.ok_or_else(|| Failure::failed("the server serves no cache"))?;
    let mut command = Command::new(workspace.program("trial")?);
    command.args(["differential-cache", "--ours", ours, "--theirs", &theirs]);
    command.args(["--seed", &seed.to_string(), "--first", &first.to_string()]);
    command.args(["--sequences", &sequences.to_string()]);
    process::run(&mut command)?;
    drop(redis);
    lazuli.stop()
}

/// Redis on a free port, without persistence, and exact with time-outs.
fn start_redis(folder: &std::path::Path) -> Result<(Background, String)> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let address = free.map_err(|error| Failure::failed(format!("no free port: {error}")))?;
    let mut command = Command::new("redis-server");
    command.args(["--port", &address.port().to_string(), "--bind", "127.0.0.1"]);
    command.args(["--save", "", "--appendonly", "no", "--hz", "500"]);
    command.arg("--dir").arg(folder);
    let mut redis = Background::start(&mut command, &folder.join("redis.log"))?;
    let address = address.to_string();
    redis.wait_for(READY_WAIT, || std::net::TcpStream::connect(&address).ok())?;
    Ok((redis, address))
}
