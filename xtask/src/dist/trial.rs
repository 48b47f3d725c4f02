//! Archive and package, tried as people use them: installed into an empty root, the service started, the tour taken, removed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Made, Release, output};
use crate::process::{self, unusable};
use crate::workspace::Workspace;
use crate::{Failure, Result, tour};

/// What the package must leave behind when it is removed for good: nothing below these.
const FOLDERS_OF_THE_PACKAGE: &[&str] = &["usr/bin", "etc/lazuli", "usr/lib/systemd/system"];

/// The step of the tests. It packs the program that the other steps use: an optimized one would take ten minutes to compile,
/// and what is tried here is the packing.
pub(crate) fn try_out() -> Result {
    let workspace = Workspace::load()?;
    let program = without_symbols(&workspace)?;
    let folder = workspace.scratch.join("dist-trial");
    let release = Release::of_head()?;
    let first = release.pack(&program, &folder)?;
    let sums = |folder: &Path| {
        let path = folder.join("SHA256SUMS");
        std::fs::read_to_string(&path).map_err(|error| unusable(&path, &error))
    };
    let before = sums(&folder)?;
    of(&workspace, &first)?;
    release.pack(&program, &folder)?;
    if sums(&folder)? == before {
        println!("packed twice, the files are the same byte for byte");
        return Ok(());
    }
    Err(Failure::failed("archive or package differ when they are packed once more"))
}

/// The program of the other steps, as small as the optimized one: its symbols would take minutes to compress.
fn without_symbols(workspace: &Workspace) -> Result<PathBuf> {
    let program = workspace.program("lazuli")?;
    let folder = workspace.scratch.join("dist-program");
    process::fresh_folder(&folder)?;
    let stripped = folder.join("lazuli");
    process::run(Command::new("strip").arg("-o").arg(&stripped).arg(program))?;
    Ok(stripped)
}

/// Tries what was made.
pub(super) fn of(workspace: &Workspace, made: &Made) -> Result {
    let folder = made.archive.parent().unwrap_or(Path::new("."));
    process::run(Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(folder))?;
    let unpacked = unpack(&made.archive, &folder.join("unpacked"))?;
    use_program(workspace, &unpacked.join("bin"), &unpacked.join("lazuli.toml"))?;
    let Some(package) = &made.package else { return Ok(()) };
    let root = Root::new(folder.join("root"))?;
    root.dpkg("--install", package.as_os_str())?;
    use_program(workspace, &root.0.join("usr/bin"), &root.0.join("etc/lazuli/lazuli.toml"))?;
    root.dpkg("--purge", OsStr::new("lazuli"))?;
    root.is_empty()
}

/// The one folder in an archive.
fn unpack(archive: &Path, folder: &Path) -> Result<PathBuf> {
    process::fresh_folder(folder)?;
    process::run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder))?;
    let entries = std::fs::read_dir(folder).map_err(|error| unusable(folder, &error))?;
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    match (entries.pop(), entries.is_empty()) {
        (Some(only), true) => Ok(only),
        _ => Err(Failure::failed("the archive does not hold exactly one folder")),
    }
}

/// The program knows all settings of the sample file, and the tour works with it.
fn use_program(workspace: &Workspace, programs: &Path, settings: &Path) -> Result {
    let program = programs.join("lazuli");
    println!("--- {}", output(Command::new(&program).arg("version"))?);
    let shown = output(Command::new(&program).arg("config").arg("--config").arg(settings))?;
    if !shown.lines().any(|line| line.contains("/var/lib/lazuli")) {
        return Err(Failure::failed(format!("the sample settings have no effect:\n{shown}")));
    }
    tour::take_with(workspace, programs)
}

/// An empty root with a package database of its own.
struct Root(PathBuf);

impl Root {
    fn new(folder: PathBuf) -> Result<Self> {
        process::fresh_folder(&folder)?;
        for name in ["info", "updates", "triggers"] {
            let path = folder.join("var/lib/dpkg").join(name);
            std::fs::create_dir_all(&path).map_err(|error| unusable(&path, &error))?;
        }
        let status = folder.join("var/lib/dpkg/status");
        std::fs::write(&status, "").map_err(|error| unusable(&status, &error))?;
        Ok(Self(folder))
    }

    /// The package has no scripts, so nothing runs in the root; the libraries that it depends on are those of this machine.
    fn dpkg(&self, action: &str, what: &OsStr) -> Result {
        let mut command = Command::new("dpkg");
        let force = "--force-depends,not-root";
        command.arg(format!("--root={}", self.0.display())).arg(force);
        process::run(command.arg(action).arg(what))
    }

    fn is_empty(&self) -> Result {
        let left = FOLDERS_OF_THE_PACKAGE.iter().find(|folder| self.0.join(folder).exists());
        match left {
            None => Ok(()),
            Some(folder) => Err(Failure::failed(format!("the removed package left {folder}"))),
        }
    }
}
