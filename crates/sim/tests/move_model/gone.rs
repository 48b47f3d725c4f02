//! What becomes of the source's writers when the target goes for good before the commit.
//!
//! No operation begins on a shard that does not answer, and one that has begun waits for its shards. So all that a move
//! does on both shards could keep the writers of a sound source waiting for a target that nobody needs yet. The protocol
//! gives the source back by operations on the source alone; a variant that does not is found to get stuck.

use super::explorer::explore;
use super::model::{Model, Variant};
use super::state::{Stage, State};
use super::{FIRST, holds, print, right};

fn target_goes(variant: Variant) -> Model {
    Model { variant, scripts: [&FIRST[..1], &[]], target_goes: true, helps: false, ..right() }
}

/// Where they are operations on both shards, beginning and cancelling bring the source to an epoch that the catalog
/// concludes only with the target; and a fence whose coordinator is gone can neither be taken over nor cancelled.
#[test]
fn operations_on_both_shards_keep_the_source_waiting_for_a_lost_target() {
    let model = target_goes(Variant::BothShards);
    let explored = explore(&model);
    assert_eq!(explored.fault, None);
    let can_end = explored.can_end(&model);
    let stuck = |what: &str, is: fn(&State) -> bool| {
        let found = (0..can_end.len()).find(|at| !can_end[*at] && is(&explored.states[*at]));
        println!("stuck without the target: {what}");
        print(&explored.trace(found.expect(what)));
    };
    stuck("an operation that the source has taken", |state| state.shards[0].applied != 0);
    stuck("a fence that nobody leads", |state| {
        let nobody = state.coordinators.iter().all(|it| it.job == 0);
        nobody && state.catalog.stage == Stage::Fenced && state.catalog.pending.number == 0
    });
}

#[test]
fn operations_on_the_source_alone_wait_for_no_target() {
    holds(&target_goes(Variant::Right), 20_000);
}
