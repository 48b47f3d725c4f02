//! Azurite, the emulator that our answers are compared with: installed at a pinned version, started on free ports.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::conformance::Endpoints;
use crate::process::{self, Background, unusable};
use crate::workspace::{self, Workspace};
use crate::{Failure, Result};

/// The folder with the pinned version and its lock file.
const PINNED: &str = "tests/conformance/azurite";

/// How long the emulator may take until it accepts connections.
const READY_WAIT: Duration = Duration::from_secs(60);

pub(crate) fn start(workspace: &Workspace) -> Result<(Background, Endpoints)> {
    let folder = workspace.scratch.join("azurite");
    install(&folder)?;
    let mut endpoints = Endpoints::new();
    // The script itself, not the wrapper in `.bin`: killing it must kill the emulator.
    let mut command = Command::new("node");
    command.current_dir(&folder).arg("node_modules/azurite/dist/src/azurite.js");
    let options = ["--skipApiVersionCheck", "--silent", "--disableTelemetry"];
    command.args(options).arg("--inMemoryPersistence");
    for (front, option) in
        [("blobs", "--blobPort"), ("queues", "--queuePort"), ("tables", "--tablePort")]
    {
        let port = process::free_port()?;
        command.args([option, &port.to_string()]);
        endpoints.insert(front.to_owned(), format!("http://127.0.0.1:{port}"));
    }
    let mut emulator = Background::start(&mut command, &folder.join("azurite.log"))?;
    emulator.wait_for(READY_WAIT, || {
        let listening =
            |url: &String| TcpStream::connect(url.trim_start_matches("http://")).is_ok();
        endpoints.values().all(listening).then_some(())
    })?;
    Ok((emulator, endpoints))
}

/// Installs exactly what the lock file says, unless that was done before.
fn install(folder: &Path) -> Result {
    let pinned = workspace::root().join(PINNED);
    let lock = "package-lock.json";
    let read = |folder: &Path| std::fs::read_to_string(folder.join(lock)).ok();
    // Copied last, so that it also says that everything else is there.
    if read(folder).is_some() && read(folder) == read(&pinned) {
        return Ok(());
    }
    if !process::succeeds(Command::new("npm").arg("--version")) {
        return Err(Failure::failed("npm is missing: install the Debian packages nodejs and npm"));
    }
    let making = folder.with_extension("making");
    process::fresh_folder(&making)?;
    for name in ["package.json", lock] {
        let copied = std::fs::copy(pinned.join(name), making.join(name));
        copied.map_err(|error| unusable(&pinned.join(name), &error))?;
    }
    println!("--- installing {PINNED}");
    process::run(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&making))?;
    process::fresh_folder(folder)?;
    std::fs::rename(&making, folder).map_err(|error| unusable(folder, &error))
}
