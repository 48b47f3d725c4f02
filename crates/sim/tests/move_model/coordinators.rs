//! Who leads a move, and what anybody does for one.
//!
//! A coordinator may stop after every step for as long as it likes, because all others go on without it, and it may forget
//! everything at any time. What it has read or been told is its own and grows old.

use super::model::{Model, Step, Variant};
use super::state::{Arrival, Coordinator, KEYS, Kind, LOG, Operation, Pass, Stage, State};

impl Model {
    pub(crate) fn coordinator_steps(&self, state: &State, steps: &mut Vec<(Step, State)>) {
        for index in 0..state.coordinators.len() {
            let me = state.coordinators[index];
            if index > 0 && me == state.coordinators[index - 1] {
                continue;
            }
            if me != Coordinator::default() {
                steps.push(forget(state, index));
            }
            if me.operation.number != 0 {
                steps.extend(self.go_on(state, index));
            } else if me.pass.job != 0 {
                steps.extend(self.copy(state, index));
                if self.variant == Variant::UnansweredPass && state.stray.job == 0 {
                    let mut next = *state;
                    next.stray = std::mem::take(&mut next.coordinators[index].pass);
                    steps.push((Step::GivesUpWaiting { coordinator: me.job }, next));
                }
            } else if me.job != 0 {
                self.lead(state, index, steps);
            } else {
                self.come_in(state, index, steps);
            }
        }
    }

    /// Decides an operation and keeps it, to take it through its steps.
    fn decide_and_keep(&self, state: &State, index: usize, kind: Kind) -> Option<(Step, State)> {
        let mut next = *state;
        let me = state.coordinators[index];
        let operation = self.decide(&mut next, kind, me.job)?;
        let me = &mut next.coordinators[index];
        if matches!(kind, Kind::Begin | Kind::Take) {
            me.job = operation.job;
            me.target = 1 - operation.source;
            me.fenced = next.catalog.stage == Stage::Fenced;
        }
        if kind == Kind::Reopen && self.variant == Variant::ReopeningTakesTheLead {
            me.job = operation.job;
        }
        me.operation = operation;
        let coordinator = state.coordinators[index].job;
        Some((Step::Decides { coordinator, kind }, next))
    }

    /// What a coordinator that leads nothing can do.
    fn come_in(&self, state: &State, index: usize, steps: &mut Vec<(Step, State)>) {
        steps.extend(self.decide_and_keep(state, index, Kind::Begin));
        steps.extend(self.decide_and_keep(state, index, Kind::Take));
        let pending = state.catalog.pending;
        if self.helps && pending.number != 0 {
            let mut next = *state;
            next.coordinators[index].operation = pending;
            steps.push((Step::Meets { coordinator: 0, kind: pending.kind }, next));
        }
    }

    /// What a coordinator that leads a move can do next.
    fn lead(&self, state: &State, index: usize, steps: &mut Vec<(Step, State)>) {
        let me = state.coordinators[index];
        steps.extend(self.read(state, index));
        let copied = usize::from(state.shards[usize::from(me.target)].arrival.copied) == KEYS;
        if !me.fenced && copied {
            steps.extend(self.decide_and_keep(state, index, Kind::Fence));
        }
        if me.fenced {
            steps.extend(self.decide_and_keep(state, index, Kind::Reopen));
        }
        let may_commit = match self.variant {
            Variant::FinalSkipped => me.fenced,
            Variant::CommitBeforeFence | Variant::MapSwitchedFirst => copied && !me.fenced,
            _ => me.ready,
        };
        if may_commit {
            steps.extend(self.decide_and_keep(state, index, Kind::Commit));
        }
    }

    /// The next step of the operation in its hands.
    fn go_on(&self, state: &State, index: usize) -> Option<(Step, State)> {
        let mut next = *state;
        let me = state.coordinators[index];
        let operation = me.operation;
        let (coordinator, kind) = (me.job, operation.kind);
        let takers = self.takers(operation);
        let left = takers.iter().enumerate().skip(usize::from(me.steps_done));
        let taker = left.filter_map(|(at, taker)| taker.map(|taker| (at, taker))).next();
        if let Some((at, shard)) = taker {
            if state.is_gone(shard) {
                return None;
            }
            self.apply(&mut next, operation, shard);
            next.coordinators[index].steps_done = at as u8 + 1;
            return Some((Step::Brings { coordinator, kind, shard }, next));
        }
        self.conclude(&mut next, operation);
        end_operation(&mut next.coordinators[index]);
        Some((Step::Concludes { coordinator, kind }, next))
    }

    /// Takes a snapshot of the source: for the next chunk of the copy, or for all keys written down since the last pass.
    fn read(&self, state: &State, index: usize) -> Option<(Step, State)> {
        let me = state.coordinators[index];
        let arrival = state.shards[usize::from(me.target)].arrival;
        if me.ready || state.target_gone || !self.guard_holds(state, me.job, me.target) {
            return None;
        }
        let Arrival { mut copied, mut position, .. } = arrival;
        let mut keys = [false; KEYS];
        let is_chunk = usize::from(copied) < KEYS;
        if is_chunk {
            keys[usize::from(copied)] = true;
            copied += 1;
        } else {
            for lsn in usize::from(arrival.position) + 1..LOG {
                if let Some(key) = state.log[lsn].checked_sub(1) {
                    keys[usize::from(key)] = true;
                    position = lsn as u8;
                }
            }
            if !me.fenced && keys == [false; KEYS] {
                return None;
            }
        }
        let source = state.shards[usize::from(1 - me.target)].data;
        let values = std::array::from_fn(|key| if keys[key] { source[key] } else { 0 });
        let mut next = *state;
        let Coordinator { job, target, .. } = me;
        next.coordinators[index].pass =
            Pass { job, target, keys, values, is_chunk, copied, position };
        Some((Step::Reads { coordinator: me.job }, next))
    }

    /// Writes what was read to the target, if the guard is still there.
    fn copy(&self, state: &State, index: usize) -> Option<(Step, State)> {
        let me = state.coordinators[index];
        let mut next = *state;
        if !self.write_pass(&mut next, me.pass) {
            return None;
        }
        let coordinator = &mut next.coordinators[index];
        coordinator.pass = Pass::default();
        coordinator.ready = me.fenced && !me.pass.is_chunk;
        Some((Step::Copies { coordinator: me.job }, next))
    }

    fn write_pass(&self, state: &mut State, pass: Pass) -> bool {
        if state.is_gone(pass.target) || !self.guard_holds(state, pass.job, pass.target) {
            return false;
        }
        let shard = state.shard(pass.target);
        for key in (0..KEYS).filter(|key| pass.keys[*key]) {
            shard.data[key] = pass.values[key];
        }
        shard.arrival.copied = pass.copied;
        shard.arrival.position = pass.position;
        true
    }

    /// What happens without a coordinator: the reconciler, routers that help, an operator, the deletion of garbage.
    pub(crate) fn anybody_steps(&self, state: &State, steps: &mut Vec<(Step, State)>) {
        for kind in [Kind::Cancel, Kind::Clear, Kind::Reopen] {
            let may = kind != Kind::Reopen || self.variant != Variant::BothShards;
            let mut next = *state;
            if may && self.decide(&mut next, kind, 0).is_some() {
                steps.push((Step::SomebodyDecides { kind }, next));
            }
        }
        let pending = state.catalog.pending;
        let before_commit = matches!(state.catalog.stage, Stage::Copying | Stage::Fenced)
            && pending.kind != Kind::Commit;
        if self.target_goes && !state.target_gone && before_commit {
            let next = State { target_gone: true, ..*state };
            steps.push((Step::TargetGoes, next));
        }
        if pending.number != 0 {
            let mut next = *state;
            let takers = self.takers(pending).into_iter().flatten();
            let mut open =
                takers.filter(|taker| state.shards[usize::from(*taker)].applied < pending.number);
            if let Some(shard) = open.next() {
                if !state.is_gone(shard) {
                    self.apply(&mut next, pending, shard);
                    steps.push((Step::SomebodyBrings { kind: pending.kind, shard }, next));
                }
            } else {
                self.conclude(&mut next, pending);
                steps.push((Step::SomebodyConcludes { kind: pending.kind }, next));
            }
        }
        if state.clears {
            let mut next = *state;
            (next.log, next.clears) = (Default::default(), false);
            steps.push((Step::RecordsAreCleared, next));
        }
        if state.stray.job != 0 {
            let mut next = *state;
            let pass = std::mem::take(&mut next.stray);
            if self.write_pass(&mut next, pass) {
                steps.push((Step::StrayPassLands { job: pass.job }, next));
            }
        }
        garbage_steps(state, steps);
        let source = state.shards[usize::from(1 - state.catalog.owner)];
        if state.catalog.stage == Stage::Retiring && pending.number == 0 && !source.garbage {
            let mut next = *state;
            next.catalog.stage = Stage::NoMove;
            steps.push((Step::MoveIsOver, next));
        }
    }
}

/// Garbage goes key by key, and then its row does.
fn garbage_steps(state: &State, steps: &mut Vec<(Step, State)>) {
    for shard in (0..2).filter(|shard| state.shards[usize::from(*shard)].garbage) {
        let mut next = *state;
        match next.shard(shard).data.iter_mut().find(|value| **value != 0) {
            Some(value) => {
                *value = 0;
                steps.push((Step::GarbageShrinks { shard }, next));
            }
            None => {
                next.shard(shard).garbage = false;
                steps.push((Step::GarbageIsGone { shard }, next));
            }
        }
    }
}

/// A crash. What was on its way to the target may still arrive there.
fn forget(state: &State, index: usize) -> (Step, State) {
    let mut next = *state;
    let me = std::mem::take(&mut next.coordinators[index]);
    if next.stray.job == 0 {
        next.stray = me.pass;
    }
    (Step::Forgets { coordinator: me.job }, next)
}

/// What a coordinator knows once its operation is concluded. One that leads nothing has only helped.
pub(crate) fn end_operation(coordinator: &mut Coordinator) {
    let kind = coordinator.operation.kind;
    if coordinator.job == 0 || matches!(kind, Kind::Commit | Kind::Cancel | Kind::Clear) {
        *coordinator = Coordinator::default();
        return;
    }
    coordinator.operation = Operation::default();
    coordinator.steps_done = 0;
    match kind {
        Kind::Fence => coordinator.fenced = true,
        Kind::Reopen => (coordinator.fenced, coordinator.ready) = (false, false),
        Kind::Begin | Kind::Take | Kind::Commit | Kind::Cancel | Kind::Clear => {}
    }
}
