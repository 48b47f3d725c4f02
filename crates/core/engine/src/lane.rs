//! The lane: the one line of writes of a partition. What waits is run as one batch; while its commit is on the way to
//! the disk, the next batch gathers.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use lazuli_env::BoxFuture;
use lazuli_shardmap::local::{Access, Lanes};
use lazuli_shardmap::{ContainerId, Epoch, PartitionId};
use lazuli_store::{Error, Result};
use tokio::sync::oneshot;

use crate::batch::Batch;
use crate::derived::Rules;
use crate::limits::LANE_WAITING_MAX;
use crate::panics::caught;
use crate::partition::LivePartition;
use crate::shard::LiveShard;
use crate::tx::{Transaction, Tx};

/// A transaction with the channel for its answer.
pub(crate) trait Job: Send {
    /// The epoch it was routed by.
    fn epoch(&self) -> Epoch;
    /// Whether the container's policies ask for change records.
    fn records_changes(&self) -> bool;
    /// By which rules rows follow from the items of a container.
    fn rules(&self, container: ContainerId) -> Option<Arc<dyn Rules>>;
    fn run<'a>(&'a mut self, tx: &'a mut Tx<'_>) -> BoxFuture<'a, Result<()>>;
    fn answer(self: Box<Self>, outcome: Result<()>);
}

/// What every transaction is routed by.
pub(crate) struct Routed {
    pub(crate) epoch: Epoch,
    pub(crate) records_changes: bool,
    /// For those of its containers that have any.
    pub(crate) rules: Vec<(ContainerId, Arc<dyn Rules>)>,
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

    fn rules(&self, container: ContainerId) -> Option<Arc<dyn Rules>> {
        let found = self.routed.rules.iter().find(|(id, _)| *id == container);
        found.map(|(_, rules)| rules.clone())
    }

    fn run<'a>(&'a mut self, tx: &'a mut Tx<'_>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            // A transaction that panics fails alone; the lane goes on.
            let output = caught(self.transaction.run(tx)).await?;
            let inserted = tx.deltas.iter().any(|delta| delta.items > 0);
            self.done = Some(Done { output, inserted });
            Ok(())
        })
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        let lost = || Error::internal("no-output", "a transaction ended without an answer");
        let Self { done, reply, .. } = *self;
        // The caller may have given up; the write stands all the same.
        let _ = reply.send(outcome.and_then(|()| done.ok_or_else(lost)));
    }
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Box<dyn Job>>,
    /// Whether a task works on this lane and will see new jobs.
    is_running: bool,
}

#[derive(Default)]
pub(crate) struct Lane {
    waiting: Mutex<Waiting>,
    /// Held while a batch runs. A transaction over several lanes takes their turns in the order of partition ids.
    pub(crate) turn: Arc<tokio::sync::Mutex<()>>,
}

impl Lane {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn is_idle(&self) -> bool {
        !self.waiting().is_running
    }
}

/// Puts a job in the queue and starts a task for the queue unless there is one.
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

impl Lanes for LiveShard {
    fn hold<'a>(&'a self, partitions: &'a [PartitionId]) -> BoxFuture<'a, Box<dyn Send>> {
        Box::pin(async move {
            let mut held = Vec::with_capacity(partitions.len());
            for id in partitions {
                let partition = self.partition(*id);
                let turn = partition.lane.turn.clone().lock_owned().await;
                held.push((partition, turn));
            }
            Box::new(held) as Box<dyn Send>
        })
    }
}

/// Runs a job on several partitions, whose turns it takes in the order of their ids, as all callers do, so that no two
/// can wait for each other. It must run as a task of its own: a caller that goes away must not let go of the turns while
/// the commit is still on its way.
pub(crate) async fn run_in_turns(
    shard: Arc<LiveShard>,
    partitions: BTreeSet<(PartitionId, Epoch)>,
    job: Box<dyn Job>,
) {
    let live: Vec<_> = partitions.iter().map(|(id, _)| shard.partition(*id)).collect();
    let mut turns = Vec::with_capacity(live.len());
    for partition in &live {
        turns.push((partition.clone(), partition.lane.turn.lock().await));
    }
    let hold = async {
        let mut held = Vec::with_capacity(partitions.len());
        for (id, epoch) in &partitions {
            held.push(shard.local.held(*id, *epoch, Access::Write).await?);
        }
        Ok(held)
    };
    match hold.await {
        Ok(held) => {
            Batch::new(&shard, turns).run_held(held, vec![job]).await;
        }
        Err(error) => job.answer(Err(error)),
    }
}
