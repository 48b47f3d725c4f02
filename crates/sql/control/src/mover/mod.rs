//! Moves a mapping to another shard while it is in use.
//!
//! Triggers on the source write the keys of changed rows into outboxes (`outbox`). The rows are copied in chunks of their keys (`copy`);
//! then the rows of the outboxes' keys are read again and again (`pass`) until little is left, and compared (`verify`). The range is
//! fenced, the rest is brought over, and the catalog gives the mapping to the target: from there on the move only goes
//! forward (`switch`). At last the source's rows are deleted (`retire`). The job's record has the step; what was copied is recorded on
//! the target in the same transaction as the rows. So any process can go on from any point.
//!
//! Everything that a leader writes to a shard is written under its row of `lazuli.moves`, whose key has the job's epoch: a leader that
//! was paused and replaced writes nothing any more.

pub(crate) mod copy;
mod outbox;
mod pass;
pub(crate) mod plan;
pub(crate) mod reference;
mod retire;
mod switch;
mod verify;

use std::sync::Arc;
use std::time::Duration;

use lazuli_sharded_sql::{ColumnType, ShardMap, quote_literal};
use lazuli_store::{Error, KeyRange, Result};

use crate::book::Draft;
use crate::control::Control;
use crate::form::{MappingForm, TableForm};
use crate::job::{Job, MoveWork, Step, Work};
use crate::link::{Link, sqlstate};
use crate::shape::{Column, Shape};
use crate::{local, routes, tables};

/// How long a statement that changes triggers waits for its lock before it lets others pass and tries again.
const TRIGGER_LOCK_TIME: Duration = Duration::from_millis(200);
/// How often it tries.
const TRIGGER_TRIES_MAX: usize = 300;

/// The SQLSTATE by which a shard says that another process leads a move.
const TAKEN: &str = "LZ009";

/// One move on its way.
struct Mover<'c> {
    control: &'c Arc<Control>,
    name: String,
    job: u64,
    epoch: u64,
    work: MoveWork,
    mapping: MappingForm,
    map: ShardMap,
    routes: KeyRange,
    /// Parents before children.
    tables: Vec<MovedTable>,
    source: Link,
    target: Link,
    /// Whether the target's session has the temporary tables of passes.
    has_key_tables: bool,
}

/// A table of the map that moves.
struct MovedTable {
    form: TableForm,
    shape: Shape,
    key_columns: Vec<(String, ColumnType)>,
    /// The outbox on the source.
    outbox: String,
}

/// Goes on with a move by one step; true when it is over.
pub(crate) async fn step(control: &Arc<Control>, draft: &Draft, job: &Job) -> Result<bool> {
    let Work::Move(work) = &job.work else { return Ok(true) };
    let mut mover = Mover::open(control, draft, job, work).await?;
    match work.step {
        Step::Prepare => mover.prepare(draft.model.version).await?,
        Step::Copy => mover.copy().await?,
        Step::CatchUp => mover.catch_up().await?,
        Step::Verify => mover.verify().await?,
        Step::Switch => mover.switch().await?,
        Step::Open => mover.open_target().await?,
        Step::Retire => {
            mover.retire().await?;
            return Ok(true);
        }
        Step::Cancel => {
            mover.cancel().await?;
            return Ok(true);
        }
    }
    Ok(false)
}

impl<'c> Mover<'c> {
    async fn open(
        control: &'c Arc<Control>,
        draft: &Draft,
        job: &Job,
        work: &MoveWork,
    ) -> Result<Self> {
        let source = control.link(draft.model.shard(work.from)?).await?;
        let target = control.link(draft.model.shard(work.to)?).await?;
        let mapping = draft.mapping(work.mapping)?.clone();
        let map = draft.map_of(work.map)?;
        let shapes = tables::shapes_of(draft, work.map, &source).await?;
        let tables = shapes.into_iter().map(|(form, shape)| {
            let key_columns = tables::columns_of(&form)?;
            let outbox = format!("lazuli.outbox_{}_{}", job.number, form.id);
            Ok(MovedTable { form, shape, key_columns, outbox })
        });
        let mover = Self {
            control,
            name: draft.model.name.clone(),
            job: job.number,
            epoch: job.epoch,
            work: work.clone(),
            routes: mapping.routes()?,
            mapping,
            map,
            tables: tables.collect::<Result<_>>()?,
            source,
            target,
            has_key_tables: false,
        };
        for link in [&mover.source, &mover.target] {
            mover.claim(link).await?;
            // Neither triggers nor foreign keys act on what the mover writes: the source has checked it.
            link.run("SET session_replication_role = replica").await?;
        }
        Ok(mover)
    }

    /// Becomes the leader on a shard. Waits for a transaction of the former one.
    async fn claim(&self, link: &Link) -> Result<()> {
        let (job, epoch) = (self.job, self.epoch);
        link.run(&format!(
            "BEGIN; DELETE FROM lazuli.moves WHERE job = {job} AND epoch < {epoch}; \
             INSERT INTO lazuli.moves SELECT {job}, {epoch} \
             WHERE NOT EXISTS (SELECT 1 FROM lazuli.moves WHERE job = {job}) ON CONFLICT DO NOTHING; COMMIT"
        ))
        .await?;
        let leads = link.text(&format!("SELECT epoch FROM lazuli.moves WHERE job = {job}")).await?;
        match leads == epoch.to_string() {
            true => Ok(()),
            false => Err(self.taken()),
        }
    }

    fn taken(&self) -> Error {
        let message = format!("job {} is led by another process", self.job);
        Error::precondition("sql-job-taken", message)
    }

    /// The first statement of every transaction that writes: it fails if another process leads the move by now.
    fn guard(&self) -> String {
        let (job, epoch) = (self.job, self.epoch);
        format!("SELECT 1 FROM lazuli.moves WHERE job = {job} AND epoch = {epoch} FOR KEY SHARE")
    }

    /// The same as a statement that fails by itself, for scripts.
    fn guarding(&self) -> String {
        format!(
            "DO $guard$ BEGIN PERFORM 1 FROM lazuli.moves WHERE job = {} AND epoch = {} FOR KEY SHARE; \
             IF NOT FOUND THEN RAISE EXCEPTION 'another process leads this move' USING ERRCODE = '{TAKEN}'; \
             END IF; END $guard$",
            self.job, self.epoch
        )
    }

    /// Writes down how far the move is.
    async fn advance(&mut self, step: Step, point: &'static str) -> Result<()> {
        let (job, epoch) = (self.job, self.epoch);
        self.work.step = step;
        let work = self.work.clone();
        let edit = |draft: &mut Draft| {
            draft.led(job, epoch)?.work = Work::Move(work.clone());
            Ok(())
        };
        self.control.change(&self.name, edit).await?;
        self.control.reached(job, point).await;
        Ok(())
    }

    /// Triggers on the source, and what the move needs to know of its size.
    async fn prepare(&mut self, version: u64) -> Result<()> {
        // Statements over all shards that do not know of the move would see copied rows twice.
        self.control.wait_for_older(&self.name, version).await;
        self.ensure_open().await?;
        let mut rows = 0;
        for table in &self.tables {
            outbox::make(self, table).await?;
            self.control.reached(self.job, "outbox-made").await;
            let count = format!(
                "SELECT count(*) FROM {} t WHERE {}",
                table.shape.table(),
                self.within(table, "t")
            );
            rows += self.source.text(&count).await?.parse().unwrap_or(0);
        }
        self.work.rows_expected = rows;
        self.advance(Step::Copy, "prepared").await
    }

    /// A condition that a row of a table is in the range that moves.
    fn within(&self, table: &MovedTable, alias: &str) -> String {
        routes::within(&self.map, &table.key_columns, alias, &self.routes)
    }

    /// Opens the range on the source again if a leader died while it was fenced.
    async fn ensure_open(&mut self) -> Result<()> {
        let held = local::held(&self.source).await?;
        let held = held.into_iter().find(|it| it.mapping == self.mapping.id);
        let Some(held) = held.filter(|it| it.state == "fenced") else { return Ok(()) };
        let epoch = held.epoch.max(self.mapping.epoch) + 1;
        local::unfence(&self.source, &self.guarding(), self.mapping.id, epoch).await?;
        self.mapping.epoch = epoch;
        let (job, leader, mapping) = (self.job, self.epoch, self.mapping.id);
        let edit = |draft: &mut Draft| {
            draft.led(job, leader)?;
            draft.mappings.entry(mapping).and_modify(|it| it.epoch = epoch);
            Ok(())
        };
        self.control.change(&self.name, edit).await.map(drop)
    }
}

/// Runs a statement that needs a strong lock on a table without letting others wait long for it.
async fn with_short_lock(mover: &Mover<'_>, link: &Link, statement: &str) -> Result<()> {
    let guarding = mover.guarding();
    for _ in 0..TRIGGER_TRIES_MAX {
        let script = format!(
            "BEGIN; SET LOCAL lock_timeout = {}; {guarding}; {statement}; COMMIT",
            TRIGGER_LOCK_TIME.as_millis()
        );
        match link.client.batch_execute(&script).await {
            Ok(()) => return Ok(()),
            Err(error) => {
                let _ = link.run("ROLLBACK").await;
                match sqlstate(&error) {
                    "55P03" | "40P01" => tokio::time::sleep(TRIGGER_LOCK_TIME).await,
                    TAKEN => return Err(mover.taken()),
                    _ => return Err(link.failed(&error)),
                }
            }
        }
    }
    let message = format!("shard {}: a table stays locked by a long transaction", link.name);
    Err(Error::unavailable("sql-table-locked", message))
}

/// `(k1, k2) > ('a'::t1, 'b'::t2)`, or nothing where there is no key yet.
fn beyond(key: &[Column], last: Option<&Vec<String>>, alias: &str, operator: &str) -> String {
    let Some(last) = last else { return String::new() };
    let values: Vec<String> = key
        .iter()
        .zip(last)
        .map(|(column, value)| format!("{}::{}", quote_literal(value), column.sql_type))
        .collect();
    format!(" AND ({}) {operator} ({})", Shape::names(key, alias), values.join(", "))
}

/// `a.k = b.k1 AND …`: a row of a table and a row of an outbox are of one key.
fn same_key(key: &[Column], row: &str, outbox: &str) -> String {
    let pairs: Vec<String> = key
        .iter()
        .enumerate()
        .map(|(nth, column)| {
            let name = lazuli_sharded_sql::quote_ident(&column.name);
            format!("{row}.{name} = {outbox}.k{}", nth + 1)
        })
        .collect();
    pairs.join(" AND ")
}

/// `k1, k2` for a key of so many columns.
fn outbox_columns(key: &[Column]) -> String {
    (1..=key.len()).map(|nth| format!("k{nth}")).collect::<Vec<_>>().join(", ")
}
