//! Rows on the wrong shard: which they are, and how they come home.

use lazuli_sharded_sql::{ColumnType, ShardMap};
use lazuli_store::{KeyRange, Result};

use crate::book::Draft;
use crate::control::Control;
use crate::form::TableForm;
use crate::link::{Link, failed};
use crate::mover::copy;
use crate::shape::Shape;
use crate::{routes, tables};

impl Control {
    /// Copies strays to the shards that own them, unless those have a row of the key, and deletes them. Rows that no mapping
    /// holds stay.
    pub(crate) async fn bring_home(
        &self,
        draft: &Draft,
        table: &TableForm,
        map: &ShardMap,
        from: usize,
    ) -> Result<bool> {
        let mut source = self.link(&draft.model.shards[from]).await?;
        let Some(shape) = Shape::read(&source, &table.table_name()).await? else {
            return Ok(false);
        };
        let columns = tables::columns_of(table)?;
        source.run("SET session_replication_role = replica").await?;
        for (nth, shard) in draft.model.shards.iter().enumerate().filter(|it| it.0 != from) {
            let wanted = owned(map, &columns, nth);
            let mut target = self.link(shard).await?;
            target.run("SET session_replication_role = replica").await?;
            copy_missing(&mut source, &mut target, &shape, &wanted).await?;
        }
        let left = format!(
            "SELECT count(*) FROM {} t WHERE ({}) IS NOT TRUE",
            shape.table(),
            owned(map, &columns, from)
        );
        Ok(source.text(&left).await? == "0")
    }
}

/// A condition that a shard owns a row.
pub(crate) fn owned(map: &ShardMap, columns: &[(String, ColumnType)], shard: usize) -> String {
    let ranges = map.mappings.iter().filter(|it| it.shard == shard);
    let ranges: Vec<String> = ranges
        .map(|it| {
            let range = KeyRange::new(it.low.clone(), it.high.clone());
            routes::within(map, columns, "t", &range)
        })
        .collect();
    if ranges.is_empty() { "false".to_owned() } else { ranges.join(" OR ") }
}

/// Copies rows that a condition chooses and the target lacks, then deletes them on the source.
async fn copy_missing(
    source: &mut Link,
    target: &mut Link,
    shape: &Shape,
    wanted: &str,
) -> Result<()> {
    let query = format!(
        "SELECT {} FROM {} t WHERE ({wanted})",
        Shape::names(&shape.columns, "t"),
        shape.table()
    );
    let found = copy::read(source, &query).await?;
    if found.rows.is_empty() {
        return Ok(());
    }
    let name = target.name.clone();
    let failed = |error: tokio_postgres::Error| failed(&name, &error);
    let transaction = target.client.transaction().await.map_err(failed)?;
    let staged = format!(
        "CREATE TEMP TABLE lazuli_strays ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA",
        Shape::names(&shape.columns, ""),
        shape.table()
    );
    transaction.batch_execute(&staged).await.map_err(failed)?;
    let columns = Shape::names(&shape.columns, "");
    let into = format!("COPY lazuli_strays ({columns}) FROM STDIN");
    let sink = transaction.copy_in(&into).await.map_err(failed)?;
    copy::send(sink, &found.rows).await.map_err(failed)?;
    let put = format!(
        "INSERT INTO {} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM lazuli_strays \
         ON CONFLICT DO NOTHING",
        shape.table()
    );
    transaction.batch_execute(&put).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)?;
    source.run(&format!("DELETE FROM {} t WHERE ({wanted})", shape.table())).await
}
