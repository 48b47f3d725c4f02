//! The beginning of a move, and its calling off.

use std::sync::Arc;

use lazuli_store::{Error, Result};

use crate::book::Draft;
use crate::control::{Control, refused};
use crate::edit::Which;
use crate::form::{MappingForm, ShardForm};
use crate::job::{Job, MoveOptions, MoveWork, Step, Work};

impl Control {
    /// Begins to move a mapping to another shard, and answers the number of the job.
    pub async fn begin_move(
        self: &Arc<Self>,
        name: &str,
        which: &Which,
        to: &str,
        options: &MoveOptions,
        owner: Option<&str>,
    ) -> Result<u64> {
        let draft = self.read(name).await?;
        let mapping = draft.which(which)?;
        let target = draft.model.shard_named(to)?.clone();
        crate::mover::plan::check(self, &draft, &mapping, &target).await?;
        let now = self.env.clock.now_ms();
        let edit = |draft: &mut Draft| {
            let mapping = draft.which(which)?;
            draft.must_be_free(&mapping, owner)?;
            let target = draft.model.shard_named(to)?.clone();
            may_take(draft, &mapping, &target)?;
            let number = draft.model.next_number();
            let work = MoveWork {
                map: mapping.map,
                mapping: mapping.id,
                from: mapping.shard,
                to: target.id,
                step: Step::Prepare,
                options: options.clone(),
                rows_expected: 0,
                rows_copied: 0,
                changes_applied: 0,
                pause_us: 0,
                retreats: 0,
            };
            let job = Job {
                number,
                epoch: 0,
                work: Work::Move(work),
                trouble: None,
                outcome: None,
                begun_ms: now,
                ended_ms: 0,
            };
            draft.jobs.insert(number, job);
            let maps = draft.model.maps.iter_mut();
            maps.filter(|it| it.id == mapping.map).for_each(|it| it.moving.push(number));
            Ok(number)
        };
        let (number, _) = self.change(name, edit).await?;
        self.reached(number, "move-begun").await;
        self.lead(name, number);
        Ok(number)
    }

    /// Calls a move off that has not switched yet.
    pub async fn cancel(self: &Arc<Self>, name: &str, number: u64) -> Result<()> {
        let edit = |draft: &mut Draft| {
            draft.job(number)?;
            let job = draft.jobs.get_mut(&number).expect("it was found just now");
            match &mut job.work {
                Work::Move(work) if work.step < Step::Open => {
                    work.step = Step::Cancel;
                    // The leader notices that the job is another one by now and begins anew.
                    job.epoch += 1;
                    Ok(())
                }
                Work::Move(work) if work.step == Step::Cancel => Ok(()),
                Work::Ddl(work) if work.done.is_empty() => {
                    job.outcome = Some("cancelled".to_owned());
                    let job = job.clone();
                    draft.jobs.remove(&number);
                    draft.finished.push(job);
                    Ok(())
                }
                _ => Err(refused("sql-job-forward", "the job only goes forward from here")),
            }
        };
        self.change(name, edit).await?;
        // Whoever leads it stops at its next write; then somebody takes it.
        self.lead(name, number);
        Ok(())
    }
}

/// Refuses a target that can take no mapping, and mappings that cannot leave.
pub(crate) fn may_take(draft: &Draft, mapping: &MappingForm, target: &ShardForm) -> Result<()> {
    if mapping.shard == target.id {
        let message = format!("mapping {} is on shard {} already", mapping.id, target.name);
        return Err(Error::invalid("sql-move-nowhere", message));
    }
    if target.draining {
        let message = format!("shard {} is being emptied", target.name);
        return Err(refused("sql-shard-draining", message));
    }
    let ddl = draft.jobs.values().find(|it| matches!(it.work, Work::Ddl(_)));
    if let Some(ddl) = ddl {
        let message = format!("job {} changes the schema; moves wait for its end", ddl.number);
        return Err(refused("sql-ddl-running", message));
    }
    Ok(())
}
