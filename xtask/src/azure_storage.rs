//! The JavaScript SDK before today's (`azure-storage` 2.10) on a server of its own: Tables, Queues and Blobs.
//!
//! It is deprecated and still in many programs, and what it sends differs: other media types, batches of another form.

use std::process::Command;

use serde_json::json;

use crate::process::{self, unusable};
use crate::workspace::{self, Workspace};
use crate::{Result, conformance, node, server};

const TESTS: &str = "tests/programs/azure-storage-js";

/// Its tests, with Node's own runner.
pub(crate) fn run() -> Result {
    let workspace = Workspace::load()?;
    let packages = node::packages(&workspace, TESTS, "azure-storage-packages")?;
    node::copy_programs(TESTS, &packages)?;
    let folder = workspace.scratch.join("azure-storage");
    let (server, endpoints) = server::start(&workspace, &folder)?;
    let (account, key) = conformance::account()?;
    let target = json!({ "endpoints": endpoints, "account": { "name": account, "key": key } });
    let file = folder.join("target.json");
    std::fs::write(&file, format!("{target:#}\n")).map_err(|error| unusable(&file, &error))?;
    let tests = workspace::files(&workspace::root().join(TESTS), ".test.mjs")?;
    process::run(
        Command::new("node")
            // The SDK calls what newer versions of Node warn of.
            .args(["--no-deprecation", "--test", "--test-reporter=spec", "--test-concurrency=1"])
            .args(tests.iter().filter_map(|path| path.file_name()))
            .env("LAZULI_PROGRAM_FILE", &file)
            .current_dir(&packages),
    )?;
    server.stop()
}
