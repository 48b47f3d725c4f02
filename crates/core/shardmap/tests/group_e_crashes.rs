//! Group e: every operation, with a crash before and after each of its durable commits, and again at each commit of the
//! repair. Afterwards it is wholly done or wholly absent, everybody agrees, and the next operation works.

#![allow(clippy::unwrap_used, reason = "a panic is the report of a failed test")]

mod world;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lazuli_env::{BoxFuture, Id};
use lazuli_shardmap::catalog::Expected;
use lazuli_shardmap::manager::{
    ContainerUpdate, Cuts, Known, NewContainer, NewPartition, ShardUpdate,
};
use lazuli_shardmap::{MapKind, PartitionState, ShardId};
use lazuli_store::faulty::Fault;
use lazuli_store::{KeyRange, Result};
use world::{Crash, Disks, Truth, World, new_container, new_shard, text};

const ONE: ShardId = ShardId(1);
const TWO: ShardId = ShardId(2);
const SPARE: ShardId = ShardId(3);
const LOST: ShardId = ShardId(4);
const TOKEN: Id = Id::from_bytes([9; 16]);

type Run = for<'a> fn(&'a World) -> BoxFuture<'a, Result<()>>;

macro_rules! case {
    ($name:literal, $world:ident => $run:expr) => {
        ($name, (|$world| Box::pin(async move { $run.map(|_| ()) })) as Run)
    };
}

fn cases() -> Vec<(&'static str, Run)> {
    vec![
        case!("add a shard", w => w.manager.add_shard(&new_shard("new")).await),
        case!("update a shard", w => w.manager.update_shard(&rename(w).await).await),
        case!("remove a shard", w => w.manager.remove_shard(SPARE, 1).await),
        case!("detach a shard", w => w.manager.detach_shard(LOST).await),
        case!("create a list", w => create(w, MapKind::List, Cuts::Empty).await),
        case!("create a range", w => create(w, MapKind::Range, Cuts::At(vec![text("m")])).await),
        case!("create a hash", w => create(w, MapKind::Hash, Cuts::Even(5)).await),
        case!("update a container", w => w.manager.update_container(&tag(w).await).await),
        case!("delete a container", w => delete(w, "carts").await),
        case!("delete an empty container", w => delete(w, "empty").await),
        case!("add a point", w => add(w, &["carla"]).await),
        case!("add points on several shards", w => add(w, &["carla", "dora", "emma", "fritz"]).await),
        case!("delete a partition", w => {
            let anna = w.at("tenants", "anna").await;
            w.manager.delete_partition((&anna).into()).await
        }),
        case!("take a partition offline", w => state(w, "a", PartitionState::Offline).await),
        case!("let a partition only be read", w => state(w, "g", PartitionState::ReadOnly).await),
        case!("take a partition online", w => state(w, "z", PartitionState::Online).await),
        case!("split", w => {
            let first = w.at("orders", "a").await;
            w.manager.split((&first).into(), text("c")).await
        }),
        case!("split a hash map", w => {
            let carts = w.catalog().container_named("carts").await?;
            let first = w.partitions(carts.id).await[0].clone();
            w.manager.split((&first).into(), vec![0x08, 0x00].into()).await
        }),
        case!("merge", w => {
            let (left, right) = (w.at("orders", "a").await, w.at("orders", "g").await);
            w.manager.merge((&left).into(), (&right).into()).await
        }),
        case!("lock", w => {
            let anna = w.at("tenants", "anna").await;
            w.manager.lock((&anna).into(), TOKEN).await
        }),
        case!("unlock", w => w.manager.unlock(w.at("tenants", "berta").await.id, TOKEN).await),
        case!("unlock by force", w => {
            w.manager.force_unlock(w.at("tenants", "berta").await.id).await
        }),
        case!("unlock all", w => {
            let tenants = w.catalog().container_named("tenants").await?;
            w.manager.unlock_all(tenants.id, TOKEN).await
        }),
        case!("take a locked partition offline", w => {
            let berta = Known::from(&w.at("tenants", "berta").await).locked(TOKEN);
            w.manager.set_state(berta, PartitionState::Offline).await
        }),
        case!("clean garbage", w => {
            let garbage = w.catalog().garbage().await?;
            w.manager.garbage_done(&garbage[0]).await
        }),
    ]
}

async fn rename(w: &World) -> ShardUpdate {
    let shard = w.catalog().shard(ONE).await.unwrap();
    let (name, region, labels) = ("other".into(), shard.region, shard.labels);
    ShardUpdate { id: ONE, version: shard.version, name, region, labels }
}

async fn tag(w: &World) -> ContainerUpdate {
    let orders = w.catalog().container_named("orders").await.unwrap();
    let (placement, policies) = (orders.placement, orders.policies);
    let schema = "orders-2".into();
    ContainerUpdate { id: orders.id, version: orders.version, schema, placement, policies }
}

async fn create(w: &World, kind: MapKind, cuts: Cuts) -> Result<()> {
    w.manager.create_container(&new_container("new", kind, cuts)).await.map(|_| ())
}

async fn delete(w: &World, name: &str) -> Result<()> {
    let container = w.catalog().container_named(name).await?;
    w.manager.delete_container(container.id, container.version).await
}

async fn add(w: &World, keys: &[&str]) -> Result<()> {
    let tenants = w.catalog().container_named("tenants").await?;
    let new: Vec<_> = keys.iter().map(|key| NewPartition::point(text(key), None)).collect();
    w.manager.add_partitions(tenants.id, &new).await.map(|_| ())
}

async fn state(w: &World, key: &str, state: PartitionState) -> Result<()> {
    let partition = w.at("orders", key).await;
    w.manager.set_state((&partition).into(), state).await.map(|_| ())
}

/// Shards with three maps, a lock, a state and some garbage; a shard that holds nothing and one that is to be lost.
async fn prepared() -> Arc<Disks> {
    let world = World::new().await;
    for name in ["one", "two", "spare", "lost"] {
        world.add_shard(name).await;
    }
    let on = |shards: &[ShardId], new: NewContainer| NewContainer { shards: shards.into(), ..new };
    let cuts = Cuts::At(vec![text("f"), text("m")]);
    let orders = on(&[ONE], new_container("orders", MapKind::Range, cuts));
    let carts = on(&[ONE, TWO], new_container("carts", MapKind::Hash, Cuts::Even(4)));
    for new in [orders, carts, new_container("empty", MapKind::List, Cuts::Empty)] {
        world.manager.create_container(&new).await.unwrap();
    }
    let tenants = new_container("tenants", MapKind::List, Cuts::Empty);
    let tenants = world.manager.create_container(&tenants).await.unwrap();
    let point = |key: &str, shard| NewPartition::point(text(key), Some(shard));
    let points =
        [point("anna", ONE), point("berta", TWO), point("zora", TWO), point("lotte", LOST)];
    world.manager.add_partitions(tenants.id, &points).await.unwrap();
    let berta = world.at("tenants", "berta").await;
    world.manager.lock((&berta).into(), TOKEN).await.unwrap();
    for key in ["anna", "zora"] {
        let partition = world.at("tenants", key).await;
        world.manager.set_state((&partition).into(), PartitionState::Offline).await.unwrap();
    }
    let zora = world.at("tenants", "zora").await;
    world.manager.delete_partition((&zora).into()).await.unwrap();
    state(&world, "z", PartitionState::Offline).await.unwrap();
    world.check().await;
    world.disks
}

/// Everything is as before the operation or as after it, and things go on.
async fn verify(world: &World, run: Run, before: &Truth, after: &Truth, done: bool, what: &str) {
    let truth = world.truth().await;
    assert_eq!(&truth, if done { after } else { before }, "{what}");
    world.check().await;
    check_epochs(before, &truth, what);
    if !done {
        run(world).await.unwrap();
        assert_eq!(&world.truth().await, after, "{what}, once more");
    }
    go_on(world).await;
}

/// Whoever holds routes that somebody held before in another way has a higher epoch.
fn check_epochs(before: &Truth, after: &Truth, what: &str) {
    for old in before.entries.iter().map(|entry| &entry.partition) {
        for new in after.entries.iter().map(|entry| &entry.partition) {
            let related = old.container == new.container && old.routes.overlaps(&new.routes);
            let newer = new.epoch > old.epoch;
            assert!(!related || new == old || newer, "{what}: {old:?} became {new:?}");
        }
    }
}

/// The next operations, on all that may have been touched.
async fn go_on(world: &World) {
    let range = new_container("next", MapKind::Range, Cuts::At(vec![text("k")]));
    let next = world.manager.create_container(&range).await.unwrap();
    for container in world.catalog().containers().await.unwrap() {
        for entry in world.entries(container.id).await {
            let known = Known { lock: entry.lock, ..Known::from(&entry.partition) };
            world.manager.set_state(known, PartitionState::ReadOnly).await.unwrap();
        }
    }
    let next = world.catalog().container(next.id).await.unwrap();
    world.manager.delete_container(next.id, next.version).await.unwrap();
    world.check().await;
}

const FAULTS: [Fault; 2] = [Fault::Before, Fault::After];

/// The commits that a clean run takes, and what it leads to.
async fn clean(disks: &Disks, run: Run, name: &str) -> (usize, Truth) {
    let world = World::open(disks.copy().await, Crash::never()).await;
    run(&world).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    let commits = world.crash.commits.load(Ordering::Relaxed);
    world.check().await;
    (commits, world.truth().await)
}

#[tokio::test]
async fn every_operation_is_done_or_absent_after_every_crash_and_every_crash_of_the_repair() {
    let disks = prepared().await;
    let before = World::open(disks.copy().await, Crash::never()).await.truth().await;
    let mut crashes = 0;
    for (name, run) in cases() {
        let (commits, after) = clean(&disks, run, name).await;
        assert!(commits > 0 && before != after, "{name} changes something");
        for (nth, fault) in (1..=commits).flat_map(|nth| FAULTS.map(|fault| (nth, fault))) {
            let what = format!("{name}, crash {fault:?} commit {nth} of {commits}");
            let crashed = World::open(disks.copy().await, Crash::at(nth, fault)).await;
            assert!(run(&crashed).await.is_err(), "{what}");
            crashes += 1 + repair(&crashed, run, &before, &after, (nth, fault), &what).await;
        }
    }
    assert!(crashes > 300, "{crashes} crashes are fewer than there were");
}

/// Repairs once in peace and once with each crash. Answers how many those were.
async fn repair(
    crashed: &World,
    run: Run,
    before: &Truth,
    after: &Truth,
    (nth, fault): (usize, Fault),
    what: &str,
) -> usize {
    // The first commit decides, whatever happens then.
    let done = nth > 1 || fault == Fault::After;
    let peaceful = World::open(crashed.disks.copy().await, Crash::never()).await;
    let report = peaceful.manager.reconcile().await.unwrap();
    assert!(report.is_clean(), "{what}: {report:?}");
    let commits = peaceful.crash.commits.load(Ordering::Relaxed);
    verify(&peaceful, run, before, after, done, what).await;
    for (again, fault) in (1..=commits).flat_map(|nth| FAULTS.map(|fault| (nth, fault))) {
        let what = format!("{what}, then {fault:?} commit {again} of its repair");
        let second = World::open(crashed.disks.copy().await, Crash::at(again, fault)).await;
        let _ = second.manager.reconcile().await;
        assert!(second.crash.crashed());
        let third = second.restart(Crash::never()).await;
        assert!(third.manager.reconcile().await.unwrap().is_clean(), "{what}");
        verify(&third, run, before, after, done, &what).await;
    }
    2 * commits
}

#[tokio::test]
async fn the_next_operation_repairs_what_it_meets_without_a_reconciler() {
    let disks = prepared().await;
    for (name, run) in cases() {
        let (commits, _) = clean(&disks, run, name).await;
        // A detached shard and cleaned garbage stand in nobody's way, so nobody comes across them.
        if name == "detach a shard" || name == "clean garbage" {
            continue;
        }
        for (nth, fault) in (1..=commits).flat_map(|nth| FAULTS.map(|fault| (nth, fault))) {
            let crashed = World::open(disks.copy().await, Crash::at(nth, fault)).await;
            assert!(run(&crashed).await.is_err());
            let next = crashed.restart(Crash::never()).await;
            let new = new_container("new", MapKind::Hash, Cuts::Even(3));
            if let Err(error) = next.manager.create_container(&new).await {
                assert_eq!(error.code(), "container-exists", "{name} {nth} {fault:?}");
            }
            for container in next.catalog().containers().await.unwrap() {
                next.manager.settle(container.id).await.unwrap();
                for entry in next.entries(container.id).await {
                    let known = Known { lock: entry.lock, ..Known::from(&entry.partition) };
                    next.manager.set_state(known, PartitionState::ReadOnly).await.unwrap();
                }
            }
        }
    }
}

#[tokio::test]
async fn one_lost_commit_or_answer_is_hidden_by_trying_again() {
    let disks = prepared().await;
    for (name, run) in cases() {
        let (commits, after) = clean(&disks, run, name).await;
        for (nth, fault) in (1..=commits).flat_map(|nth| FAULTS.map(|fault| (nth, fault))) {
            let what = format!("{name}, {fault:?} commit {nth} of {commits}");
            let world = World::open(disks.copy().await, Crash::once(nth, fault)).await;
            run(&world).await.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(world.truth().await, after, "{what}");
            world.check().await;
        }
    }
}

#[tokio::test]
async fn records_are_written_once_whatever_happens() {
    for (nth, fault) in (1..=2).flat_map(|nth| FAULTS.map(|fault| (nth, fault))) {
        let world = World::open(Arc::default(), Crash::once(nth, fault)).await;
        let catalog = world.catalog();
        let first = catalog.put_record(1, "job", "a", Expected::Nothing).await.unwrap();
        let second = catalog.put_record(1, "job", "b", Expected::Version(first)).await.unwrap();
        let found = catalog.get_record(1, b"job").await.unwrap().unwrap();
        assert_eq!((found.version, &found.value[..]), (second, &b"b"[..]));
        assert_eq!(catalog.scan_records(1, &KeyRange::all(), 10).await.unwrap(), [found]);
        assert!(catalog.scan_records(2, &KeyRange::all(), 10).await.unwrap().is_empty());
        let stale = catalog.put_record(1, "job", "c", Expected::Version(first)).await;
        assert_eq!(stale.unwrap_err().code(), "record-changed");
        let taken = catalog.put_record(1, "job", "c", Expected::Nothing).await;
        assert_eq!(taken.unwrap_err().code(), "record-exists");
        catalog.delete_record(1, "job", Expected::Version(second)).await.unwrap();
        catalog.delete_record(1, "job", Expected::Anything).await.unwrap();
        let gone = catalog.delete_record(1, "job", Expected::Version(second)).await;
        assert_eq!(gone.unwrap_err().code(), "record-changed");
    }
}
