//! Group h: shards and catalogs that come back from a backup, and what an operator makes of the differences.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::world::{Crash, Disks, World, code, copy, new_container, new_shard, text};
use lazuli_env::BoxFuture;
use lazuli_shardmap::manager::{Cuts, NewPartition, NewShard};
use lazuli_shardmap::recovery::{Difference, DifferenceKind, Resolution};
use lazuli_shardmap::{Identity, MapKind, Partition, PartitionState, ShardId};
use lazuli_store::faulty::Fault;

const ONE: ShardId = ShardId(1);
const TWO: ShardId = ShardId(2);

type Since = for<'a> fn(&'a World) -> BoxFuture<'a, ()>;

macro_rules! since {
    ($world:ident => $run:expr) => {
        (|$world| {
            Box::pin(async move {
                $run;
            })
        }) as Since
    };
}

/// Two shards, a range map on the first, a list map on both.
async fn prepared() -> World {
    let world = World::new().await;
    world.add_shard("one").await;
    world.add_shard("two").await;
    let cuts = Cuts::At(vec![text("f"), text("m")]);
    let mut orders = new_container("orders", MapKind::Range, cuts);
    orders.shards = vec![ONE];
    world.manager.create_container(&orders).await.unwrap();
    let tenants = world.list("tenants", &[]).await;
    let point = |key: &str, shard| NewPartition::point(text(key), Some(shard));
    let points = [point("anna", ONE), point("berta", TWO)];
    world.manager.add_partitions(tenants.id, &points).await.unwrap();
    world
}

/// The world after these changes, with shard one as it was before them.
async fn restored(changes: Since) -> World {
    let world = prepared().await;
    let backup = copy(&world.disks.shard(ONE)).await;
    changes(&world).await;
    world.disks.shards.lock().unwrap().insert(ONE, backup);
    world.restart(Crash::never()).await
}

async fn offline(world: &World, container: &str, key: &str) -> Partition {
    let partition = world.at(container, key).await;
    world.manager.set_state((&partition).into(), PartitionState::Offline).await.unwrap()
}

async fn split(world: &World) {
    let low = world.at("orders", "a").await;
    world.manager.split((&low).into(), text("c")).await.unwrap();
}

async fn merge(world: &World) {
    let (low, mid) = (world.at("orders", "a").await, world.at("orders", "g").await);
    world.manager.merge((&low).into(), (&mid).into()).await.unwrap();
}

async fn delete(world: &World) {
    let anna = offline(world, "tenants", "anna").await;
    world.manager.delete_partition((&anna).into()).await.unwrap();
}

async fn add(world: &World, key: &str, shard: ShardId) {
    let tenants = world.catalog().container_named("tenants").await.unwrap();
    let new = NewPartition::point(text(key), Some(shard));
    world.manager.add_partition(tenants.id, new).await.unwrap();
}

/// How a shard may differ from the catalog: what happened since its backup, the kind, and how many rows either side has.
fn differences() -> Vec<(&'static str, Since, DifferenceKind, usize, usize)> {
    use DifferenceKind::{Both, CatalogOnly, ShardOnly};
    vec![
        ("another epoch and state", since!(w => offline(w, "orders", "a").await), Both, 1, 1),
        ("wider on the shard", since!(w => split(w).await), Both, 2, 1),
        ("wider in the catalog", since!(w => merge(w).await), Both, 1, 2),
        ("on the shard only", since!(w => delete(w).await), ShardOnly, 0, 1),
        ("in the catalog only", since!(w => add(w, "carla", ONE).await), CatalogOnly, 1, 0),
        ("diverged", since!(w => { merge(w).await; split(w).await; }), Both, 2, 2),
    ]
}

async fn one_difference(world: &World) -> Difference {
    let report = world.manager.reconcile().await.unwrap();
    assert_eq!(report.differences.len(), 1, "{report:?}");
    assert_eq!(world.manager.detect(ONE).await.unwrap(), report.differences);
    report.differences[0].clone()
}

fn highest(partitions: &[Partition]) -> u64 {
    partitions.iter().map(|partition| partition.epoch.0).max().unwrap_or(0)
}

#[tokio::test]
async fn every_difference_is_seen_and_settled_either_way() {
    for (name, changes, kind, in_catalog, on_shard) in differences() {
        for resolution in [Resolution::KeepCatalog, Resolution::KeepShard] {
            let world = restored(changes).await;
            let difference = one_difference(&world).await;
            assert_eq!(difference.kind(), kind, "{name}");
            let counts = (difference.catalog.len(), difference.local.len());
            assert_eq!(counts, (in_catalog, on_shard), "{name}");

            world.manager.resolve(&difference, Resolution::Ignore).await.unwrap();
            assert_eq!(one_difference(&world).await, difference, "{name} is still there");
            world.manager.resolve(&difference, resolution).await.unwrap();
            assert!(world.manager.reconcile().await.unwrap().is_clean(), "{name}");
            world.check().await;

            let kept = match resolution {
                Resolution::KeepShard => &difference.local,
                _ => &difference.catalog,
            };
            let found = world
                .catalog()
                .partitions_in(difference.container, &difference.routes, usize::MAX)
                .await
                .unwrap();
            let found: Vec<Partition> = found.into_iter().map(|entry| entry.partition).collect();
            let places = |rows: &[Partition]| -> Vec<_> {
                rows.iter().map(|row| (row.routes.clone(), row.state)).collect()
            };
            assert_eq!(places(&found), places(kept), "{name}");
            let before = highest(&difference.catalog).max(highest(&difference.local));
            assert!(found.iter().all(|row| row.epoch.0 > before), "{name}: epochs grew");

            let again = world.manager.resolve(&difference, resolution).await;
            assert_eq!(code(again), "difference-changed", "{name}");
        }
    }
}

#[tokio::test]
async fn a_rebuild_survives_a_crash_at_every_commit() {
    let all = since!(w => {
        merge(w).await;
        delete(w).await;
        add(w, "carla", ONE).await;
        offline(w, "orders", "z").await;
    });
    let disks = restored(all).await.disks.copy().await;
    for keep_catalog in [true, false] {
        let rebuild = async |world: &World| {
            if keep_catalog {
                world.manager.rebuild_local(ONE).await
            } else {
                world.manager.rebuild_catalog(ONE).await
            }
        };
        let clean = World::open(disks.copy().await, Crash::never()).await;
        clean.manager.reconcile().await.unwrap();
        clean.crash.commits.store(0, Ordering::Relaxed);
        assert!(rebuild(&clean).await.unwrap().is_empty());
        let commits = clean.crash.commits.load(Ordering::Relaxed);
        assert!(commits >= 9, "{commits}");
        assert!(clean.manager.reconcile().await.unwrap().is_clean());
        clean.check().await;
        for (nth, fault) in
            (1..=commits).flat_map(|nth| [(nth, Fault::Before), (nth, Fault::After)])
        {
            let crashed = World::open(disks.copy().await, Crash::at(nth, fault)).await;
            let _ = rebuild(&crashed).await;
            let later = crashed.restart(Crash::never()).await;
            later.manager.reconcile().await.unwrap();
            assert!(rebuild(&later).await.unwrap().is_empty(), "{nth} {fault:?}");
            assert!(later.manager.reconcile().await.unwrap().is_clean());
            later.check().await;
        }
    }
}

#[tokio::test]
async fn what_lives_elsewhere_by_now_is_not_taken_back_from_there() {
    let world = restored(since!(w => {
        delete(w).await;
        add(w, "anna", TWO).await;
    }))
    .await;
    let difference = one_difference(&world).await;
    assert_eq!(difference.kind(), DifferenceKind::ShardOnly);
    assert_eq!(difference.elsewhere.len(), 1);
    let refused = world.manager.resolve(&difference, Resolution::KeepShard).await;
    assert_eq!(code(refused), "mapped-elsewhere");
    assert_eq!(world.manager.rebuild_catalog(ONE).await.unwrap(), vec![difference]);
    assert!(world.manager.rebuild_local(ONE).await.unwrap().is_empty());
    assert_eq!(world.at("tenants", "anna").await.shard, TWO);
    assert_eq!(world.catalog().garbage().await.unwrap().len(), 1, "the old copy is garbage");
    world.check().await;
}

#[tokio::test]
async fn an_operation_that_a_restored_shard_cannot_take_is_forced() {
    let world = prepared().await;
    let backup = copy(&world.disks.shard(ONE)).await;
    offline(&world, "orders", "a").await;
    let crashing = world.restart(Crash::at(2, Fault::Before)).await;
    let low = crashing.at("orders", "a").await;
    assert!(crashing.manager.split((&low).into(), text("c")).await.is_err());
    world.disks.shards.lock().unwrap().insert(ONE, backup);

    let later = world.restart(Crash::never()).await;
    let report = later.manager.reconcile().await.unwrap();
    assert_eq!(report.stuck.len(), 1, "{report:?}");
    let (number, error) = &report.stuck[0];
    assert_eq!(error.code(), "local-map-differs");
    let refused = later.manager.set_state((&low).into(), PartitionState::Online).await;
    assert_eq!(code(refused), "local-map-differs");
    later.manager.force_operation(*number).await.unwrap();
    later.check().await;
    assert_eq!(later.at("orders", "a").await.routes.end, Some(text("c")));
}

#[tokio::test]
async fn a_catalog_from_a_backup_refuses_to_work_until_it_is_rebuilt() {
    let world = prepared().await;
    let backup = copy(&world.disks.catalog).await;
    merge(&world).await;
    delete(&world).await;
    add(&world, "carla", TWO).await;
    let shards = world.disks.copy().await.shards.lock().unwrap().clone();
    let disks = Disks { catalog: backup, shards: std::sync::Mutex::new(shards) };
    let later = World::open(Arc::new(disks), Crash::never()).await;

    let report = later.manager.reconcile().await.unwrap();
    assert_eq!(report.ahead, [ONE, TWO]);
    let berta = later.at("tenants", "berta").await;
    let refused = later.manager.set_state((&berta).into(), PartitionState::Offline).await;
    assert_eq!(code(refused), "catalog-behind");
    for shard in [ONE, TWO] {
        assert!(later.manager.rebuild_catalog(shard).await.unwrap().is_empty());
    }
    assert!(later.manager.reconcile().await.unwrap().is_clean());
    later.check().await;
    assert_eq!(later.at("tenants", "carla").await.shard, TWO);
    let before = later.truth().await.entries;
    split(&later).await;
    let new = later.at("orders", "a").await;
    assert!(before.iter().all(|entry| entry.partition.id < new.id), "no id is used twice");
}

#[tokio::test]
async fn a_shard_is_lost_and_comes_back_elsewhere() {
    let world = prepared().await;
    let identity = world.local(ONE).identity();
    world.shards.down.lock().unwrap().insert(ONE);
    world.manager.detach_shard(ONE).await.unwrap();
    assert_eq!(code(world.catalog().shard(ONE).await), "shard-not-found");
    assert_eq!(code(world.find("orders", "a").await), "mapping-not-found");
    assert_eq!(world.at("tenants", "berta").await.shard, TWO);

    let place = NewShard { location: "failover".into(), ..new_shard("one") };
    let foreign = Identity { catalog: world.manager.new_token(), ..identity };
    assert_eq!(code(world.manager.attach_shard(&place, foreign).await), "wrong-shard");
    let taken = NewShard { name: "two".into(), ..place.clone() };
    assert_eq!(code(world.manager.attach_shard(&taken, identity).await), "shard-exists");
    let attached = world.manager.attach_shard(&place, identity).await.unwrap();
    assert_eq!((attached.id, attached.location.as_str()), (ONE, "failover"));
    world.shards.down.lock().unwrap().clear();

    let report = world.manager.reconcile().await.unwrap();
    assert_eq!(report.differences.len(), 4, "three ranges and a point");
    assert!(world.manager.rebuild_catalog(ONE).await.unwrap().is_empty());
    assert!(world.manager.reconcile().await.unwrap().is_clean());
    world.check().await;

    // A shard that only moved keeps all it has.
    let moved = NewShard { location: "new disk".into(), ..place };
    let moved = world.manager.attach_shard(&moved, identity).await.unwrap();
    assert_eq!((moved.id, moved.version), (ONE, attached.version + 1));
    assert!(world.manager.reconcile().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_store_that_is_another_shard_gets_no_operation() {
    let world = prepared().await;
    let other = world.local(TWO);
    world.shards.open.lock().unwrap().insert(ONE, other);
    let low = world.at("orders", "a").await;
    let refused = world.manager.set_state((&low).into(), PartitionState::Offline).await;
    assert_eq!(code(refused), "wrong-shard");
    let report = world.manager.reconcile().await.unwrap();
    assert_eq!(report.unreachable[0].1.code(), "wrong-shard");
    assert!(world.catalog().operations().await.unwrap().is_empty(), "nothing was begun");
}

#[tokio::test]
async fn rows_of_a_container_that_nobody_knows_become_garbage() {
    let world = prepared().await;
    let backup = copy(&world.disks.shard(ONE)).await;
    let orders = world.catalog().container_named("orders").await.unwrap();
    world.manager.delete_container(orders.id, orders.version).await.unwrap();
    world.disks.shards.lock().unwrap().insert(ONE, backup);
    let later = world.restart(Crash::never()).await;
    let left = later.manager.rebuild_catalog(ONE).await.unwrap();
    assert_eq!(left.len(), 3, "their container is gone");
    assert!(later.manager.rebuild_local(ONE).await.unwrap().is_empty());
    assert!(later.manager.reconcile().await.unwrap().is_clean());
    assert_eq!(later.catalog().garbage().await.unwrap().len(), 3);
    later.check().await;
}
