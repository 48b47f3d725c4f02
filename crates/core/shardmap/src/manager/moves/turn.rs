//! The fence, and the commit behind it.

use super::{arrived, at_rest, closed, find, led, replace, step, watched};
use crate::catalog::{CatalogChange, Decision, Draft};
use crate::manager::placing::check_placement;
use crate::{Move, MoveStage, Partition, PartitionState};

pub(super) struct Fence<'a> {
    pub(super) moving: &'a Move,
}

impl CatalogChange for Fence<'_> {
    type Output = Move;

    async fn decide(&self, draft: &mut Draft) -> Decision<Move> {
        let moving = led(draft.view(), self.moving).await?;
        if !moving.is_open() {
            return Err(closed(&moving).into());
        }
        let before = watched(draft.view(), &moving).await?;
        turn(draft, moving, &before, MoveStage::Fenced)
    }
}

/// Takes a fence down, also one of another leader.
pub(super) struct Reopen {
    pub(super) number: u64,
}

impl CatalogChange for Reopen {
    type Output = Move;

    async fn decide(&self, draft: &mut Draft) -> Decision<Move> {
        let moving = find(draft.view(), self.number).await?;
        match moving.stage {
            MoveStage::Copying => return Ok(moving),
            MoveStage::Fenced => {}
            _ => return Err(closed(&moving).into()),
        }
        let before = watched(draft.view(), &moving).await?;
        turn(draft, moving, &before, MoveStage::Copying)
    }
}

/// Between copying and fenced, one way or the other.
fn turn(draft: &mut Draft, moving: Move, before: &Partition, stage: MoveStage) -> Decision<Move> {
    let after = Move { stage, ..moving };
    draft.put_move(&after);
    // A partition that takes no writes needs no fence.
    if before.state.is_moving() {
        let (name, state) = match stage {
            MoveStage::Fenced => ("fence", PartitionState::Fenced),
            _ => ("reopen", PartitionState::Sending),
        };
        let turned = Partition { state, epoch: before.epoch.next(), ..before.clone() };
        let mut operation = step(name, before.container);
        replace(&mut operation, before, turned, Some(after.token));
        draft.begin(operation)?;
    }
    Ok(after)
}

pub(super) struct Commit<'a> {
    pub(super) moving: &'a Move,
}

impl CatalogChange for Commit<'_> {
    type Output = Move;

    async fn decide(&self, draft: &mut Draft) -> Decision<Move> {
        let moving = led(draft.view(), self.moving).await?;
        if moving.stage != MoveStage::Fenced {
            return Err(closed(&moving).into());
        }
        let before = watched(draft.view(), &moving).await?;
        // The rules may have changed since the move began.
        let container = draft.view().container(moving.container).await?;
        let target = draft.view().shard(moving.target).await?;
        check_placement(&container, &before.routes, &target)?;
        let (shard, epoch) = (moving.target, before.epoch.next());
        let owned = Partition { state: at_rest(before.state), shard, epoch, ..before.clone() };
        let mut operation = step("commit move", moving.container);
        replace(&mut operation, &before, owned, None);
        operation.arrived.push(arrived(&moving));
        let garbage = draft.new_garbage(moving.source, moving.container, moving.routes.clone());
        operation.garbage.push(garbage);
        draft.begin(operation)?;
        let after = Move { stage: MoveStage::Arrived, ..moving };
        draft.put_move(&after);
        Ok(after)
    }
}
