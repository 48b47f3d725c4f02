//! Changes of mappings that the catalog has decided: the shards' local maps take them, then the job is over.

use std::collections::BTreeMap;
use std::time::Duration;

use lazuli_store::Result;

use crate::book::Draft;
use crate::control::Control;
use crate::job::{ChangeWork, Job, Work};
use crate::local::{self, LocalChange};

/// How long a change waits for one transaction that has written to a mapping. The job tries again afterwards.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

/// Writes a change down as a job, in the same commit as the mappings themselves.
pub(crate) fn decide(draft: &mut Draft, work: ChangeWork, now_ms: u64) -> u64 {
    let number = draft.model.next_number();
    let job = Job {
        number,
        epoch: 0,
        work: Work::Change(work),
        trouble: None,
        outcome: None,
        begun_ms: now_ms,
        ended_ms: 0,
    };
    draft.jobs.insert(number, job);
    number
}

/// Lets all shards take a change, then removes the job.
pub(crate) async fn finish(control: &Control, draft: &Draft, job: &Job) -> Result<bool> {
    let Work::Change(work) = &job.work else { return Ok(true) };
    let mut by_shard: BTreeMap<u32, LocalChange> = BTreeMap::new();
    for (shard, mapping) in &work.removed {
        by_shard.entry(*shard).or_default().removed.push(*mapping);
    }
    for mapping in &work.put {
        by_shard.entry(mapping.shard).or_default().put.push(mapping.clone());
    }
    control.reached(job.number, "change-decided").await;
    for (shard, change) in &by_shard {
        // A shard that was detached meanwhile takes nothing any more.
        let Ok(shard) = draft.model.shard(*shard) else { continue };
        let mut link = control.link(shard).await?;
        local::apply(&mut link, job.number, change, DRAIN_TIME_MAX).await?;
        if work.ends_sessions {
            let mappings = change.put.iter().map(|it| it.id).chain(change.removed.iter().copied());
            for mapping in mappings {
                end_sessions(&link, mapping).await?;
            }
        }
        control.reached(job.number, "change-applied").await;
    }
    let (number, epoch) = (job.number, job.epoch);
    control
        .change(&draft.model.name, |draft| {
            draft.led(number, epoch)?;
            draft.jobs.remove(&number);
            Ok(())
        })
        .await?;
    Ok(true)
}

/// Ends the sessions that the client library has opened for a mapping. They carry its number in their names.
async fn end_sessions(link: &crate::link::Link, mapping: u64) -> Result<()> {
    let query = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
         AND pid <> pg_backend_pid() AND application_name LIKE '%lazuli mapping {mapping}'"
    );
    link.rows(&query).await.map(drop)
}
