//! Connections to shards, and their addresses.

use std::time::Duration;

use lazuli_sharded_sql::{ShardServer, TlsMode};
use lazuli_store::{Error, Result};
use lazuli_store_postgres::{Settings, TlsMode as AddressTls, plain};
use tokio_postgres::{Client, Row};

use crate::SqlReason;
use crate::form::ShardForm;

/// A connection to one shard, with settings under which values print alike everywhere.
pub(crate) struct Link {
    pub(crate) client: Client,
    pub(crate) name: String,
}

const SESSION: &str = "SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'postgres'; SET TimeZone = 'UTC'; \
     SET bytea_output = 'hex'; SET extra_float_digits = 1; SET statement_timeout = 0; \
     SET idle_in_transaction_session_timeout = '60s'; SET search_path = public; \
     SET client_min_messages = warning";

impl Link {
    pub(crate) async fn open(shard: &ShardForm) -> Result<Self> {
        let settings = Settings::parse(&shard.address)?;
        let client = plain::connect(&settings, "lazuli").await;
        let client = client.map_err(|error| error.context(format!("shard {}", shard.name)))?;
        let link = Self { client, name: shard.name.clone() };
        link.run(SESSION).await?;
        Ok(link)
    }

    /// Runs statements without results.
    pub(crate) async fn run(&self, statements: &str) -> Result<()> {
        self.client.batch_execute(statements).await.map_err(|error| self.failed(&error))
    }

    pub(crate) async fn rows(&self, query: &str) -> Result<Vec<Row>> {
        self.client.query(query, &[]).await.map_err(|error| self.failed(&error))
    }

    /// The only value of the only row, as text.
    pub(crate) async fn text(&self, query: &str) -> Result<String> {
        let rows = self.client.simple_query(query).await.map_err(|error| self.failed(&error))?;
        let value = rows.iter().find_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        Ok(value.unwrap_or_default())
    }

    /// Sets how long one statement may wait for locks and last, until the next call.
    pub(crate) async fn set_waits(&self, lock: Duration, statement: Duration) -> Result<()> {
        let (lock, statement) = (lock.as_millis(), statement.as_millis());
        self.run(&format!("SET lock_timeout = {lock}; SET statement_timeout = {statement}")).await
    }

    pub(crate) fn failed(&self, error: &tokio_postgres::Error) -> Error {
        failed(&self.name, error)
    }
}

/// An error of a shard as one of ours.
pub(crate) fn failed(shard: &str, error: &tokio_postgres::Error) -> Error {
    match error.as_db_error() {
        Some(told) => {
            let detail = told.detail().map(|it| format!(" ({it})")).unwrap_or_default();
            let place = told.where_().map(|it| format!(" at {it}")).unwrap_or_default();
            let code = told.code().code();
            let message = format!("shard {shard}: {}{detail} [{code}]{place}", told.message());
            match code {
                "57P01" | "57P02" | "57P03" => Error::unavailable("sql-shard-down", message),
                _ => Error::precondition(SqlReason::ShardRefused, message),
            }
        }
        None => Error::unavailable("sql-shard-down", format!("shard {shard}: {error}")),
    }
}

/// The SQLSTATE of an error, empty if the server did not send one.
pub(crate) fn sqlstate(error: &tokio_postgres::Error) -> &str {
    error.code().map_or("", |code| code.code())
}

/// The parts of an address for whoever speaks the protocol himself. The password is read now.
pub(crate) fn server(address: &str) -> Result<ShardServer> {
    let settings = Settings::parse(address)?;
    let roots = |path: &std::path::Path| {
        std::fs::read_to_string(path).map_err(|error| {
            let message = format!("certificates to trust {}: {error}", path.display());
            Error::invalid("bad-database-tls", message)
        })
    };
    let tls = match (settings.tls.mode, &settings.tls.ca_file) {
        (AddressTls::Disable | AddressTls::Prefer, _) => TlsMode::Off,
        (AddressTls::VerifyFull, Some(path)) => TlsMode::Verify { roots: roots(path)? },
        (AddressTls::Require | AddressTls::VerifyFull, _) => TlsMode::Require,
    };
    let host = settings.hosts.first().ok_or_else(|| {
        Error::invalid("bad-database-address", "the address of a shard names no host")
    })?;
    Ok(ShardServer {
        host: host.name.clone(),
        port: host.port,
        database: settings.database.clone(),
        user: settings.user.clone(),
        password: settings.password.read()?,
        tls,
    })
}
