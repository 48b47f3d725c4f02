//! Programs of Debian's that some steps need: there already, or installed where the machine allows it.

use std::process::Command;

use crate::{Failure, Result, process};

/// Whether a program can be run, after trying to install the package of the same name. Where it cannot, the step says that
/// it was skipped; in CI, which `.ci/run` says by the variable `CI`, nothing may be skipped.
pub(crate) fn has(program: &str, version: &str) -> Result<bool> {
    let is_there = || process::succeeds(Command::new(program).arg(version));
    if is_there() {
        return Ok(true);
    }
    installed(program, "true", is_there)
}

/// The same where the program's name is not that of the package.
pub(crate) fn has_packaged(package: &str, program: &str, version: &str) -> Result<bool> {
    let is_there = || process::succeeds(Command::new(program).arg(version));
    if is_there() {
        return Ok(true);
    }
    installed(package, "true", is_there)
}

/// The same for a package that is known by a file of it.
pub(crate) fn has_file(package: &str, file: &str) -> Result<bool> {
    let is_there = || std::path::Path::new(file).exists();
    if is_there() {
        return Ok(true);
    }
    installed(package, "true", is_there)
}

/// The same for a PostgreSQL server. Debian would make and start a cluster of its own; nothing of ours uses it.
pub(crate) fn has_postgres() -> Result<bool> {
    let is_there = || process::succeeds(Command::new("sh").args(["-c", POSTGRES_IS_THERE]));
    if is_there() {
        return Ok(true);
    }
    let first = "mkdir -p /etc/postgresql-common && \
                 echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf";
    installed("postgresql", first, is_there)
}

/// The same for Lucene 8 and a compiler of Java.
pub(crate) fn has_lucene() -> Result<bool> {
    let is_there = || process::succeeds(Command::new("sh").args(["-c", LUCENE_IS_THERE]));
    if is_there() {
        return Ok(true);
    }
    installed("default-jdk-headless liblucene8-java", "true", is_there)
}

/// Its jars have no program that could be asked for a version.
const LUCENE_IS_THERE: &str =
    "ls /usr/share/java/lucene-core-8*.jar && command -v javac && command -v java";

/// Debian keeps the programs of each version in a folder of its own.
const POSTGRES_IS_THERE: &str = "ls /usr/lib/postgresql/*/bin/initdb || command -v initdb";

/// Installs a package after some preparation, and says whether it is there then.
fn installed(program: &str, first: &str, is_there: impl Fn() -> bool) -> Result<bool> {
    println!("{program} is not here: trying to install Debian's package");
    let install = format!(
        "DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
         -o Dpkg::Options::=--force-confold {program}"
    );
    // A new machine has no lists of packages yet.
    let install = format!("{first} && {{ {install} || {{ apt-get update && {install}; }}; }}");
    if process::succeeds(Command::new("sh").args(["-c", &install])) && is_there() {
        return Ok(true);
    }
    if std::env::var_os("CI").is_some() {
        return Err(Failure::failed(format!("{program} is neither here nor can it be installed")));
    }
    println!("SKIPPED: there is no {program} here; `apt-get install {program}` brings it");
    Ok(false)
}
