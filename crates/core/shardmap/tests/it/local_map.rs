//! The local map: what a shard answers by itself, and how it takes changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lazuli_env::Id;
use lazuli_shardmap::figures::{Counts, Lsn};
use lazuli_shardmap::local::Arrival;
use lazuli_shardmap::{
    Access, ContainerId, Epoch, Garbage, Identity, LocalChange, LocalMap, Partition, PartitionId,
    PartitionState, ShardId,
};
use lazuli_store::faulty::{Fault, FaultyStore, Plan};
use lazuli_store::mem::MemStore;
use lazuli_store::{KeyRange, Kind, Newest, Reads, Store, Write};

const ME: Identity = Identity { catalog: Id::from_bytes([7; 16]), shard: ShardId(1) };

fn partition(id: u64, epoch: u64, state: PartitionState) -> Partition {
    Partition {
        id: PartitionId(id),
        container: ContainerId(5),
        routes: KeyRange::prefix(vec![u8::try_from(id).unwrap_or(u8::MAX)]),
        shard: ShardId(1),
        epoch: Epoch(epoch),
        state,
    }
}

fn put(operation: u64, put: Partition) -> LocalChange {
    LocalChange { operation, puts: vec![put], ..LocalChange::default() }
}

/// Replaces a partition by its next epoch in another state.
fn replace(operation: u64, old: &Partition, state: PartitionState) -> LocalChange {
    let drops = vec![(old.id, old.epoch)];
    let puts = vec![Partition { epoch: old.epoch.next(), state, ..old.clone() }];
    LocalChange { operation, drops, puts, ..LocalChange::default() }
}

async fn shard(store: Arc<dyn Store>) -> LocalMap {
    LocalMap::init(&store, ME).await.unwrap();
    LocalMap::open(store).await.unwrap()
}

#[tokio::test]
async fn a_shard_says_what_it_holds_and_in_which_state() {
    let map = shard(Arc::new(MemStore::new())).await;
    for (id, state) in [PartitionState::Online, PartitionState::ReadOnly, PartitionState::Offline]
        .iter()
        .enumerate()
    {
        map.apply(&put(10 + id as u64, partition(id as u64, 3, *state))).await.unwrap();
    }
    let check = |id, epoch, access| map.check(PartitionId(id), Epoch(epoch), access);
    let held = check(0, 3, Access::Write).unwrap();
    assert_eq!((held.container, held.routes), (ContainerId(5), KeyRange::prefix(vec![0])));
    assert_eq!(
        &held.guard[..],
        [&[0, 0, 0, 0, 2][..], &[0; 8], &[0, 0, 0, 0, 0, 0, 0, 3]].concat()
    );
    assert!(check(1, 3, Access::Read).is_ok());
    assert_eq!(check(1, 3, Access::Write).unwrap_err().code(), "partition-read-only");
    assert_eq!(check(2, 3, Access::Read).unwrap_err().code(), "partition-offline");
    for (id, epoch) in [(0, 2), (0, 4), (9, 1)] {
        let error = check(id, epoch, Access::Read).unwrap_err();
        assert_eq!(error.kind(), Kind::Moved);
        assert!(error.message().contains(&format!("epoch {epoch}")), "{error}");
    }
}

#[tokio::test]
async fn the_row_of_the_last_epoch_guards_no_write() {
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let map = shard(store.clone()).await;
    let first = partition(1, 1, PartitionState::Online);
    map.apply(&put(1, first.clone())).await.unwrap();
    let held = map.check(first.id, first.epoch, Access::Write).unwrap();
    let late = store.begin(vec![held.guard]).await.unwrap();
    map.apply(&replace(2, &first, PartitionState::Online)).await.unwrap();
    assert!(late.commit(vec![]).await.unwrap_err().is_moved());
}

#[tokio::test]
async fn a_change_is_made_once_and_too_late_is_refused() {
    let map = shard(Arc::new(MemStore::new())).await;
    let first = partition(1, 1, PartitionState::Online);
    map.apply(&put(1, first.clone())).await.unwrap();
    map.apply(&put(1, first.clone())).await.unwrap();
    map.apply(&replace(2, &first, PartitionState::Offline)).await.unwrap();
    // Operation 1 comes once more: it is remembered, and does not bring epoch 1 back.
    map.apply(&put(1, first.clone())).await.unwrap();
    assert_eq!(map.get(first.id).unwrap().unwrap().epoch, Epoch(2));

    let second = LocalChange { finished_below: 3, ..put(3, partition(2, 1, first.state)) };
    map.apply(&second).await.unwrap();
    assert_eq!(map.seen().unwrap(), 3);
    assert_eq!(map.apply(&put(1, first)).await.unwrap_err().code(), "operation-stale");
    map.apply(&second).await.unwrap();
}

#[tokio::test]
async fn a_change_that_does_not_fit_changes_nothing_unless_it_is_a_repair() {
    let map = shard(Arc::new(MemStore::new())).await;
    let first = partition(1, 5, PartitionState::Online);
    map.apply(&put(1, first.clone())).await.unwrap();
    let other_epoch = Partition { epoch: Epoch(4), ..first.clone() };
    for (number, change) in [
        (2, replace(2, &other_epoch, PartitionState::Offline)),
        (3, replace(3, &partition(8, 1, PartitionState::Online), PartitionState::Offline)),
        (4, put(4, other_epoch.clone())),
    ] {
        assert_eq!(map.apply(&change).await.unwrap_err().code(), "local-map-differs", "{number}");
        assert_eq!(map.partitions().unwrap(), vec![first.clone()]);
    }
    let repair = LocalChange { forced: true, ..put(5, Partition { epoch: Epoch(9), ..first }) };
    map.apply(&repair).await.unwrap();
    assert_eq!(map.partitions().unwrap(), repair.puts);
}

#[tokio::test]
async fn what_came_by_an_arrival_becomes_garbage_once_and_only_while_it_arrives() {
    let map = shard(Arc::new(MemStore::new())).await;
    let ends = partition(1, 1, PartitionState::Online);
    let arrival = Arrival {
        number: 7,
        epoch: 2,
        shard: ends.shard,
        container: ends.container,
        partition: ends.id,
        routes: ends.routes.clone(),
    };
    let begin = LocalChange { operation: 1, arrivals: vec![arrival], ..LocalChange::default() };
    map.apply(&begin).await.unwrap();
    let forget = |operation: u64, epoch: u64| {
        let (shard, container, routes) = (ends.shard, ends.container, ends.routes.clone());
        let garbage = vec![Garbage { id: operation, shard, container, routes }];
        let arrived = vec![(7, epoch)];
        LocalChange { operation, garbage, arrived, forced: true, ..LocalChange::default() }
    };
    // Another one leads it by now.
    map.apply(&forget(2, 1)).await.unwrap();
    assert_eq!((map.arrivals().unwrap().len(), map.garbage().await.unwrap().len()), (1, 0));
    map.apply(&forget(3, 2)).await.unwrap();
    let ids = map.garbage().await.unwrap().into_iter().map(|garbage| garbage.id);
    assert_eq!((map.arrivals().unwrap().len(), ids.collect::<Vec<_>>()), (0, vec![3]));
    // And by then the partition may be here for good.
    map.garbage_done(3).await.unwrap();
    map.apply(&forget(4, 2)).await.unwrap();
    assert_eq!(map.garbage().await.unwrap(), []);
    let unforced = LocalChange { forced: false, ..forget(5, 2) };
    assert_eq!(map.apply(&unforced).await.unwrap_err().code(), "local-map-differs");
}

#[tokio::test]
async fn a_shard_of_another_catalog_or_with_another_id_is_refused() {
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    assert_eq!(LocalMap::open(store.clone()).await.err().unwrap().code(), "shard-blank");
    let map = shard(store.clone()).await;
    LocalMap::init(&store, ME).await.unwrap();
    for other in
        [Identity { shard: ShardId(2), ..ME }, Identity { catalog: Id::from_bytes([8; 16]), ..ME }]
    {
        assert_eq!(LocalMap::init(&store, other).await.unwrap_err().code(), "wrong-shard");
        assert_eq!(map.expect(other).unwrap_err().code(), "wrong-shard");
    }
    assert_eq!(map.identity(), ME);
}

#[tokio::test]
async fn what_was_applied_is_there_after_opening_again() {
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let map = shard(store.clone()).await;
    let first = partition(1, 1, PartitionState::Online);
    map.apply(&put(1, first.clone())).await.unwrap();
    let garbage =
        Garbage { id: 4, shard: ME.shard, container: first.container, routes: KeyRange::all() };
    let change = LocalChange {
        garbage: vec![garbage.clone()],
        ..replace(2, &first, PartitionState::Offline)
    };
    map.apply(&change).await.unwrap();
    let again = LocalMap::open(store.clone()).await.unwrap();
    assert_eq!(again.partitions().unwrap(), change.puts);
    assert_eq!(again.garbage().await.unwrap(), vec![garbage]);
    let cleaner = store.begin(vec![LocalMap::garbage_guard(4)]).await.unwrap();
    again.garbage_done(4).await.unwrap();
    again.garbage_done(4).await.unwrap();
    assert!(cleaner.commit(vec![]).await.unwrap_err().is_moved());
    assert!(again.garbage().await.unwrap().is_empty());
}

struct FailAfter(AtomicUsize, Fault);

impl Plan for FailAfter {
    fn commit(&self) -> Fault {
        if self.0.fetch_sub(1, Ordering::Relaxed) == 1 { self.1 } else { Fault::None }
    }

    fn is_up(&self) -> bool {
        let left = self.0.load(Ordering::Relaxed);
        left != 0 && left < usize::MAX - 10
    }
}

#[tokio::test]
async fn a_shard_that_does_not_know_its_rows_answers_nothing_until_it_does() {
    for fault in [Fault::Before, Fault::After] {
        let disk: Arc<dyn Store> = Arc::new(MemStore::new());
        LocalMap::init(&disk, ME).await.unwrap();
        let plan = Arc::new(FailAfter(AtomicUsize::new(2), fault));
        let faulty = FaultyStore::new(disk, plan.clone(), lazuli_env::real::env());
        let map = LocalMap::open(Arc::new(faulty)).await.unwrap();
        let first = partition(1, 1, PartitionState::Online);
        map.apply(&put(1, first.clone())).await.unwrap();
        let change = replace(2, &first, PartitionState::Offline);
        assert!(map.apply(&change).await.is_err());
        let unknown = map.check(first.id, first.epoch, Access::Read).unwrap_err();
        assert_eq!(unknown.code(), "local-map-unknown");
        plan.0.store(100, Ordering::Relaxed);
        map.refresh().await.unwrap();
        let epoch = map.get(first.id).unwrap().unwrap().epoch;
        assert_eq!(epoch, if fault == Fault::After { Epoch(2) } else { Epoch(1) });
        map.apply(&change).await.unwrap();
        assert_eq!(map.partitions().unwrap(), change.puts);
    }
}

/// Commits nothing from some commit on, and answers reads.
struct Refuse(AtomicUsize);

impl Plan for Refuse {
    fn commit(&self) -> Fault {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(1), Ordering::Relaxed);
        if left == 0 { Fault::Before } else { Fault::None }
    }
}

#[tokio::test]
async fn a_change_that_a_disk_refuses_does_not_stop_reads() {
    let disk: Arc<dyn Store> = Arc::new(MemStore::new());
    LocalMap::init(&disk, ME).await.unwrap();
    let plan = Arc::new(Refuse(AtomicUsize::new(1)));
    let faulty = FaultyStore::new(disk, plan.clone(), lazuli_env::real::env());
    let map = LocalMap::open(Arc::new(faulty)).await.unwrap();
    let first = partition(1, 1, PartitionState::Online);
    map.apply(&put(1, first.clone())).await.unwrap();
    let change = replace(2, &first, PartitionState::Offline);
    assert!(map.apply(&change).await.is_err());
    assert!(map.check(first.id, first.epoch, Access::Read).is_ok());
    plan.0.store(9, Ordering::Relaxed);
    map.apply(&change).await.unwrap();
    assert_eq!(map.partitions().unwrap(), change.puts);
}

#[tokio::test]
async fn a_stale_map_is_read_again_before_it_refuses() {
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let (ours, theirs) = (shard(store.clone()).await, shard(store.clone()).await);
    let first = partition(1, 1, PartitionState::Online);
    theirs.apply(&put(1, first.clone())).await.unwrap();
    // The cache knows nothing of it, and the check that looks at the store does.
    assert_eq!(ours.check(first.id, first.epoch, Access::Read).unwrap_err().kind(), Kind::Moved);
    let held = ours.held(first.id, first.epoch, Access::Read).await.unwrap();
    theirs.apply(&replace(2, &first, PartitionState::Fenced)).await.unwrap();
    // The cache still says yes. The guard says no.
    assert!(ours.held(first.id, first.epoch, Access::Read).await.is_ok());
    let refused = store.snapshot(&[held.guard], Reads::Several).await.err().unwrap();
    assert_eq!(refused.kind(), Kind::Moved);
    // Whoever changes the map next sees what the other one has done.
    let fenced = Partition { epoch: Epoch(2), state: PartitionState::Fenced, ..first.clone() };
    ours.apply(&replace(3, &fenced, PartitionState::Online)).await.unwrap();
    assert_eq!(theirs.refresh().await.ok(), Some(true));
    assert_eq!(theirs.refresh().await.ok(), Some(false));
    assert!(theirs.check(first.id, Epoch(3), Access::Write).is_ok());
}

async fn counts(store: &Arc<dyn Store>, id: u64) -> Option<Counts> {
    Counts::read(&Newest::of(&**store), PartitionId(id)).await.unwrap()
}

#[tokio::test]
async fn partitions_go_on_from_the_last_number_of_those_they_are_made_of() {
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let map = shard(store.clone()).await;
    let whole = Partition { routes: KeyRange::all(), ..partition(1, 1, PartitionState::Online) };
    map.apply(&put(1, whole.clone())).await.unwrap();
    let figures =
        Counts { items: 5, bytes: 50, last_lsn: Lsn(77), exact: true, ..Counts::default() };
    let txn = store.begin(vec![LocalMap::partition_guard(whole.id, whole.epoch)]).await.unwrap();
    let row = Write::Put(Counts::key(whole.id), figures.encode());
    txn.commit(vec![row]).await.unwrap();
    let part = |id, routes| Partition { routes, ..partition(id, 2, PartitionState::Online) };
    let left = part(2, KeyRange::new("", Some("m".into())));
    let right = part(3, KeyRange::new("m", None));
    let split = LocalChange {
        operation: 2,
        drops: vec![(whole.id, whole.epoch)],
        puts: vec![left.clone(), right.clone()],
        ..LocalChange::default()
    };
    map.apply(&split).await.unwrap();
    let blank = Counts { last_lsn: Lsn(77), ..Counts::default() };
    assert_eq!([counts(&store, 2).await, counts(&store, 3).await], [Some(blank); 2]);
    // Two that were counted are one that was counted.
    for (id, items, last_lsn) in [(2, 2, Lsn(80)), (3, 3, Lsn(79))] {
        let row = Counts { items, bytes: items * 10, last_lsn, exact: true, ..Counts::default() };
        let txn = store.begin(vec![]).await.unwrap();
        txn.commit(vec![Write::Put(Counts::key(PartitionId(id)), row.encode())]).await.unwrap();
    }
    let merge = LocalChange {
        operation: 3,
        drops: vec![(left.id, left.epoch), (right.id, right.epoch)],
        puts: vec![part(4, KeyRange::all())],
        ..LocalChange::default()
    };
    map.apply(&merge).await.unwrap();
    assert_eq!(counts(&store, 4).await, Some(Counts { last_lsn: Lsn(80), ..figures }));
}
