//! Settings of a store: where its database is, how it logs in, how many connections it keeps.

use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use lazuli_store::limits::{SNAPSHOT_LIFE_MAX, STALENESS_MAX};
use lazuli_store::{Error, Result};

use crate::address;
use crate::limits::PASSWORD_BYTES_MAX;

/// Of each kind, per store: 16 connections write as fast as 64 on a server with few cores.
const CONNECTIONS: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub user: String,
    /// The servers of one database: a primary and its standbys, in any order.
    pub hosts: Vec<Host>,
    pub database: String,
    /// The schema that holds the tables. Stores with different schemas share a database without meeting.
    pub schema: String,
    pub tls: Tls,
    pub password: Password,
    /// The most connections for transactions, loads and deletions.
    pub write_connections: usize,
    /// The most connections for snapshots.
    pub read_connections: usize,
    /// The most connections for reads that a standby may answer.
    pub standby_connections: usize,
    /// Whether reads that allow an old state go to a standby. It takes an address with more than one host.
    pub reads_standbys: bool,
    /// How far behind a standby may be that is read.
    pub staleness_max: Duration,
    /// How long a snapshot for several reads may be used.
    pub snapshot_life: Duration,
    /// The lowest timeline that a server may be on: the highest that anybody has seen of this database, so that a process
    /// that starts does not take an old primary for the current one.
    pub timeline_least: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub name: String,
    pub port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') {
            true => write!(f, "[{}]:{}", self.name, self.port),
            false => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    pub mode: TlsMode,
    /// The certificates that sign the server's.
    pub ca_file: Option<PathBuf>,
}

/// What libpq calls `sslmode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    Disable,
    /// Encrypted if the server can, without knowing who it is.
    Prefer,
    /// Encrypted. The server's certificate is checked if certificates to trust are named, its name is not.
    Require,
    /// Encrypted, and the server has a certificate for its name from one of those to trust.
    VerifyFull,
}

impl TlsMode {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        match text {
            "disable" => Ok(Self::Disable),
            "prefer" => Ok(Self::Prefer),
            "require" => Ok(Self::Require),
            "verify-full" => Ok(Self::VerifyFull),
            _ => Err(Error::invalid(
                "bad-database-address",
                "sslmode is one of disable, prefer, require and verify-full",
            )),
        }
    }
}

/// Where the password is. It is read at every connect, so that it can be changed while the server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Password {
    None,
    File(PathBuf),
    /// The name of an environment variable.
    Variable(String),
}

impl Password {
    /// The password itself, none where the address names none.
    pub fn read(&self) -> Result<Option<String>> {
        let failed = |what: fmt::Arguments<'_>| Err(Error::invalid("no-database-password", what));
        let text = match self {
            Self::None => return Ok(None),
            Self::File(path) => {
                let mut text = String::new();
                let read = std::fs::File::open(path)
                    .and_then(|it| it.take(PASSWORD_BYTES_MAX).read_to_string(&mut text));
                if let Err(error) = read {
                    return failed(format_args!("password file {}: {error}", path.display()));
                }
                text
            }
            Self::Variable(name) => match std::env::var(name) {
                Ok(text) => text,
                Err(_) => return failed(format_args!("environment variable {name} is not set")),
            },
        };
        Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
    }
}

impl Settings {
    pub fn new(user: String, hosts: Vec<Host>, database: String) -> Self {
        Self {
            user,
            hosts,
            database,
            schema: "lazuli".to_owned(),
            tls: Tls { mode: TlsMode::Prefer, ca_file: None },
            password: Password::None,
            write_connections: CONNECTIONS,
            read_connections: CONNECTIONS,
            standby_connections: CONNECTIONS,
            reads_standbys: true,
            staleness_max: STALENESS_MAX,
            snapshot_life: SNAPSHOT_LIFE_MAX,
            timeline_least: 0,
        }
    }

    /// What an address says: `postgres://user@host:port,host2:port2/database?sslmode=...&schema=...`. Further parameters:
    /// `sslrootcert`, `password_file`, `password_env`, `write_connections`, `read_connections`, `standby_connections` and
    /// `standby_reads`.
    pub fn parse(address: &str) -> Result<Self> {
        address::parse(address)
    }

    /// Refuses what can never work, whoever has put the settings together.
    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |what| Err(Error::invalid("bad-database-address", what));
        if self.hosts.is_empty() {
            return wrong("there is no host");
        }
        let counts = [self.read_connections, self.write_connections, self.standby_connections];
        if counts.contains(&0) {
            return wrong("a store needs connections");
        }
        address::check_schema(&self.schema)
    }

    /// The servers, for messages.
    pub(crate) fn place(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(ToString::to_string).collect();
        format!("database {} at {}", self.database, hosts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_read_from_a_file_without_the_end_of_its_line() {
        let path = std::env::temp_dir().join(format!("lazuli-password-{}", std::process::id()));
        std::fs::write(&path, "se cret\r\n").unwrap();
        let password = Password::File(path.clone());
        assert_eq!(password.read().unwrap().as_deref(), Some("se cret"));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(password.read().unwrap_err().code(), "no-database-password");
    }

    #[test]
    fn settings_that_were_put_together_wrongly_are_refused() {
        let good = Settings::parse("postgres://me@host/db").unwrap();
        good.check().unwrap();
        for wrong in [
            Settings { hosts: vec![], ..good.clone() },
            Settings { read_connections: 0, ..good.clone() },
            Settings { schema: "a; DROP TABLE b".into(), ..good.clone() },
        ] {
            assert_eq!(wrong.check().unwrap_err().code(), "bad-database-address");
        }
    }

    #[test]
    fn a_password_that_is_not_there_is_told() {
        let missing = Password::Variable("LAZULI_NO_SUCH_VARIABLE".into());
        assert_eq!(missing.read().unwrap_err().code(), "no-database-password");
        assert_eq!(Password::None.read().unwrap(), None);
    }
}
