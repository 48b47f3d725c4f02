//! Programs of the Python world on a server of their own: data frames on Blobs, and the Azure CLI; and a service of theirs that
//! speaks S3, for large blobs of a fleet.
//!
//! Each has a folder with a script and the pinned packages that it needs, which go to an environment of their own.

use std::path::Path;
use std::process::Command;

use crate::conformance::{self, Endpoints};
use crate::workspace::{Workspace, cargo, root};
use crate::{Failure, Result, debian, node, process, python, server};

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

/// The S3 client of large blobs, on moto: a test of the crate that has it, with the address of the service. All of the
/// workspace is named, so that nothing is compiled again with fewer features.
pub(crate) fn s3() -> Result {
    let program = Prepared::new("s3")?;
    let mut command = Command::new(&program.python);
    command.arg(program.folder("server.py")).arg(cargo().get_program());
    process::run(command.args(["test", "--quiet", "--workspace", "--test", "s3"]))
}

/// Drivers of PostgreSQL for Python and JavaScript, psql and pgbench on the SQL endpoint over three databases.
pub(crate) fn sql_drivers() -> Result {
    let workspace = Workspace::load()?;
    debian::has_postgres()?;
    let python =
        python::environment_of(&workspace, "tests/programs/sql/requirements.txt", "python-sql")?;
    let packages = node::packages(&workspace, "tests/programs/sql", "js-sql")?;
    node::copy_programs("tests/programs/sql", &packages)?;
    let mut test = cargo();
    test.args([
        "test",
        "--workspace",
        "--locked",
        "--test",
        "endpoint",
        "--",
        "--nocapture",
        "drivers",
        "bench",
    ]);
    process::run(test.env("LAZULI_SQL_PYTHON", python).env("LAZULI_SQL_NODE", packages))
}

/// Random queries, answered by one plain database and through the SQL endpoint over three.
pub(crate) fn sql_differential() -> Result {
    debian::has_postgres()?;
    for seed in ["11", "12", "13"] {
        let mut test = cargo();
        test.args([
            "test",
            "--workspace",
            "--locked",
            "--test",
            "endpoint",
            "--",
            "--nocapture",
            "random_queries",
        ]);
        process::run(test.env("LAZULI_SQL_QUERIES", "1500").env("LAZULI_SQL_SEED", seed))?;
    }
    Ok(())
}

/// The connection strings of the emulators and the code of the services' pages on the default ports, in a network namespace of its own, which takes root.
pub(crate) fn emulators() -> Result {
    let may = process::succeeds(Command::new("unshare").args(["--net", "true"]));
    if !may && std::env::var_os("CI").is_none() {
        println!("skipped: this user cannot make network namespaces");
        return Ok(());
    }
    let workspace = Workspace::load()?;
    let mut command = Command::new(python::environment(&workspace)?);
    command.arg(root().join("tests/programs/emulators/emulators.py"));
    command.arg(workspace.program("lazuli")?).arg(node::packages(
        &workspace,
        conformance::JS,
        "js",
    )?);
    process::run(command.env("PYTHONDONTWRITEBYTECODE", "1"))
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
