//! A Python of our own: a virtual environment with pinned packages, made once and kept in the target folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, unusable};
use crate::workspace::{self, Workspace};
use crate::{Failure, Result};

/// The packages of the conformance tests, each with its exact version, also those that others bring along.
const REQUIREMENTS: &str = "tests/conformance/python/requirements.txt";

/// What Debian splits off from Python and a virtual environment needs.
const DEBIAN_PACKAGE: &str = "python3-venv";

/// The Python of the virtual environment, after making or renewing it if the requirements or Python itself changed.
pub(crate) fn environment(workspace: &Workspace) -> Result<PathBuf> {
    environment_of(workspace, REQUIREMENTS, "python")
}

/// The same with the packages of another file, in an environment of this name.
pub(crate) fn environment_of(workspace: &Workspace, file: &str, name: &str) -> Result<PathBuf> {
    let requirements = workspace::root().join(file);
    let wanted =
        std::fs::read_to_string(&requirements).map_err(|error| unusable(&requirements, &error))?;
    let wanted = format!("{}\n{wanted}", version()?);
    let folder = workspace.scratch.join(name);
    let python = folder.join("bin/python");
    let stamp = folder.join("made-from.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|made_from| made_from == wanted) {
        return Ok(python);
    }
    process::fresh_folder(&folder)?;
    make(&folder)?;
    println!("--- installing {file}");
    process::run(
        Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(["--no-deps", "--requirement"])
            .arg(&requirements),
    )?;
    // `--no-deps` keeps anything unpinned out; this finds what the pins forgot.
    process::run(Command::new(&python).args(["-m", "pip", "check"]))?;
    std::fs::write(&stamp, wanted).map_err(|error| unusable(&stamp, &error))?;
    Ok(python)
}

fn version() -> Result<String> {
    let output = Command::new("python3").arg("--version").output();
    let output = output.map_err(|error| Failure::failed(format!("python3 is missing: {error}")))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn make(folder: &Path) -> Result {
    let complete = || process::succeeds(Command::new("python3").args(["-c", "import ensurepip"]));
    if !complete() {
        install_debian_package()?;
    }
    if !complete() {
        return Err(Failure::failed("python3 has no ensurepip, so it makes no environments"));
    }
    process::run(Command::new("python3").args(["-m", "venv"]).arg(folder))
}

/// Installs missing packages in CI and as root. Elsewhere that is the decision of the machine's owner.
fn install_debian_package() -> Result {
    let in_ci = std::env::var_os("CI").is_some();
    let is_root = process::succeeds(Command::new("sh").args(["-c", "test \"$(id -u)\" = 0"]));
    if !(in_ci && is_root) {
        let message = format!("install the Debian package {DEBIAN_PACKAGE} and run this again");
        return Err(Failure::failed(message));
    }
    process::run(Command::new("apt-get").args(["update", "--quiet"]))?;
    process::run(
        Command::new("apt-get")
            .args(["install", "--quiet", "--yes", DEBIAN_PACKAGE])
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}
