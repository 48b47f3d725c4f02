//! Group e: every operation, with a crash before and after each of its durable commits, and again at each commit of the
//! repair. Afterwards it is wholly done or wholly absent, everybody agrees, and the next operation works.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::world::cases::{Run, cases, prepared};
use crate::world::{Crash, Disks, Truth, World, new_container, text};
use lazuli_shardmap::catalog::Expected;
use lazuli_shardmap::manager::{Cuts, Known};
use lazuli_shardmap::{MapKind, PartitionState};
use lazuli_store::KeyRange;
use lazuli_store::faulty::Fault;

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
    world.call_off_moves().await;
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
            next.call_off_moves().await;
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
