//! Where things are: the root of the clone, the target folder, and the packages as cargo sees them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::process::unusable;
use crate::{Failure, Result, process};

/// The root of the clone, known when xtask is compiled.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root of the workspace")
}

/// A cargo that runs in the root of the clone: the one that started us.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Needed by tests, examples and benches only.
    pub(crate) dev: bool,
    /// A package of this workspace.
    pub(crate) ours: bool,
    pub(crate) features: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    pub(crate) name: String,
    /// As cargo says: `bin`, `example`, `lib`, `test`.
    pub(crate) kind: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// The folder of its manifest, from the root.
    pub(crate) folder: String,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
    /// Where everything that tooling fetches or writes goes.
    pub(crate) scratch: PathBuf,
    target: PathBuf,
}

impl Workspace {
    pub(crate) fn load() -> Result<Self> {
        let output = cargo()
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .output()
            .map_err(|error| Failure::failed(format!("cargo metadata did not start: {error}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Failure::failed(format!("cargo metadata: {said}")));
        }
        let metadata: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| Failure::failed(format!("cargo metadata is not JSON: {error}")))?;
        let target = PathBuf::from(text(&metadata["target_directory"]));
        let packages = list(&metadata["packages"]).iter().map(package).collect();
        Ok(Self { packages, scratch: target.join("xtask"), target })
    }

    /// Builds a program and says where it is. It is built as part of the whole workspace, because another choice of
    /// packages means other features and would compile the dependencies once more.
    pub(crate) fn program(&self, name: &str) -> Result<PathBuf> {
        process::run(cargo().args(["build", "--workspace", "--locked", "--bin", name]))?;
        Ok(self.target.join("debug").join(name))
    }

    /// As [`Self::program`], optimized: for what is measured.
    pub(crate) fn release_program(&self, name: &str) -> Result<PathBuf> {
        let words = ["build", "--release", "--workspace", "--locked", "--bin", name];
        process::run(cargo().args(words))?;
        Ok(self.target.join("release").join(name))
    }

    /// As [`Self::program`], for an example.
    pub(crate) fn example(&self, name: &str) -> Result<PathBuf> {
        process::run(cargo().args(["build", "--workspace", "--locked", "--example", name]))?;
        Ok(self.target.join("debug/examples").join(name))
    }

    /// Where cargo compiles to.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// The package and name of every target of a kind.
    pub(crate) fn targets(&self, kind: &str) -> Vec<(&Package, &Target)> {
        let all = self
            .packages
            .iter()
            .flat_map(|package| package.targets.iter().map(move |target| (package, target)));
        all.filter(|(_, target)| target.kind == kind).collect()
    }
}

fn package(value: &Value) -> Package {
    let manifest = PathBuf::from(text(&value["manifest_path"]));
    let folder = manifest.parent().unwrap_or(&manifest);
    let folder = folder.strip_prefix(root()).unwrap_or(folder);
    Package {
        name: text(&value["name"]),
        folder: folder.to_string_lossy().into_owned(),
        dependencies: list(&value["dependencies"]).iter().map(dependency).collect(),
        targets: list(&value["targets"]).iter().map(target).collect(),
    }
}

fn dependency(value: &Value) -> Dependency {
    Dependency {
        name: text(&value["name"]),
        dev: value["kind"] == "dev",
        ours: value["path"].is_string(),
        features: list(&value["features"]).iter().map(text).collect(),
    }
}

fn target(value: &Value) -> Target {
    Target { name: text(&value["name"]), kind: text(&value["kind"][0]) }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
/// The files of a folder whose names end like this, sorted.
pub(crate) fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|error| unusable(folder, &error))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(ending));
    paths.sort();
    Ok(paths)
}
