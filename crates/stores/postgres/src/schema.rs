//! The tables, made by us in a schema of their own. `docs/formats/postgres.md` describes them.

use lazuli_store::{Error, Result};
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::error::{DatabaseReason, failed};

/// The version of the tables. A store of a higher one was made by a later Lazuli.
pub const FORMAT: u32 = 1;

/// What a schema holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tables {
    Store,
    Blocks,
}

const STORE: &str = "
CREATE TABLE @.kv (
  p bytea NOT NULL, h bytea NOT NULL, s bytea NOT NULL, v bytea NOT NULL,
  PRIMARY KEY (p, h)
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05,
  autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.02);
CREATE TABLE @.alone (id int PRIMARY KEY) WITH (fillfactor = 50);
INSERT INTO @.alone VALUES (1);
";

const BLOCKS: &str = "
CREATE TABLE @.generations (
  generation bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  node text NOT NULL, opened timestamptz NOT NULL DEFAULT now(),
  is_swept bool NOT NULL DEFAULT false
);
CREATE TABLE @.files (
  generation bigint NOT NULL, number bigint NOT NULL,
  container bigint NOT NULL, route bytea NOT NULL, length bigint NOT NULL, crc64 bigint NOT NULL,
  PRIMARY KEY (generation, number)
);
CREATE TABLE @.pieces (
  generation bigint NOT NULL, number bigint NOT NULL, n bigint NOT NULL, d bytea NOT NULL,
  PRIMARY KEY (generation, number, n)
);
ALTER TABLE @.pieces ALTER COLUMN d SET STORAGE EXTERNAL;
";

impl Tables {
    fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Blocks => "blocks",
        }
    }

    fn statements(self) -> &'static str {
        match self {
            Self::Store => STORE,
            Self::Blocks => BLOCKS,
        }
    }
}

/// Creates the tables if they are not there, and refuses those of a later version. Two processes may do it at once: the
/// second waits for the first.
pub(crate) async fn ensure(client: &Client, schema: &str, tables: Tables) -> Result<()> {
    let wrong = |error: tokio_postgres::Error| failed(&error).context("creating tables");
    if let Some(format) = format(client, schema, tables).await? {
        return check(schema, format);
    }
    let name = tables.name();
    // Ending the transaction gives the lock back. It is taken in a statement of its own, so that what follows sees what the
    // holder before has made.
    let begin = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = '20s'; \
         SELECT pg_advisory_xact_lock(hashtext('lazuli schema {schema}'))"
    );
    client.batch_execute(&begin).await.map_err(wrong)?;
    if let Some(format) = format(client, schema, tables).await? {
        client.batch_execute("ROLLBACK").await.map_err(wrong)?;
        return check(schema, format);
    }
    let has_schema =
        exists(client, &format!("FROM pg_namespace WHERE nspname = '{schema}'")).await?;
    let has_format = has_format(client, schema).await?;
    let mut statements = String::new();
    if !has_schema {
        statements.push_str("CREATE SCHEMA @;");
    }
    if !has_format {
        statements.push_str("CREATE TABLE @.format (part text PRIMARY KEY, version int NOT NULL);");
    }
    statements.push_str(tables.statements());
    statements.push_str(&format!("INSERT INTO @.format VALUES ('{name}', {FORMAT}); COMMIT;"));
    client.batch_execute(&statements.replace('@', schema)).await.map_err(wrong)?;
    tracing::info!(schema, tables = name, "created the tables in the database");
    Ok(())
}

fn check(schema: &str, format: u32) -> Result<()> {
    if format == FORMAT {
        return Ok(());
    }
    let message = format!(
        "schema {schema} has tables of version {format}, and this Lazuli knows version {FORMAT}"
    );
    Err(Error::invalid(DatabaseReason::Format, message))
}

/// The version of the tables that are there.
async fn format(client: &Client, schema: &str, tables: Tables) -> Result<Option<u32>> {
    if !has_format(client, schema).await? {
        return Ok(None);
    }
    let name = tables.name();
    let query = format!("SELECT version FROM {schema}.format WHERE part = '{name}'");
    let version = first(client, &query).await?;
    Ok(version.and_then(|version| version.parse().ok()))
}

async fn has_format(client: &Client, schema: &str) -> Result<bool> {
    let of_schema = format!(
        "FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace \
         WHERE nspname = '{schema}' AND relname = 'format'"
    );
    exists(client, &of_schema).await
}

/// Asks the catalog's tables, and not a function such as `to_regclass`: that answers from a cache, which may not know yet what
/// another session has created while this one waited for its lock.
async fn exists(client: &Client, rows: &str) -> Result<bool> {
    Ok(first(client, &format!("SELECT EXISTS (SELECT 1 {rows})")).await?.as_deref() == Some("t"))
}

async fn first(client: &Client, query: &str) -> Result<Option<String>> {
    let answer = client.simple_query(query).await.map_err(|error| failed(&error))?;
    Ok(answer.into_iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}
