//! BullMQ on a server of its own: queues whose every step is a Lua script, as a program that leans on scripts.

use std::process::Command;

use crate::process;
use crate::workspace::Workspace;
use crate::{Failure, Result, node, server};

const PROGRAM: &str = "tests/programs/bullmq-js";

pub(crate) fn run() -> Result {
    let workspace = Workspace::load()?;
    let packages = node::packages(&workspace, PROGRAM, "bullmq-packages")?;
    node::copy_programs(PROGRAM, &packages)?;
    let (server, endpoints) = server::start(&workspace, &workspace.scratch.join("bullmq"))?;
    let address = endpoints.get("cache").and_then(|url| url.split("://").nth(1));
    let address = address.ok_or_else(|| Failure::failed("the server serves no cache"))?;
    process::run(Command::new("node").args(["bullmq.mjs", address]).current_dir(&packages))?;
    server.stop()
}
