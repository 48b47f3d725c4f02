//! The operations of which a move consists. What happens between them, the copying, is the engine's
//! (`docs/decisions/0070-moving-a-partition.md`).
//!
//! Each is decided only for who leads the move: the job epoch is compared in the same commit.

mod begin;
mod cancel;
mod turn;

use lazuli_env::Id;
use lazuli_store::{Error, Result};

use super::{Known, Manager, known};
use crate::catalog::{ContainerChange, Decision, Entry, Lease, MapOperation, View};
use crate::local::{Arrival, Arrived};
use crate::{ContainerId, MapReason, Move, MoveStage, Partition, PartitionState, ShardId};
use begin::{Begin, Take};
use cancel::{Cancel, Clear, End, Forget, Pause};
use turn::{Commit, Fence, Reopen};

/// What is to be moved, where to, and how.
#[derive(Clone, Copy, Debug)]
pub struct NewMove {
    pub partition: Known,
    pub target: ShardId,
    pub pause_limit_ms: u64,
    /// Zero is no limit.
    pub bytes_per_second: u64,
}

impl Manager {
    /// Begins a move: the partition is locked for it, what is written from now on is written down, and the target is
    /// ready to be copied to.
    pub async fn begin_move(&self, new: NewMove) -> Result<Move> {
        let (token, begun_ms) = (self.new_token(), self.env.clock.now_ms());
        self.run(&Begin { new, token, begun_ms }).await
    }

    /// Takes the lead of a move. The former leader is refused from now on. Where several nodes share the catalog, only the
    /// holder of the lease for moves may take one.
    pub async fn take_move(&self, number: u64, lease: Option<Lease>) -> Result<Move> {
        self.run(&Take { number, lease }).await
    }

    /// Lets the source take no more writes.
    pub async fn fence_move(&self, moving: &Move) -> Result<Move> {
        self.run(&Fence { moving }).await
    }

    /// Lets the source take writes again, because the fence stood for too long. Anybody may: a leader that does not know
    /// of it cannot commit any more.
    pub async fn reopen_move(&self, number: u64) -> Result<Move> {
        self.run(&Reopen { number }).await
    }

    /// Makes the target the owner. There is no way back.
    pub async fn commit_move(&self, moving: &Move) -> Result<Move> {
        self.run(&Commit { moving }).await
    }

    /// Cancels a move, also one that another engine leads: `move-arrived` if it is too late for that. The source is open again, also if
    /// the target does not answer.
    pub async fn cancel_move(&self, number: u64) -> Result<Move> {
        self.run(&Cancel { number }).await
    }

    /// Makes garbage of what a move that was called off has copied. Again is fine.
    pub async fn clear_move(&self, number: u64) -> Result<Move> {
        self.run(&Clear { number }).await
    }

    /// Pauses or resumes a move. Its leader finds out.
    pub async fn pause_move(&self, number: u64, is_paused: bool) -> Result<Move> {
        self.run(&Pause { number, is_paused }).await
    }

    /// Forgets a move that has nothing left to do. Again is fine.
    pub async fn end_move(&self, number: u64) -> Result<()> {
        self.run(&End { number }).await
    }

    /// Makes garbage of what came to a shard by moves that the catalog does not know: it was restored from a backup.
    pub(crate) async fn reconcile_arrivals(&self, shard: ShardId) -> Result<()> {
        let local = self.local(shard)?;
        // The shard first: what it has by then, the catalog has begun. And again: a move that is over leaves it first.
        for arrival in local.arrivals()? {
            if self.catalog.moving(arrival.number).await?.is_some() {
                continue;
            }
            local.refresh().await?;
            if local.arrivals()?.contains(&arrival) {
                self.run(&Forget { arrival: &arrival }).await?;
            }
        }
        Ok(())
    }
}

/// A move, if the caller still leads it.
async fn led(view: View<'_>, moving: &Move) -> Result<Move> {
    let found = find(view, moving.number).await?;
    if found.epoch == moving.epoch {
        return Ok(found);
    }
    let message = format!("another one leads move {} now", moving.number);
    Err(Error::precondition(MapReason::MoveTaken, message))
}

async fn find(view: View<'_>, number: u64) -> Result<Move> {
    let missing =
        || Error::not_found(MapReason::MoveNotFound, format!("there is no move {number}"));
    view.moving(number).await?.ok_or_else(missing)
}

/// The partition of a move, if no write to it can go unnoticed.
async fn watched(view: View<'_>, moving: &Move) -> Decision<Partition> {
    let partition = partition_of(view, moving).await?;
    if partition.state == PartitionState::Online {
        let message = format!("partition {} was opened under its move", partition.id);
        return Err(Error::precondition(MapReason::PartitionChanged, message).into());
    }
    Ok(partition)
}

/// The partition of a move, if it is still the move's.
async fn partition_of(view: View<'_>, moving: &Move) -> Decision<Partition> {
    let entry = view.entry(moving.partition).await?;
    let here = Known { lock: Some(moving.token), ..Known::from(&entry.partition) };
    let partition = known(view, here).await?.partition;
    if partition.shard != moving.source || partition.routes != moving.routes {
        let message = format!("partition {} has changed under its move", partition.id);
        return Err(Error::precondition(MapReason::PartitionChanged, message).into());
    }
    Ok(partition)
}

fn arrival(moving: &Move) -> Arrival {
    Arrival {
        number: moving.number,
        epoch: moving.epoch,
        shard: moving.target,
        container: moving.container,
        partition: moving.partition,
        routes: moving.routes.clone(),
    }
}

fn arrived(moving: &Move) -> Arrived {
    Arrived { shard: moving.target, number: moving.number, epoch: moving.epoch }
}

/// An operation that leaves the container's own row as it is: a move is nothing that its owner has to know of.
fn step(name: &str, container: ContainerId) -> MapOperation {
    MapOperation { change: ContainerChange::None, ..MapOperation::new(name, container) }
}

/// Replaces a partition by what it becomes.
fn replace(operation: &mut MapOperation, before: &Partition, after: Partition, lock: Option<Id>) {
    operation.claims.push(before.routes.clone());
    operation.remove(before);
    operation.puts.push(Entry { partition: after, lock });
}

/// The state of a partition that is not on its way.
pub(crate) fn at_rest(state: PartitionState) -> PartitionState {
    if state.is_moving() { PartitionState::Online } else { state }
}

fn closed(moving: &Move) -> Error {
    let number = moving.number;
    match moving.stage {
        MoveStage::Arrived => Error::precondition(
            "move-arrived",
            format!("move {number} has arrived: it only goes forward"),
        ),
        MoveStage::Cancelled | MoveStage::Cleared => {
            Error::precondition("move-cancelled", format!("move {number} was called off"))
        }
        MoveStage::Copying | MoveStage::Fenced => {
            Error::precondition("move-not-fenced", format!("move {number} is not fenced"))
        }
    }
}
