//! Group a: what exists is refused, each kind with its own word; ranges may end anywhere but overlap nowhere.

use crate::world::{World, between, code, new_container, new_shard, text};
use lazuli_shardmap::manager::{Cuts, NewPartition, NewShard, OPERATION_PARTITIONS_MAX};
use lazuli_shardmap::{KeyPart, KeySchema, KeyType, MapKind, ShardId};
use lazuli_store::KeyRange;

#[tokio::test]
async fn a_shard_is_refused_by_its_name_and_by_its_location() {
    let world = World::new().await;
    world.add_shard("one").await;
    assert_eq!(code(world.manager.add_shard(&new_shard("one")).await), "shard-exists");
    let elsewhere = NewShard { name: "two".into(), ..new_shard("one") };
    assert_eq!(code(world.manager.add_shard(&elsewhere).await), "location-taken");
    for name in ["", &"x".repeat(1_025)] {
        assert_eq!(code(world.manager.add_shard(&new_shard(name)).await), "name-unfit");
    }
    assert_eq!(world.catalog().shards().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_container_is_refused_by_its_name_whatever_its_kind() {
    let world = World::new().await;
    world.add_shard("one").await;
    world.range("orders", &[]).await;
    for (kind, cuts) in [(MapKind::List, Cuts::Empty), (MapKind::Hash, Cuts::Even(4))] {
        let again = new_container("orders", kind, cuts);
        assert_eq!(code(world.manager.create_container(&again).await), "container-exists");
    }
    world.check().await;
}

#[tokio::test]
async fn a_point_is_mapped_once() {
    let world = World::new().await;
    world.add_shard("one").await;
    let tenants = world.list("tenants", &["anna", "berta"]).await;
    let add = |key: &str| NewPartition::point(text(key), None);
    assert_eq!(code(world.manager.add_partition(tenants.id, add("anna")).await), "point-mapped");
    let twice = [add("carla"), add("dora"), add("carla")];
    assert_eq!(code(world.manager.add_partitions(tenants.id, &twice).await), "point-mapped");
    let one_old = [add("carla"), add("berta")];
    assert_eq!(code(world.manager.add_partitions(tenants.id, &one_old).await), "point-mapped");
    assert_eq!(world.partitions(tenants.id).await.len(), 2, "all or none");
    // A key that begins with another one is another key.
    world.manager.add_partition(tenants.id, add("ann")).await.unwrap();
    world.manager.add_partition(tenants.id, add("annab")).await.unwrap();
    world.manager.add_partition(tenants.id, add("")).await.unwrap();
    let no_key = NewPartition::range(between(Some("x"), Some("y")), None);
    assert_eq!(code(world.manager.add_partition(tenants.id, no_key).await), "not-a-point");
    world.check().await;
}

#[tokio::test]
async fn ranges_that_overlap_anywhere_are_refused() {
    let world = World::new().await;
    world.add_shard("one").await;
    let empty = new_container("orders", MapKind::Range, Cuts::Empty);
    let orders = world.manager.create_container(&empty).await.unwrap();
    let add = async |start: Option<&str>, end: Option<&str>| {
        let new = NewPartition::range(between(start, end), None);
        world.manager.add_partition(orders.id, new).await
    };
    add(Some("f"), Some("m")).await.unwrap();
    for (start, end) in [
        (Some("f"), Some("m")),
        (Some("a"), Some("g")),
        (Some("g"), Some("h")),
        (Some("l"), None),
        (None, None),
        (None, Some("fa")),
        (Some("f"), Some("g")),
        (Some("a"), Some("z")),
    ] {
        assert_eq!(code(add(start, end).await), "range-overlaps", "{start:?} to {end:?}");
    }
    assert_eq!(code(add(Some("c"), Some("c")).await), "range-empty");
    assert_eq!(code(add(Some("d"), Some("c")).await), "range-empty");
    add(None, Some("f")).await.unwrap();
    add(Some("m"), None).await.unwrap();
    assert_eq!(code(add(Some("zz"), None).await), "range-overlaps");
    world.check().await;
}

#[tokio::test]
async fn ranges_reach_from_the_smallest_key_to_beyond_the_largest() {
    let world = World::new().await;
    world.add_shard("one").await;
    let schema = KeySchema::one(KeyType::Int32);
    let key = |number: i32| schema.encode(&[KeyPart::Int32(number)]).unwrap();
    let range = |start: i32, end: Option<i32>| KeyRange::new(key(start), end.map(key));
    let mut new = new_container("numbers", MapKind::Range, Cuts::Empty);
    new.key = schema.clone();
    let numbers = world.manager.create_container(&new).await.unwrap();
    for routes in [
        range(i32::MIN, Some(i32::MIN + 1)),
        range(i32::MAX - 1, Some(i32::MAX)),
        range(i32::MAX, None),
        range(-1, Some(1)),
    ] {
        let new = NewPartition::range(routes.clone(), None);
        world.manager.add_partition(numbers.id, new.clone()).await.unwrap();
        assert_eq!(code(world.manager.add_partition(numbers.id, new).await), "range-overlaps");
    }
    world.check().await;

    new.name = "all numbers".into();
    let all = world.manager.create_container(&new).await.unwrap();
    let whole = NewPartition::range(KeyRange::all(), None);
    world.manager.add_partition(all.id, whole).await.unwrap();
    let inside = NewPartition::range(range(0, Some(1)), None);
    assert_eq!(code(world.manager.add_partition(all.id, inside).await), "range-overlaps");
    world.check().await;
}

#[tokio::test]
async fn no_bound_tears_a_shardlet_or_a_virtual_shard() {
    let world = World::new().await;
    world.add_shard("one").await;
    let mut torn = text("m").to_vec();
    torn.push(7);
    let cut = new_container("orders", MapKind::Range, Cuts::At(vec![torn.clone().into()]));
    assert_eq!(code(world.manager.create_container(&cut).await), "bound-inside-shardlet");
    let orders = world.range("orders", &[]).await;
    let whole = &world.partitions(orders.id).await[0];
    assert_eq!(code(world.manager.split(whole.into(), torn.into()).await), "bound-inside-shardlet");

    let carts = world.hash("carts", 2).await;
    let half = &world.partitions(carts.id).await[0];
    for at in [&[0x10, 0x01][..], &[0x10, 0x00, 0x00], &[0x10]] {
        let refused = world.manager.split(half.into(), at.to_vec().into()).await;
        assert_eq!(code(refused), "bound-inside-shardlet", "{at:?}");
    }
    world.manager.split(half.into(), vec![0x10, 0x00].into()).await.unwrap();
    world.check().await;
}

#[tokio::test]
async fn a_hash_map_has_no_gaps_to_fill_or_make() {
    let world = World::new().await;
    world.add_shard("one").await;
    world.add_shard("two").await;
    let carts = world.hash("carts", 16_384).await;
    world.check().await;
    assert_eq!(world.catalog().partition_count(ShardId(1)).await.unwrap(), 8_192);
    assert_eq!(world.catalog().partition_count(ShardId(2)).await.unwrap(), 8_192);
    let new = NewPartition::range(KeyRange::all(), None);
    assert_eq!(code(world.manager.add_partition(carts.id, new).await), "map-tiled");
    let first = &world.partitions(carts.id).await[0];
    assert_eq!(code(world.manager.delete_partition(first.into()).await), "map-tiled");
    for (kind, cuts) in [
        (MapKind::Hash, Cuts::Empty),
        (MapKind::Hash, Cuts::At(vec![])),
        (MapKind::List, Cuts::Even(1)),
        (MapKind::Range, Cuts::Even(1)),
    ] {
        let unfit = new_container("unfit", kind, cuts);
        assert_eq!(code(world.manager.create_container(&unfit).await), "cuts-unfit");
    }
    let unfit = new_container("unfit", MapKind::Hash, Cuts::Even(0));
    assert_eq!(code(world.manager.create_container(&unfit).await), "virtual-shards");
}

#[tokio::test]
async fn a_batch_of_points_is_bounded() {
    let world = World::new().await;
    world.add_shard("one").await;
    let tenants = world.list("tenants", &[]).await;
    let points: Vec<_> = (0..=OPERATION_PARTITIONS_MAX)
        .map(|nth| NewPartition::point(text(&format!("tenant-{nth}")), None))
        .collect();
    let refused = world.manager.add_partitions(tenants.id, &points).await;
    assert_eq!(code(refused), "too-many-partitions");
    world.manager.add_partitions(tenants.id, &points[1..]).await.unwrap();
    assert_eq!(world.manager.add_partitions(tenants.id, &[]).await.unwrap(), []);
    world.check().await;
}
