//! `cargo xtask conformance`: a front judged by the official SDKs, on Lazuli or on the emulator it stands in for.
//!
//! The tests do not know what they run against: they get a file that names the target, its account and its endpoints.
//! `known_gaps.toml` is held strictly, both ways, by the test runner's own plugin.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::arguments::Arguments;
use crate::process::{self, Background, unusable};
use crate::workspace::{self, Workspace};
use crate::{Failure, Result, emulator, python, server};

/// Where each front listens: its name and the address without the account.
pub(crate) type Endpoints = BTreeMap<String, String>;

const TESTS: &str = "tests/conformance/python";
const TARGETS: &str = "tests/conformance/targets.toml";

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let sdk = arguments.value("--sdk")?.unwrap_or_else(|| "python".into());
    let target = arguments.value("--target")?.unwrap_or_else(|| "ours".into());
    let front = arguments.word();
    arguments.finish()?;
    if sdk != "python" {
        return Err(Failure::Usage(format!("there are no tests with the SDK for '{sdk}'")));
    }
    let Some(front) = front else {
        return Err(Failure::Usage("name a front, for example: tables".into()));
    };
    judge(&front, &target)
}

/// Runs the tests of a front with the Python SDK on a target of `targets.toml`.
pub(crate) fn judge(front: &str, target: &str) -> Result {
    let tests = workspace::root().join(TESTS).join(format!("test_{front}.py"));
    if !tests.exists() {
        return Err(Failure::Usage(format!("there is no {TESTS}/test_{front}.py")));
    }
    let target = Target::named(target)?;
    let workspace = Workspace::load()?;
    let python = python::environment(&workspace)?;
    let folder = workspace.scratch.join("conformance");
    let (program, endpoints) = target.start(&workspace, &folder)?;
    let description = target.describe(&folder, &endpoints)?;
    let rules = workspace::root().join(TESTS).join("test_gaps.py");
    process::run(
        Command::new(python)
            .args(["-m", "pytest", "-p", "no:cacheprovider", "--quiet"])
            .arg("--target-file")
            .arg(description)
            .args([rules, tests])
            .current_dir(workspace::root().join(TESTS))
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    )?;
    // Lazuli must end by itself when asked; how the emulator ends is not our business.
    if target.start == "lazuli" { program.stop() } else { Ok(()) }
}

/// One section of `targets.toml`.
#[derive(Debug)]
struct Target {
    name: String,
    /// What to start: `lazuli` or `azurite`.
    start: String,
    account: String,
    key: String,
}

impl Target {
    fn named(name: &str) -> Result<Self> {
        let path = workspace::root().join(TARGETS);
        let text = std::fs::read_to_string(&path).map_err(|error| unusable(&path, &error))?;
        Self::from_text(&text, name)
    }

    fn from_text(text: &str, name: &str) -> Result<Self> {
        let targets: toml::Table =
            text.parse().map_err(|error| Failure::failed(format!("{TARGETS}: {error}")))?;
        let Some(target) = targets.get(name) else {
            let known: Vec<&str> = targets.keys().map(String::as_str).collect();
            return Err(Failure::Usage(format!("--target takes one of: {}", known.join(", "))));
        };
        let field = |field: &str| match target.get(field).and_then(toml::Value::as_str) {
            Some(value) => Ok(value.to_owned()),
            None => Err(Failure::failed(format!("{TARGETS}: [{name}] has no '{field}'"))),
        };
        let name = name.to_owned();
        Ok(Self { name, start: field("start")?, account: field("account")?, key: field("key")? })
    }

    fn start(&self, workspace: &Workspace, folder: &Path) -> Result<(Background, Endpoints)> {
        process::fresh_folder(folder)?;
        match self.start.as_str() {
            "lazuli" => server::start(workspace, &folder.join("server")),
            "azurite" => emulator::start(workspace),
            other => Err(Failure::failed(format!("{TARGETS}: cannot start '{other}'"))),
        }
    }

    /// Writes the file that tells the tests what they run against.
    fn describe(&self, folder: &Path, endpoints: &Endpoints) -> Result<PathBuf> {
        let path = folder.join("target.json");
        let text = json!({
            "name": self.name,
            "account": self.account,
            "key": self.key,
            "endpoints": endpoints,
        });
        std::fs::write(&path, text.to_string()).map_err(|error| unusable(&path, &error))?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_target_names_those_that_exist() {
        let text = "[ours]\nstart = 'lazuli'\naccount = 'a'\nkey = 'k'\n";
        assert_eq!(Target::from_text(text, "ours").unwrap().start, "lazuli");
        let Err(Failure::Usage(message)) = Target::from_text(text, "theirs") else {
            panic!("there is no such target");
        };
        assert!(message.contains("ours"), "{message}");
        assert!(Target::from_text("[ours]\n", "ours").is_err());
    }

    #[test]
    fn the_targets_of_the_repository_can_be_read() {
        for name in ["ours", "azurite"] {
            Target::named(name).unwrap();
        }
    }
}
