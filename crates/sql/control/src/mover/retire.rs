//! After the switch, or after a move was called off: rows that are on the wrong side are deleted, and triggers and outboxes removed.

use std::time::Duration;

use lazuli_store::Result;
use tokio::time::{Instant, sleep};

use super::{Mover, beyond, outbox};
use crate::book::Draft;
use crate::link::Link;
use crate::shape::Shape;

/// How many rows are deleted in one transaction.
const DELETED_AT_ONCE: usize = 2_000;
/// The mover rests as long as a deletion took, so that it uses half of what one session can.
const REST_MAX: Duration = Duration::from_millis(500);

impl Mover<'_> {
    /// Deletes the rows of the source, which nobody reads any more.
    pub(super) async fn retire(&mut self) -> Result<()> {
        let version = self.control.read(&self.name).await?.model.version;
        // Statements that began before the switch may still read the source.
        self.control.wait_for_older(&self.name, version).await;
        for table in &self.tables {
            outbox::unmake(self, table).await?;
            self.control.reached(self.job, "outbox-gone").await;
        }
        self.delete_range(true).await?;
        self.finish("done").await
    }

    /// Undoes a move that has not been committed.
    pub(super) async fn cancel(&mut self) -> Result<()> {
        self.ensure_open().await?;
        for table in &self.tables {
            outbox::unmake(self, table).await?;
        }
        self.delete_range(false).await?;
        self.finish("cancelled").await
    }

    /// Deletes the rows of the range on the source, or else on the target: children first, in small transactions.
    async fn delete_range(&mut self, is_source: bool) -> Result<()> {
        for nth in (0..self.tables.len()).rev() {
            let mut last: Option<Vec<String>> = None;
            loop {
                let begun = Instant::now();
                let (keys, delete) = self.deletion(nth, last.as_ref());
                let link = if is_source { &self.source } else { &self.target };
                let Some(bound) = last_key(link, &keys, self.tables[nth].shape.key.len()).await?
                else {
                    break;
                };
                let until = beyond(&self.tables[nth].shape.key, Some(&bound), "t", "<=");
                let (guard, taken) = (self.guard(), self.taken());
                let name = link.name.clone();
                let failed = |error: tokio_postgres::Error| crate::link::failed(&name, &error);
                let link = if is_source { &mut self.source } else { &mut self.target };
                let transaction = link.client.transaction().await.map_err(failed)?;
                if transaction.query(&guard, &[]).await.map_err(failed)?.is_empty() {
                    return Err(taken);
                }
                transaction.batch_execute(&format!("{delete}{until}")).await.map_err(failed)?;
                transaction.commit().await.map_err(failed)?;
                self.control.reached(self.job, "rows-deleted").await;
                last = Some(bound);
                sleep(begun.elapsed().min(REST_MAX)).await;
            }
        }
        Ok(())
    }

    /// The query for the next keys to delete, and the statement that deletes up to a bound.
    fn deletion(&self, nth: usize, last: Option<&Vec<String>>) -> (String, String) {
        let table = &self.tables[nth];
        let (shape, within) = (&table.shape, self.within(table, "t"));
        let after = beyond(&shape.key, last, "t", ">");
        let texts: Vec<String> = shape
            .key
            .iter()
            .map(|it| format!("t.{}::text", lazuli_sharded_sql::quote_ident(&it.name)))
            .collect();
        let keys = format!(
            "SELECT {} FROM {} t WHERE {within}{after} ORDER BY {} LIMIT {DELETED_AT_ONCE}",
            texts.join(", "),
            shape.table(),
            Shape::names(&shape.key, "t"),
        );
        (keys, format!("DELETE FROM {} t WHERE {within}{after}", shape.table()))
    }

    /// Removes what the job has left on the shards, and the job itself.
    async fn finish(&mut self, outcome: &str) -> Result<()> {
        let (job, epoch, map) = (self.job, self.epoch, self.work.map);
        self.control.reached(job, "cleaned").await;
        for link in [&self.source, &self.target] {
            link.run(&format!("DELETE FROM lazuli.progress WHERE job = {job}")).await?;
        }
        let now = self.control.env.clock.now_ms();
        let work = self.work.clone();
        let edit = |draft: &mut Draft| {
            let mut ended = draft.led(job, epoch)?.clone();
            ended.work = crate::job::Work::Move(work.clone());
            ended.outcome = Some(outcome.to_owned());
            ended.ended_ms = now;
            draft.jobs.remove(&job);
            draft.finished.push(ended);
            let maps = draft.model.maps.iter_mut().filter(|it| it.id == map);
            maps.for_each(|it| it.moving.retain(|number| *number != job));
            Ok(())
        };
        self.control.change(&self.name, edit).await?;
        self.control.reached(job, "finished").await;
        // The rows of `lazuli.moves` stay: a leader that was paused finds there that it leads no more.
        Ok(())
    }
}

/// The last of the keys that a query finds.
async fn last_key(link: &Link, query: &str, columns: usize) -> Result<Option<Vec<String>>> {
    let rows = link.rows(query).await?;
    Ok(rows.last().map(|row| (0..columns).map(|nth| row.get(nth)).collect()))
}
