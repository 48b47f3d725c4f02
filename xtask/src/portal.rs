//! `cargo xtask portal`: the portal judged in a browser, on a server of its own.
//!
//! The browser is Debian's; the packages that drive it are pinned and download none. The tests get a file that says
//! where the server is, and leave a screenshot of every page in the target folder for people to look at.

use std::process::Command;

use serde_json::json;

use crate::arguments::Arguments;
use crate::process::{self, unusable};
use crate::workspace::{self, Workspace};
use crate::{Failure, Result, conformance, debian, node, server};

const TESTS: &str = "tests/portal";
const BROWSER: &str = "chromium";
/// Where the screenshots are that documents show.
const SHOWN: &str = "docs/portal";

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let shown = arguments.flag("--screenshots");
    let only = arguments.value("--only")?;
    arguments.finish()?;
    judge(shown, only.as_deref())
}

/// All browser tests, as CI runs them.
pub(crate) fn all() -> Result {
    judge(false, None)
}

/// Runs the tests; with `shown` the screenshots of the documents are made anew.
fn judge(shown: bool, only: Option<&str>) -> Result {
    if !debian::has(BROWSER, "--version")? {
        return Ok(());
    }
    let workspace = Workspace::load()?;
    let folder = workspace.scratch.join("portal");
    let packages = node::packages(&workspace, TESTS, "portal-packages")?;
    node::copy_programs(TESTS, &packages)?;
    let (server, endpoints) = server::start(&workspace, &folder)?;
    let token = folder.join("data/admin-token");
    let token = std::fs::read_to_string(&token).map_err(|error| unusable(&token, &error))?;
    let screenshots = folder.join("screenshots");
    process::fresh_folder(&screenshots)?;
    let (account, key) = conformance::account()?;
    let target = json!({
        "endpoints": endpoints,
        "token": token.trim(),
        "account": { "name": account, "key": key },
        "screenshots": screenshots,
        "shown": shown.then(|| workspace::root().join(SHOWN)),
    });
    let file = folder.join("target.json");
    std::fs::write(&file, format!("{target:#}\n")).map_err(|error| unusable(&file, &error))?;
    let mut tests = workspace::files(&workspace::root().join(TESTS), ".test.mjs")?;
    tests.retain(|path| only.is_none_or(|only| path.to_string_lossy().contains(only)));
    if tests.is_empty() {
        return Err(Failure::Usage("--only takes a part of the name of a test file".into()));
    }
    let ran = process::run(
        Command::new("node")
            .args(["--test", "--test-reporter=spec", "--test-concurrency=1"])
            .args(tests.iter().filter_map(|path| path.file_name()))
            .env("LAZULI_PORTAL_FILE", &file)
            .current_dir(&packages),
    );
    println!("screenshots: {}", screenshots.display());
    ran?;
    server.stop()
}
