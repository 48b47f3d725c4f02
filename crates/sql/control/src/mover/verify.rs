//! Verification while writers go on: counts and checksums of all rows but those whose changes wait in the outboxes.
//!
//! The snapshot of the source that the sums are made in also has the outboxes. The target is written by the mover alone, which rests
//! meanwhile. So rows that are in no outbox must be equal, whatever is written at the same time.

use lazuli_store::{Error, Result};

use super::copy::{read, send};
use super::pass::key_table;
use super::{MovedTable, Mover, outbox_columns, same_key};
use crate::form::PlaceForm;
use crate::job::Step;
use crate::link::failed;
use crate::shape::Shape;

/// A count and a sum of hashes of rows, in any order of rows.
pub(super) fn checksum(shape: &Shape) -> String {
    format!(
        "count(*)::text || ' ' || coalesce(sum(hashtextextended(ROW({})::text, 0)::numeric), 0)::text",
        Shape::names(&shape.columns, "t")
    )
}

impl Mover<'_> {
    pub(super) async fn verify(&mut self) -> Result<()> {
        self.ensure_open().await?;
        self.make_key_tables().await?;
        self.source.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        for nth in 0..self.tables.len() {
            let outbox = self.tables[nth].outbox.clone();
            let here = self.source.text(&self.sum(&self.tables[nth], &outbox)).await?;
            let there = self.sum_of_target(nth).await?;
            if here != there {
                let name = &self.tables[nth].shape.name;
                let message = format!(
                    "rows of {name} differ between source ({here}) and target ({there}); \
                     cancel the move and begin it again"
                );
                return Err(Error::corrupt("sql-move-differs", message));
            }
        }
        self.source.run("COMMIT").await?;
        self.check_references().await?;
        self.advance(Step::Switch, "verified").await
    }

    /// Sums up the rows of the range whose keys are not among those of `pending`.
    fn sum(&self, table: &MovedTable, pending: &str) -> String {
        format!(
            "SELECT {} FROM {} t WHERE {} AND NOT EXISTS (SELECT 1 FROM {pending} o WHERE {})",
            checksum(&table.shape),
            table.shape.table(),
            self.within(table, "t"),
            same_key(&table.shape.key, "t", "o"),
        )
    }

    async fn sum_of_target(&mut self, nth: usize) -> Result<String> {
        let table = &self.tables[nth];
        let (columns, temporary) = (outbox_columns(&table.shape.key), key_table(table));
        let keys = format!("SELECT DISTINCT {columns} FROM {}", table.outbox);
        let pending = read(&self.source, &keys).await?;
        let query = self.sum(table, &temporary);
        let name = self.target.name.clone();
        let failed = |error: tokio_postgres::Error| failed(&name, &error);
        let transaction = self.target.client.transaction().await.map_err(failed)?;
        let clear = format!("TRUNCATE {temporary}");
        transaction.batch_execute(&clear).await.map_err(failed)?;
        let into = format!("COPY {temporary} ({columns}) FROM STDIN");
        let sink = transaction.copy_in(&into).await.map_err(failed)?;
        send(sink, &pending.rows).await.map_err(failed)?;
        let row = transaction.query_one(&query, &[]).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        Ok(row.get(0))
    }

    /// Rows that refer to a reference table must find what they refer to on the target.
    async fn check_references(&self) -> Result<()> {
        let draft = self.control.read(&self.name).await?;
        for table in &self.tables {
            for foreign in &table.shape.parents {
                let is_reference = draft.model.tables.iter().any(|it| {
                    it.table_name() == foreign.parent && it.place == PlaceForm::Reference
                });
                if !is_reference {
                    continue;
                }
                let dangling = crate::check::dangling(&table.shape, foreign);
                let query = format!("{dangling} AND {}", self.within(table, "t"));
                let count = self.target.text(&query).await?;
                if count != "0" {
                    let message = format!(
                        "{count} rows of {} refer to rows of {} that shard {} lacks; \
                         `lazuli sql check --repair` brings reference tables in step",
                        table.shape.name, foreign.parent, self.target.name
                    );
                    return Err(Error::precondition("sql-reference-behind", message));
                }
            }
        }
        Ok(())
    }
}
