//! A shard in order is clean, also while it is in use; every kind of damage is found and named.

use crate::world::{Delete, Put, World, item_key, route};
use bytes::Bytes;
use lazuli_engine::fsck::{FINDINGS_MAX, Report};
use lazuli_engine::{Item, Lsn};
use lazuli_shardmap::layout::{self, Space};
use lazuli_shardmap::manager::Cuts;
use lazuli_shardmap::{Container, ContainerId, MapKind, Policies, ShardId};
use lazuli_store::{Store, Write};

async fn check(world: &World, shard: ShardId) -> Report {
    let live = world.engine.shards().get(shard).unwrap();
    live.check(world.engine.manager().catalog()).await.unwrap()
}

async fn codes(world: &World) -> Vec<&'static str> {
    check(world, ShardId(1)).await.findings.iter().map(|finding| finding.code).collect()
}

async fn write(world: &World, writes: Vec<Write>) {
    let store = &world.shard_stores[&ShardId(1)];
    store.begin(vec![]).await.unwrap().commit(writes).await.unwrap();
}

fn item() -> Bytes {
    Item { version: Lsn(1), expires_ms: None, written_ms: None, payload: "x".into() }.encode()
}

/// A world whose one container holds three items in two partitions.
async fn filled() -> (World, Container) {
    let world = World::new(1).await;
    let container = world.range("things", &["m"]).await;
    for key in ["a", "b", "z"] {
        world.put(&container, key, "row", "value").await.unwrap();
    }
    (world, container)
}

#[tokio::test]
async fn a_shard_in_order_is_clean() {
    let world = World::new(2).await;
    let policies = Policies { changes: true, ..Policies::default() };
    let made = world.create("changing", MapKind::Hash, Cuts::Even(8), policies).await;
    let range = world.range("ranging", &["c", "f"]).await;
    for key in ["a", "b", "c", "d", "e", "f", "g"] {
        for container in [&made, &range] {
            world.put(container, key, "row", key).await.unwrap();
            world.put(container, key, "row", "replaced").await.unwrap();
            let key = item_key(container, key, "expiring");
            let put = Put { key, value: "x".into(), expires_ms: Some(u64::MAX >> 1) };
            let at = put.key.clone();
            world.engine.write(container.id, at.route(), put).await.unwrap();
        }
    }
    let gone = item_key(&range, "a", "row");
    world.engine.write(range.id, gone.route(), Delete(gone.clone())).await.unwrap();
    let reports = [check(&world, ShardId(1)).await, check(&world, ShardId(2)).await];
    for report in &reports {
        assert_eq!(report.findings, []);
    }
    assert_eq!(reports[0].items + reports[1].items, 7 * 4 - 1);
}

#[tokio::test]
async fn what_splits_and_deletions_leave_behind_is_clean() {
    let (world, container) = filled().await;
    world.split_at(&container, "b").await;
    assert_eq!(check(&world, ShardId(1)).await.findings, []);
    world.engine.delete_container("things").await.unwrap();
    assert_eq!(check(&world, ShardId(1)).await.findings, []);
}

#[tokio::test]
async fn a_key_of_no_partition_is_an_orphan() {
    let world = World::new(1).await;
    let list = world.create("listed", MapKind::List, Cuts::Empty, Policies::default()).await;
    world.add_point(&list, "known", ShardId(1)).await;
    world.put(&list, "known", "row", "value").await.unwrap();
    assert_eq!(codes(&world).await, [""; 0]);
    let stray = item_key(&list, "unknown", "row").bytes().clone();
    write(&world, vec![Write::Put(stray.clone(), item())]).await;
    let report = check(&world, ShardId(1)).await;
    assert_eq!(report.findings.len(), 1);
    assert_eq!(report.findings[0].code, "key-orphaned");
    assert_eq!(report.findings[0].key, Some(stray));
}

#[tokio::test]
async fn keys_that_do_not_decode_are_found() {
    let (world, container) = filled().await;
    let bad_route = layout::key(container.id, Space::ITEMS, b"zz");
    let bad_space = layout::key(container.id, Space(0x3f), b"x");
    let bad_system = layout::key(ContainerId::SYSTEM, Space(0x3f), b"x");
    let unknown = layout::key(ContainerId(99), Space::ITEMS, &route(&container, "a"));
    write(
        &world,
        vec![
            Write::Put(bad_route, item()),
            Write::Put(bad_space, item()),
            Write::Put(bad_system, item()),
            Write::Put(unknown, item()),
            Write::Put(Bytes::from_static(b"abc"), item()),
        ],
    )
    .await;
    let mut codes = codes(&world).await;
    codes.sort_unstable();
    // The key that does not decode lies within a partition, whose figures do not count it.
    let expected = [
        "counts-differ",
        "key-corrupt",
        "key-orphaned",
        "key-short",
        "space-unknown",
        "space-unknown",
    ];
    assert_eq!(codes, expected);
}

#[tokio::test]
async fn a_damaged_item_and_wrong_counts_are_found() {
    let (world, container) = filled().await;
    let key = item_key(&container, "a", "row").bytes().clone();
    write(&world, vec![Write::Put(key, Bytes::from_static(b"damaged"))]).await;
    assert_eq!(codes(&world).await, ["bad-envelope", "counts-differ", "index-differs"]);

    let (world, container) = filled().await;
    write(&world, vec![Write::Delete(item_key(&container, "z", "row").bytes().clone())]).await;
    assert_eq!(codes(&world).await, ["counts-differ", "index-differs"]);
}

#[tokio::test]
async fn findings_are_listed_up_to_a_limit_and_counted_beyond() {
    let (world, _) = filled().await;
    let stray = |number: u32| Write::Put(Bytes::copy_from_slice(&number.to_be_bytes()), item());
    write(&world, (0..FINDINGS_MAX as u32 + 5).map(stray).collect()).await;
    let report = check(&world, ShardId(1)).await;
    assert_eq!(report.findings.len(), FINDINGS_MAX);
    assert_eq!(report.findings_unlisted, 5);
}
