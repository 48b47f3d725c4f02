//! Whole plans as they are shown: all plans to the end, resting partitions, and no useless moves.

use lazuli_shardmap::{ContainerId, PartitionId, ShardId};

use crate::{
    Action, Fleet, Goal, Load, PartitionFigures, Rest, Resting, Settings, ShardFigures, ShardState,
    plan, whole_plan,
};

const GIB: u64 = 1 << 30;
const NOW_MS: u64 = 1_000_000_000;

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

fn load(bytes: u64, requests: f64) -> Load {
    Load { bytes, requests, items: bytes / 1_000 }
}

fn moved(actions: &[Action]) -> Vec<u64> {
    actions.iter().filter_map(Action::transfer).map(|one| one.partition.0).collect()
}

#[test]
fn the_whole_plan_goes_on_with_the_pieces_until_all_is_even() {
    let fleet = fleet(&[&[load(24 * GIB, 0.0)], &[], &[]]);
    let settings = Settings::default();
    let first = plan(&fleet, &settings, NOW_MS);
    assert!(fleet.peak(&first.after, Goal::Bytes) > 2.9, "the first plan only splits");
    let whole = whole_plan(&fleet, &settings, NOW_MS);
    let last = whole.plans.last().unwrap();
    assert!(last.actions.is_empty(), "nothing is left to do");
    let peak = fleet.peak(&last.after, Goal::Bytes);
    // Eight pieces on three shards.
    assert!(peak <= 1.13, "{peak}");
    let moves = whole.plans.iter().flat_map(|plan| moved(&plan.actions));
    let moves: Vec<u64> = moves.collect();
    assert!(!moves.is_empty());
    for id in moves {
        assert_eq!(whole.origin(PartitionId(id)), PartitionId(1), "all are pieces of the one");
    }
}

#[test]
fn empty_partitions_stay_where_they_are() {
    // One shard is too full because of one shardlet, which cannot be split.
    let mut loads = vec![Load::default(); 20];
    loads[0] = load(8 * GIB, 50.0);
    loads[1].requests = 0.4;
    let mut uneven = fleet(&[&loads, &[load(GIB, 1.0)]]);
    uneven.partitions[0].shardlets = Some(1);
    let settings = Settings::default();
    assert_eq!(moved(&plan(&uneven, &settings, NOW_MS).actions), [0; 0]);
    // Empty neighbours are merged on one shard, but not moved together for it.
    let none = Load::default();
    let mut apart = fleet(&[&[none, none], &[none]]);
    apart.partitions.iter_mut().for_each(|it| it.joins_next = true);
    let actions = plan(&apart, &settings, NOW_MS).actions;
    assert_eq!((actions.len(), moved(&actions).len()), (1, 0), "{actions:?}");
}

#[test]
fn whoever_rests_is_named_with_the_reason() {
    let mut fleet = fleet(&[&[load(GIB, 0.0); 4], &[load(GIB, 0.0)], &[load(GIB, 0.0)]]);
    let settings = Settings::default();
    fleet.partitions[0].changed_at_ms = Some(NOW_MS - 1);
    fleet.partitions[1].changed_at_ms = Some(NOW_MS - settings.rest_ms);
    fleet.partitions[2].locked = true;
    fleet.partitions[3].moving_to = Some(ShardId(2));
    fleet.shards[2].state = ShardState::Away;
    let named = plan(&fleet, &settings, NOW_MS).resting;
    let until_ms = NOW_MS - 1 + settings.rest_ms;
    let expected =
        [(1, Rest::Changed { until_ms }), (3, Rest::Locked), (4, Rest::Moving), (6, Rest::Away)];
    let resting = |(id, why)| Resting { partition: PartitionId(id), why };
    assert_eq!(named, expected.map(resting));
}

#[test]
fn a_move_copies_what_lies_on_the_shard_and_nothing_else() {
    let mut fleet = fleet(&[&[load(4 * GIB, 0.0); 2], &[]]);
    fleet.partitions.iter_mut().for_each(|it| it.outside = 3 * GIB);
    let plan =
        plan(&fleet, &Settings { split_share: f64::INFINITY, ..Settings::default() }, NOW_MS);
    assert_eq!(moved(&plan.actions).len(), 1);
    assert_eq!(plan.bytes_to_move(), GIB);
}
