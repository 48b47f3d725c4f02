//! Brings states together that differ in nothing that can ever matter, so that there are fewer of them.
//!
//! Every rule here says that something can only be refused, or do nothing, from now on. That is so because numbers, epochs
//! and job epochs only grow and shards look at them; the variants that leave this out are spared the rules that need it.

use super::coordinators::end_operation;
use super::model::{Model, Variant};
use super::state::{LOG, Operation, Pass, Stage, State, Writer};

impl Model {
    pub(crate) fn normal(&self, mut state: State) -> State {
        // A pass under a job epoch that is gone is refused for ever.
        if state.stray.job != 0 && !self.guard_holds(&state, state.stray.job, state.stray.target) {
            state.stray = Pass::default();
        }
        for (writer, script) in state.writers.iter_mut().zip(self.scripts) {
            if usize::from(writer.done) == script.len() {
                *writer = Writer { done: writer.done, ..Writer::default() };
            }
        }
        // Nobody reads what was written down for a move that is over.
        if matches!(state.catalog.stage, Stage::NoMove | Stage::Retiring | Stage::Clearing) {
            (state.log, state.lsn) = ([0; LOG], 0);
        }
        if self.variant != Variant::TakenAgain {
            end_late_operations(&mut state);
            forget_numbers(&mut state);
            forget_epochs(&mut state);
        }
        state.coordinators.sort_unstable();
        state
    }
}

/// What a coordinator still does for an operation that others have concluded does nothing.
fn end_late_operations(state: &mut State) {
    let pending = state.catalog.pending;
    for coordinator in &mut state.coordinators {
        if coordinator.operation.number != 0 && coordinator.operation != pending {
            end_operation(coordinator);
        }
    }
}

/// All that is left to know of numbers is who has taken the operation that is pending.
fn forget_numbers(state: &mut State) {
    let pending = state.catalog.pending.number;
    let small = |number: u8| u8::from(pending != 0 && number == pending);
    state.shards.iter_mut().for_each(|shard| shard.applied = small(shard.applied));
    let held = state.coordinators.iter_mut().map(|it| &mut it.operation);
    let operations = held.chain([&mut state.catalog.pending]);
    operations.for_each(|it| it.number = small(it.number));
    state.catalog.version = state.catalog.pending.number;
    assert!(state.catalog.pending.number != 0 || state.catalog.pending == Operation::default());
}

/// The catalog's epoch becomes 1, its successor 2, and every older one in a cache 0, where it waits for `Moved`.
fn forget_epochs(state: &mut State) {
    let past = state.catalog.epoch - 1;
    let rows = state.shards.map(|shard| shard.row.epoch);
    let cached = |shard: u8, epoch: u8| {
        if rows[usize::from(shard)] == epoch { epoch.saturating_sub(past) } else { 0 }
    };
    for writer in &mut state.writers {
        writer.epoch = cached(writer.shard, writer.epoch);
    }
    state.reader.epoch = cached(state.reader.shard, state.reader.epoch);
    state.shards.iter_mut().for_each(|shard| {
        shard.row.epoch = shard.row.epoch.saturating_sub(past);
    });
    let held = state.coordinators.iter_mut().map(|it| &mut it.operation);
    let operations = held.chain([&mut state.catalog.pending]);
    operations.for_each(|it| it.epoch = it.epoch.saturating_sub(past));
    state.catalog.epoch = 1;
}
