//! The lane: the one line of writes of a partition. What waits is run as one batch; while its commit is on the way to
//! the disk, the next batch gathers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use lazuli_env::BoxFuture;
use lazuli_shardmap::Epoch;
use lazuli_store::{Error, Result};
use tokio::sync::oneshot;

use crate::batch::Batch;
use crate::limits::LANE_WAITING_MAX;
use crate::partition::LivePartition;
use crate::shard::LiveShard;
use crate::stats::Delta;
use crate::tx::{Transaction, Tx};
use crate::unwind::catch;

/// A transaction with somebody who waits for its answer.
pub(crate) trait Job: Send {
    /// The epoch it was routed by.
    fn epoch(&self) -> Epoch;
    /// Whether the container's policies ask for change records.
    fn records_changes(&self) -> bool;
    fn run<'a>(&'a mut self, tx: &'a mut Tx<'_>) -> BoxFuture<'a, Result<()>>;
    fn answer(self: Box<Self>, outcome: Result<()>);
}

/// What every transaction is routed by.
#[derive(Clone, Copy)]
pub(crate) struct Routed {
    pub(crate) epoch: Epoch,
    pub(crate) records_changes: bool,
}

/// What a transaction answered, and whether it added items.
pub(crate) struct Done<O> {
    pub(crate) output: O,
    pub(crate) inserted: bool,
}

/// Where the answer to a transaction comes.
pub(crate) type Answer<O> = oneshot::Receiver<Result<Done<O>>>;

pub(crate) struct TypedJob<T: Transaction> {
    transaction: Arc<T>,
    routed: Routed,
    done: Option<Done<T::Output>>,
    reply: oneshot::Sender<Result<Done<T::Output>>>,
}

impl<T: Transaction> TypedJob<T> {
    /// A job, and where its answer will come.
    pub(crate) fn pair(transaction: Arc<T>, routed: Routed) -> (Box<dyn Job>, Answer<T::Output>) {
        let (reply, answer) = oneshot::channel();
        (Box::new(Self { transaction, routed, done: None, reply }), answer)
    }
}

impl<T: Transaction> Job for TypedJob<T> {
    fn epoch(&self) -> Epoch {
        self.routed.epoch
    }

    fn records_changes(&self) -> bool {
        self.routed.records_changes
    }

    fn run<'a>(&'a mut self, tx: &'a mut Tx<'_>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            // A transaction that panics fails alone; the lane goes on.
            let output = catch(self.transaction.run(tx)).await?;
            let inserted = tx.deltas.iter().any(|delta| delta.items > 0);
            self.done = Some(Done { output, inserted });
            Ok(())
        })
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        let lost = || Error::internal("no-output", "a transaction ended without an answer");
        let Self { done, reply, .. } = *self;
        // Nobody waits any more if the caller gave up; the write stands all the same.
        let _ = reply.send(outcome.and_then(|()| done.ok_or_else(lost)));
    }
}

/// What was added to a partition since one count of it began.
pub(crate) struct SinceCount {
    /// Which count: of two at once the later one goes on.
    pub(crate) number: u64,
    pub(crate) delta: Delta,
}

/// What the holder of a lane's turn knows.
#[derive(Default)]
pub(crate) struct Turn {
    /// While the partition is being counted: what was added since the count began. None if nobody counts, or if a commit
    /// of unknown outcome has spoilt the count.
    pub(crate) since_count: Option<SinceCount>,
    /// How many counts have begun; the number of the last one.
    pub(crate) counts_begun: u64,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Box<dyn Job>>,
    /// Whether somebody is at work on this lane and will see new jobs.
    is_running: bool,
}

#[derive(Default)]
pub(crate) struct Lane {
    waiting: Mutex<Waiting>,
    /// Held while a batch runs; whoever needs several lanes takes their turns in the order of partition ids.
    pub(crate) turn: tokio::sync::Mutex<Turn>,
}

impl Lane {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn is_idle(&self) -> bool {
        !self.waiting().is_running
    }
}

/// Puts a job in line and makes sure somebody works the line off.
pub(crate) fn submit(
    shard: &Arc<LiveShard>,
    partition: &Arc<LivePartition>,
    job: Box<dyn Job>,
) -> Result<()> {
    let must_start = {
        let mut waiting = partition.lane.waiting();
        if waiting.jobs.len() >= LANE_WAITING_MAX {
            let message = format!("{LANE_WAITING_MAX} writes wait for partition {}", partition.id);
            return Err(Error::unavailable("lane-full", message));
        }
        waiting.jobs.push_back(job);
        !std::mem::replace(&mut waiting.is_running, true)
    };
    if must_start {
        let (shard_, partition) = (shard.clone(), partition.clone());
        shard.env.spawn.spawn("lane", Box::pin(work_off(shard_, partition)));
    }
    Ok(())
}

async fn work_off(shard: Arc<LiveShard>, partition: Arc<LivePartition>) {
    loop {
        let turn = partition.lane.turn.lock().await;
        let jobs: Vec<_> = {
            let mut waiting = partition.lane.waiting();
            if waiting.jobs.is_empty() {
                waiting.is_running = false;
                return;
            }
            let count = waiting.jobs.len().min(shard.settings.batch_transactions);
            waiting.jobs.drain(..count).collect()
        };
        let left = Batch::new(&shard, vec![(partition.clone(), turn)]).run(jobs).await;
        let mut waiting = partition.lane.waiting();
        for job in left.into_iter().rev() {
            waiting.jobs.push_front(job);
        }
    }
}
