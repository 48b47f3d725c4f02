//! Writes of a partition: order, batches, conditions, failures, old maps.

use std::sync::Arc;

use crate::world::{Add, Delete, Put, Transfer, World, item_key, route};
use lazuli_engine::{Condition, Transaction, Tx};
use lazuli_shardmap::PartitionState;
use lazuli_shardmap::manager::{Cuts, Known};
use lazuli_shardmap::{MapKind, Policies};
use lazuli_store::{Error, Kind, Result, Shortage, StoreHealth};

#[tokio::test]
async fn a_write_is_read_back_and_survives_a_restart() {
    let mut world = World::new(2).await;
    let container = world.range("c", &["m"]).await;
    world.put(&container, "a", "1", "first").await.unwrap();
    world.put(&container, "z", "1", "last").await.unwrap();
    world.restart().await;
    assert_eq!(world.get(&container, "a", "1").await.unwrap().as_deref(), Some("first"));
    assert_eq!(world.get(&container, "z", "1").await.unwrap().as_deref(), Some("last"));
    assert_eq!(world.get(&container, "z", "2").await.unwrap(), None);
    let key = item_key(&container, "a", "1");
    assert!(world.engine.write(container.id, key.route(), Delete(key.clone())).await.unwrap());
    assert!(!world.engine.write(container.id, key.route(), Delete(key.clone())).await.unwrap());
    assert_eq!(world.get(&container, "a", "1").await.unwrap(), None);
}

#[tokio::test]
async fn increments_at_once_are_all_counted_and_share_commits() {
    let world = World::new(1).await;
    let container = world.range("c", &[]).await;
    let key = item_key(&container, "counter", "");
    let mut tasks = Vec::new();
    for n in 0..200 {
        let (engine, key) = (world.engine.clone(), key.clone());
        tasks.push(tokio::spawn(async move {
            let add = Add { key: key.clone(), amount: 1, then_fail: n % 4 == 0 };
            engine.write(key.container(), key.route(), add).await
        }));
    }
    let mut failed = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.code(), "on-purpose");
                failed += 1;
            }
        }
    }
    assert_eq!(failed, 50);
    assert_eq!(world.get(&container, "counter", "").await.unwrap().as_deref(), Some("150"));
    let stats = world.engine.shards().all()[0].stats();
    assert_eq!(stats.transactions, 200);
    assert!(stats.commits < 100, "{stats:?}: those that wait share a commit");
}

struct PutIf(lazuli_engine::ItemKey, Condition, &'static str);

impl Transaction for PutIf {
    type Output = lazuli_engine::Lsn;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<lazuli_engine::Lsn> {
        tx.check(&self.0, self.1).await?;
        tx.put(&self.0, self.2.into()).await?;
        Ok(tx.lsn())
    }
}

#[tokio::test]
async fn conditions_are_checked_on_the_state_that_is_written() {
    let world = World::new(1).await;
    let container = world.range("c", &[]).await;
    let key = item_key(&container, "a", "1");
    let put = |condition, value| {
        world.engine.write(container.id, key.route(), PutIf(key.clone(), condition, value))
    };
    assert_eq!(put(Condition::Present, "x").await.unwrap_err().kind(), Kind::NotFound);
    let first = put(Condition::Absent, "1").await.unwrap();
    assert_eq!(put(Condition::Absent, "x").await.unwrap_err().kind(), Kind::Exists);
    let second = put(Condition::Version(first), "2").await.unwrap();
    assert!(second > first);
    assert_eq!(put(Condition::Version(first), "x").await.unwrap_err().kind(), Kind::Precondition);
    let item = world.item(&container, "a", "1").await.unwrap();
    assert_eq!((item.version, &item.payload[..]), (second, &b"2"[..]));
}

#[tokio::test]
async fn versions_grow_across_restarts_and_a_clock_that_steps_back() {
    let mut world = World::new(1).await;
    let container = world.range("c", &[]).await;
    world.pass(std::time::Duration::from_secs(3_600));
    world.put(&container, "a", "1", "x").await.unwrap();
    let before = world.item(&container, "a", "1").await.unwrap().version;
    world.clock.turn_back();
    world.restart().await;
    world.put(&container, "a", "1", "y").await.unwrap();
    assert!(world.item(&container, "a", "1").await.unwrap().version > before);
}

struct Panics;

impl Transaction for Panics {
    type Output = ();

    async fn run(&self, _: &mut Tx<'_>) -> Result<()> {
        panic!("on purpose")
    }
}

#[tokio::test]
async fn a_transaction_that_panics_fails_alone() {
    let world = World::new(1).await;
    let container = world.range("c", &[]).await;
    let at = route(&container, "a");
    let error = world.engine.write(container.id, &at, Panics).await.unwrap_err();
    assert_eq!(error.code(), "panicked");
    world.put(&container, "a", "1", "x").await.unwrap();
}

#[tokio::test]
async fn a_key_of_another_partition_is_refused() {
    let world = World::new(1).await;
    let container = world.range("c", &["m"]).await;
    let put = Put { key: item_key(&container, "z", ""), value: "x".into(), expires_ms: None };
    let at = route(&container, "a");
    let error = world.engine.write(container.id, &at, put).await.unwrap_err();
    assert_eq!(error.code(), "outside-transaction");
    assert_eq!(world.get(&container, "z", "").await.unwrap(), None);
}

#[tokio::test]
async fn an_old_map_is_refreshed_and_the_write_made_once() {
    let world = World::new(1).await;
    let container = world.range("c", &[]).await;
    let key = item_key(&container, "k", "");
    let add = || {
        let add = Add { key: key.clone(), amount: 1, then_fail: false };
        world.engine.write(container.id, key.route(), add)
    };
    assert_eq!(add().await.unwrap(), 1);
    for round in 0..10 {
        // The engine's router has the map from before the change.
        world.split_at(&container, &format!("j{round}")).await;
        assert_eq!(add().await.unwrap(), round + 2);
    }
}

#[tokio::test]
async fn states_of_a_partition_are_respected() {
    let world = World::new(1).await;
    let container = world.range("c", &["m"]).await;
    world.put(&container, "a", "1", "x").await.unwrap();
    let set = async |state| {
        let partition = world.partition_of(&container, "a").await;
        world.engine.manager().set_state(Known::from(&partition), state).await.unwrap();
    };
    set(PartitionState::ReadOnly).await;
    let refused = world.put(&container, "a", "1", "y").await.unwrap_err();
    assert_eq!(refused.code(), "partition-read-only");
    assert_eq!(world.get(&container, "a", "1").await.unwrap().as_deref(), Some("x"));
    set(PartitionState::Offline).await;
    assert_eq!(world.get(&container, "a", "1").await.unwrap_err().code(), "partition-offline");
    world.put(&container, "z", "1", "the others serve").await.unwrap();
    set(PartitionState::Online).await;
    world.put(&container, "a", "1", "y").await.unwrap();
    assert_eq!(world.get(&container, "a", "1").await.unwrap().as_deref(), Some("y"));
}

#[tokio::test]
async fn a_transaction_covers_many_partitions_of_one_shard() {
    let world = World::new(1).await;
    let container = world.range("c", &["h", "p"]).await;
    let other = world.hash("d", 4).await;
    world.put(&container, "a", "", "100").await.unwrap();
    world.put(&container, "z", "", "0").await.unwrap();
    world.put(&other, "q", "", "0").await.unwrap();
    let transfer = |from: (&lazuli_shardmap::Container, &str), to: (_, &str), amount| {
        let (from, to) = (item_key(from.0, from.1, ""), item_key(to.0, to.1, ""));
        let targets =
            [&from, &to].map(|key| (key.container(), bytes::Bytes::copy_from_slice(key.route())));
        let engine = world.engine.clone();
        async move { engine.write_many(&targets, Transfer { from, to, amount }).await }
    };
    transfer((&container, "a"), (&container, "z"), 30).await.unwrap();
    transfer((&container, "z"), (&other, "q"), 10).await.unwrap();
    let refused = transfer((&container, "a"), (&container, "z"), 500).await.unwrap_err();
    assert_eq!(refused.code(), "too-little");
    let refused = transfer((&container, "a"), (&container, "missing"), 1).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::NotFound);
    for (at, key, left) in [(&container, "a", "70"), (&container, "z", "20"), (&other, "q", "10")] {
        assert_eq!(world.get(at, key, "").await.unwrap().as_deref(), Some(left), "{key}");
    }
}

#[tokio::test]
async fn transfers_both_ways_at_once_neither_block_nor_lose() {
    let world = World::new(1).await;
    let container = world.range("c", &["m"]).await;
    world.put(&container, "a", "", "1000").await.unwrap();
    world.put(&container, "z", "", "1000").await.unwrap();
    let mut tasks = Vec::new();
    for n in 0..100 {
        let (mut from, mut to) = (item_key(&container, "a", ""), item_key(&container, "z", ""));
        if n % 2 == 0 {
            std::mem::swap(&mut from, &mut to);
        }
        let engine = world.engine.clone();
        let targets =
            [&from, &to].map(|key| (key.container(), bytes::Bytes::copy_from_slice(key.route())));
        tasks.push(tokio::spawn(async move {
            engine.write_many(&targets, Transfer { from, to, amount: n }).await
        }));
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let sum: i64 = [
        world.get(&container, "a", "").await.unwrap().unwrap().parse::<i64>().unwrap(),
        world.get(&container, "z", "").await.unwrap().unwrap().parse::<i64>().unwrap(),
    ]
    .iter()
    .sum();
    assert_eq!(sum, 2000);
}

#[tokio::test]
async fn a_transaction_over_shards_is_refused_and_names_them() {
    let world = World::new(2).await;
    let container = world.create("c", MapKind::List, Cuts::Empty, Policies::default()).await;
    let shards: Vec<_> = world.shard_stores.keys().copied().collect();
    world.add_point(&container, "a", shards[0]).await;
    world.add_point(&container, "b", shards[1]).await;
    let (from, to) = (item_key(&container, "a", ""), item_key(&container, "b", ""));
    let targets =
        [&from, &to].map(|key| (key.container(), bytes::Bytes::copy_from_slice(key.route())));
    let transfer = Transfer { from, to, amount: 1 };
    let refused = world.engine.write_many(&targets, transfer).await.unwrap_err();
    assert_eq!(refused.code(), "cross-shard");
    assert!(refused.message().contains(&format!("{}, {}", shards[0], shards[1])), "{refused}");
    let missing = world.get(&container, "c", "").await.unwrap_err();
    assert_eq!(missing.code(), "mapping-not-found");
}

#[tokio::test]
async fn too_large_a_transaction_fails_alone() {
    struct Huge(lazuli_engine::ItemKey);
    impl Transaction for Huge {
        type Output = ();
        async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
            for n in 0..5 {
                let row = [n];
                let key = lazuli_engine::ItemKey::new(
                    self.0.container(),
                    self.0.space(),
                    self.0.route(),
                    &row,
                );
                tx.put(&key, vec![0; 10 * 1024 * 1024].into()).await?;
            }
            Ok(())
        }
    }
    let world = World::new(1).await;
    let container = world.range("c", &[]).await;
    let key = item_key(&container, "a", "");
    let huge = world.engine.write(container.id, key.route(), Huge(key.clone()));
    let small = world.put(&container, "a", "small", "x");
    let (huge, small) = tokio::join!(huge, small);
    assert_eq!(huge.unwrap_err().kind(), Kind::TooLarge);
    small.unwrap();
    assert_eq!(world.get(&container, "a", "\0").await.unwrap(), None);
}

#[tokio::test]
async fn a_shard_that_is_down_leaves_the_others_working() {
    let world = World::new(2).await;
    let container = world.range("c", &["m"]).await;
    let [first, second] = world.partitions(&container).await.try_into().unwrap();
    assert_ne!(first.shard, second.shard, "new partitions are spread");
    let down: Arc<crate::world::Down> = world.down[&first.shard].clone();
    down.0.store(true, std::sync::atomic::Ordering::SeqCst);
    for _ in 0..3 {
        let error = world.put(&container, "a", "", "x").await.unwrap_err();
        assert!(matches!(error.kind(), Kind::Unavailable { .. }), "{error}");
        world.put(&container, "z", "", "x").await.unwrap();
    }
    down.0.store(false, std::sync::atomic::Ordering::SeqCst);
    world.pass(std::time::Duration::from_secs(60));
    world.put(&container, "a", "", "back").await.unwrap();
}

#[tokio::test]
async fn on_a_full_disk_reads_and_deletions_go_on_without_the_other_writes_of_their_batch() {
    let world = World::new(1).await;
    let container = world.range("c", &[]).await;
    for n in 0..50 {
        world.put(&container, "a", &n.to_string(), "kept").await.unwrap();
    }
    let full = Error::unavailable("disk-full", "there is no room");
    let shard = world.partition_of(&container, "a").await.shard;
    let set = |health| *world.down[&shard].1.lock().unwrap() = health;
    set(Some(StoreHealth::Full(Shortage::Tight, full.clone())));
    let mut tasks = Vec::new();
    for n in 0..50 {
        let key = item_key(&container, "a", &n.to_string());
        let new = item_key(&container, "a", &format!("new-{n}"));
        let engine = world.engine.clone();
        tasks.push(tokio::spawn(async move {
            let put = Put { key: new, value: "new".into(), expires_ms: None };
            let refused = engine.write(key.container(), key.route(), put);
            let deleted = engine.write(key.container(), key.route(), Delete(key.clone()));
            tokio::join!(refused, deleted)
        }));
    }
    for task in tasks {
        let (refused, deleted) = task.await.unwrap();
        assert_eq!(refused.unwrap_err().code(), "disk-full");
        assert!(deleted.unwrap());
    }
    assert_eq!(world.get(&container, "a", "7").await.unwrap(), None);
    set(Some(StoreHealth::Failed(full)));
    let refused = world.put(&container, "a", "1", "new").await.unwrap_err();
    assert_eq!(refused.code(), "disk-full");
    assert_eq!(world.get(&container, "a", "new-7").await.unwrap(), None);
    set(None);
    world.put(&container, "a", "1", "new").await.unwrap();
    assert_eq!(world.get(&container, "a", "1").await.unwrap().as_deref(), Some("new"));
}

#[tokio::test]
async fn the_time_of_an_item_follows_a_clock_that_was_set_back_by_years() {
    let years = std::time::Duration::from_secs(5 * 365 * 24 * 3_600);
    let mut world = World::new(1).await;
    let container = world.range("c", &[]).await;
    world.put(&container, "a", "1", "x").await.unwrap();
    let first = world.item(&container, "a", "1").await.unwrap();
    assert_eq!((first.written_ms, first.time()), (None, first.version));
    world.pass(years);
    world.put(&container, "a", "1", "x").await.unwrap();
    let ahead = world.item(&container, "a", "1").await.unwrap().version;
    world.clock.turn_back();
    for _ in 0..2 {
        world.put(&container, "a", "1", "y").await.unwrap();
        let item = world.item(&container, "a", "1").await.unwrap();
        assert!(item.version > ahead);
        let late_ms = world.env.clock.now_ms().abs_diff(item.time().millis());
        assert!(late_ms < 60_000, "{late_ms}");
        world.restart().await;
    }
}
