//! Positions in the time-ordered spaces, while a number was given out and its write is not committed yet.

use std::sync::Arc;

use crate::world::{World, item_key, route};
use bytes::Bytes;
use lazuli_engine::changes::ItemChange;
use lazuli_engine::{ItemKey, MoveOptions, Transaction, Tx};
use lazuli_env::{BoxFuture, Points};
use lazuli_shardmap::manager::{Cuts, Known};
use lazuli_shardmap::{Container, MapKind, Policies};
use lazuli_store::{PageLimit, Result};
use tokio::sync::{Barrier, Semaphore};

/// Lets a write begin, and holds it back until it may commit.
struct Gate {
    entered: Semaphore,
    open: Semaphore,
}

impl Gate {
    fn closed() -> Arc<Self> {
        Arc::new(Self { entered: Semaphore::new(0), open: Semaphore::new(0) })
    }
}

async fn pass(semaphore: &Semaphore) {
    semaphore.acquire().await.unwrap().forget();
}

/// A write that has its number and waits before it is committed.
struct SlowPut {
    key: ItemKey,
    value: Bytes,
    gate: Arc<Gate>,
}

impl Transaction for SlowPut {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        tx.put(&self.key, self.value.clone()).await?;
        self.gate.entered.add_permits(1);
        pass(&self.gate.open).await;
        Ok(())
    }
}

/// Two partitions on one shard, `a` in the first and `z` in the second, each with one item.
async fn two_partitions(world: &World) -> Container {
    let schema = lazuli_shardmap::key::KeySchema::one(lazuli_shardmap::key::KeyType::Text);
    let cut = MapKind::Range.route(&schema, &[crate::world::text("m")]).unwrap();
    let policies = Policies { changes: true, ..Policies::default() };
    let container = world.create("c", MapKind::Range, Cuts::At(vec![]), policies).await;
    let whole = world.partitions(&container).await[0].clone();
    world.engine.manager().split(Known::from(&whole), cut).await.unwrap();
    for key in ["a", "z"] {
        world.put(&container, key, "", "old").await.unwrap();
    }
    container
}

/// Begins a slow write, which has its number when this returns.
async fn begin_slow(
    world: &World,
    container: &Container,
    key: &str,
) -> (Arc<Gate>, tokio::task::JoinHandle<Result<()>>) {
    let gate = Gate::closed();
    let key = item_key(container, key, "");
    let slow = SlowPut { key: key.clone(), value: "new".into(), gate: gate.clone() };
    let (engine, id) = (world.engine.clone(), container.id);
    let writing = tokio::spawn(async move { engine.write(id, key.route(), slow).await });
    pass(&gate.entered).await;
    (gate, writing)
}

/// All changes of the partition that holds the key, after a position, which goes on.
async fn read_on(
    world: &World,
    container: &Container,
    key: &str,
    position: &mut Bytes,
) -> Vec<ItemChange> {
    let (at, mut found) = (route(container, key), Vec::new());
    loop {
        let limit = PageLimit::items(2);
        let page = world.engine.changes(container.id, &at, position, limit).await.unwrap();
        found.extend(page.changes);
        *position = page.position;
        if !page.more {
            return found;
        }
    }
}

#[tokio::test]
async fn a_feed_does_not_pass_over_a_write_that_is_not_committed_yet() {
    let world = World::new(1).await;
    let container = two_partitions(&world).await;
    let (gate, writing) = begin_slow(&world, &container, "a").await;
    for n in 0..5 {
        world.put(&container, "z", &n.to_string(), "fast").await.unwrap();
    }
    let mut position = Bytes::new();
    assert_eq!(read_on(&world, &container, "a", &mut position).await.len(), 1);
    gate.open.add_permits(1);
    writing.await.unwrap().unwrap();
    let late = read_on(&world, &container, "a", &mut position).await;
    assert_eq!(late.len(), 1, "the slow write comes after the position that was read before it");
    assert_eq!(read_on(&world, &container, "z", &mut Bytes::new()).await.len(), 6);
}

#[tokio::test]
async fn a_feed_of_a_new_partition_does_not_pass_over_its_first_write() {
    let world = World::new(1).await;
    let container = two_partitions(&world).await;
    world.put(&container, "b", "", "old").await.unwrap();
    // What is split off has no figures of its own yet.
    world.split_at(&container, "b").await;
    let (gate, writing) = begin_slow(&world, &container, "b").await;
    world.put(&container, "z", "", "fast").await.unwrap();
    let mut position = Bytes::new();
    let engine = world.engine.clone();
    let (at, start, id) = (route(&container, "b"), Bytes::new(), container.id);
    let reading =
        tokio::spawn(async move { engine.changes(id, &at, &start, PageLimit::MAX).await });
    // A reader may have to wait for the write, but not for ever.
    tokio::task::yield_now().await;
    gate.open.add_permits(1);
    writing.await.unwrap().unwrap();
    let page = reading.await.unwrap().unwrap();
    let mut seen = page.changes.len();
    position.clone_from(&page.position);
    seen += read_on(&world, &container, "b", &mut position).await.len();
    assert_eq!(seen, 2, "what was written before the split and after it");
}

#[tokio::test]
async fn a_feed_of_a_new_partition_ends_although_nobody_writes_to_it() {
    let world = World::new(1).await;
    let container = two_partitions(&world).await;
    world.put(&container, "b", "", "old").await.unwrap();
    world.split_at(&container, "b").await;
    for n in 0..5 {
        world.put(&container, "z", &n.to_string(), "fast").await.unwrap();
    }
    let mut position = Bytes::new();
    assert_eq!(read_on(&world, &container, "b", &mut position).await.len(), 1);
    assert!(read_on(&world, &container, "b", &mut position).await.is_empty());
    // It goes on from the last number of the partition that it was cut from, also once it has been counted.
    let before = position.clone();
    world.engine.recount_all().await.unwrap();
    assert!(read_on(&world, &container, "b", &mut position).await.is_empty());
    assert_eq!(position, before);
    world.put(&container, "b", "", "new").await.unwrap();
    assert_eq!(read_on(&world, &container, "b", &mut position).await.len(), 1);
}

/// When both moves have caught up once, lets the slow write commit, and the moves go on behind it.
struct LateCommit {
    both: Barrier,
    gate: Semaphore,
    is_committed: Semaphore,
}

impl Points for LateCommit {
    fn reach<'a>(&'a self, work: &'a str, step: &'static str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if (work, step) == ("move", "verified") {
                self.both.wait().await;
                self.gate.add_permits(1);
                pass(&self.is_committed).await;
            }
        })
    }
}

#[tokio::test]
async fn a_move_brings_a_write_that_was_numbered_before_what_another_move_has_passed() {
    for packing in [false, true] {
        let mut world = World::with(2, packing).await;
        let late = Arc::new(LateCommit {
            both: Barrier::new(2),
            gate: Semaphore::new(0),
            is_committed: Semaphore::new(0),
        });
        world.env = world.env.clone().watched(late.clone());
        world.restart().await;
        let container = two_partitions(&world).await;
        let partitions = world.partitions(&container).await;
        let target = *world.shard_stores.keys().find(|id| **id != partitions[0].shard).unwrap();
        for partition in &partitions {
            let begun = world.engine.move_partition(partition.id, target, MoveOptions::default());
            begun.await.unwrap();
        }
        let (gate, writing) = begin_slow(&world, &container, "a").await;
        world.put(&container, "z", "", "new").await.unwrap();
        let engine = world.engine.clone();
        let leading = tokio::spawn(async move { engine.run_moves().await });
        pass(&late.gate).await;
        gate.open.add_permits(1);
        writing.await.unwrap().unwrap();
        late.is_committed.add_permits(2);
        leading.await.unwrap().unwrap();

        assert!(world.partitions(&container).await.iter().all(|it| it.shard == target));
        for key in ["a", "z"] {
            let value = world.get(&container, key, "").await.unwrap();
            assert_eq!(value.as_deref(), Some("new"), "{key}");
            let feed = read_on(&world, &container, key, &mut Bytes::new()).await;
            assert_eq!(feed.len(), 2, "{key}");
        }
    }
}

#[tokio::test]
async fn numbers_of_a_partition_grow_though_two_processes_write_it() {
    let mut world = World::new(1).await;
    let container = two_partitions(&world).await;
    let first = world.engine.clone();
    world.restart().await;
    let key = item_key(&container, "a", "");
    let write = |engine: &Arc<lazuli_engine::Engine>, value: &'static str| {
        let put = crate::world::Put { key: key.clone(), value: value.into(), expires_ms: None };
        let (engine, id, key) = (engine.clone(), container.id, key.clone());
        async move { engine.write(id, key.route(), put).await.unwrap() }
    };
    let second = world.engine.clone();
    write(&second, "1").await;
    // The clock of one process is ahead of the other's.
    world.pass(std::time::Duration::from_secs(3_600));
    write(&first, "2").await;
    world.clock.turn_back();
    let mut position = Bytes::new();
    assert_eq!(read_on(&world, &container, "a", &mut position).await.len(), 3);
    write(&second, "3").await;
    assert_eq!(read_on(&world, &container, "a", &mut position).await.len(), 1);
    // Both have counted what both have written.
    let partition = world.partition_of(&container, "a").await;
    let stats = world.engine.partition_stats(partition.id, partition.shard).await.unwrap();
    assert_eq!(stats.counts.items, 1);
}
