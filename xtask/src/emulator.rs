//! Azurite, the emulator that our answers are compared with: installed at a pinned version, started on free ports.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::conformance::Endpoints;
use crate::process::{self, Background};
use crate::workspace::Workspace;
use crate::{Result, node};

/// The folder with the pinned version and its lock file.
const PINNED: &str = "tests/conformance/azurite";

/// How long the emulator may take until it accepts connections.
const READY_WAIT: Duration = Duration::from_secs(60);

/// The script itself, not the wrapper in `.bin`: killing it must kill the emulator.
const SCRIPT: &str = "node_modules/azurite/dist/src/azurite.js";

/// Where the emulator's script is, after installing it.
pub(crate) fn install(workspace: &Workspace) -> Result<PathBuf> {
    Ok(node::packages(workspace, PINNED, "azurite")?.join(SCRIPT))
}

pub(crate) fn start(workspace: &Workspace) -> Result<(Background, Endpoints)> {
    let folder = node::packages(workspace, PINNED, "azurite")?;
    let mut endpoints = Endpoints::new();
    let mut command = Command::new("node");
    command.current_dir(&folder).arg(SCRIPT);
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
