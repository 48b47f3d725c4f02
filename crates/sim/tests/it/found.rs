//! Seeds that once found a bug. Each stays, under the name of what it found.

use lazuli_sim::runner::run_one;
use lazuli_sim::scenario::find;

fn holds(scenario: &str, seed: u64) {
    let scenario = find(scenario).expect("the scenario still exists");
    let report = run_one(scenario, seed, false);
    assert_eq!(report.failure, None, "{}", report.replay());
}

/// What a failed commit would have added was counted as if it were there.
#[test]
fn a_count_that_a_failed_write_came_into_is_not_called_exact() {
    holds("map_changes", 267);
}

/// The first copies to a shard had no guard, so of two who copied at once the later one brought back what was older.
#[test]
fn an_old_copy_of_reference_data_never_replaces_a_newer_one() {
    holds("reference", 10_229);
    holds("everything", 10_618);
}

/// A second move to the same shard began before what the first had copied there was garbage, and was deleted with it.
#[test]
fn what_a_cancelled_move_left_does_not_take_the_next_one_along() {
    holds("map_changes", 1_541);
    holds("map_changes", 1_992);
    holds("map_changes_queues", 2_424);
}

/// A move was called off, and its partition taken offline before what was written down for it was deleted: it stayed.
#[test]
fn nothing_stays_written_down_for_a_move_that_was_called_off() {
    holds("map_changes", 196);
}

/// What a new leader had brought over was newer than what the old one then read back, and was called damage.
#[test]
fn who_has_lost_the_lead_calls_nothing_damaged() {
    holds("map_changes", 3_212);
}

/// Who looked for arrivals that the catalog does not know saw one whose move was then over, and began to forget it: that
/// operation never found it, and stayed for ever.
#[test]
fn an_arrival_that_is_over_is_not_looked_for_for_ever() {
    holds("stops", 5_000_538);
}

/// Of two who cleaned up behind a move that was called off, the second ended it before the first had made garbage of what
/// it had copied, so that nobody who waited for its end knew when that was gone.
#[test]
fn a_move_that_was_called_off_ends_when_what_it_copied_is_gone() {
    holds("map_changes_blobs", 6_001_335);
}

/// Whoever took over a move after its copy had seen no commit, so it predicted that writers would not have to wait, fenced
/// them for longer than the move allowed, let them go, and predicted the same again.
#[test]
fn a_fence_that_stood_in_vain_is_not_set_again_and_again() {
    holds("stops_transactions", 1_000_506);
}

/// A leader that had been relieved took its fence down, was told the move as it was by then, and went on under the job
/// epoch of the new leader: two of them brought rows over at the same time, and what they counted was wrong.
#[test]
fn who_takes_a_fence_down_does_not_take_the_lead() {
    holds("map_changes_drains", 21_001_874);
}

/// The store aborted the transaction of a paused process, another one went on, and the first took the shard to be ahead of its
/// catalog.
#[test]
fn a_lost_transaction_is_not_a_catalog_that_has_lost_its_memory() {
    holds("everything", 1_168);
}

/// What was recorded for a move that was called off was looked for by a stale local map, and stayed.
#[test]
fn a_stale_local_map_does_not_keep_what_a_cancelled_move_has_recorded() {
    holds("map_changes", 16);
    holds("map_changes_drains", 8);
}

/// A change of a local map gave up after others had come first three times, and its client was told that nothing was written.
#[test]
fn a_decided_operation_is_not_refused_because_others_come_first() {
    holds("everything", 6);
}

/// A process that was paused before it made a step of a job found no mark, because another process had made all steps and
/// deleted the marks meanwhile. It made the step again.
#[test]
fn a_late_step_of_a_job_that_is_over_is_not_made() {
    holds("everything", 5);
}

/// Other processes changed the catalog, or its records, between every reading of its version and the beginning of the change.
#[test]
fn a_change_of_the_catalog_outlasts_others_that_come_first() {
    holds("everything", 50_000_493);
    holds("everything", 50_000_713);
}

/// A refresh of the map read what the container says first and its epochs then, and ended a change of the rules in between.
/// Writes were taken by the new epochs that went by the old rules: entries were missing, or stayed.
#[test]
fn who_is_routed_by_new_epochs_does_not_go_by_old_rules() {
    for seed in [9, 116, 334, 353, 473, 475, 498, 507, 545, 592] {
        holds("documents_policies", seed);
    }
}

/// Parts of an index that followed were merged with ones that were still to be filled.
#[test]
fn a_copy_of_an_index_keeps_no_document_that_was_deleted() {
    for seed in [1036, 1093, 1164] {
        holds("indexes", seed);
    }
}
