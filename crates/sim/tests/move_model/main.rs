//! The protocol of moving a partition (`docs/decisions/0070`), as a model of which every reachable state is visited.
//!
//! One partition of two keys, two shards, the catalog, two coordinators, two writers, one reader, and the reconciler.
//! What is one commit in the program is one step here; between any two steps everybody else may go on. So a coordinator
//! that is paused anywhere, wakes up late and goes on with what it knew is part of every exploration, as is one that
//! crashes (it forgets what it knew, and what it had sent may still arrive), one that takes the move over, and somebody
//! who cancels. Moves may follow each other, back or, after a cancel, again.
//!
//! - An operation is decided by the catalog, taken once by each of its shards, and concluded, by whoever began it, by a
//!   coordinator that met it, or by the reconciler.
//! - A write checks the row of the local map, then commits under it. A refused one asks the catalog and tries again.
//! - A chunk of the copy and a pass are a snapshot of the source, then a commit on the target under the arrival.
//! - Garbage goes key by key.
//!
//! Left out: what verifying finds (it only ever stops a move), time (a pause that lasts too long is a reopening that may
//! come at any moment), moves of partitions that nobody can write to, and changes of the map by anything but moves, which
//! the lock refuses. A commit is atomic here, and memory and disk of a local map are one.
//!
//! `together` has two partitions in motion at once, and two processes that write them.
//!
//! `gone` asks what becomes of the writers when the target goes for good before the commit.
//!
//! `variants` breaks the protocol in one place each, and the explorer must find out. `cargo test -p lazuli-sim --test
//! move_model -- --nocapture` prints the shortest way to each fault.

mod clients;
mod coordinators;
mod explorer;
mod gone;
mod model;
mod normal;
mod operations;
mod state;
mod together;
mod variants;

use std::time::Instant;

use explorer::{Explored, explore};
use model::{Model, Step, Variant, Write};
use state::{Coordinator, Kind, Reading, RowState, Stage, State};

/// Both writers write both keys, in different order; one value is overwritten, one key deleted and written again.
const FIRST: &[Write] = &[Write { key: 0, value: 1 }, Write { key: 1, value: 0 }];
const SECOND: &[Write] = &[Write { key: 1, value: 2 }, Write { key: 0, value: 3 }];

fn print(trace: &[Step]) {
    for (number, step) in trace.iter().enumerate() {
        println!("  {:2} {step}", number + 1);
    }
}

/// Visits all states of the right protocol. No fault, no state without a way to the end, and not fewer states than expected.
fn holds(model: &Model, states_min: usize) -> Explored<Model> {
    let start = Instant::now();
    let explored = explore(model);
    if let Some(fault) = explored.fault {
        print(&explored.trace_to_fault());
        panic!("{fault:?}: the trace is above");
    }
    if let Some(stuck) = explored.stuck(model) {
        print(&explored.trace(stuck));
        panic!("stuck: the trace is above, and the state is {:#?}", explored.states[stuck]);
    }
    let (states, edges) = (explored.states.len(), explored.edges.len());
    println!("{states} states, {edges} steps, {:?}", start.elapsed());
    assert!(states >= states_min, "only {states} states: does the model still do anything?");
    explored
}

/// Makes sure that the exploration has come to something that it is meant to be about.
fn reaches(explored: &Explored<Model>, what: &str, reached: impl Fn(&State) -> bool) {
    assert!(explored.states.iter().any(reached), "never reached: {what}");
}

/// The protocol as it is, with two coordinators, one of which may be late.
fn right() -> Model {
    Model {
        variant: Variant::Right,
        scripts: [&FIRST[..1], &SECOND[..1]],
        moves_max: 1,
        jobs_max: 2,
        reopens_max: 1,
        has_reader: false,
        helps: true,
        target_goes: false,
    }
}

#[test]
fn a_move_under_two_writers_and_a_late_coordinator_loses_nothing() {
    let explored = holds(&right(), 150_000);
    reaches(&explored, "two coordinators with a pass under way", |state| {
        state.coordinators.iter().all(|it| it.pass.job != 0)
    });
    reaches(&explored, "a late coordinator that is ready to commit", |state| {
        state.coordinators.iter().any(|it| it.ready && it.job < state.catalog.job)
    });
    reaches(&explored, "a late coordinator that takes the fence of the new one down", |state| {
        let late = |it: &Coordinator| it.job != 0 && it.job < state.catalog.job;
        let reopens =
            |it: &Coordinator| it.operation.number != 0 && it.operation.kind == Kind::Reopen;
        state.coordinators.iter().any(|it| late(it) && reopens(it))
    });
    reaches(&explored, "a writer that has checked before the fence", |state| {
        let fenced = state.shards[0].row.state == RowState::Fenced;
        fenced && state.writers.iter().any(|it| it.checked)
    });
    reaches(&explored, "writes to the target while the source is garbage", |state| {
        let source = state.shards[0];
        state.catalog.stage == Stage::Retiring
            && source.garbage
            && source.data == [8, 9]
            && state.truth == [1, 2]
    });
}

#[test]
fn a_second_move_is_not_disturbed_by_what_the_first_left_behind() {
    let model = Model { scripts: [FIRST, &[]], moves_max: 2, reopens_max: 0, ..right() };
    let explored = holds(&model, 150_000);
    reaches(&explored, "a move back", |state| {
        state.catalog.stage == Stage::Retiring && state.catalog.owner == 0
    });
    reaches(&explored, "a coordinator of the first move during the second", |state| {
        let late = state.coordinators.iter().any(|it| it.job == 1 && it.pass.job != 0);
        late && state.catalog.moves == 2 && state.catalog.stage == Stage::Fenced
    });
}

#[test]
fn a_reader_sees_all_that_was_answered_before_it_asked() {
    let model = Model { scripts: [FIRST, &[]], has_reader: true, helps: false, ..right() };
    let explored = holds(&model, 100_000);
    reaches(&explored, "a snapshot that must not be shown", |state| {
        state.reader.reading == Reading::Stale
    });
}

/// A minute and some gigabytes each: for whoever changes the protocol.
#[test]
#[ignore = "takes minutes; run it with --ignored"]
fn longer_histories_hold_too() {
    holds(&Model { scripts: [FIRST, SECOND], ..right() }, 500_000);
    holds(&Model { scripts: [FIRST, &[]], moves_max: 2, jobs_max: 3, ..right() }, 500_000);
    let readers = Model { has_reader: true, helps: false, ..right() };
    holds(&Model { scripts: [FIRST, &[]], moves_max: 2, ..readers }, 500_000);
}
