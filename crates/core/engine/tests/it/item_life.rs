//! Time to live, change records, budgets, statistics, and what deleted containers leave behind.

use std::time::Duration;

use crate::world::{Delete, Put, World, item_key, route};
use bytes::Bytes;
use lazuli_engine::changes::ItemOperation;
use lazuli_shardmap::manager::{ContainerUpdate, Cuts, Known};
use lazuli_shardmap::route::virtual_routes;
use lazuli_shardmap::{Container, MapKind, Policies};
use lazuli_store::{Direction, KeyRange, Kind, PageLimit, Store};

async fn put_for(world: &World, container: &Container, key: &str, value: &str, seconds: u64) {
    let key = item_key(container, key, "");
    let expires_ms = Some(world.env.clock.now_ms() + seconds * 1_000);
    let put = Put { key: key.clone(), value: value.to_owned().into(), expires_ms };
    world.engine.write(container.id, key.route(), put).await.unwrap();
}

/// Keys of all stores that are not the system's own.
async fn data_keys(world: &World) -> usize {
    let mut count = 0;
    for store in world.shard_stores.values() {
        let data = KeyRange::new(vec![0, 0, 0, 1], None);
        let page = store.scan(&data, Direction::Forward, PageLimit::MAX).await.unwrap();
        // Entries of indexes have tests of their own.
        let is_entry = |key: &[u8]| key[4] == lazuli_engine::Space::INDEX.0;
        count += page.items.iter().filter(|(key, _)| !is_entry(key)).count();
    }
    count
}

#[tokio::test]
async fn expired_items_are_hidden_at_once_and_swept_later() {
    let mut world = World::new(1).await;
    let container = world.range("c", &["m"]).await;
    put_for(&world, &container, "a", "short", 10).await;
    put_for(&world, &container, "z", "long", 100).await;
    world.put(&container, "b", "", "for ever").await.unwrap();
    assert_eq!(world.engine.sweep_all().await.unwrap(), 0);
    world.pass(Duration::from_secs(11));
    assert_eq!(world.get(&container, "a", "").await.unwrap(), None);
    assert_eq!(world.get(&container, "z", "").await.unwrap().as_deref(), Some("long"));
    world.restart().await;
    assert_eq!(world.engine.sweep_all().await.unwrap(), 1);
    assert_eq!(world.engine.sweep_all().await.unwrap(), 0);
    assert_eq!(data_keys(&world).await, 3, "two items and one expiry row");
    world.pass(Duration::from_secs(100));
    assert_eq!(world.engine.sweep_all().await.unwrap(), 1);
    assert_eq!(data_keys(&world).await, 1);
    assert_eq!(world.get(&container, "b", "").await.unwrap().as_deref(), Some("for ever"));
}

#[tokio::test]
async fn a_new_expiry_replaces_the_old_one() {
    let world = World::new(1).await;
    let container = world.range("c", &[]).await;
    put_for(&world, &container, "a", "1", 10).await;
    put_for(&world, &container, "a", "2", 50).await;
    assert_eq!(data_keys(&world).await, 2);
    world.pass(Duration::from_secs(20));
    assert_eq!(world.engine.sweep_all().await.unwrap(), 0);
    assert_eq!(world.get(&container, "a", "").await.unwrap().as_deref(), Some("2"));
    world.put(&container, "a", "", "3").await.unwrap();
    assert_eq!(data_keys(&world).await, 1, "an item without expiry leaves no expiry row");
    world.pass(Duration::from_secs(100));
    assert_eq!(world.engine.sweep_all().await.unwrap(), 0);
    assert_eq!(world.get(&container, "a", "").await.unwrap().as_deref(), Some("3"));
}

#[tokio::test]
async fn changes_are_recorded_in_order_while_wanted() {
    let mut world = World::new(1).await;
    let plain = world.range("plain", &[]).await;
    let policies = Policies { changes: true, ..Policies::default() };
    let container = world.create("c", MapKind::Range, Cuts::At(vec![]), policies).await;
    for n in 0..10 {
        world.put(&container, &format!("k{}", n % 3), "", &n.to_string()).await.unwrap();
        world.put(&plain, "k", "", "x").await.unwrap();
    }
    let gone = item_key(&container, "k1", "");
    world.engine.write(container.id, gone.route(), Delete(gone.clone())).await.unwrap();
    world.split_at(&container, "k2").await;
    world.restart().await;
    world.put(&container, "k2", "", "after the split").await.unwrap();
    let mut seen = Vec::new();
    for key in ["k0", "k2"] {
        let (mut position, mut last) = (Bytes::new(), lazuli_engine::Lsn::ZERO);
        loop {
            let at = route(&container, key);
            let limit = PageLimit::items(3);
            let page = world.engine.changes(container.id, &at, &position, limit).await.unwrap();
            for change in page.changes {
                assert!(change.lsn > last, "along a partition numbers grow");
                last = change.lsn;
                let route = change.key.route().to_vec();
                seen.push((change.operation, route));
            }
            position = page.position;
            if !page.more {
                break;
            }
        }
    }
    let of = |key| seen.iter().filter(|(_, at)| at[..] == route(&container, key)[..]).count();
    assert_eq!((of("k0"), of("k1"), of("k2")), (4, 4, 4));
    let deleted: Vec<_> = seen.iter().filter(|(op, _)| *op == ItemOperation::Delete).collect();
    assert_eq!(deleted.len(), 1);
    assert_eq!(deleted[0].1[..], *gone.route());
    let at = route(&plain, "k");
    let none = world.engine.changes(plain.id, &at, &Bytes::new(), PageLimit::MAX).await.unwrap();
    assert!(none.changes.is_empty());
    world.engine.trim_changes(container.id, lazuli_engine::Lsn(u64::MAX >> 1)).await.unwrap();
    let at = route(&container, "k0");
    let none =
        world.engine.changes(container.id, &at, &Bytes::new(), PageLimit::MAX).await.unwrap();
    assert!(none.changes.is_empty());
}

#[tokio::test]
async fn policies_hold_from_the_moment_they_are_changed() {
    let world = World::new(1).await;
    let container = world.range("c", &[]).await;
    world.put(&container, "a", "", "before").await.unwrap();
    let update = ContainerUpdate {
        id: container.id,
        version: container.version,
        schema: container.schema.clone(),
        placement: vec![],
        policies: Policies { changes: true, throughput: Some(2), ..Policies::default() },
    };
    world.engine.update_container(&update).await.unwrap();
    world.put(&container, "a", "", "after").await.unwrap();
    let at = route(&container, "a");
    let page =
        world.engine.changes(container.id, &at, &Bytes::new(), PageLimit::MAX).await.unwrap();
    assert_eq!(page.changes.len(), 1);
    let mut refused = false;
    for _ in 0..10 {
        refused |= world.put(&container, "a", "", "too much").await.is_err();
    }
    assert!(refused, "ten writes at once are over a budget of two a second");
}

#[tokio::test]
async fn a_partition_over_its_budget_is_told_when_to_come_again() {
    let world = World::new(1).await;
    let policies = Policies { throughput: Some(10), ..Policies::default() };
    let container = world.create("c", MapKind::Range, Cuts::At(vec![]), policies).await;
    let mut refused = None;
    for n in 0..100 {
        if let Err(error) = world.put(&container, "a", &n.to_string(), "x").await {
            refused = Some((n, error));
            break;
        }
    }
    let (made, error) = refused.expect("100 writes are over a budget of 10 a second");
    assert!(made >= 10, "{made}");
    let Kind::Throttled { retry_after } = error.kind() else { panic!("{error}") };
    assert!(retry_after > Duration::ZERO && retry_after <= Duration::from_secs(1));
    let partition = world.partition_of(&container, "a").await;
    let stats = world.engine.partition_stats(partition.id, partition.shard).await.unwrap();
    assert_eq!(stats.throttled, 1);
    world.pass(Duration::from_secs(2));
    world.put(&container, "a", "again", "x").await.unwrap();
}

#[tokio::test]
async fn figures_are_exact_across_writes_restarts_and_splits() {
    let mut world = World::new(1).await;
    let container = world.range("c", &[]).await;
    let stats = async |world: &World, key: &str| {
        let partition = world.partition_of(&container, key).await;
        world.engine.partition_stats(partition.id, partition.shard).await.unwrap()
    };
    for n in 0..50 {
        world.put(&container, &format!("k{n:02}"), "", "0123456789").await.unwrap();
    }
    for n in 0..10 {
        world.put(&container, &format!("k{n:02}"), "", "01234").await.unwrap();
        let key = item_key(&container, &format!("k{:02}", n + 10), "");
        world.engine.write(container.id, key.route(), Delete(key.clone())).await.unwrap();
    }
    let before = stats(&world, "k00").await;
    let key_bytes = item_key(&container, "k00", "").bytes().len() as u64;
    assert_eq!(before.counts.items, 40);
    assert_eq!(before.counts.bytes, 40 * (key_bytes + 10) + 30 * 10 + 10 * 5);
    assert_eq!((before.writes, before.counts.exact), (70, true));
    world.split_at(&container, "k25").await;
    world.restart().await;
    let (low, high) = (stats(&world, "k00").await, stats(&world, "k30").await);
    assert_eq!((low.counts.items, high.counts.items), (15, 25));
    assert_eq!(low.counts.bytes + high.counts.bytes, before.counts.bytes);
}

#[tokio::test]
async fn a_large_partition_is_counted_in_the_background_while_written_to() {
    let world = World::new(1).await;
    let container = world.range("c", &[]).await;
    for n in 0..1_500 {
        world.put(&container, "a", &format!("{n:05}"), "x").await.unwrap();
    }
    world.put(&container, "z", "", "x").await.unwrap();
    world.split_at(&container, "m").await;
    world.put(&container, "a", "new", "x").await.unwrap();
    let partition = world.partition_of(&container, "a").await;
    let stats = world.engine.partition_stats(partition.id, partition.shard).await.unwrap();
    assert!(!stats.counts.exact);
    world.engine.recount_all().await.unwrap();
    let stats = world.engine.partition_stats(partition.id, partition.shard).await.unwrap();
    assert_eq!((stats.counts.items, stats.counts.exact), (1_501, true));
    world.put(&container, "a", "newer", "x").await.unwrap();
    let stats = world.engine.partition_stats(partition.id, partition.shard).await.unwrap();
    assert_eq!((stats.counts.items, stats.counts.exact), (1_502, true));
}

#[tokio::test]
async fn the_hottest_keys_are_known() {
    let world = World::new(1).await;
    let container = world.range("c", &[]).await;
    for n in 0..40 {
        world.put(&container, &format!("k{n}"), "", "x").await.unwrap();
        world.get(&container, "hot", "").await.unwrap();
    }
    let partition = world.partition_of(&container, "hot").await;
    let stats = world.engine.partition_stats(partition.id, partition.shard).await.unwrap();
    assert_eq!((stats.reads, stats.writes), (40, 40));
    assert_eq!(stats.hot[0].route, route(&container, "hot"));
}

#[tokio::test]
async fn a_deleted_container_leaves_nothing_behind() {
    let mut world = World::new(2).await;
    let policies = Policies { changes: true, ..Policies::default() };
    let container = world.create("c", MapKind::Hash, Cuts::Even(4), policies).await;
    let stays = world.range("stays", &[]).await;
    world.put(&stays, "a", "", "x").await.unwrap();
    for n in 0..20 {
        put_for(&world, &container, &format!("k{n}"), "x", 1_000).await;
    }
    let manager = world.engine.manager();
    let version = manager.catalog().container(container.id).await.unwrap().version;
    manager.delete_container(container.id, version).await.unwrap();
    let gone = world.put(&container, "k0", "", "x").await.unwrap_err();
    assert_eq!(gone.kind(), Kind::NotFound);
    world.restart().await;
    // Twenty items, with a change and a time to expire each; some of the items go without being counted.
    assert!(world.engine.delete_garbage().await.unwrap() >= 40);
    assert_eq!(world.engine.delete_garbage().await.unwrap(), 0);
    assert_eq!(data_keys(&world).await, 1);
    assert_eq!(world.get(&stays, "a", "").await.unwrap().as_deref(), Some("x"));
}

#[tokio::test]
async fn a_partition_can_be_split_merged_and_split_again_under_its_items() {
    let world = World::new(1).await;
    let container = world.range("c", &[]).await;
    for n in 0..30 {
        world.put(&container, &format!("k{n:02}"), "", &n.to_string()).await.unwrap();
    }
    for at in ["k10", "k20", "k05"] {
        world.split_at(&container, at).await;
        let [left, right] = [0, 1].map(|n| n);
        let partitions = world.partitions(&container).await;
        let (left, right) = (Known::from(&partitions[left]), Known::from(&partitions[right]));
        world.engine.manager().merge(left, right).await.unwrap();
        for n in 0..30 {
            let found = world.get(&container, &format!("k{n:02}"), "").await.unwrap();
            assert_eq!(found.as_deref(), Some(n.to_string().as_str()));
        }
    }
}

#[tokio::test]
async fn virtual_shards_are_regrouped_without_touching_keys() {
    let world = World::new(2).await;
    let container = world.hash("c", 4).await;
    for n in 0..60 {
        world.put(&container, &format!("k{n}"), "", &n.to_string()).await.unwrap();
    }
    for virtual_shard in [100, 5_000, 9_999, 16_000] {
        let at = virtual_routes(virtual_shard..virtual_shard + 1).unwrap().start;
        let all = world.partitions(&container).await;
        let whole = all.iter().find(|partition| partition.routes.contains(&at)).unwrap();
        world.engine.manager().split(Known::from(whole), at).await.unwrap();
    }
    let regrouped = world.partitions(&container).await;
    assert_eq!(regrouped.len(), 8);
    let holders: std::collections::BTreeSet<_> =
        regrouped.iter().map(|partition| partition.shard).collect();
    assert_eq!(holders.len(), 2, "many virtual shards on few shards");
    for n in 0..60 {
        let found = world.get(&container, &format!("k{n}"), "").await.unwrap();
        assert_eq!(found.as_deref(), Some(n.to_string().as_str()));
    }
}
