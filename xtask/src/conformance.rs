//! `cargo xtask conformance`: a front judged by the official SDKs, on Lazuli or on the emulator it stands in for.
//!
//! The tests do not know what they run against: they get a file that names the target, its account and its endpoints.
//! `known_gaps.toml` is held strictly, both ways, by the test runner's own plugin.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::arguments::Arguments;
use crate::process::{self, Background, unusable};
use crate::workspace::{self, Workspace};
use crate::{Failure, Result, debian, emulator, node, python, server};

/// Where each front listens: its name and the address without the account.
pub(crate) type Endpoints = BTreeMap<String, String>;

const PYTHON: &str = "tests/conformance/python";
pub(crate) const JS: &str = "tests/conformance/js";
const TARGETS: &str = "tests/conformance/targets.toml";
const GAPS: &str = "tests/conformance/known_gaps.toml";
/// What the tests of Search load.
const HOTELS: &str = "tests/conformance/hotels.json";
/// The certificate of servers that tests reach by HTTPS, which signs itself, and its key. It proves nothing to anybody.
const CERTIFICATE: &str = "tests/conformance/tls/cert.pem";
const CERTIFICATE_KEY: &str = "tests/conformance/tls/key.pem";

/// An official SDK that tests are written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sdk {
    Python,
    Js,
}

impl Sdk {
    fn named(name: &str) -> Result<Self> {
        match name {
            "python" => Ok(Self::Python),
            "js" => Ok(Self::Js),
            _ => Err(Failure::Usage(format!("--sdk takes python or js, not '{name}'"))),
        }
    }

    /// The test files of a front: one for each group of its operations.
    fn tests(self, front: &str) -> Result<Vec<PathBuf>> {
        let (folder, begin, ending) = match self {
            Self::Python => (PYTHON, format!("test_{front}_"), ".py"),
            Self::Js => (JS, format!("{front}_"), ".test.mjs"),
        };
        let mut files = workspace::files(&workspace::root().join(folder), ending)?;
        let name =
            |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        files.retain(|path| name(path).is_some_and(|name| name.starts_with(&begin)));
        if files.is_empty() {
            return Err(Failure::Usage(format!("there is no {folder}/{begin}*{ending}")));
        }
        Ok(files)
    }

    /// What stands before the name of a test in a file of this SDK.
    fn mark(self) -> &'static str {
        match self {
            Self::Python => "def test_",
            Self::Js => "(\"test_",
        }
    }
}

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let sdk = arguments.value("--sdk")?.unwrap_or_else(|| "python".into());
    let target = arguments.value("--target")?.unwrap_or_else(|| "ours".into());
    let front = arguments.word();
    arguments.finish()?;
    let Some(front) = front else {
        return Err(Failure::Usage("name a front, for example: tables".into()));
    };
    judge(&front, Sdk::named(&sdk)?, &target)
}

/// Runs the tests of a front with one SDK against one target.
pub(crate) fn judge(front: &str, sdk: Sdk, target: &str) -> Result {
    judge_each(&[(front, sdk)], target)
}

/// Runs the tests of several fronts, one after another, against one target that is started once.
pub(crate) fn judge_each(trials: &[(&str, Sdk)], target: &str) -> Result {
    for (front, sdk) in trials {
        sdk.tests(front)?;
        same_names(front)?;
    }
    let target = Target::named(target)?;
    if target.start == "fleet" && !debian::has_postgres()? {
        return Ok(());
    }
    let workspace = Workspace::load()?;
    // A folder of its own for each trial: some run at the same time.
    let name: Vec<String> = trials.iter().map(|(front, sdk)| format!("{front}-{sdk:?}")).collect();
    let folder = workspace.scratch.join("conformance").join(name.join("-"));
    process::fresh_folder(&folder)?;
    let (other, others) = target.start_other(&workspace, &folder)?;
    let (program, endpoints) = target.start(&workspace, &folder, &others)?;
    for (front, sdk) in trials {
        let tests = sdk.tests(front)?;
        let description = target.describe(&folder, &endpoints, &others, front)?;
        println!("--- {front} by {sdk:?} on {}", target.name);
        match sdk {
            Sdk::Python => run_python(&workspace, &description, &tests)?,
            Sdk::Js => run_js(&workspace, &description, &tests)?,
        }
    }
    // Lazuli must end by itself when asked; how the emulator ends is not our business.
    if target.is_ours() {
        program.stop()?;
        other.stop()?;
    }
    Ok(())
}

/// Installs what the tests of all fronts need: before several are run at the same time.
pub(crate) fn prepare(workspace: &Workspace) -> Result {
    python::environment(workspace)?;
    let folder = node::packages(workspace, JS, "js")?;
    node::copy_programs(JS, &folder)?;
    workspace.program("lazuli").map(drop)
}

/// The account that our own servers have, and its key.
pub(crate) fn account() -> Result<(String, String)> {
    let ours = Target::named("ours")?;
    Ok((ours.account, ours.key))
}

fn run_python(workspace: &Workspace, description: &Path, tests: &[PathBuf]) -> Result {
    let python = python::environment(workspace)?;
    process::run(
        Command::new(python)
            .args(["-m", "pytest", "-p", "no:cacheprovider", "--quiet"])
            .arg("--target-file")
            .arg(description)
            .arg(workspace::root().join(PYTHON).join("test_gaps.py"))
            .args(tests)
            .current_dir(workspace::root().join(PYTHON))
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    )
}

fn run_js(workspace: &Workspace, description: &Path, tests: &[PathBuf]) -> Result {
    let folder = node::packages(workspace, JS, "js")?;
    node::copy_programs(JS, &folder)?;
    let names = tests.iter().filter_map(|path| path.file_name());
    process::run(
        Command::new("node")
            .args(["--test", "--test-reporter=dot", "--test-concurrency=1"])
            .arg("gaps.test.mjs")
            .args(names)
            .env("LAZULI_TARGET_FILE", description)
            .env("LAZULI_HOTELS_FILE", workspace::root().join(HOTELS))
            .env("NODE_EXTRA_CA_CERTS", workspace::root().join(CERTIFICATE))
            .current_dir(&folder),
    )
}

/// Every test of a front is there with every SDK, under the same name.
fn same_names(front: &str) -> Result {
    let (python, js) = (names(Sdk::Python, front)?, names(Sdk::Js, front)?);
    let alone: Vec<&String> = python.symmetric_difference(&js).collect();
    if alone.is_empty() {
        return Ok(());
    }
    let message = format!("tests of {front} that only one SDK has: {alone:?}");
    Err(Failure::failed(message))
}

fn names(sdk: Sdk, front: &str) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for path in sdk.tests(front)? {
        let text = std::fs::read_to_string(&path).map_err(|error| unusable(&path, &error))?;
        // JavaScript writes names with parameters between other quotation marks.
        for rest in text.replace('`', "\"").split(sdk.mark()).skip(1) {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            names.insert(rest.chars().take_while(|c| is_name(*c)).collect());
        }
    }
    Ok(names)
}

/// One section of `targets.toml`.
#[derive(Debug)]
struct Target {
    name: String,
    /// What to start: `lazuli`, `fleet` or `azurite`.
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

    /// The entries of `known_gaps.toml` for this target, as JSON for who reads no TOML.
    fn gaps(&self, front: &str) -> Result<Vec<serde_json::Value>> {
        let path = workspace::root().join(GAPS);
        let text = std::fs::read_to_string(&path).map_err(|error| unusable(&path, &error))?;
        let file: toml::Table =
            text.parse().map_err(|error| Failure::failed(format!("{GAPS}: {error}")))?;
        let entries = file.get("gap").and_then(toml::Value::as_array).cloned().unwrap_or_default();
        let text = |entry: &toml::Value, field: &str| {
            entry.get(field).and_then(toml::Value::as_str).unwrap_or_default().to_owned()
        };
        let tests = names(Sdk::Python, front)?;
        let mut gaps = Vec::new();
        for entry in entries.iter().filter(|entry| text(entry, "front") == front) {
            let (test, sdk) = (text(entry, "test"), text(entry, "sdk"));
            let name = test.split('[').next().unwrap_or_default();
            if !name.strip_prefix("test_").is_some_and(|name| tests.contains(name)) {
                return Err(Failure::failed(format!("{GAPS}: there is no {test}")));
            }
            if text(entry, "target") == self.name {
                gaps.push(json!({ "test": test, "sdk": sdk }));
            }
        }
        Ok(gaps)
    }

    fn is_ours(&self) -> bool {
        self.start != "azurite"
    }

    /// The server that is judged. It may copy blobs from the other one.
    fn start(
        &self,
        workspace: &Workspace,
        folder: &Path,
        others: &Endpoints,
    ) -> Result<(Background, Endpoints)> {
        let hosts = others.get("blobs").and_then(|url| url.split_once("://")).map(|(_, at)| at);
        match self.start.as_str() {
            "lazuli" => {
                let hosts = hosts.unwrap_or_default();
                // Two nodes of the cache as a cluster, beside the endpoint that answers any key.
                let settings = ["--blob-source-hosts", hosts, "--cache-cluster-ports", "0,0"];
                let settings = settings.map(OsStr::new);
                server::start_with(workspace, &folder.join("server"), &settings)
            }
            "fleet" => server::start_fleet(workspace, folder, hosts.unwrap_or_default()),
            "azurite" => emulator::start(workspace),
            other => Err(Failure::failed(format!("{TARGETS}: cannot start '{other}'"))),
        }
    }

    /// Another server of the same kind, with data of its own, that takes bearer tokens by HTTPS.
    fn start_other(&self, workspace: &Workspace, folder: &Path) -> Result<(Background, Endpoints)> {
        let certificate = workspace::root().join(CERTIFICATE);
        let key = workspace::root().join(CERTIFICATE_KEY);
        let text = OsStr::new;
        let tokens = [text("--oauth"), text("basic")];
        if self.is_ours() {
            let files =
                [text("--tls-cert"), certificate.as_os_str(), text("--tls-key"), key.as_os_str()];
            let settings = [&tokens[..], &[text("--tls"), text("beside")][..], &files[..]].concat();
            return server::start_with(workspace, &folder.join("other"), &settings);
        }
        let files = [text("--cert"), certificate.as_os_str(), text("--key"), key.as_os_str()];
        emulator::start_with(workspace, "https", &[&tokens[..], &files[..]].concat())
    }

    /// Writes the file that tells the tests what they run against, and what is known to fail there.
    fn describe(
        &self,
        folder: &Path,
        endpoints: &Endpoints,
        others: &Endpoints,
        front: &str,
    ) -> Result<PathBuf> {
        let path = folder.join("target.json");
        let text = json!({
            "name": self.name,
            "account": self.account,
            "key": self.key,
            "endpoints": endpoints,
            "other_endpoints": others,
            "certificate": workspace::root().join(CERTIFICATE),
            "gaps": self.gaps(front)?,
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
    fn both_sdks_have_the_same_tests_of_every_front() {
        for front in ["tables", "queues", "blobs", "documents", "bus"] {
            same_names(front).unwrap();
        }
        assert!(names(Sdk::Js, "tables").unwrap().len() > 30);
        assert!(Sdk::Js.tests("nothing").is_err());
    }

    #[test]
    fn the_targets_of_the_repository_can_be_read() {
        for name in ["ours", "fleet", "azurite"] {
            Target::named(name).unwrap();
        }
    }
}
