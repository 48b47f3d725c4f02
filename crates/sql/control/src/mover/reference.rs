//! Reference tables: the same rows on every shard.
//!
//! Writers reach all shards by two-phase commit through the endpoint. A shard that joins gets a copy while writers wait: the table
//! is locked in SHARE mode on the shard that is copied from, so it can be read all the time.

use std::collections::BTreeMap;

use lazuli_store::{Error, Result};

use super::copy::{copy_into, read, send};
use super::verify::checksum;
use crate::book::Draft;
use crate::control::Control;
use crate::form::{PlaceForm, ShardForm, TableForm};
use crate::link::{Link, failed};
use crate::shape::{self, Shape};

/// Locks on the shard that was copied from, until the new one is known to writers.
pub(crate) struct Held(Link);

impl Held {
    /// Lets writers go on.
    pub(crate) async fn release(self) {
        let _ = self.0.run("COMMIT").await;
    }
}

/// Copies all reference tables to a shard that joins, and keeps writers of them waiting until released.
pub(crate) async fn copy_all(control: &Control, draft: &Draft, to: &ShardForm) -> Result<Held> {
    let from = draft.model.shards.iter().find(|it| it.id != to.id);
    let from = from.ok_or_else(|| Error::invalid("no-sql-shards", "there is no other shard"))?;
    let source = control.link(from).await?;
    let mut target = control.link(to).await?;
    target.run("SET session_replication_role = replica").await?;
    let mut shapes = BTreeMap::new();
    for table in draft.model.tables.iter().filter(|it| it.place == PlaceForm::Reference) {
        let name = table.table_name();
        let shape = Shape::read(&source, &name).await?;
        let missing = || Error::not_found("no-sql-table", format!("there is no table {name}"));
        shapes.insert(name.clone(), shape.ok_or_else(missing)?);
    }
    source.run("BEGIN").await?;
    for name in shape::in_order(&shapes)? {
        let shape = &shapes[&name];
        source.run(&format!("LOCK TABLE {} IN SHARE MODE", shape.table())).await?;
        replace(&source, &mut target, shape).await?;
    }
    Ok(Held(source))
}

/// Brings a table that becomes a reference table in step: rows that are on one shard only are refused, an empty table is filled.
pub(crate) async fn settle(control: &Control, draft: &Draft, table: &TableForm) -> Result<()> {
    let sums = sums(control, draft, table).await?;
    let is_empty = |sum: &String| sum.starts_with("0 ");
    let full: Vec<usize> = (0..sums.len()).filter(|nth| !is_empty(&sums[*nth])).collect();
    let Some(first) = full.first() else { return Ok(()) };
    if full.iter().any(|nth| sums[*nth] != sums[*first]) {
        let message = format!(
            "the rows of {} differ between shards; `lazuli sql check --repair` makes them alike",
            table.table_name()
        );
        return Err(Error::precondition("sql-reference-differs", message));
    }
    for (nth, shard) in draft.model.shards.iter().enumerate() {
        if is_empty(&sums[nth]) {
            repair(control, draft, table, *first, shard).await?;
        }
    }
    Ok(())
}

/// Repairs the reference tables of a shard that has just joined, where they differ from those of the first one.
pub(crate) async fn bring_up(control: &Control, draft: &Draft, to: &ShardForm) -> Result<()> {
    let Some(nth) = draft.model.shards.iter().position(|it| it.id == to.id) else {
        return Ok(());
    };
    for table in draft.model.tables.iter().filter(|it| it.place == PlaceForm::Reference) {
        let sums = sums(control, draft, table).await?;
        if sums[nth] != sums[0] {
            repair(control, draft, table, 0, to).await?;
        }
    }
    Ok(())
}

/// Count and checksum of a reference table on each shard.
pub(crate) async fn sums(
    control: &Control,
    draft: &Draft,
    table: &TableForm,
) -> Result<Vec<String>> {
    let mut sums = Vec::new();
    for shard in &draft.model.shards {
        let link = control.link(shard).await?;
        let name = table.table_name();
        let missing = || Error::not_found("no-sql-table", format!("there is no table {name}"));
        let shape = Shape::read(&link, &name).await?.ok_or_else(missing)?;
        let query = format!("SELECT {} FROM {} t", checksum(&shape), shape.table());
        sums.push(link.text(&query).await?);
    }
    Ok(sums)
}

/// Makes a reference table on a shard equal to that of another shard.
pub(crate) async fn repair(
    control: &Control,
    draft: &Draft,
    table: &TableForm,
    from: usize,
    to: &ShardForm,
) -> Result<()> {
    let from = draft.model.shards.get(from).ok_or_else(|| crate::book::unknown(&to.name))?;
    let source = control.link(from).await?;
    let mut target = control.link(to).await?;
    target.run("SET session_replication_role = replica").await?;
    let name = table.table_name();
    let missing = || Error::not_found("no-sql-table", format!("there is no table {name}"));
    let shape = Shape::read(&source, &name).await?.ok_or_else(missing)?;
    source.run(&format!("BEGIN; LOCK TABLE {} IN SHARE MODE", shape.table())).await?;
    replace(&source, &mut target, &shape).await?;
    source.run("COMMIT").await
}

/// Puts all rows of the source's table in the place of the target's.
async fn replace(source: &Link, target: &mut Link, shape: &Shape) -> Result<()> {
    let query = format!("SELECT {} FROM {} t", Shape::names(&shape.columns, "t"), shape.table());
    let rows = read(source, &query).await?;
    let name = target.name.clone();
    let failed = |error: tokio_postgres::Error| failed(&name, &error);
    let transaction = target.client.transaction().await.map_err(failed)?;
    let clear = format!("DELETE FROM {}", shape.table());
    transaction.batch_execute(&clear).await.map_err(failed)?;
    let sink = transaction.copy_in(&copy_into(shape)).await.map_err(failed)?;
    send(sink, &rows.rows).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)
}
