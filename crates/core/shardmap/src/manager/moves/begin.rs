//! A move begins, and changes hands.

use lazuli_env::Id;
use lazuli_store::Error;

use super::{NewMove, arrival, arrived, find, replace, step};
use crate::catalog::{CatalogChange, Decision, Draft, Lease};
use crate::manager::partitions::check_clean;
use crate::manager::placing::check_placement;
use crate::manager::{known, unclaimed};
use crate::{Move, MoveStage, Partition, PartitionState};

/// The most moves that may be under way at once.
const MOVES_MAX: usize = 10_000;

pub(super) struct Begin {
    pub(super) new: NewMove,
    pub(super) token: Id,
    pub(super) begun_ms: u64,
}

impl CatalogChange for Begin {
    type Output = Move;

    async fn decide(&self, draft: &mut Draft) -> Decision<Move> {
        let view = draft.view();
        let before = known(view, self.new.partition).await?.partition;
        let target = view.shard(self.new.target).await?;
        if before.shard == target.id {
            let message = format!("partition {} is on shard {} already", before.id, target.name);
            return Err(Error::precondition("same-shard", message).into());
        }
        let container = view.container(before.container).await?;
        check_placement(&container, &before.routes, &target)?;
        check_clean(draft, &container, &before.routes, target.id).await?;
        if draft.view().moves().await?.len() >= MOVES_MAX {
            let message = format!("{MOVES_MAX} moves are under way");
            return Err(Error::unavailable("too-many-moves", message).into());
        }
        let moving = Move {
            number: draft.next_version(),
            epoch: 1,
            token: self.token,
            partition: before.id,
            container: before.container,
            routes: before.routes.clone(),
            source: before.shard,
            target: target.id,
            stage: MoveStage::Copying,
            is_paused: false,
            pause_limit_ms: self.new.pause_limit_ms,
            bytes_per_second: self.new.bytes_per_second,
            begun_ms: self.begun_ms,
        };
        // A partition that takes no writes needs no records of them.
        let state = match before.state {
            PartitionState::Online => PartitionState::Sending,
            other => other,
        };
        let after = Partition { state, epoch: before.epoch.next(), ..before.clone() };
        let mut operation = step("begin move", before.container);
        replace(&mut operation, &before, after, Some(self.token));
        operation.arrivals.push(arrival(&moving));
        draft.begin(operation)?;
        draft.put_move(&moving);
        Ok(moving)
    }
}

pub(super) struct Take {
    pub(super) number: u64,
    pub(super) lease: Option<Lease>,
}

impl CatalogChange for Take {
    type Output = Move;

    async fn decide(&self, draft: &mut Draft) -> Decision<Move> {
        let before = find(draft.view(), self.number).await?;
        unclaimed(draft.view(), before.container, &before.routes).await?;
        // What is decided needs no leader: any engine cleans up.
        if !before.is_open() {
            return Ok(before);
        }
        let after = Move { epoch: before.epoch + 1, ..before.clone() };
        let mut operation = step("take move", before.container);
        operation.claims.push(before.routes.clone());
        operation.arrived.push(arrived(&before));
        operation.arrivals.push(arrival(&after));
        draft.begin(operation)?;
        draft.put_move(&after);
        Ok(after)
    }

    fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref()
    }
}
