//! A move is called off, rests, or is over.

use lazuli_store::{Error, Kind};

use super::{arrived, at_rest, closed, find, partition_of, replace, step};
use crate::catalog::{CatalogChange, Decision, Draft, Refusal};
use crate::local::{Arrival, Arrived};
use crate::manager::unclaimed;
use crate::{Move, MoveStage, Partition};

pub(super) struct Cancel {
    pub(super) number: u64,
}

impl CatalogChange for Cancel {
    type Output = Move;

    async fn decide(&self, draft: &mut Draft) -> Decision<Move> {
        let moving = find(draft.view(), self.number).await?;
        if !moving.is_open() {
            let is_off = matches!(moving.stage, MoveStage::Cancelled | MoveStage::Cleared);
            return if is_off { Ok(moving) } else { Err(closed(&moving).into()) };
        }
        unclaimed(draft.view(), moving.container, &moving.routes).await?;
        let after = Move { stage: MoveStage::Cancelled, ..moving.clone() };
        let mut operation = step("cancel move", moving.container);
        match partition_of(draft.view(), &moving).await {
            Ok(before) => {
                let (state, epoch) = (at_rest(before.state), before.epoch.next());
                let owned = Partition { state, epoch, ..before.clone() };
                replace(&mut operation, &before, owned, None);
            }
            // The container was deleted, or an operator broke the lock: what is left is to clean up.
            Err(Refusal::Error(error))
                if matches!(error.kind(), Kind::NotFound | Kind::Precondition) =>
            {
                draft.put_move(&after);
                return Ok(after);
            }
            Err(refusal) => return Err(refusal),
        }
        draft.begin(operation)?;
        draft.put_move(&after);
        Ok(after)
    }
}

pub(super) struct Clear {
    pub(super) number: u64,
}

impl CatalogChange for Clear {
    type Output = Move;

    async fn decide(&self, draft: &mut Draft) -> Decision<Move> {
        let moving = find(draft.view(), self.number).await?;
        match moving.stage {
            MoveStage::Cancelled => {}
            MoveStage::Cleared => return Ok(moving),
            _ => return Err(closed(&moving).into()),
        }
        unclaimed(draft.view(), moving.container, &moving.routes).await?;
        // A target that was detached has nothing to be cleared.
        if draft.view().has_shard(moving.target).await? {
            let Move { container, target, ref routes, .. } = moving;
            let mut operation = step("clear move", container);
            operation.claims.push(routes.clone());
            operation.arrived.push(arrived(&moving));
            operation.garbage.push(draft.new_garbage(target, container, routes.clone()));
            draft.begin(operation)?;
        }
        let after = Move { stage: MoveStage::Cleared, ..moving };
        draft.put_move(&after);
        Ok(after)
    }
}

pub(super) struct Pause {
    pub(super) number: u64,
    pub(super) is_paused: bool,
}

impl CatalogChange for Pause {
    type Output = Move;

    async fn decide(&self, draft: &mut Draft) -> Decision<Move> {
        let moving = find(draft.view(), self.number).await?;
        let after = Move { is_paused: self.is_paused, ..moving };
        draft.put_move(&after);
        Ok(after)
    }
}

pub(super) struct End {
    pub(super) number: u64,
}

impl CatalogChange for End {
    type Output = ();

    async fn decide(&self, draft: &mut Draft) -> Decision<()> {
        let Some(moving) = draft.view().moving(self.number).await? else { return Ok(()) };
        if !matches!(moving.stage, MoveStage::Arrived | MoveStage::Cleared) {
            let message = format!("move {} is under way", moving.number);
            return Err(Error::precondition("move-open", message).into());
        }
        unclaimed(draft.view(), moving.container, &moving.routes).await?;
        draft.drop_move(self.number);
        Ok(())
    }
}

pub(super) struct Forget<'a> {
    pub(super) arrival: &'a Arrival,
}

impl CatalogChange for Forget<'_> {
    type Output = ();

    async fn decide(&self, draft: &mut Draft) -> Decision<()> {
        let Arrival { number, epoch, shard, container, ref routes, .. } = *self.arrival;
        if draft.view().moving(number).await?.is_some() {
            return Ok(());
        }
        unclaimed(draft.view(), container, routes).await?;
        let mut operation = step("forget arrival", container);
        // It may be gone from the shard by now: its move was over in the meantime, or another one has forgotten it.
        operation.forced = true;
        operation.claims.push(routes.clone());
        operation.arrived.push(Arrived { shard, number, epoch });
        operation.garbage.push(draft.new_garbage(shard, container, routes.clone()));
        draft.begin(operation)?;
        Ok(())
    }
}
