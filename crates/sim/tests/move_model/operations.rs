//! Operations: the catalog decides them, the shards take them once each, the catalog concludes them.

use super::model::{Model, Variant};
use super::state::{Arrival, Kind, Operation, Row, RowState, Stage, State};

impl Model {
    /// Writes an operation down, if the catalog allows it now. `job` is the job epoch of who asks.
    pub(crate) fn decide(&self, state: &mut State, kind: Kind, job: u8) -> Option<Operation> {
        if state.catalog.pending.number != 0 || !self.allows(state, kind, job) {
            return None;
        }
        let catalog = &mut state.catalog;
        catalog.version += 1;
        let new_epoch = !(kind == Kind::Begin && self.variant == Variant::RecordingWithoutEpoch);
        let new_job = kind == Kind::Begin || self.variant != Variant::NoJobEpochs;
        if matches!(kind, Kind::Begin | Kind::Take) && new_job {
            catalog.jobs += 1;
            catalog.job = catalog.jobs;
        }
        if kind == Kind::Begin {
            catalog.moves += 1;
            catalog.stage = Stage::Copying;
        }
        if kind == Kind::Reopen {
            catalog.reopens = self.reopens_max.min(catalog.reopens + 1);
        }
        let late_cancel = kind == Kind::Cancel && catalog.stage == Stage::Retiring;
        catalog.pending = Operation {
            number: catalog.version,
            kind,
            source: if late_cancel { 1 - catalog.owner } else { catalog.owner },
            epoch: catalog.epoch + u8::from(!matches!(kind, Kind::Take | Kind::Clear) && new_epoch),
            job: catalog.job,
        };
        Some(catalog.pending)
    }

    fn allows(&self, state: &State, kind: Kind, job: u8) -> bool {
        let catalog = &state.catalog;
        let moving = matches!(catalog.stage, Stage::Copying | Stage::Fenced);
        let unchecked =
            matches!(self.variant, Variant::NoJobEpochs | Variant::OperationsWithoutJobEpoch);
        let leads = job == catalog.job || unchecked;
        let alone = self.variant != Variant::BothShards;
        // No operation begins on a shard that does not answer.
        let source_only =
            matches!(kind, Kind::Fence | Kind::Reopen) || (alone && kind == Kind::Cancel);
        if state.target_gone && !source_only {
            return false;
        }
        match kind {
            Kind::Begin => {
                let target = state.shards[usize::from(1 - catalog.owner)];
                let clean = !target.garbage || self.variant == Variant::BeginOverGarbage;
                catalog.stage == Stage::NoMove && clean && catalog.moves < self.moves_max
            }
            Kind::Take => {
                let stage = moving && !(alone && catalog.stage == Stage::Fenced);
                stage && catalog.jobs < self.jobs_max
            }
            Kind::Fence => catalog.stage == Stage::Copying && leads,
            Kind::Reopen => {
                // How often is a matter of the model's size, and must not be what keeps a fence up.
                let left = catalog.reopens < self.reopens_max || alone;
                catalog.stage == Stage::Fenced && (leads || alone) && left
            }
            Kind::Commit => {
                let early =
                    matches!(self.variant, Variant::CommitBeforeFence | Variant::MapSwitchedFirst);
                let stage = if early { Stage::Copying } else { Stage::Fenced };
                catalog.stage == stage && leads
            }
            Kind::Cancel => {
                let late = self.variant == Variant::CancelAfterCommit;
                moving || (late && catalog.stage == Stage::Retiring)
            }
            Kind::Clear => catalog.stage == Stage::Clearing,
        }
    }

    /// The shards of an operation, in the order in which they take it: who loses the partition comes first.
    pub(crate) fn takers(&self, operation: Operation) -> [Option<u8>; 2] {
        let (source, target) = (operation.source, 1 - operation.source);
        match operation.kind {
            Kind::Commit if self.variant == Variant::MapSwitchedFirst => {
                [Some(target), Some(source)]
            }
            Kind::Begin if self.variant != Variant::BothShards => [Some(target), Some(source)],
            Kind::Cancel if self.variant != Variant::BothShards => [Some(source), None],
            Kind::Begin | Kind::Commit | Kind::Cancel => [Some(source), Some(target)],
            Kind::Take | Kind::Clear => [None, Some(target)],
            Kind::Fence | Kind::Reopen => [Some(source), None],
        }
    }

    /// A shard takes an operation. One that it has seen, or that was finished long ago, does nothing.
    pub(crate) fn apply(&self, state: &mut State, operation: Operation, taker: u8) {
        let is_source = taker == operation.source;
        if state.shard(taker).applied >= operation.number && self.variant != Variant::TakenAgain {
            return;
        }
        // What an earlier move has left goes in the same commit.
        if operation.kind == Kind::Begin && is_source {
            state.log = Default::default();
            state.lsn = 0;
        }
        let shard = state.shard(taker);
        shard.applied = shard.applied.max(operation.number);
        let row = |state| Row { epoch: operation.epoch, state };
        match (operation.kind, is_source) {
            (Kind::Begin | Kind::Reopen, true) => shard.row = row(RowState::Sending),
            (Kind::Fence, true) => shard.row = row(RowState::Fenced),
            (Kind::Cancel, true) => shard.row = row(RowState::Online),
            (Kind::Commit, true) => {
                shard.row = Row::default();
                shard.garbage = true;
            }
            (Kind::Begin, false) => {
                shard.arrival = Arrival { job: operation.job, ..Arrival::default() };
            }
            (Kind::Take, false) if self.variant == Variant::CopiesWithoutJobEpoch => {}
            (Kind::Take, false) => shard.arrival.job = operation.job,
            (Kind::Commit, false) => {
                shard.arrival = Arrival::default();
                shard.row = row(RowState::Online);
            }
            (Kind::Cancel | Kind::Clear, false) => {
                shard.arrival = Arrival::default();
                shard.row = Row::default();
                shard.garbage = true;
            }
            (Kind::Take | Kind::Clear, true) | (Kind::Fence | Kind::Reopen, false) => {
                unreachable!("the operation is not about this shard")
            }
        }
    }

    /// Makes the operation the catalog's truth, unless somebody has.
    pub(crate) fn conclude(&self, state: &mut State, operation: Operation) {
        let catalog = &mut state.catalog;
        if catalog.pending != operation {
            return;
        }
        catalog.pending = Operation::default();
        catalog.epoch = operation.epoch;
        match operation.kind {
            Kind::Begin | Kind::Reopen => catalog.stage = Stage::Copying,
            Kind::Take => {}
            Kind::Fence => catalog.stage = Stage::Fenced,
            Kind::Commit => {
                catalog.stage = Stage::Retiring;
                catalog.owner = 1 - operation.source;
                catalog.job = 0;
            }
            Kind::Cancel => {
                let alone = self.variant != Variant::BothShards;
                catalog.stage = if alone { Stage::Clearing } else { Stage::NoMove };
                catalog.owner = operation.source;
                catalog.job = 0;
                state.clears = self.variant == Variant::RecordsClearedLate;
            }
            Kind::Clear => catalog.stage = Stage::NoMove,
        }
    }
}
