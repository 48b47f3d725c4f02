//! Lazuli itself as a program in the background: built, started on free ports, waited for.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::conformance::Endpoints;
use crate::process::{self, Background};
use crate::workspace::{self, Workspace};
use crate::{Failure, Result, python};

/// How long the server may take until it accepts connections.
const READY_WAIT: Duration = Duration::from_secs(60);

/// Starts a fleet and ends it with itself.
const FLEET_PROGRAM: &str = "tests/chaos/fleet.py";

/// Starts a server with fresh data in `folder` and waits until it says where it listens.
pub(crate) fn start(workspace: &Workspace, folder: &Path) -> Result<(Background, Endpoints)> {
    start_with(workspace, folder, &[])
}

/// The same, with further settings.
pub(crate) fn start_with(
    workspace: &Workspace,
    folder: &Path,
    settings: &[&OsStr],
) -> Result<(Background, Endpoints)> {
    let binary = workspace.program("lazuli")?;
    process::fresh_folder(folder)?;
    let ready = folder.join("ready.json");
    let mut command = Command::new(binary);
    command.arg("serve").arg("--data").arg(folder.join("data"));
    command.args(["--ports", "free", "--ready-file"]).arg(&ready).args(settings);
    let mut server = Background::start(&mut command, &folder.join("server.log"))?;
    let text = server.wait_for(READY_WAIT, || {
        // The file appears whole or not at all: the server writes it beside and renames it.
        std::fs::read_to_string(&ready).ok()
    })?;
    Ok((server, endpoints(&text)?))
}

/// Starts a fleet with fresh data: two nodes on private PostgreSQL servers, behind a proxy that sends every request to the
/// next node. Its end includes a check of all data.
pub(crate) fn start_fleet(
    workspace: &Workspace,
    folder: &Path,
    source_hosts: &str,
) -> Result<(Background, Endpoints)> {
    let binary = workspace.program("lazuli")?;
    let postgres = workspace.program("postgres-server")?;
    let python = python::environment(workspace)?;
    let folder = folder.join("fleet");
    process::fresh_folder(&folder)?;
    let ready = folder.join("ready.json");
    let mut command = Command::new(python);
    command.arg(workspace::root().join(FLEET_PROGRAM));
    command.arg("--binary").arg(binary).arg("--postgres").arg(postgres);
    command.arg("--folder").arg(&folder).arg("--ready-file").arg(&ready);
    command.args(["--", "--blob-source-hosts", source_hosts]);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let mut fleet = Background::start(&mut command, &folder.join("fleet.log"))?;
    let text = fleet.wait_for(READY_WAIT, || std::fs::read_to_string(&ready).ok())?;
    Ok((fleet, endpoints(&text)?))
}

fn endpoints(text: &str) -> Result<Endpoints> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Failure::failed(format!("the ready file is not JSON: {error}")))?;
    let Some(list) = value["endpoints"].as_object() else {
        return Err(Failure::failed("the ready file has no 'endpoints'"));
    };
    let mut endpoints = Endpoints::new();
    for (front, url) in list {
        let Some(url) = url.as_str() else {
            return Err(Failure::failed(format!("the ready file has no address for {front}")));
        };
        endpoints.insert(front.clone(), url.to_owned());
    }
    Ok(endpoints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read_from_the_ready_file() {
        let read = endpoints(r#"{"endpoints":{"tables":"http://127.0.0.1:9"}}"#).unwrap();
        assert_eq!(read["tables"], "http://127.0.0.1:9");
        assert!(endpoints(r#"{"endpoints":{"tables":["http://127.0.0.1:9"]}}"#).is_err());
        assert!(endpoints("{}").is_err());
        assert!(endpoints("{").is_err());
    }
}
