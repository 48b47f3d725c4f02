//! The emulators that we are compared with, at pinned versions: Azurite, which is also started here, on free ports, and the
//! one of documents, whose speed is compared.

use std::ffi::OsStr;
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

/// The folder with the pinned version of the emulator of documents, and that of its package.
const PINNED_DOCUMENTS: &str = "tests/conformance/vercel";
const PACKAGE_DOCUMENTS: &str = "node_modules/@vercel/cosmosdb-server";

/// Where the package of the emulator of documents is, after installing it.
pub(crate) fn install_documents(workspace: &Workspace) -> Result<PathBuf> {
    Ok(node::packages(workspace, PINNED_DOCUMENTS, "vercel")?.join(PACKAGE_DOCUMENTS))
}

/// Where Azurite's script is, after installing it.
pub(crate) fn install(workspace: &Workspace) -> Result<PathBuf> {
    Ok(node::packages(workspace, PINNED, "azurite")?.join(SCRIPT))
}

pub(crate) fn start(workspace: &Workspace) -> Result<(Background, Endpoints)> {
    start_with(workspace, "http", &[])
}

/// Starts it with further options. With a certificate among them it speaks HTTPS and nothing else.
pub(crate) fn start_with(
    workspace: &Workspace,
    scheme: &str,
    options: &[&OsStr],
) -> Result<(Background, Endpoints)> {
    let folder = node::packages(workspace, PINNED, "azurite")?;
    let mut endpoints = Endpoints::new();
    let mut command = Command::new("node");
    command.current_dir(&folder).arg(SCRIPT);
    command.args(["--skipApiVersionCheck", "--silent", "--disableTelemetry"]);
    command.arg("--inMemoryPersistence").args(options);
    for (front, option) in
        [("blobs", "--blobPort"), ("queues", "--queuePort"), ("tables", "--tablePort")]
    {
        let port = process::free_port()?;
        command.args([option, &port.to_string()]);
        endpoints.insert(front.to_owned(), format!("{scheme}://127.0.0.1:{port}"));
    }
    let log = folder.join(format!("azurite-{scheme}.log"));
    let mut emulator = Background::start(&mut command, &log)?;
    emulator.wait_for(READY_WAIT, || {
        let listening = |url: &String| {
            let address = url.split_once("://").map_or(url.as_str(), |(_, address)| address);
            TcpStream::connect(address).is_ok()
        };
        endpoints.values().all(listening).then_some(())
    })?;
    Ok((emulator, endpoints))
}
