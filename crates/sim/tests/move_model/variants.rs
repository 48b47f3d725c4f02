//! The protocol with one thing left out or done in another order. Each must be found wrong, and for the right reason.

use super::explorer::explore;
use super::model::{Fault, Model, Variant};
use super::{FIRST, print, right};

/// Explores a variant up to its first fault, which must be the expected one.
fn breaks(model: &Model, expected: Fault) {
    let explored = explore(model);
    let trace = explored.trace_to_fault();
    let (states, steps) = (explored.states.len(), trace.len());
    println!("{:?}: {:?} after {steps} steps, {states} states", model.variant, explored.fault);
    print(&trace);
    assert_eq!(explored.fault, Some(expected), "{:?}", model.variant);
}

/// One move, led by up to two coordinators, under two writers.
fn one_move(variant: Variant) -> Model {
    Model { variant, helps: false, ..right() }
}

/// Two moves under one writer, with coordinators that take up each other's operations.
fn two_moves(variant: Variant) -> Model {
    Model { variant, scripts: [FIRST, &[]], moves_max: 2, reopens_max: 0, ..right() }
}

#[test]
fn without_draining_a_write_is_lost() {
    breaks(&one_move(Variant::NoDrain), Fault::LostWrite);
}

#[test]
fn without_job_epochs_a_late_coordinator_loses_a_write() {
    breaks(&one_move(Variant::NoJobEpochs), Fault::LostWrite);
}

#[test]
fn job_epochs_that_guard_operations_alone_lose_a_write() {
    breaks(&one_move(Variant::CopiesWithoutJobEpoch), Fault::LostWrite);
}

#[test]
fn job_epochs_that_guard_copies_alone_lose_a_write() {
    breaks(&one_move(Variant::OperationsWithoutJobEpoch), Fault::LostWrite);
}

#[test]
fn a_relieved_coordinator_that_reopens_and_leads_again_loses_a_write() {
    breaks(&one_move(Variant::ReopeningTakesTheLead), Fault::LostWrite);
}

#[test]
fn going_on_after_a_pass_without_an_answer_loses_a_write() {
    breaks(&one_move(Variant::UnansweredPass), Fault::LostWrite);
}

#[test]
fn a_commit_before_the_fence_loses_a_write() {
    breaks(&one_move(Variant::CommitBeforeFence), Fault::LostWrite);
}

#[test]
fn a_map_that_is_switched_first_has_two_owners() {
    breaks(&one_move(Variant::MapSwitchedFirst), Fault::TwoOwners);
}

#[test]
fn without_the_final_pass_a_write_is_lost() {
    breaks(&one_move(Variant::FinalSkipped), Fault::LostWrite);
}

#[test]
fn a_cancel_after_the_commit_has_two_owners() {
    breaks(&one_move(Variant::CancelAfterCommit), Fault::TwoOwners);
}

#[test]
fn writing_keys_down_from_no_epoch_on_loses_a_write() {
    breaks(&one_move(Variant::RecordingWithoutEpoch), Fault::LostWrite);
}

#[test]
fn lsns_out_of_the_order_of_commits_lose_a_write() {
    breaks(&one_move(Variant::NumberedAtCheck), Fault::LostWrite);
}

#[test]
fn an_operation_that_is_taken_twice_leaves_an_arrival() {
    breaks(&two_moves(Variant::TakenAgain), Fault::MapsDiffer);
}

#[test]
fn records_that_are_cleared_late_lose_a_write() {
    breaks(&two_moves(Variant::RecordsClearedLate), Fault::LostWrite);
}

#[test]
fn a_move_to_where_garbage_lies_loses_a_write() {
    breaks(&two_moves(Variant::BeginOverGarbage), Fault::LostWrite);
}

#[test]
fn a_reader_that_checks_first_sees_too_little() {
    let model = Model { has_reader: true, ..one_move(Variant::ReaderChecksFirst) };
    breaks(&model, Fault::StaleRead);
}
