//! A shard's local map: what it itself says it holds, and the fence rows of it.
//!
//! A change of mappings is an *operation* with a number. A shard applies it once: the number is recorded in the same
//! transaction, so that whoever finishes an operation of a process that died may repeat it.

use std::time::Duration;

use lazuli_store::Result;
use tokio_postgres::Row;

use crate::form::{MappingForm, State};
use crate::install::STRIPES;
use crate::link::Link;
use crate::routes::bytea;

/// What an operation does on one shard.
#[derive(Default)]
pub(crate) struct LocalChange {
    /// Mappings that it holds no more.
    pub(crate) removed: Vec<u64>,
    /// Mappings that it holds from now on, or holds at another epoch, with other bounds or in another state.
    pub(crate) put: Vec<MappingForm>,
}

/// Applies an operation, unless it has been applied. Waits for transactions that have written under the old epochs, for as long
/// as `wait`.
pub(crate) async fn apply(
    link: &mut Link,
    operation: u64,
    change: &LocalChange,
    wait: Duration,
) -> Result<()> {
    link.set_waits(wait, wait * 2).await?;
    let name = link.name.clone();
    let failed = |error: tokio_postgres::Error| crate::link::failed(&name, &error);
    let transaction = link.client.transaction().await.map_err(failed)?;
    let begin = format!(
        "INSERT INTO lazuli.operations VALUES ({operation}) ON CONFLICT DO NOTHING RETURNING 1"
    );
    if transaction.query(&begin, &[]).await.map_err(failed)?.is_empty() {
        return Ok(());
    }
    for id in &change.removed {
        let gone = format!(
            "DELETE FROM lazuli.local_map WHERE mapping = {id}; \
             DELETE FROM lazuli.fence WHERE mapping = {id}"
        );
        transaction.batch_execute(&gone).await.map_err(failed)?;
    }
    for mapping in &change.put {
        transaction.batch_execute(&put(mapping)?).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}

/// The statements that make a shard hold a mapping.
fn put(mapping: &MappingForm) -> Result<String> {
    let routes = mapping.routes()?;
    let high = routes.end.as_ref().map_or("NULL".to_owned(), |end| bytea(end));
    let MappingForm { id, map, epoch, .. } = mapping;
    let (low, state) = (bytea(&routes.start), mapping.state.local());
    let stripes = match mapping.state {
        State::Online => format!(
            "INSERT INTO lazuli.fence SELECT {id}, stripe, {epoch} \
             FROM generate_series(0, {STRIPES} - 1) AS stripe"
        ),
        State::ReadOnly | State::Offline => "SELECT 1".to_owned(),
    };
    // Deleting a fence row waits for the transactions that hold it, as an update of its key does.
    Ok(format!(
        "DELETE FROM lazuli.fence WHERE mapping = {id}; \
         DELETE FROM lazuli.local_map WHERE mapping = {id}; \
         INSERT INTO lazuli.local_map (mapping, map, low, high, epoch, state) \
         VALUES ({id}, {map}, {low}, {high}, {epoch}, '{state}'); {stripes}"
    ))
}

/// A row of a local map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) mapping: u64,
    pub(crate) map: u32,
    pub(crate) low: Vec<u8>,
    pub(crate) high: Option<Vec<u8>>,
    pub(crate) epoch: u64,
    pub(crate) state: String,
}

/// Everything that a shard says it holds.
pub(crate) async fn held(link: &Link) -> Result<Vec<Held>> {
    let query =
        "SELECT mapping, map, low, high, epoch, state FROM lazuli.local_map ORDER BY map, low";
    let row = |row: Row| Held {
        mapping: row.get::<_, i64>(0).cast_unsigned(),
        map: u32::try_from(row.get::<_, i64>(1)).unwrap_or(0),
        low: row.get(2),
        high: row.get(3),
        epoch: row.get::<_, i64>(4).cast_unsigned(),
        state: row.get(5),
    };
    Ok(link.rows(query).await?.into_iter().map(row).collect())
}

/// Closes a mapping for writes at the next epoch, and returns when no transaction that has written is still open. Fails if that
/// takes longer than `wait`, or if `guarding` fails; then nothing has changed.
pub(crate) async fn fence(
    link: &mut Link,
    guarding: &str,
    mapping: u64,
    epoch: u64,
    wait: Duration,
) -> std::result::Result<(), tokio_postgres::Error> {
    let milliseconds = wait.as_millis();
    let transaction = link.client.transaction().await?;
    transaction
        .batch_execute(&format!(
            "SET LOCAL statement_timeout = {milliseconds}; SET LOCAL lock_timeout = {milliseconds}; \
             {guarding}; UPDATE lazuli.fence SET epoch = {epoch} WHERE mapping = {mapping}; \
             UPDATE lazuli.local_map SET epoch = {epoch}, state = 'fenced' WHERE mapping = {mapping}"
        ))
        .await?;
    transaction.commit().await
}

/// Opens a mapping again that was fenced and stays where it is.
pub(crate) async fn unfence(link: &Link, guarding: &str, mapping: u64, epoch: u64) -> Result<()> {
    let script = format!(
        "BEGIN; {guarding}; UPDATE lazuli.fence SET epoch = {epoch} WHERE mapping = {mapping}; \
         UPDATE lazuli.local_map SET epoch = {epoch}, state = 'open' WHERE mapping = {mapping}; COMMIT"
    );
    crate::install::roll_back(link, link.run(&script).await).await
}
