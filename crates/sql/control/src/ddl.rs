//! Changes of the schema on all shards: the canary first, then the others, each once.
//!
//! A statement runs in one transaction with a row that says so, so a job that is repeated after a crash does not run it twice. While
//! one is at work no move begins, and none begins while a move is at work: a move needs the schema as it is.

use std::sync::Arc;
use std::time::Duration;

use lazuli_store::{Error, Result};

use crate::SqlReason;
use crate::book::Draft;
use crate::control::{Control, refused};
use crate::form::PlaceForm;
use crate::install::{self, roll_back};
use crate::job::{DdlWork, Job, Work};
use crate::shape::Shape;

/// The longest statement.
const STATEMENT_BYTES_MAX: usize = 48 * 1024;
/// How long it waits for a lock before it lets others pass and tries again.
const LOCK_TIME_MAX: Duration = Duration::from_secs(2);

impl Control {
    /// Begins to run a statement on all shards, and answers the job. With `waits`, it stops after the canary until it is resumed.
    pub async fn begin_ddl(
        self: &Arc<Self>,
        name: &str,
        statement: &str,
        canary: Option<&str>,
        waits: bool,
    ) -> Result<u64> {
        if statement.trim().is_empty() || statement.len() > STATEMENT_BYTES_MAX {
            let message = format!("a statement has 1 to {STATEMENT_BYTES_MAX} bytes");
            return Err(Error::invalid("bad-sql-statement", message));
        }
        let now = self.env.clock.now_ms();
        let edit = |draft: &mut Draft| {
            let is_at_work = |it: &&Job| matches!(it.work, Work::Move(_) | Work::Ddl(_));
            if let Some(job) = draft.jobs.values().find(is_at_work) {
                let message = format!("job {} needs the schema as it is; wait for it", job.number);
                return Err(refused("sql-jobs-running", message));
            }
            let canary = match canary {
                Some(name) => draft.model.shard_named(name)?.id,
                None => draft.model.shards.first().map_or(0, |it| it.id),
            };
            let number = draft.model.next_number();
            let work = DdlWork {
                statement: statement.to_owned(),
                canary,
                done: Vec::new(),
                waits_after_canary: waits,
            };
            let job = Job {
                number,
                epoch: 0,
                work: Work::Ddl(work),
                trouble: None,
                outcome: None,
                begun_ms: now,
                ended_ms: 0,
            };
            draft.jobs.insert(number, job);
            Ok(number)
        };
        let (number, _) = self.change(name, edit).await?;
        self.lead(name, number);
        Ok(number)
    }

    /// Lets a statement that was tried on the canary go on to all shards.
    pub async fn resume_ddl(self: &Arc<Self>, name: &str, number: u64) -> Result<()> {
        let edit = |draft: &mut Draft| {
            draft.job(number)?;
            match draft.jobs.get_mut(&number).map(|it| &mut it.work) {
                Some(Work::Ddl(work)) => {
                    work.waits_after_canary = false;
                    Ok(())
                }
                _ => Err(refused("sql-not-ddl", "only changes of the schema wait for that")),
            }
        };
        self.change(name, edit).await?;
        self.lead(name, number);
        Ok(())
    }
}

/// Runs the statement on the next shard; true when all have it.
pub(crate) async fn step(control: &Arc<Control>, draft: &Draft, job: &Job) -> Result<bool> {
    let Work::Ddl(work) = &job.work else { return Ok(true) };
    let order = || {
        let canary = draft.model.shards.iter().filter(|it| it.id == work.canary);
        canary.chain(draft.model.shards.iter().filter(|it| it.id != work.canary))
    };
    let (number, epoch) = (job.number, job.epoch);
    let Some(shard) = order().find(|it| !work.done.contains(&it.id)) else {
        let now = control.env.clock.now_ms();
        let edit = |draft: &mut Draft| {
            let mut ended = draft.led(number, epoch)?.clone();
            ended.outcome = Some("done".to_owned());
            ended.ended_ms = now;
            draft.jobs.remove(&number);
            draft.finished.push(ended);
            Ok(())
        };
        control.change(&draft.model.name, edit).await?;
        return Ok(true);
    };
    if work.waits_after_canary && work.done.contains(&work.canary) {
        let trouble = "waits after the canary: resume it or cancel it".to_owned();
        control.tell(&draft.model.name, number, |told| told.trouble = Some(trouble));
        tokio::time::sleep(Duration::from_millis(500)).await;
        return Ok(false);
    }
    let ran = run_on(control, draft, shard, number, &work.statement).await;
    let is_refused = ran.as_ref().is_err_and(|it| it.is(SqlReason::ShardRefused));
    // The first shard decides whether the statement is a good one. Afterwards it must come to all.
    if is_refused && work.done.is_empty() {
        let error = ran.map_or_else(|error| error.to_string(), |()| String::new());
        let now = control.env.clock.now_ms();
        let edit = |draft: &mut Draft| {
            let mut ended = draft.led(number, epoch)?.clone();
            ended.outcome = Some("failed".to_owned());
            ended.trouble = Some(error.clone());
            ended.ended_ms = now;
            draft.jobs.remove(&number);
            draft.finished.push(ended);
            Ok(())
        };
        control.change(&draft.model.name, edit).await?;
        return Ok(true);
    }
    ran?;
    control.reached(number, "ddl-ran").await;
    let id = shard.id;
    let edit = |draft: &mut Draft| {
        if let Work::Ddl(work) = &mut draft.led(number, epoch)?.work {
            work.done.push(id);
        }
        Ok(())
    };
    control.change(&draft.model.name, edit).await?;
    Ok(false)
}

/// Runs the statement on one shard unless it has run there, and puts triggers back that it took away.
async fn run_on(
    control: &Control,
    draft: &Draft,
    shard: &crate::form::ShardForm,
    number: u64,
    statement: &str,
) -> Result<()> {
    let link = control.link(shard).await?;
    let begun = format!("SELECT count(*) FROM lazuli.operations WHERE number = {number}");
    if link.text(&begun).await? == "0" {
        let script = format!(
            "BEGIN; SET LOCAL lock_timeout = {}; INSERT INTO lazuli.operations VALUES ({number}); {}; COMMIT",
            LOCK_TIME_MAX.as_millis(),
            statement.trim().trim_end_matches(';')
        );
        roll_back(&link, link.run(&script).await).await?;
    }
    for table in &draft.model.tables {
        let name = table.table_name();
        let Some(shape) = Shape::read(&link, &name).await? else { continue };
        if let PlaceForm::Sharded { columns, .. } = &table.place {
            let is_there = |name: &String| shape.columns.iter().any(|it| it.name == *name);
            if columns.iter().all(|it| is_there(&it.name)) {
                install::guard_table(&link, &draft.model, table, shard).await?;
            }
        }
    }
    Ok(())
}
