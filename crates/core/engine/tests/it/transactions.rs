//! What a transaction sees of its partition, what is kept of partitions that are gone, and what moves that are over count as.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use lazuli_engine::{ItemKey, MoveOptions, Outcome, Transaction, Tx};
use lazuli_shardmap::layout::Space;
use lazuli_shardmap::manager::Known;
use lazuli_shardmap::{Container, ContainerId};
use lazuli_store::{Direction, KeyRange, PageLimit, Result};
use tokio::sync::Notify;

use crate::world::{World, item_key, route};

/// Puts and deletes items, then scans all of a partition key, and says which rows it saw and where the next page begins.
struct Look {
    container: ContainerId,
    range: KeyRange,
    put: Vec<ItemKey>,
    delete: Vec<ItemKey>,
    direction: Direction,
    limit: PageLimit,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Transaction for Look {
    type Output = bool;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<bool> {
        for key in &self.put {
            tx.put(key, Bytes::from_static(b"new")).await?;
        }
        for key in &self.delete {
            tx.delete(key).await?;
        }
        let scan = tx.scan(self.container, Space::ITEMS, &self.range, self.direction, self.limit);
        let page = scan.await?;
        let rows = page.items.iter().map(|(key, item)| {
            let key = ItemKey::from_bytes(key.clone(), self.range.start.len()).unwrap();
            let row = String::from_utf8(key.row().to_vec()).unwrap();
            format!("{row}={}", std::str::from_utf8(&item.payload).unwrap())
        });
        *self.seen.lock().unwrap() = rows.collect();
        Ok(page.next.is_some())
    }
}

fn look(container: &Container, key: &str) -> Look {
    Look {
        container: container.id,
        range: KeyRange::prefix(route(container, key)),
        put: Vec::new(),
        delete: Vec::new(),
        direction: Direction::Forward,
        limit: PageLimit::items(10),
        seen: Arc::default(),
    }
}

async fn run(world: &World, container: &Container, look: Look) -> Result<(Vec<String>, bool)> {
    let seen = look.seen.clone();
    let more = world.engine.write(container.id, &route(container, "k"), look).await?;
    let rows = seen.lock().unwrap().clone();
    Ok((rows, more))
}

#[tokio::test]
async fn a_transaction_scans_what_is_stored_and_what_it_has_written_itself() {
    let world = World::new(1).await;
    let container = world.range("c", &[]).await;
    for row in ["a", "b", "c"] {
        world.put(&container, "k", row, "old").await.unwrap();
    }
    world.put(&container, "other", "x", "old").await.unwrap();
    let all = run(&world, &container, look(&container, "k")).await.unwrap();
    assert_eq!(all, (vec!["a=old".to_owned(), "b=old".into(), "c=old".into()], false));

    let changed = Look {
        put: vec![item_key(&container, "k", "aa"), item_key(&container, "k", "c")],
        delete: vec![item_key(&container, "k", "b")],
        ..look(&container, "k")
    };
    let own = run(&world, &container, changed).await.unwrap();
    assert_eq!(own, (vec!["a=old".to_owned(), "aa=new".into(), "c=new".into()], false));

    let limit = PageLimit::items(2);
    let direction = Direction::Backward;
    let back = Look { direction, limit, ..look(&container, "k") };
    let back = run(&world, &container, back).await.unwrap();
    assert_eq!(back, (vec!["c=new".to_owned(), "aa=new".into()], true));
}

#[tokio::test]
async fn a_transaction_scans_nothing_outside_of_its_partition() {
    let world = World::new(1).await;
    let container = world.range("c", &["m"]).await;
    let outside = run(&world, &container, look(&container, "z")).await.unwrap_err();
    assert_eq!(outside.code(), "outside-transaction");
    let wide = Look { range: KeyRange::all(), ..look(&container, "k") };
    assert_eq!(run(&world, &container, wide).await.unwrap_err().code(), "outside-transaction");
}

#[tokio::test]
async fn moves_that_are_over_count_as_what_became_of_them() {
    let world = World::new(2).await;
    let container = world.range("c", &[]).await;
    world.put(&container, "k", "a", "x").await.unwrap();
    let partition = world.partitions(&container).await[0].clone();
    let target = *world.shard_stores.keys().find(|id| **id != partition.shard).unwrap();
    let options = MoveOptions::default();

    let first = world.engine.move_partition(partition.id, target, options).await.unwrap().number;
    world.engine.cancel_move(first).await.unwrap();
    end_moves(&world).await;
    let stats = world.engine.move_stats();
    assert_eq!((stats.begun, stats.arrived, stats.cancelled), (1, 0, 1));
    let finished = world.engine.move_finished(first).await.unwrap();
    assert_eq!((finished.outcome, finished.pause), (Outcome::Cancelled, None));

    let second = world.engine.move_partition(partition.id, target, options).await.unwrap().number;
    end_moves(&world).await;
    let stats = world.engine.move_stats();
    assert_eq!((stats.begun, stats.arrived, stats.cancelled), (2, 1, 1));
    let finished = world.engine.move_finished(second).await.unwrap();
    assert_eq!(finished.outcome, Outcome::Arrived);
    assert!(finished.pause.is_some(), "writers had to wait, if only for a moment");
}

async fn end_moves(world: &World) {
    while !world.engine.manager().catalog().moves().await.unwrap().is_empty() {
        world.engine.run_moves().await.unwrap();
    }
}

#[tokio::test]
async fn partitions_that_have_left_a_shard_are_let_go() {
    let world = World::new(1).await;
    let container = world.range("c", &[]).await;
    world.put(&container, "a", "r", "x").await.unwrap();
    let shard = world.engine.shards().all()[0].clone();
    assert_eq!(shard.stats().partitions_warm, 1);
    world.engine.sample();
    assert_eq!(shard.stats().partitions_warm, 1, "one that is here stays");
    let before = world.partitions(&container).await[0].id;
    world.split_at(&container, "m").await;
    world.put(&container, "z", "r", "x").await.unwrap();
    world.put(&container, "a", "r", "y").await.unwrap();
    let after = world.partitions(&container).await;
    let kept = after.iter().filter(|partition| partition.id == before).count();
    assert_eq!(shard.stats().partitions_warm, 3 - kept);
    // The task of a lane may hold its partition for a moment after it has answered.
    for _ in 0..1_000 {
        world.engine.sample();
        if shard.stats().partitions_warm == 2 {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{} partitions are still held", shard.stats().partitions_warm);
}

/// Puts an item, and waits in its lane until it may go on.
struct Waiting {
    key: ItemKey,
    begun: Arc<Notify>,
    go_on: Arc<Notify>,
}

impl Transaction for Waiting {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        self.begun.notify_one();
        self.go_on.notified().await;
        tx.put(&self.key, "value".into()).await
    }
}

/// What a split reads of the figures must not change before it is committed.
#[tokio::test]
async fn a_split_waits_for_the_write_under_way_and_its_figures_are_exact() {
    let world = World::new(1).await;
    let container = world.range("table", &[]).await;
    for key in ["a", "n"] {
        world.put(&container, key, "row", "value").await.unwrap();
    }
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let key = item_key(&container, "b", "row");
    let waiting = Waiting { key: key.clone(), begun: begun.clone(), go_on: go_on.clone() };
    let engine = world.engine.clone();
    let id = container.id;
    let write = tokio::spawn(async move { engine.write(id, key.route(), waiting).await });
    begun.notified().await;
    let partition = world.partition_of(&container, "n").await;
    let (manager, at) = (world.engine.manager().clone(), route(&container, "n"));
    let split = tokio::spawn(async move { manager.split(Known::from(&partition), at).await });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!split.is_finished(), "the split came into the middle of a write");
    go_on.notify_one();
    write.await.unwrap().unwrap();
    split.await.unwrap().unwrap();
    for (key, items) in [("a", 2), ("n", 1)] {
        let partition = world.partition_of(&container, key).await;
        let stats = world.engine.partition_stats(partition.id, partition.shard).await.unwrap();
        assert_eq!(stats.counts.items, items, "{key}");
    }
}
