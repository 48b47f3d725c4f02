//! Properties of plans, on hand-made fleets.

use std::collections::BTreeSet;

use lazuli_shardmap::{ContainerId, PartitionId, ShardId};

use crate::draw::MIB;
use crate::{
    Action, Cut, Fleet, Goal, Left, Load, Note, PartitionFigures, Pin, Plan, Settings,
    ShardFigures, ShardState, Weights, Why, plan,
};

const NOW_MS: u64 = 1_000_000_000;

fn load(mib: u64, requests: f64) -> Load {
    Load { bytes: mib * MIB, requests, items: mib * 100 }
}

/// Shards 1, 2, … with partitions of these loads on each.
fn fleet(shards: &[&[Load]]) -> Fleet {
    let mut fleet = Fleet::default();
    for (at, loads) in shards.iter().enumerate() {
        let shard = ShardId(at as u32 + 1);
        fleet.shards.push(ShardFigures::new(shard));
        for load in *loads {
            let id = PartitionId(fleet.partitions.len() as u64 + 1);
            fleet.partitions.push(PartitionFigures::new(id, ContainerId(1), shard, *load));
        }
    }
    fleet
}

/// The defaults, but partitions are split only by size and load.
fn settings() -> Settings {
    Settings { split_share: f64::INFINITY, ..Settings::default() }
}

fn planned(fleet: &Fleet) -> Plan {
    plan(fleet, &settings(), NOW_MS)
}

fn moves(plan: &Plan) -> Vec<(u64, u32, u32, Why)> {
    let moves = plan.actions.iter().filter_map(Action::transfer);
    moves.map(|one| (one.partition.0, one.from.0, one.to.0, one.why)).collect()
}

#[test]
fn from_one_shard_to_eight_everything_ends_within_the_band() {
    let many = vec![load(100, 20.0); 800];
    let fleet = fleet(&[&many, &[], &[], &[], &[], &[], &[], &[]]);
    let plan = planned(&fleet);
    assert_eq!(plan.before[0], load(80_000, 16_000.0));
    for after in &plan.after {
        let part = after.bytes as f64 / (10_000 * MIB) as f64;
        assert!((0.9..=1.1).contains(&part), "{part}");
    }
    assert!(plan.actions.len() < 710, "{} moves", plan.actions.len());
    assert!(!plan.cut_short);
}

#[test]
fn the_partition_that_brings_both_shards_to_the_mean_is_chosen() {
    let full = [load(500, 0.0), load(2000, 0.0), load(3000, 0.0), load(500, 0.0)];
    let plan = planned(&fleet(&[&full, &[load(2000, 0.0)]]));
    assert_eq!(moves(&plan), [(2, 1, 2, Why::Even(Goal::Bytes))]);
}

#[test]
fn nothing_is_done_within_the_band() {
    let full = vec![load(100, 10.0); 109];
    let less = vec![load(100, 10.0); 92];
    assert_eq!(planned(&fleet(&[&full, &less])).actions, []);
    let full = vec![load(100, 10.0); 115];
    assert_ne!(planned(&fleet(&[&full, &less])).actions, []);
}

#[test]
fn what_is_begun_goes_on_to_half_the_band() {
    let full = vec![load(100, 0.0); 120];
    let less = vec![load(100, 0.0); 80];
    let after = planned(&fleet(&[&full, &less])).after;
    assert!(after[0].bytes <= 10_500 * MIB, "{after:?}");
}

#[test]
fn a_new_shard_is_filled_though_all_others_are_within_the_band() {
    let some = vec![load(100, 10.0); 100];
    let mut shards = vec![&some[..]; 20];
    shards.push(&[]);
    let plan = planned(&fleet(&shards));
    assert!(plan.after[20].bytes >= 9_000 * MIB, "{:?}", plan.after[20]);
}

#[test]
fn differences_that_are_small_in_themselves_are_left() {
    assert_eq!(planned(&fleet(&[&[load(10, 3.0), load(10, 3.0)], &[]])).actions, []);
}

#[test]
fn a_move_that_only_trades_places_is_not_made() {
    // The difference would change from 1,000 MiB one way to 800 MiB the other way.
    assert_eq!(
        planned(&fleet(&[&[load(900, 0.0), load(900, 0.0)], &[load(800, 0.0)]])).actions,
        []
    );
    let even = planned(&fleet(&[&[load(900, 0.0), load(400, 0.0)], &[load(300, 0.0)]]));
    assert_eq!(moves(&even), [(2, 1, 2, Why::Even(Goal::Bytes))]);
}

#[test]
fn a_partition_that_was_just_moved_rests() {
    let mut fleet = fleet(&[&[load(900, 0.0), load(400, 0.0)], &[load(300, 0.0)]]);
    let rest_ms = Settings::default().rest_ms;
    fleet.partitions[1].changed_at_ms = Some(NOW_MS - rest_ms + 1);
    assert_eq!(planned(&fleet).actions, []);
    fleet.partitions[1].changed_at_ms = Some(NOW_MS - rest_ms);
    assert_eq!(planned(&fleet).actions.len(), 1);
}

#[test]
fn goals_count_by_their_weights() {
    let large = vec![load(1000, 0.0); 10];
    let busy = vec![load(0, 100.0); 10];
    let fleet = fleet(&[&large, &busy]);
    let mixed = planned(&fleet).after;
    assert!(mixed.iter().all(|it| (4_500..=5_500).contains(&(it.bytes / MIB))), "{mixed:?}");
    assert!(mixed.iter().all(|it| (450.0..=550.0).contains(&it.requests)), "{mixed:?}");
    let weights = Weights { bytes: 1.0, requests: 0.0, items: 0.0 };
    let bytes = plan(&fleet, &Settings { weights, ..settings() }, NOW_MS);
    assert!(moves(&bytes).iter().all(|it| it.3 == Why::Even(Goal::Bytes) && it.1 == 1));
    let weights = Weights { bytes: 0.0, requests: 0.0, items: 1.0 };
    let items = plan(&fleet, &Settings { weights, ..settings() }, NOW_MS);
    assert!(moves(&items).iter().all(|it| it.3 == Why::Even(Goal::Items) && it.1 == 1));
}

#[test]
fn a_shard_of_twice_the_capacity_gets_twice_as_much() {
    let many = vec![load(100, 0.0); 300];
    let mut fleet = fleet(&[&many, &[]]);
    fleet.shards[1].capacity = 2.0;
    let after = planned(&fleet).after;
    assert!((9_500..=10_500).contains(&(after[0].bytes / MIB)), "{after:?}");
}

#[test]
fn pinned_partitions_stay_among_their_shards_and_are_even_there() {
    let many = vec![load(100, 0.0); 200];
    let mut fleet = fleet(&[&many, &[], &[], &[]]);
    let pin = fleet.pin(Pin { shards: BTreeSet::from([ShardId(1), ShardId(2)]) });
    fleet.partitions.iter_mut().for_each(|it| it.pin = Some(pin));
    let after = planned(&fleet).after;
    assert!((9_000..=11_000).contains(&(after[0].bytes / MIB)), "{after:?}");
    assert_eq!((after[2].bytes, after[3].bytes), (0, 0));
    // Only those two shards are allowed, and they are even, so there is nothing more to do.
    let mut again = fleet.clone();
    again.apply(&planned(&fleet).actions, 0);
    assert_eq!(planned(&again).actions, []);
}

#[test]
fn a_drained_shard_is_empty_in_the_end_and_what_rests_leaves_it_too() {
    let some = vec![load(100, 10.0); 50];
    let mut fleet = fleet(&[&some, &some, &some]);
    fleet.shards[1].state = ShardState::Draining;
    fleet.partitions.iter_mut().for_each(|it| it.changed_at_ms = Some(NOW_MS));
    let plan = planned(&fleet);
    assert_eq!(plan.after[1], Load::default());
    assert_eq!(plan.after[0].bytes, plan.after[2].bytes);
    assert!(moves(&plan).iter().all(|it| it.3 == Why::Drain) && plan.actions.len() == 50);
}

#[test]
fn a_drained_shard_spreads_partitions_without_load_as_well() {
    let none = [Load::default(); 8];
    let mut fleet = fleet(&[&none, &[], &[]]);
    fleet.shards[0].state = ShardState::Draining;
    let moves = moves(&planned(&fleet));
    assert_eq!(moves.iter().filter(|it| it.2 == 2).count(), 4);
    assert_eq!(moves.iter().filter(|it| it.2 == 3).count(), 4);
}

#[test]
fn what_has_to_leave_and_may_go_nowhere_is_named() {
    let mut fleet = fleet(&[&[load(1, 1.0)], &[]]);
    fleet.shards[0].state = ShardState::Draining;
    let pin = fleet.pin(Pin { shards: BTreeSet::from([ShardId(1)]) });
    fleet.partitions[0].pin = Some(pin);
    let plan = planned(&fleet);
    assert_eq!(plan.actions, []);
    assert_eq!(plan.notes, [Note { partition: PartitionId(1), left: Left::NoPlace }]);
}

#[test]
fn a_partition_where_the_rules_forbid_it_is_moved_to_where_they_allow_it() {
    let mut fleet = fleet(&[&[load(1, 1.0)], &[], &[]]);
    let pin = fleet.pin(Pin { shards: BTreeSet::from([ShardId(3)]) });
    fleet.partitions[0].pin = Some(pin);
    assert_eq!(moves(&planned(&fleet)), [(1, 1, 3, Why::Rules)]);
}

#[test]
fn shards_that_are_away_neither_give_nor_take() {
    let many = vec![load(100, 0.0); 100];
    let mut fleet = fleet(&[&many, &[], &[]]);
    fleet.shards[1].state = ShardState::Away;
    assert_eq!(planned(&fleet).after[1], Load::default());
    fleet.shards[0].state = ShardState::Away;
    assert_eq!(planned(&fleet).actions, []);
}

#[test]
fn moves_under_way_count_where_they_go_and_are_left_alone() {
    let mut fleet = fleet(&[&[load(1000, 0.0), load(1000, 0.0)], &[]]);
    fleet.partitions[0].moving_to = Some(ShardId(2));
    assert_eq!(planned(&fleet).actions, []);
    fleet.partitions[0].moving_to = None;
    fleet.partitions[0].locked = true;
    assert_eq!(moves(&planned(&fleet)), [(2, 1, 2, Why::Even(Goal::Bytes))]);
}

fn single(load: Load, shardlets: Option<u64>, hot_share: Option<f64>) -> Plan {
    let mut fleet = fleet(&[&[load]]);
    fleet.partitions[0].shardlets = shardlets;
    fleet.partitions[0].hot_share = hot_share;
    planned(&fleet)
}

fn cut(plan: &Plan) -> (Cut, Vec<Load>) {
    let [Action::Split(split)] = &plan.actions[..] else { panic!("{plan:?}") };
    let pieces: Vec<Load> = split.pieces.iter().map(|piece| piece.load).collect();
    (split.cut, pieces)
}

#[test]
fn a_large_partition_is_cut_in_the_middle_of_its_bytes() {
    let (at, pieces) = cut(&single(load(11_000, 10.0), Some(40), Some(0.2)));
    assert_eq!((at, &pieces[..]), (Cut::Bytes, &[load(5_500, 5.0), load(5_500, 5.0)][..]));
    assert_eq!(single(load(10_000, 10.0), None, None).actions, []);
}

#[test]
fn a_busy_partition_is_cut_in_the_middle_of_its_requests() {
    let (at, pieces) = cut(&single(load(100, 3_000.0), None, Some(0.3)));
    assert_eq!((at, &pieces[..]), (Cut::Requests, &[load(50, 1_500.0), load(50, 1_500.0)][..]));
}

#[test]
fn a_hot_shardlet_is_isolated_and_then_left() {
    let (at, pieces) = cut(&single(load(100, 4_000.0), Some(100), Some(0.75)));
    assert_eq!(at, Cut::HotShardlet);
    let requests: Vec<f64> = pieces.iter().map(|piece| piece.requests).collect();
    assert_eq!(requests, [500.0, 3_000.0, 500.0]);
    assert_eq!(pieces.iter().map(|piece| piece.bytes).sum::<u64>(), 100 * MIB);
    let note = |left| [Note { partition: PartitionId(1), left }];
    for (shardlets, hot) in [(Some(1), None), (Some(100), Some(0.99))] {
        let plan = single(load(100, 4_000.0), shardlets, hot);
        assert_eq!((&plan.actions[..], &plan.notes[..]), (&[][..], &note(Left::HotShardlet)[..]));
    }
    let plan = single(load(20_000, 1.0), Some(1), None);
    assert_eq!((&plan.actions[..], &plan.notes[..]), (&[][..], &note(Left::OneShardlet)[..]));
}

#[test]
fn what_is_too_coarse_to_even_out_is_cut_until_it_is_not() {
    let mut fleet = fleet(&[&[load(9_000, 100.0)], &[], &[load(100, 1.0)]]);
    let defaults = Settings::default();
    let mut plans = 0;
    loop {
        let next = plan(&fleet, &defaults, NOW_MS);
        if next.actions.is_empty() {
            break;
        }
        fleet.apply(&next.actions, NOW_MS);
        plans += 1;
        assert!(plans < 10, "{next:?}");
    }
    for load in fleet.loads() {
        assert!((2_700..=3_400).contains(&(load.bytes / MIB)), "{:?}", fleet.loads());
    }
    // A shard within the band may have partitions of any size.
    let even = self::fleet(&[&[load(9_000, 100.0)], &[load(9_000, 100.0)]]);
    assert_eq!(plan(&even, &defaults, NOW_MS).actions, []);
}

#[test]
fn nothing_else_leaves_a_shard_whose_load_is_being_cut() {
    let full = [load(100, 5_000.0), load(100, 100.0), load(100, 100.0)];
    let plan = planned(&fleet(&[&full, &[load(300, 10.0)]]));
    assert!(matches!(&plan.actions[..], [Action::Split(_)]), "{plan:?}");
}

#[test]
fn cold_neighbours_are_merged_where_the_larger_one_is() {
    let mut fleet =
        fleet(&[&[load(10, 0.1), load(5_000, 0.0)], &[load(20, 0.2), load(5_000, 0.0)]]);
    fleet.partitions.swap(1, 2);
    fleet.partitions[0].joins_next = true;
    let plan = planned(&fleet);
    let [Action::Merge(merge)] = &plan.actions[..] else { panic!("{plan:?}") };
    assert_eq!(
        (merge.left, merge.right, merge.shard),
        (PartitionId(1), PartitionId(3), ShardId(2))
    );
    assert_eq!(moves(&plan), [(1, 1, 2, Why::Merge)]);
    fleet.apply(&plan.actions, NOW_MS);
    assert_eq!(fleet.partitions.len(), 3);
    assert_eq!(fleet.partitions[0].load.bytes, 30 * MIB);
    assert_eq!((fleet.partitions[0].id, fleet.partitions[0].shard), (PartitionId(5), ShardId(2)));
}

#[test]
fn neighbours_that_are_warm_large_elsewhere_pinned_or_not_next_to_each_other_stay_two() {
    let pair = |right: Load| {
        let mut fleet = fleet(&[&[load(10, 0.1), right]]);
        fleet.partitions[0].joins_next = true;
        fleet.pin(Pin { shards: BTreeSet::from([ShardId(1)]) });
        fleet
    };
    let is_merged = |fleet: &Fleet| !planned(fleet).actions.is_empty();
    assert!(is_merged(&pair(load(10, 0.1))));
    assert!(!is_merged(&pair(load(10, 1.0))));
    assert!(!is_merged(&pair(load(60, 0.1))));
    let change = |change: fn(&mut PartitionFigures)| {
        let mut fleet = pair(load(10, 0.1));
        change(&mut fleet.partitions[0]);
        is_merged(&fleet)
    };
    assert!(!change(|it| it.joins_next = false));
    assert!(!change(|it| it.container = ContainerId(2)));
    assert!(!change(|it| it.pin = Some(0)));
    assert!(!change(|it| it.locked = true));
    assert!(!change(|it| it.changed_at_ms = Some(NOW_MS)));
}

#[test]
fn a_plan_is_as_long_as_it_may_be_and_says_so() {
    let many = vec![load(100, 20.0); 800];
    let fleet = fleet(&[&many, &[]]);
    let short = plan(&fleet, &Settings { actions_max: 7, ..Settings::default() }, NOW_MS);
    assert_eq!((short.actions.len(), short.cut_short), (7, true));
    assert_eq!(short.bytes_to_move(), 700 * MIB);
}
