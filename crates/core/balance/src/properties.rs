//! Properties of plans, on random fleets.

use lazuli_shardmap::ShardId;

use crate::draw::Draw;
use crate::{Action, Fleet, Goal, Left, Load, Plan, Settings, ShardState, plan};

const SEEDS: u64 = 400;
const NOW_MS: u64 = 1_000_000_000;
/// After this many plans on the same load nothing may be left to do.
const ROUNDS_MAX: usize = 40;

/// The level of the fullest online shard, less the floor.
fn peak(fleet: &Fleet, loads: &[Load], goal: Goal) -> f64 {
    let floor = Settings::default().floor.of(goal);
    let online = |at: &usize| fleet.shards[*at].state == ShardState::Online;
    let online: Vec<usize> = (0..fleet.shards.len()).filter(online).collect();
    let capacity: f64 = online.iter().map(|at| fleet.shards[*at].capacity).sum();
    let mean = online.iter().map(|at| loads[*at].of(goal)).sum::<f64>() / capacity;
    let above = |at: &usize| (loads[*at].of(goal) - floor) / fleet.shards[*at].capacity / mean;
    online.iter().map(above).filter(|level| level.is_finite()).fold(0.0, f64::max)
}

fn assert_allowed(seed: u64, fleet: &Fleet, plan: &Plan) {
    let state = |id: ShardId| fleet.shards.iter().find(|it| it.id == id).unwrap().state;
    let mut touched = std::collections::BTreeSet::new();
    for action in &plan.actions {
        let ids = match action {
            Action::Split(split) => vec![split.partition],
            Action::Merge(merge) => vec![merge.left, merge.right],
            Action::Move(one) => vec![one.partition],
        };
        for id in ids {
            assert!(touched.insert(id), "seed {seed}: {id} is touched twice");
            let figures = fleet.partitions.iter().find(|it| it.id == id).unwrap();
            assert!(!figures.locked && figures.moving_to.is_none(), "seed {seed}: {id} is busy");
        }
        let Some(one) = action.transfer() else { continue };
        let figures = fleet.partitions.iter().find(|it| it.id == one.partition).unwrap();
        assert_eq!((one.from, one.load), (figures.shard, figures.load), "seed {seed}");
        assert_ne!(one.from, one.to, "seed {seed}");
        assert_eq!(state(one.to), ShardState::Online, "seed {seed}: {one:?}");
        assert_ne!(state(one.from), ShardState::Away, "seed {seed}: {one:?}");
        let pin = figures.pin.map(|pin| &fleet.pins[pin]);
        assert!(pin.is_none_or(|pin| pin.shards.contains(&one.to)), "seed {seed}: {one:?}");
    }
}

#[test]
fn no_plan_breaks_a_rule_or_touches_what_is_busy() {
    for seed in 0..SEEDS {
        let fleet = Draw::new(seed).hard();
        assert_allowed(seed, &fleet, &plan(&fleet, &Settings::default(), NOW_MS));
    }
}

#[test]
fn by_no_goal_is_the_fullest_shard_fuller_than_before_and_outside_of_the_band() {
    for seed in 0..SEEDS {
        let fleet = Draw::new(seed).plain();
        let settings = Settings { split_share: f64::INFINITY, ..Settings::default() };
        let plan = plan(&fleet, &settings, NOW_MS);
        for goal in [Goal::Bytes, Goal::Requests] {
            let [before, after] =
                [&plan.before, &plan.after].map(|loads| peak(&fleet, loads, goal));
            let bound = f64::max(before, 1.0 + settings.band / 2.0);
            assert!(after <= bound + 1e-9, "seed {seed}: {goal:?} from {before} to {after}");
        }
    }
}

#[test]
fn the_prediction_is_what_comes_of_it_and_nothing_is_lost() {
    for seed in 0..SEEDS {
        let fleet = Draw::new(seed).hard();
        let plan = plan(&fleet, &Settings::default(), NOW_MS);
        let mut done = fleet.clone();
        done.apply(&plan.actions, NOW_MS);
        for (is, predicted) in done.loads().iter().zip(&plan.after) {
            assert_eq!((is.bytes, is.items), (predicted.bytes, predicted.items), "seed {seed}");
            assert!((is.requests - predicted.requests).abs() < 1e-6, "seed {seed}");
        }
    }
}

#[test]
fn planning_again_on_what_comes_of_a_plan_finds_nothing_to_move() {
    for seed in 0..SEEDS {
        let mut fleet = Draw::new(seed).plain();
        // The next plan moves the pieces.
        let settings = Settings { split_share: f64::INFINITY, ..Settings::default() };
        let plan_now = |fleet: &Fleet| plan(fleet, &settings, NOW_MS);
        let first = plan_now(&fleet);
        fleet.apply(&first.actions, NOW_MS);
        assert_eq!(plan_now(&fleet).actions, [], "seed {seed}");
    }
}

#[test]
fn plans_come_to_an_end_on_every_fleet_though_nothing_rests() {
    for seed in 0..SEEDS {
        let mut fleet = Draw::new(seed).hard();
        let settings = Settings { rest_ms: 0, ..Settings::default() };
        let mut rounds = 0;
        loop {
            let next = plan(&fleet, &settings, NOW_MS);
            assert_allowed(seed, &fleet, &next);
            if next.actions.is_empty() {
                break;
            }
            fleet.apply(&next.actions, NOW_MS);
            rounds += 1;
            assert!(rounds < ROUNDS_MAX, "seed {seed}: {:?}", next.actions);
        }
        assert_drained(seed, &fleet, &settings);
    }
}

/// Only busy partitions, and those without an allowed shard, are still on drained shards.
fn assert_drained(seed: u64, fleet: &Fleet, settings: &Settings) {
    let last = plan(fleet, settings, NOW_MS);
    for partition in &fleet.partitions {
        let shard = fleet.shards.iter().find(|it| it.id == partition.shard).unwrap();
        let nowhere =
            last.notes.iter().any(|it| it.partition == partition.id && it.left == Left::NoPlace);
        let stays = partition.locked || partition.moving_to.is_some() || nowhere;
        let left = shard.state == ShardState::Draining && !stays;
        assert!(!left, "seed {seed}: {partition:?}");
    }
}

#[test]
fn the_same_fleet_gives_the_same_plan() {
    for seed in 0..20 {
        let fleet = Draw::new(seed).hard();
        let plans = [0, 1].map(|_| plan(&fleet, &Settings::default(), NOW_MS));
        assert_eq!(plans[0], plans[1]);
    }
}
