//! What people and programs are told of a sharded database.

use std::sync::Arc;

use lazuli_store::{KeyRange, Result};
use serde_json::{Value, json};

use crate::book::Draft;
use crate::control::Control;
use crate::form::{PlaceForm, ShardForm, TableForm};
use crate::install;
use crate::job::{Job, Step, Work};
use crate::routes::bounds;

impl Control {
    /// All sharded databases, summed up.
    pub async fn list(&self) -> Result<Value> {
        let mut databases = Vec::new();
        for name in self.book.names().await? {
            let Some(draft) = self.book.read(&name).await? else { continue };
            databases.push(json!({
                "name": name,
                "version": draft.model.version,
                "shards": draft.model.shards.len(),
                "maps": draft.model.maps.len(),
                "tables": draft.model.tables.len(),
                "mappings": draft.mappings.len(),
                "jobs": draft.jobs.len(),
            }));
        }
        Ok(json!({ "databases": databases }))
    }

    /// One sharded database with everything that routers and people need. Secrets of logins are left out.
    pub async fn show(&self, name: &str) -> Result<Value> {
        let draft = self.read(name).await?;
        let shard_name = |id: u32| {
            draft.model.shard(id).map(|it| it.name.clone()).unwrap_or_else(|_| id.to_string())
        };
        let mut maps = Vec::new();
        for form in &draft.model.maps {
            let map = draft.map_of(form.id)?;
            let mappings: Vec<Value> = map
                .mappings
                .iter()
                .filter_map(|it| Some((it, draft.mappings.get(&it.id)?)))
                .map(|(it, form)| {
                    let routes = KeyRange::new(it.low.clone(), it.high.clone());
                    json!({
                        "id": it.id,
                        "range": bounds::print_range(&map, &routes),
                        "low": form.low,
                        "high": form.high,
                        "shard": shard_name(form.shard),
                        "epoch": it.epoch,
                        "state": form.state,
                        "lock": form.lock,
                    })
                })
                .collect();
            maps.push(json!({
                "id": form.id,
                "name": form.name,
                "kind": form.kind,
                "key": form.key,
                "moving": form.moving,
                "mappings": mappings,
            }));
        }
        let tables = tables(&draft, shard_name);
        let logins: Vec<Value> = draft
            .model
            .logins
            .iter()
            .map(|it| json!({ "name": it.name, "role": it.role }))
            .collect();
        let jobs: Vec<Value> = draft.jobs.values().map(|job| self.job(&draft, job)).collect();
        Ok(json!({
            "name": name,
            "version": draft.model.version,
            "shards": draft.model.shards,
            "maps": maps,
            "tables": tables,
            "logins": logins,
            "jobs": jobs,
        }))
    }

    /// Rows and bytes of every table on every shard, as PostgreSQL estimates them, and the shards that do not answer.
    pub async fn sizes(&self, name: &str) -> Result<Value> {
        let draft = self.read(name).await?;
        let mut shards = Vec::new();
        for shard in &draft.model.shards {
            shards.push(match self.sizes_of(&draft, shard).await {
                Ok(tables) => json!({ "shard": shard.name, "tables": tables }),
                Err(error) => json!({ "shard": shard.name, "error": error.to_string() }),
            });
        }
        Ok(json!({ "shards": shards }))
    }

    async fn sizes_of(&self, draft: &Draft, shard: &ShardForm) -> Result<Vec<Value>> {
        let link = self.link(shard).await?;
        let mut tables = Vec::new();
        for table in &draft.model.tables {
            let name = install::quoted(&table.table_name());
            let query = format!(
                "SELECT coalesce((SELECT n_live_tup FROM pg_stat_all_tables WHERE relid = to_regclass({0})), 0)::int8, \
                 coalesce(pg_total_relation_size(to_regclass({0})), 0)::int8",
                lazuli_sharded_sql::quote_literal(&name)
            );
            let rows = link.rows(&query).await?;
            let number = |nth| rows.first().map_or(0, |row| row.get::<_, i64>(nth));
            tables.push(json!({
                "table": table.table_name().to_string(), "rows": number(0), "bytes": number(1),
            }));
        }
        Ok(tables)
    }

    /// The jobs that run, and the last ones that are over.
    pub async fn jobs(&self, name: &str) -> Result<Value> {
        let draft = self.read(name).await?;
        let running = draft.jobs.values().map(|job| self.job(&draft, job));
        let finished = self.book.finished(name).await?;
        let finished = finished.iter().map(|job| self.job(&draft, job));
        Ok(json!({ "jobs": running.chain(finished).collect::<Vec<_>>() }))
    }

    /// One job, running or over.
    pub async fn show_job(self: &Arc<Self>, name: &str, number: u64) -> Result<Value> {
        let draft = self.read(name).await?;
        if let Some(job) = draft.jobs.get(&number) {
            return Ok(self.job(&draft, job));
        }
        match self.book.finished_job(name, number).await? {
            Some(job) => Ok(self.job(&draft, &job)),
            None => draft.job(number).map(|_| Value::Null),
        }
    }

    fn job(&self, draft: &Draft, job: &Job) -> Value {
        let told = self.told(&draft.model.name, job.number);
        let trouble = told.trouble.clone().or_else(|| job.trouble.clone());
        let shard_name = |id: u32| draft.model.shard(id).map(|it| it.name.clone()).ok();
        let mut value = json!({
            "job": job.number,
            "outcome": job.outcome,
            "trouble": trouble,
            "begun_ms": job.begun_ms,
            "ended_ms": job.ended_ms,
        });
        match &job.work {
            Work::Change(work) => {
                value["kind"] = json!("change");
                value["mappings"] = json!(work.put.len() + work.removed.len());
            }
            Work::Move(work) => {
                let rows = work.rows_copied.max(told.rows);
                value["kind"] = json!("move");
                value["map"] = json!(draft.model.map(work.map).map(|it| it.name.clone()).ok());
                value["mapping"] = json!(work.mapping);
                value["from"] = json!(shard_name(work.from));
                value["to"] = json!(shard_name(work.to));
                value["step"] = json!(work.step);
                value["rows"] = json!(rows);
                value["rows_expected"] = json!(work.rows_expected);
                value["changes"] = json!(work.changes_applied.max(told.changes));
                value["pause_us"] = json!(work.pause_us);
                value["retreats"] = json!(work.retreats);
                let left = work.rows_expected.saturating_sub(rows) as f64;
                let is_copying = work.step == Step::Copy && told.rows_per_second > 0.0;
                value["rows_per_second"] = json!(told.rows_per_second.round());
                value["eta_s"] = match is_copying {
                    true => json!((left / told.rows_per_second).ceil()),
                    false => Value::Null,
                };
            }
            Work::Ddl(work) => {
                value["kind"] = json!("ddl");
                value["statement"] = json!(work.statement);
                value["canary"] = json!(shard_name(work.canary));
                value["done"] =
                    json!(work.done.iter().filter_map(|it| shard_name(*it)).collect::<Vec<_>>());
            }
        }
        value
    }
}

/// The tables of a sharded database, and where their rows are.
fn tables(draft: &Draft, shard_name: impl Fn(u32) -> String) -> Vec<Value> {
    let map_name = |id: u32| draft.model.map(id).map(|it| it.name.clone()).unwrap_or_default();
    let one = |table: &TableForm| {
        let name = table.table_name();
        let (schema, short) = (&name.schema, &name.name);
        match &table.place {
            PlaceForm::Sharded { map, columns } => json!({
                "schema": schema, "name": short, "kind": "sharded",
                "map": map_name(*map), "columns": columns,
            }),
            PlaceForm::Reference => {
                json!({ "schema": schema, "name": short, "kind": "reference" })
            }
            PlaceForm::Single { shard } => json!({
                "schema": schema, "name": short, "kind": "single", "shard": shard_name(*shard),
            }),
        }
    };
    draft.model.tables.iter().map(one).collect()
}
