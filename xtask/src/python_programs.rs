//! Programs of the Python world on a server of their own: data frames on Blobs, and the Azure CLI.
//!
//! Each has a folder with a script and the pinned packages that it needs, which go to an environment of their own.

use std::path::Path;
use std::process::Command;

use crate::conformance::Endpoints;
use crate::workspace::{Workspace, root};
use crate::{Failure, Result, process, python, server};

/// The account that every server on loopback has, and its published key.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Parquet files by pandas and pyarrow, through adlfs and through pyarrow's own Azure file system.
pub(crate) fn adlfs() -> Result {
    let program = Prepared::new("adlfs")?;
    let (server, endpoints) = program.serve()?;
    let mut command = Command::new(&program.python);
    command.arg(program.folder("parquet.py")).arg(url(&endpoints, "blobs")?);
    process::run(command.args([ACCOUNT, KEY]))?;
    server.stop()
}

/// The Azure CLI. CI does not run it: its 150 packages take two minutes and 700 MB to install.
pub(crate) fn az() -> Result {
    let program = Prepared::new("az")?;
    let (server, endpoints) = program.serve()?;
    let mut command = Command::new(&program.python);
    command.arg(program.folder("commands.py")).arg(program.python.with_file_name("az"));
    for front in ["blobs", "queues", "tables"] {
        command.arg(url(&endpoints, front)?);
    }
    process::run(command.args([ACCOUNT, KEY]))?;
    server.stop()
}

/// A program whose packages are installed.
struct Prepared {
    workspace: Workspace,
    name: &'static str,
    python: std::path::PathBuf,
}

impl Prepared {
    fn new(name: &'static str) -> Result<Self> {
        let workspace = Workspace::load()?;
        let requirements = format!("tests/programs/{name}/requirements.txt");
        let python = python::environment_of(&workspace, &requirements, &format!("python-{name}"))?;
        Ok(Self { workspace, name, python })
    }

    fn folder(&self, file: &str) -> std::path::PathBuf {
        root().join("tests/programs").join(self.name).join(file)
    }

    fn serve(&self) -> Result<(process::Background, Endpoints)> {
        let folder: &Path = &self.workspace.scratch.join(self.name);
        server::start(&self.workspace, folder)
    }
}

fn url<'a>(endpoints: &'a Endpoints, front: &str) -> Result<&'a str> {
    let url = endpoints.get(front).map(String::as_str);
    url.ok_or_else(|| Failure::failed(format!("the server does not serve {front}")))
}
