//! Moves that cannot go on: none of them holds up another one, and each comes to its end once it can.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::world::{Down, TurnedClock, World};
use lazuli_engine::lease::{Leasing, STOPPED_BEATS};
use lazuli_engine::{Engine, MoveOptions};
use lazuli_env::{BoxFuture, Points};
use lazuli_shardmap::manager::Cuts;
use lazuli_shardmap::{Container, MapKind, Policies, ShardId};

const ONE: ShardId = ShardId(1);
const TWO: ShardId = ShardId(2);
const THREE: ShardId = ShardId(3);
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A list map with these keys, all on the first shard.
async fn listed(world: &World, keys: &[&str]) -> Container {
    let table = world.create("c", MapKind::List, Cuts::Empty, Policies::default()).await;
    for key in keys {
        world.add_point(&table, key, ONE).await;
        world.put(&table, key, "row", "value").await.unwrap();
    }
    table
}

async fn send(world: &World, table: &Container, key: &str, to: ShardId) -> u64 {
    let partition = world.partition_of(table, key).await.id;
    let options = MoveOptions::default();
    world.engine.move_partition(partition, to, options).await.unwrap().number
}

async fn shard_of(world: &World, table: &Container, key: &str) -> ShardId {
    world.partition_of(table, key).await.shard
}

#[tokio::test]
async fn as_many_moves_as_may_be_led_at_once_that_all_fail_do_not_hold_up_the_next() {
    let mut world = World::new(3).await;
    world.settings.moves_at_once = 2;
    world.restart().await;
    let table = listed(&world, &["a", "b", "c"]).await;
    for (key, to) in [("a", THREE), ("b", THREE), ("c", TWO)] {
        send(&world, &table, key, to).await;
    }
    world.down[&THREE].0.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        let _ = world.engine.run_moves().await;
    }
    assert_eq!(shard_of(&world, &table, "c").await, TWO);
    assert_eq!(shard_of(&world, &table, "a").await, ONE);
    // Those that failed go on by themselves.
    world.down[&THREE].0.store(false, Ordering::SeqCst);
    for _ in 0..3 {
        world.engine.run_moves().await.unwrap();
    }
    assert_eq!(shard_of(&world, &table, "a").await, THREE);
    assert_eq!(shard_of(&world, &table, "b").await, THREE);
}

/// Takes a shard down as soon as the catalog has decided a move.
struct DownAtBegin(Arc<Down>);

impl Points for DownAtBegin {
    fn reach<'a>(&'a self, work: &'a str, step: &'static str) -> BoxFuture<'a, ()> {
        if (work, step) == ("begin move", "decided") {
            self.0.0.store(true, Ordering::SeqCst);
        }
        Box::pin(async {})
    }
}

#[tokio::test]
async fn an_operation_that_a_lost_shard_has_not_taken_holds_up_no_move_of_other_routes() {
    let mut world = World::new(3).await;
    let table = listed(&world, &["a", "b"]).await;
    send(&world, &table, "b", THREE).await;
    world.engine.run_moves().await.unwrap();
    let going = send(&world, &table, "a", TWO).await;
    let watched = DownAtBegin(world.down[&THREE].clone());
    world.env = world.env.clone().watched(Arc::new(watched));
    world.restart().await;
    let partition = world.partition_of(&table, "b").await.id;
    let begun = world.engine.move_partition(partition, TWO, MoveOptions::default()).await;
    assert!(begun.is_err(), "the source is down");
    let catalog = world.engine.manager().catalog();
    assert_eq!(catalog.operations().await.unwrap().len(), 1, "and has not taken it");
    let _ = world.engine.run_moves().await;
    assert_eq!(shard_of(&world, &table, "a").await, TWO);
    assert!(catalog.moving(going).await.unwrap().is_none(), "it is over");
}

/// Makes every fence slow.
struct SlowFence(Duration);

impl Points for SlowFence {
    fn reach<'a>(&'a self, work: &'a str, step: &'static str) -> BoxFuture<'a, ()> {
        let is_slow = (work, step) == ("fence", "decided");
        Box::pin(async move {
            if is_slow {
                tokio::time::sleep(self.0).await;
            }
        })
    }
}

#[tokio::test]
async fn a_move_whose_pause_cannot_be_short_comes_to_its_end_all_the_same() {
    let mut world = World::new(2).await;
    world.env = world.env.clone().watched(Arc::new(SlowFence(Duration::from_millis(700))));
    world.restart().await;
    let table = listed(&world, &["a"]).await;
    send(&world, &table, "a", TWO).await;
    let engine: Arc<Engine> = world.engine.clone();
    let leading = tokio::spawn(async move { engine.run_moves().await });
    // At first it takes the fence down, as writers would wait for too long.
    let tried = async {
        while world.engine.move_stats().reopened == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, tried).await.unwrap();
    world.pass(Duration::from_secs(10));
    tokio::time::timeout(PATIENCE, leading).await.unwrap().unwrap().unwrap();
    assert_eq!(shard_of(&world, &table, "a").await, TWO);
    let longest = world.engine.move_stats().pause_longest;
    assert!(longest < Duration::from_secs(5), "{longest:?}");
}

/// Lets time pass, once, when a fence is taken down.
struct LongPause {
    clock: Arc<TurnedClock>,
    is_over: AtomicBool,
}

impl Points for LongPause {
    fn reach<'a>(&'a self, work: &'a str, step: &'static str) -> BoxFuture<'a, ()> {
        if (work, step) == ("reopen", "decided") && !self.is_over.swap(true, Ordering::SeqCst) {
            self.clock.turn(Duration::from_secs(2 * u64::from(STOPPED_BEATS)));
        }
        Box::pin(async {})
    }
}

#[tokio::test]
async fn a_node_that_is_paused_when_it_takes_a_move_does_not_take_it_without_its_lease() {
    let mut world = World::new(2).await;
    let clock = world.clock.clone();
    let pause = Arc::new(LongPause { clock, is_over: AtomicBool::new(false) });
    world.settings.leasing = Leasing::Shared;
    world.env = world.env.clone().watched(pause.clone());
    world.restart().await;
    world.engine.renew_leases().await.unwrap();
    let table = listed(&world, &["a"]).await;
    let number = send(&world, &table, "a", TWO).await;
    let catalog = world.engine.manager().catalog();
    let begun = catalog.moving(number).await.unwrap().unwrap();
    world.engine.manager().fence_move(&begun).await.unwrap();
    // Another process, as far as the move is concerned: it has not begun it.
    world.restart().await;
    world.engine.renew_leases().await.unwrap();
    world.pass(Duration::from_secs(2 * u64::from(STOPPED_BEATS)));
    world.engine.renew_leases().await.unwrap();
    world.engine.run_moves().await.unwrap();
    assert!(pause.is_over.load(Ordering::SeqCst), "it was paused");
    let found = world.engine.manager().catalog().moving(number).await.unwrap().unwrap();
    assert_eq!(found.epoch, begun.epoch, "it has not taken the move");
}
