//! Passes: the rows of the keys in the outboxes are read again and take the place of what the target has.
//!
//! One snapshot of the source has the outboxes' entries and the rows. On the target all rows of these keys are deleted and those that
//! there are come in, in one transaction. Only then the entries are deleted, exactly those: an entry with a lower number may be
//! committed later.

use std::time::Duration;

use bytes::Bytes;
use lazuli_store::{Error, Result};
use tokio::time::{Instant, sleep};

use super::copy::{copy_into, read, send};
use super::{MovedTable, Mover, outbox_columns, same_key};
use crate::job::Step;
use crate::link::failed;
use crate::shape::Shape;

/// The most changes of one table in one pass.
const PASS_CHANGES_MAX: usize = 10_000;
/// How long the mover rests when there is nothing to do while it waits for the next step.
const REST: Duration = Duration::from_millis(5);
/// After so many passes the range is fenced although a pass takes long: writers are as fast as the mover, and in the fence they
/// wait. If the rest takes too long then, the move retreats.
const PASSES_MAX: u64 = 50;

/// Joins over few keys: an index serves them, whatever the planner knows of a table that is new.
const BY_INDEX: &str = "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; \
                        SET LOCAL enable_seqscan = off";

/// What one pass has found in one outbox.
#[derive(Default)]
struct Found {
    ids: Vec<i64>,
    keys: Vec<Bytes>,
    rows: Vec<Bytes>,
}

impl Mover<'_> {
    /// Makes passes until little is left.
    pub(super) async fn catch_up(&mut self) -> Result<()> {
        self.ensure_open().await?;
        self.pass_most().await?;
        let next = match self.work.retreats {
            0 => Step::Verify,
            // What was verified once stays right: later passes compare what they bring.
            _ => Step::Switch,
        };
        self.advance(next, "caught-up").await
    }

    /// Makes passes until one has brought all that there was, in half of the time that writers may have to wait.
    pub(super) async fn pass_most(&mut self) -> Result<()> {
        let limit = Duration::from_millis(self.work.options.pause_limit_ms);
        // Twice as many as what waits by now takes, for what comes in meanwhile.
        let full = 2 * self.waiting().await? / PASS_CHANGES_MAX as u64;
        for _ in 0..PASSES_MAX + full {
            let begun = Instant::now();
            let changes = self.pass(false).await?;
            self.control.reached(self.job, "passed").await;
            // The last pass, in the fence, has as much to do as this one had. A full one has left changes behind.
            if changes < PASS_CHANGES_MAX as u64 && begun.elapsed() < limit / 2 {
                break;
            }
        }
        Ok(())
    }

    /// One pass over all tables; answers how many changes it brought. A pass in the fence compares them with the source.
    pub(super) async fn pass(&mut self, is_fenced: bool) -> Result<u64> {
        let found = self.look().await?;
        let changes: u64 = found.iter().map(|it| it.ids.len() as u64).sum();
        if changes == 0 {
            sleep(if is_fenced { Duration::ZERO } else { REST }).await;
            return Ok(0);
        }
        self.bring(&found).await?;
        self.control.reached(self.job, "pass-brought").await;
        if is_fenced {
            self.compare_brought(&found).await?;
        }
        for (table, found) in self.tables.iter().zip(&found).filter(|it| !it.1.ids.is_empty()) {
            let gone = format!("DELETE FROM {} WHERE id = ANY($1)", table.outbox);
            let deleted = self.source.client.execute(&gone, &[&found.ids]).await;
            deleted.map_err(|error| self.source.failed(&error))?;
        }
        self.work.changes_applied += changes;
        let (total, name, job) = (self.work.changes_applied, &self.name, self.job);
        self.control.tell(name, job, |told| {
            told.changes = total;
            told.behind = 0;
        });
        Ok(changes)
    }

    /// Entries, keys and rows in one snapshot of the source.
    async fn look(&self) -> Result<Vec<Found>> {
        let source = &self.source;
        source.run(&format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {BY_INDEX}")).await?;
        let mut all = Vec::new();
        for table in &self.tables {
            all.push(self.look_at(table).await?);
        }
        source.run("COMMIT").await?;
        Ok(all)
    }

    async fn look_at(&self, table: &MovedTable) -> Result<Found> {
        let (key, outbox) = (&table.shape.key, &table.outbox);
        let query = format!("SELECT id FROM {outbox} ORDER BY id LIMIT {PASS_CHANGES_MAX}");
        let ids: Vec<i64> = self.source.rows(&query).await?.iter().map(|row| row.get(0)).collect();
        let Some(last) = ids.last() else { return Ok(Found::default()) };
        let columns = outbox_columns(key);
        // In this snapshot these are the entries of the list and no others.
        let keys = format!("SELECT DISTINCT {columns} FROM {outbox} WHERE id <= {last}");
        let rows = format!(
            "SELECT {} FROM ({keys}) o JOIN {} t ON {} WHERE {}",
            Shape::names(&table.shape.columns, "t"),
            table.shape.table(),
            same_key(key, "t", "o"),
            self.within(table, "t"),
        );
        let keys = read(&self.source, &keys).await?.rows;
        let rows = read(&self.source, &rows).await?.rows;
        Ok(Found { ids, keys, rows })
    }

    /// Puts what was found in the place of what the target has, in one transaction.
    async fn bring(&mut self, found: &[Found]) -> Result<()> {
        self.make_key_tables().await?;
        let (guard, taken) = (self.guard(), self.taken());
        let within: Vec<String> = self.tables.iter().map(|it| self.within(it, "t")).collect();
        let name = self.target.name.clone();
        let failed = |error: tokio_postgres::Error| failed(&name, &error);
        let transaction = self.target.client.transaction().await.map_err(failed)?;
        if transaction.query(&guard, &[]).await.map_err(failed)?.is_empty() {
            return Err(taken);
        }
        let clear: Vec<String> =
            self.tables.iter().map(|it| format!("; TRUNCATE {}", key_table(it))).collect();
        transaction
            .batch_execute(&format!("{BY_INDEX}{}", clear.concat()))
            .await
            .map_err(failed)?;
        let pairs = || self.tables.iter().zip(found).filter(|it| !it.1.ids.is_empty());
        let ranged = self.tables.iter().zip(found).zip(&within);
        for ((table, found), within) in ranged.filter(|it| !it.0.1.ids.is_empty()).rev() {
            let temporary = key_table(table);
            let columns = outbox_columns(&table.shape.key);
            let into = format!("COPY {temporary} ({columns}) FROM STDIN");
            let sink = transaction.copy_in(&into).await.map_err(failed)?;
            send(sink, &found.keys).await.map_err(failed)?;
            // A row of this key outside the range is another shardlet's, where keys do not contain the sharding key.
            let gone = format!(
                "DELETE FROM {} t USING {temporary} o WHERE {} AND {}",
                table.shape.table(),
                same_key(&table.shape.key, "t", "o"),
                within,
            );
            transaction.batch_execute(&gone).await.map_err(failed)?;
        }
        for (table, found) in pairs().filter(|it| !it.1.rows.is_empty()) {
            let sink = transaction.copy_in(&copy_into(&table.shape)).await.map_err(failed)?;
            send(sink, &found.rows).await.map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)
    }

    /// Temporary tables of the target's session that hold the keys of a pass.
    pub(super) async fn make_key_tables(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.has_key_tables, true) {
            return Ok(());
        }
        for table in &self.tables {
            let columns = table.shape.key.iter().enumerate();
            let columns: Vec<String> =
                columns.map(|(nth, column)| format!("k{} {}", nth + 1, column.sql_type)).collect();
            let made = format!(
                "CREATE TEMP TABLE IF NOT EXISTS lazuli_keys_{} ({})",
                table.form.id,
                columns.join(", ")
            );
            self.target.run(&made).await?;
        }
        Ok(())
    }

    /// Compares the rows that a pass has brought with those of the source, which is fenced.
    async fn compare_brought(&self, found: &[Found]) -> Result<()> {
        for (table, found) in self.tables.iter().zip(found).filter(|it| !it.1.ids.is_empty()) {
            let columns = outbox_columns(&table.shape.key);
            let last = found.ids.last().copied().unwrap_or(0);
            let entries =
                format!("(SELECT DISTINCT {columns} FROM {} WHERE id <= {last})", table.outbox);
            let sum = |keys: &str| {
                format!(
                    "SELECT {} FROM {keys} o JOIN {} t ON {} WHERE {}",
                    super::verify::checksum(&table.shape),
                    table.shape.table(),
                    same_key(&table.shape.key, "t", "o"),
                    self.within(table, "t"),
                )
            };
            let here = self.source.text(&sum(&entries)).await?;
            let there = self.target.text(&sum(&key_table(table))).await?;
            if here != there {
                let message = format!("rows of {} differ after the last pass", table.shape.name);
                return Err(Error::corrupt("sql-move-differs", message));
            }
        }
        Ok(())
    }

    /// How many changes wait in the outboxes.
    pub(super) async fn waiting(&self) -> Result<u64> {
        let mut count = 0;
        for table in &self.tables {
            let query = format!("SELECT count(*) FROM {}", table.outbox);
            count += self.source.text(&query).await?.parse().unwrap_or(0);
        }
        Ok(count)
    }
}

pub(super) fn key_table(table: &MovedTable) -> String {
    format!("pg_temp.lazuli_keys_{}", table.form.id)
}
