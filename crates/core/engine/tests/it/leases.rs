//! Two engines on the same stores share the background work by leases.

use std::sync::Arc;
use std::time::Duration;

use crate::world::World;
use lazuli_engine::lease::{Leasing, STOPPED_BEATS, TRUSTED_BEATS};
use lazuli_engine::{Engine, MoveOptions};
use lazuli_shardmap::catalog::Work;
use lazuli_shardmap::{Container, MapReason, Move, ShardId};

const HEARTBEAT: Duration = Duration::from_secs(2);
const TRUSTED_FOR: Duration = Duration::from_secs(2 * TRUSTED_BEATS as u64);
const STOPPED_AFTER: Duration = Duration::from_secs(2 * STOPPED_BEATS as u64);
const ALL: [Work; 4] = [Work::Jobs, Work::Moves, Work::Reconcile, Work::Shard(ShardId(1))];

/// A world with two shards, and two engines on it. The first has taken all leases.
async fn shared(leasing: Leasing) -> (World, Arc<Engine>, Arc<Engine>) {
    let mut world = World::new(2).await;
    world.settings.leasing = leasing;
    world.restart().await;
    let first = world.engine.clone();
    first.renew_leases().await.unwrap();
    world.restart().await;
    let second = world.engine.clone();
    (world, first, second)
}

fn held(engine: &Engine) -> usize {
    ALL.iter().filter(|work| engine.may(**work)).count()
}

/// A beat of each, again and again for so long.
async fn beat(world: &World, engines: &[&Engine], time: Duration) {
    for _ in 0..time.as_secs() / HEARTBEAT.as_secs() {
        world.pass(HEARTBEAT);
        for engine in engines {
            engine.renew_leases().await.unwrap();
        }
    }
}

async fn moving(world: &World, table: &Container) -> Move {
    let partition = world.partition_of(table, "a").await;
    let target = if partition.shard == ShardId(1) { ShardId(2) } else { ShardId(1) };
    world.engine.move_partition(partition.id, target, MoveOptions::default()).await.unwrap()
}

#[tokio::test]
async fn one_of_two_engines_does_each_kind_of_work_for_as_long_as_it_lives() {
    let (world, first, second) = shared(Leasing::Shared).await;
    second.renew_leases().await.unwrap();
    assert_eq!((held(&first), held(&second)), (4, 0));
    beat(&world, &[&first, &second], 10 * STOPPED_AFTER).await;
    assert_eq!((held(&first), held(&second)), (4, 0));
}

#[tokio::test]
async fn an_engine_that_stops_beating_ceases_to_work_before_others_take_over() {
    let (world, first, second) = shared(Leasing::Shared).await;
    second.renew_leases().await.unwrap();
    beat(&world, &[&second], TRUSTED_FOR).await;
    assert_eq!((held(&first), held(&second)), (0, 0), "neither for a while");
    beat(&world, &[&second], STOPPED_AFTER - TRUSTED_FOR).await;
    assert_eq!((held(&first), held(&second)), (0, 4));
    // It comes back, and finds that its leases are gone.
    first.renew_leases().await.unwrap();
    assert_eq!((held(&first), held(&second)), (0, 4));
    beat(&world, &[&first, &second], 10 * STOPPED_AFTER).await;
    assert_eq!((held(&first), held(&second)), (0, 4), "nothing goes back and forth");
}

#[tokio::test]
async fn a_node_that_was_away_for_long_is_removed_and_comes_back_as_a_new_one() {
    let (world, first, second) = shared(Leasing::Shared).await;
    second.renew_leases().await.unwrap();
    beat(&world, &[&second], 10 * STOPPED_AFTER).await;
    let removed = first.renew_leases().await.unwrap_err();
    assert!(removed.is(MapReason::NodeRemoved), "{removed}");
    first.renew_leases().await.unwrap();
    second.release_leases().await.unwrap();
    first.renew_leases().await.unwrap();
    assert_eq!((held(&first), held(&second)), (4, 0));
}

#[tokio::test]
async fn leases_that_were_released_are_taken_at_once_under_a_new_epoch() {
    let (world, first, second) = shared(Leasing::Shared).await;
    first.release_leases().await.unwrap();
    second.renew_leases().await.unwrap();
    assert_eq!((held(&first), held(&second)), (0, 4));
    let (_, leases) = world.engine.manager().catalog().nodes_and_leases().await.unwrap();
    assert!(leases.iter().all(|lease| lease.epoch == 3), "{leases:?}");
}

#[tokio::test]
async fn two_engines_that_want_a_lease_at_once_do_not_both_get_it() {
    let mut world = World::new(2).await;
    world.settings.leasing = Leasing::Shared;
    world.restart().await;
    let first = world.engine.clone();
    world.restart().await;
    let second = world.engine.clone();
    let (one, other) = tokio::join!(first.renew_leases(), second.renew_leases());
    one.unwrap();
    other.unwrap();
    for work in ALL {
        assert!(first.may(work) != second.may(work), "{work:?}");
    }
}

/// The leader took its lease for granted, was paused, and wakes up behind the one who relieved it.
#[tokio::test]
async fn a_leader_without_its_lease_cannot_take_a_move_back() {
    let (world, first, second) = shared(Leasing::Shared).await;
    let table = world.hash("table", 1).await;
    world.put(&table, "a", "row", "value").await.unwrap();
    let begun = moving(&world, &table).await;
    let catalog = world.engine.manager().catalog();
    let (_, leases) = catalog.nodes_and_leases().await.unwrap();
    let old = *leases.iter().find(|lease| lease.work == Work::Moves).unwrap();
    assert_eq!(
        first.manager().take_move(begun.number, Some(old)).await.unwrap().epoch,
        begun.epoch + 1
    );
    second.renew_leases().await.unwrap();
    beat(&world, &[&second], STOPPED_AFTER).await;
    let refused = first.manager().take_move(begun.number, Some(old)).await.unwrap_err();
    assert!(refused.is(MapReason::LeaseLost), "{refused}");
    let found = catalog.moving(begun.number).await.unwrap().unwrap();
    assert_eq!(found.epoch, begun.epoch + 1, "nothing has changed");
}

/// Without leases each engine goes on with every move that it finds, so two of them take one from each other again and again.
#[tokio::test]
async fn only_the_holder_of_the_lease_goes_on_with_moves() {
    for (leasing, is_led) in [(Leasing::Shared, false), (Leasing::Alone, true)] {
        let (world, first, second) = shared(leasing).await;
        let table = world.hash("table", 1).await;
        world.put(&table, "a", "row", "value").await.unwrap();
        let begun = moving(&world, &table).await;
        second.run_moves().await.unwrap();
        let left = world.engine.manager().catalog().moving(begun.number).await.unwrap();
        assert_eq!(left.is_none(), is_led, "{leasing:?}");
        first.run_moves().await.unwrap();
        assert!(world.engine.manager().catalog().moves().await.unwrap().is_empty());
        assert_eq!(world.partition_of(&table, "a").await.shard, begun.target);
    }
}

#[tokio::test]
async fn an_engine_that_leaves_gives_its_leases_up_and_goes_on_beating() {
    let (world, first, second) = shared(Leasing::Shared).await;
    second.renew_leases().await.unwrap();
    first.leave_leases().await.unwrap();
    beat(&world, &[&first, &second], 2 * HEARTBEAT).await;
    assert_eq!((held(&first), held(&second)), (0, 4));
    assert_eq!(second.nodes_alive(), [first.node(), second.node()].into());
}

#[tokio::test]
async fn rates_are_shared_among_the_nodes_that_beat() {
    let (world, first, second) = shared(Leasing::Shared).await;
    assert_eq!(first.share(100), 100, "the other one has not come yet");
    beat(&world, &[&first, &second], 2 * HEARTBEAT).await;
    assert_eq!((first.share(100), second.share(100), first.share(1)), (50, 50, 1));
    beat(&world, &[&second], STOPPED_AFTER).await;
    assert_eq!(second.share(100), 100);
}
