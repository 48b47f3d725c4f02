//! Packages for Node: exactly what a lock file of ours says, installed once and kept in the target folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, unusable};
use crate::workspace::{self, Workspace};
use crate::{Failure, Result};

const LOCK: &str = "package-lock.json";

/// The folder with the packages that `pinned` names, after installing them if the lock file changed.
pub(crate) fn packages(workspace: &Workspace, pinned: &str, name: &str) -> Result<PathBuf> {
    let folder = workspace.scratch.join(name);
    let source = workspace::root().join(pinned);
    let read = |folder: &Path| std::fs::read_to_string(folder.join(LOCK)).ok();
    // Copied last, so that it also says that everything else is there.
    if read(&folder).is_some() && read(&folder) == read(&source) {
        return Ok(folder);
    }
    if !process::succeeds(Command::new("npm").arg("--version")) {
        return Err(Failure::failed("npm is missing: install the Debian packages nodejs and npm"));
    }
    let making = folder.with_extension("making");
    process::fresh_folder(&making)?;
    for name in ["package.json", LOCK] {
        copy(&source.join(name), &making.join(name))?;
    }
    println!("--- installing {pinned}");
    process::run(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&making))?;
    process::fresh_folder(&folder)?;
    std::fs::rename(&making, &folder).map_err(|error| unusable(&folder, &error))?;
    Ok(folder)
}

/// Copies the programs of a folder beside the packages, where they find what they import. What is there already is left alone:
/// others may be running it.
pub(crate) fn copy_programs(pinned: &str, folder: &Path) -> Result {
    for path in workspace::files(&workspace::root().join(pinned), ".mjs")? {
        let to = folder.join(path.file_name().unwrap_or_default());
        let read = |path: &Path| std::fs::read(path).ok();
        if read(&path) != read(&to) {
            copy(&path, &to)?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result {
    std::fs::copy(from, to).map(|_| ()).map_err(|error| unusable(from, &error))
}
