//! A partition that goes to another shard while it is in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::world::{Add, Delete, Put, World, item_key, number};
use bytes::Bytes;
use lazuli_engine::{ItemKey, MoveOptions, Outcome};
use lazuli_shardmap::layout::{self, Space};
use lazuli_shardmap::manager::{Cuts, Known};
use lazuli_shardmap::{Container, MapKind, PartitionState, Policies, ShardId};
use lazuli_store::{Direction, Item, KeyRange, PageLimit, Store};

const ITEMS: u32 = 500;

async fn filled(world: &World, policies: Policies) -> Container {
    let container = world.create("c", MapKind::Range, Cuts::At(vec![]), policies).await;
    for n in 0..ITEMS {
        let (key, row) = (format!("k{:02}", n % 20), format!("r{n}"));
        world.put(&container, &key, &row, &format!("value {n}")).await.unwrap();
    }
    container
}

/// The other of two shards.
async fn other(world: &World, container: &Container) -> ShardId {
    let here = world.partitions(container).await[0].shard;
    *world.shard_stores.keys().find(|id| **id != here).unwrap()
}

async fn begin(world: &World, container: &Container) -> u64 {
    let partition = world.partitions(container).await[0].clone();
    let target = other(world, container).await;
    let begun = world.engine.move_partition(partition.id, target, MoveOptions::default()).await;
    begun.unwrap().number
}

/// Goes on with all moves until there are none.
async fn end_moves(world: &World) {
    while !world.engine.manager().catalog().moves().await.unwrap().is_empty() {
        world.engine.run_moves().await.unwrap();
    }
}

/// Every shard is clean, and only the owner has any of the container's keys.
async fn check(world: &World, container: &Container) {
    world.engine.delete_garbage().await.unwrap();
    let owner = world.partitions(container).await[0].shard;
    for shard in world.engine.shards().all() {
        let report = shard.check(world.engine.manager().catalog()).await.unwrap();
        assert!(report.findings.is_empty(), "shard {}: {:?}", shard.id, report.findings);
        if shard.id != owner {
            assert_eq!(report.items, 0, "shard {} has nothing left", shard.id);
        }
    }
}

#[tokio::test]
async fn everything_goes_along_and_nothing_stays_behind() {
    for packing in [false, true] {
        goes_along(&World::with(2, packing).await).await;
    }
}

async fn goes_along(world: &World) {
    let policies = Policies { changes: true, ..Policies::default() };
    let container = filled(world, policies).await;
    let expiring = item_key(&container, "k00", "short");
    let expires_ms = Some(world.env.clock.now_ms() + 60_000);
    let put = Put { key: expiring.clone(), value: "x".into(), expires_ms };
    world.engine.write(container.id, expiring.route(), put).await.unwrap();
    let before = world.item(&container, "k03", "r3").await.unwrap();
    let feed = changes(world, &container).await;

    let (from, to) =
        (world.partitions(&container).await[0].clone(), other(world, &container).await);
    let number = begin(world, &container).await;
    end_moves(world).await;

    let now = world.partitions(&container).await[0].clone();
    assert_eq!((now.id, now.shard, now.state), (from.id, to, PartitionState::Online));
    assert!(now.epoch > from.epoch);
    assert_eq!(world.item(&container, "k03", "r3").await.unwrap(), before, "versions stay");
    assert_eq!(changes(world, &container).await, feed, "the change feed stays");
    let stats = world.engine.partition_stats(now.id, to).await.unwrap();
    assert!(stats.counts.exact);
    assert_eq!(stats.counts.items, u64::from(ITEMS) + 1);
    let finished = world.engine.move_finished(number).await.unwrap();
    assert_eq!(finished.outcome, Outcome::Arrived);
    check(world, &container).await;

    world.pass(Duration::from_secs(61));
    assert_eq!(world.engine.sweep_all().await.unwrap(), 1, "what was to expire does");
    check(world, &container).await;
    // And back again, where its old figures must not be taken for its own.
    world.put(&container, "k03", "new", "1").await.unwrap();
    begin(world, &container).await;
    end_moves(world).await;
    world.put(&container, "k03", "newer", "2").await.unwrap();
    check(world, &container).await;
}

async fn changes(world: &World, container: &Container) -> Vec<lazuli_engine::changes::ItemChange> {
    let route = crate::world::route(container, "k00");
    let (mut all, mut after) = (Vec::new(), Bytes::new());
    loop {
        let limit = PageLimit::items(100);
        let page = world.engine.changes(container.id, &route, &after, limit).await.unwrap();
        all.extend(page.changes);
        after = page.position;
        if !page.more {
            return all;
        }
    }
}

#[tokio::test]
async fn writers_notice_nothing_while_it_moves_back_and_forth() {
    for packing in [false, true] {
        let world = Arc::new(World::with(2, packing).await);
        moves_back_and_forth(world.clone()).await;
        assert_eq!(world.engine.move_stats().handed_over, if packing { 10 } else { 0 });
    }
}

async fn moves_back_and_forth(world: Arc<World>) {
    let container = filled(&world, Policies::default()).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for writer in 0..4 {
        let (world, container, stop) = (world.clone(), container.clone(), stop.clone());
        writers.push(tokio::spawn(async move {
            let key = item_key(&container, "k07", &format!("counter-{writer}"));
            let mut count = 0;
            while !stop.load(Ordering::Relaxed) {
                let add = Add { key: key.clone(), amount: 1, then_fail: false };
                let sum = world.engine.write(container.id, key.route(), add).await.unwrap();
                count += 1;
                assert_eq!(sum, count, "nothing is lost or done twice");
                let extra = item_key(&container, "k08", &format!("{writer}-{}", count % 7));
                if count % 3 == 0 {
                    world
                        .engine
                        .write(container.id, extra.route(), Delete(extra.clone()))
                        .await
                        .unwrap();
                } else {
                    let put = Put { key: extra.clone(), value: "x".into(), expires_ms: None };
                    world.engine.write(container.id, extra.route(), put).await.unwrap();
                }
                tokio::task::yield_now().await;
            }
            (key, count)
        }));
    }
    for _ in 0..10 {
        begin(&world, &container).await;
        end_moves(&world).await;
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        let (key, count): (ItemKey, i64) = writer.await.unwrap();
        let view = world.engine.read(container.id, key.route(), 1).await.unwrap();
        assert_eq!(number(view.get(&key).await.unwrap().as_ref()), count);
    }
    assert_eq!(world.engine.move_stats().arrived, 10);
    check(&world, &container).await;
}

/// Every durable commit of a move, with a crash before it and after it: the next engine finishes the move, and nothing is
/// lost. Writes come in between, so that there is something to catch up with.
#[tokio::test]
async fn a_crash_at_every_commit_is_survived() {
    for packing in [false, true] {
        let crashes = crash_at_every_commit(packing).await;
        assert!(crashes >= 48, "{crashes} crashes are fewer than there were");
    }
}

async fn crash_at_every_commit(packing: bool) -> usize {
    let mut crashes = 0;
    for after in [false, true] {
        for at in 1.. {
            let mut world = World::with(2, packing).await;
            let container = filled(&world, Policies::default()).await;
            let faults = world.faults.clone();
            *faults.after.lock().unwrap() = after;
            faults.at.store(faults.seen.load(Ordering::SeqCst) + at, Ordering::SeqCst);
            let answered = AtomicU64::new(0);
            let died = move_with_writes(&world, &container, &answered).await.is_err();
            world.restart().await;
            end_moves(&world).await;
            let stored = world.item(&container, "k01", "counter").await;
            let (stored, answered) = (number(stored.as_ref()) as u64, answered.into_inner());
            assert!((answered..=answered + 1).contains(&stored), "{stored} of {answered}");
            for n in 0..ITEMS {
                let (key, row) = (format!("k{:02}", n % 20), format!("r{n}"));
                let value = world.get(&container, &key, &row).await.unwrap();
                assert_eq!(value, Some(format!("value {n}")), "crash at commit {at}");
            }
            world.put(&container, "k01", "after", "x").await.unwrap();
            check(&world, &container).await;
            if !died {
                break;
            }
            crashes += 1;
        }
    }
    crashes
}

async fn move_with_writes(
    world: &World,
    container: &Container,
    answered: &AtomicU64,
) -> lazuli_store::Result<()> {
    let partition = world.partitions(container).await[0].clone();
    let target = other(world, container).await;
    let key = item_key(container, "k01", "counter");
    let write = async || {
        let add = Add { key: key.clone(), amount: 1, then_fail: false };
        world.engine.write(container.id, key.route(), add).await?;
        answered.fetch_add(1, Ordering::SeqCst);
        lazuli_store::Result::Ok(())
    };
    world.engine.move_partition(partition.id, target, MoveOptions::default()).await?;
    for _ in 0..3 {
        write().await?;
    }
    let led = async {
        while !world.engine.manager().catalog().moves().await?.is_empty() {
            world.engine.run_moves().await?;
        }
        Ok(())
    };
    let writing = async {
        for _ in 0..3 {
            tokio::task::yield_now().await;
            write().await?;
        }
        Ok(())
    };
    tokio::try_join!(led, writing).map(|_| ())
}

/// A slow commit promises a long pause. Where nobody writes there are no further commits to learn from.
#[tokio::test]
async fn a_commit_that_was_slow_once_does_not_hold_up_a_move_for_ever() {
    for at in 1..=8 {
        let world = World::new(2).await;
        let container = filled(&world, Policies::default()).await;
        let number = begin(&world, &container).await;
        let at = world.faults.seen.load(Ordering::SeqCst) + at;
        let slow = (at, world.clock.clone(), Duration::from_millis(150));
        *world.faults.slow.lock().unwrap() = Some(slow);
        tokio::time::timeout(Duration::from_secs(20), end_moves(&world)).await.unwrap();
        assert_eq!(world.engine.move_finished(number).await.unwrap().outcome, Outcome::Arrived);
    }
}

#[tokio::test]
async fn a_move_that_is_called_off_leaves_no_trace() {
    let world = World::new(2).await;
    let container = filled(&world, Policies::default()).await;
    let from = world.partitions(&container).await[0].shard;
    let number = begin(&world, &container).await;
    let waiting = world.engine.move_status(number).await.unwrap();
    assert_eq!(waiting.moving.source, from);
    world.put(&container, "k00", "meanwhile", "x").await.unwrap();
    world.engine.cancel_move(number).await.unwrap();
    end_moves(&world).await;
    assert_eq!(world.partitions(&container).await[0].shard, from);
    assert_eq!(world.engine.move_finished(number).await.unwrap().outcome, Outcome::Cancelled);
    check(&world, &container).await;
    assert!(written_down(&world, &container, from).await.is_empty());
}

/// Nobody can write while a partition is offline, but what was written down before must go all the same.
#[tokio::test]
async fn a_move_called_off_leaves_nothing_on_a_partition_that_is_offline() {
    let world = World::new(2).await;
    let container = filled(&world, Policies::default()).await;
    let from = world.partitions(&container).await[0].shard;
    let number = begin(&world, &container).await;
    world.put(&container, "k00", "meanwhile", "x").await.unwrap();
    assert_eq!(written_down(&world, &container, from).await.len(), 1);
    let manager = world.engine.manager();
    manager.cancel_move(number).await.unwrap();
    let partition = world.partitions(&container).await[0].clone();
    manager.set_state(Known::from(&partition), PartitionState::Offline).await.unwrap();
    end_moves(&world).await;
    assert!(written_down(&world, &container, from).await.is_empty());
}

/// The rows that a shard has written down for moves of a container.
async fn written_down(world: &World, container: &Container, shard: ShardId) -> Vec<Item> {
    let rows = KeyRange::prefix(layout::prefix(container.id, Space::MOVING));
    let store = &world.shard_stores[&shard];
    store.scan(&rows, Direction::Forward, PageLimit::MAX).await.unwrap().items
}

/// What was copied for the first move becomes garbage when somebody gets to it, and would take the second one's along.
#[tokio::test]
async fn a_second_move_waits_until_the_first_has_left_nothing_behind() {
    let world = World::new(2).await;
    let container = filled(&world, Policies::default()).await;
    let partition = world.partitions(&container).await[0].clone();
    let target = other(&world, &container).await;
    let number = begin(&world, &container).await;
    world.engine.manager().cancel_move(number).await.unwrap();
    let again = world.engine.move_partition(partition.id, target, MoveOptions::default()).await;
    assert_eq!(again.unwrap_err().code(), "range-being-cleaned");
    end_moves(&world).await;
    begin(&world, &container).await;
    end_moves(&world).await;
    check(&world, &container).await;
}

#[tokio::test]
async fn what_is_read_only_moves_without_a_fence_and_stays_so() {
    let world = World::new(2).await;
    let container = filled(&world, Policies::default()).await;
    let partition = world.partitions(&container).await[0].clone();
    let known = Known::from(&partition);
    world.engine.manager().set_state(known, PartitionState::ReadOnly).await.unwrap();
    begin(&world, &container).await;
    end_moves(&world).await;
    let now = world.partitions(&container).await[0].clone();
    assert_ne!(now.shard, partition.shard);
    assert_eq!(now.state, PartitionState::ReadOnly);
    assert!(world.get(&container, "k03", "r3").await.unwrap().is_some());
    check(&world, &container).await;
}

#[tokio::test]
async fn a_move_that_rests_goes_on_when_told_to() {
    let world = World::new(2).await;
    let container = filled(&world, Policies::default()).await;
    let number = begin(&world, &container).await;
    world.engine.pause_move(number).await.unwrap();
    world.engine.run_moves().await.unwrap();
    assert!(world.engine.move_status(number).await.unwrap().moving.is_paused);
    world.engine.resume_move(number).await.unwrap();
    end_moves(&world).await;
    assert_eq!(world.engine.move_finished(number).await.unwrap().outcome, Outcome::Arrived);
}

#[tokio::test]
async fn a_container_can_be_deleted_while_it_moves() {
    let world = World::new(2).await;
    let container = filled(&world, Policies::default()).await;
    let number = begin(&world, &container).await;
    world.engine.delete_container("c").await.unwrap();
    end_moves(&world).await;
    assert_eq!(world.engine.move_finished(number).await.unwrap().outcome, Outcome::Cancelled);
    world.engine.delete_garbage().await.unwrap();
    for shard in world.engine.shards().all() {
        let report = shard.check(world.engine.manager().catalog()).await.unwrap();
        assert!(report.findings.is_empty() && report.items == 0, "{:?}", report.findings);
    }
}

/// The background work deletes what a move leaves behind, and so does the move itself: whoever comes second finds the
/// guard of that work gone, which is no trouble.
#[tokio::test]
async fn two_who_clean_up_after_one_move_are_no_trouble() {
    let world = World::with(2, false).await;
    let container = filled(&world, Policies::default()).await;
    begin(&world, &container).await;
    let engine = &world.engine;
    for _ in 0..50 {
        let (moved, cleaned, again) =
            tokio::join!(engine.run_moves(), engine.delete_garbage(), engine.delete_garbage());
        moved.unwrap();
        cleaned.unwrap();
        again.unwrap();
        if engine.manager().catalog().moves().await.unwrap().is_empty() {
            break;
        }
    }
    check(&world, &container).await;
    // A container that is gone leaves garbage too.
    engine.delete_container(&container.name).await.unwrap();
    let (one, two) = tokio::join!(engine.delete_garbage(), engine.delete_garbage());
    one.unwrap();
    two.unwrap();
}
