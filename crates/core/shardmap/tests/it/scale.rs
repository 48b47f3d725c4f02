//! Large maps: a change costs what it changes, not what the map holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::world::{Crash, World, new_container, new_shard, text};
use lazuli_shardmap::manager::{Cuts, LocalMaps, Manager, NewPartition, OPERATION_PARTITIONS_MAX};
use lazuli_shardmap::{
    Catalog, ContainerId, Identity, LocalMap, MapKind, MapSource, PartitionState, ShardId,
};
use lazuli_store::faulty::{Fault, FaultyStore, Plan};
use lazuli_store::mem::MemStore;
use lazuli_store::{KeyRange, Result, Store};

/// Counts the rows that pass through a store, either way.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Plan for Counting {
    fn commit(&self) -> Fault {
        Fault::None
    }

    fn count(&self, rows: usize) {
        self.0.fetch_add(rows, Ordering::Relaxed);
    }
}

/// One partition that holds all routes.
const WHOLE: Cuts = Cuts::At(Vec::new());

struct OneShard(Arc<LocalMap>);

impl LocalMaps for OneShard {
    fn local(&self, _: ShardId) -> Result<Arc<LocalMap>> {
        Ok(self.0.clone())
    }
}

/// A list map of so many points on one shard, whose stores count.
struct Large {
    manager: Manager,
    shard: Arc<dyn Store>,
    container: ContainerId,
    rows: Arc<Counting>,
}

impl Large {
    async fn new(points: usize) -> Self {
        let env = lazuli_env::real::env();
        let rows = Arc::new(Counting::default());
        let store = || -> Arc<dyn Store> {
            Arc::new(FaultyStore::new(Arc::new(MemStore::new()), rows.clone(), env.clone()))
        };
        let catalog = Arc::new(Catalog::init(store(), env.clone()).await.unwrap());
        let shard = store();
        let identity = Identity { catalog: catalog.id(), shard: ShardId(1) };
        LocalMap::init(&shard, identity).await.unwrap();
        let local = Arc::new(LocalMap::open(shard.clone()).await.unwrap());
        let manager = Manager::new(env, catalog, Arc::new(OneShard(local)));
        manager.add_shard(&new_shard("one")).await.unwrap();
        let list = new_container("tenants", MapKind::List, Cuts::Empty);
        let container = manager.create_container(&list).await.unwrap().id;
        let point = |nth: usize| NewPartition::point(text(&format!("tenant-{nth:07}")), None);
        let points: Vec<_> = (0..points).map(point).collect();
        for batch in points.chunks(OPERATION_PARTITIONS_MAX) {
            manager.add_partitions(container, batch).await.unwrap();
        }
        Self { manager, shard, container, rows }
    }

    /// Rows read and written to take the partition in the middle offline and to add one more.
    async fn cost_of_change(&self) -> usize {
        let middle = KeyRange::prefix(text("tenant-0000004"));
        let catalog = self.manager.catalog();
        let found = catalog.partitions_in(self.container, &middle, 1).await.unwrap();
        let before = self.rows.0.load(Ordering::Relaxed);
        let partition = &found[0].partition;
        self.manager.set_state(partition.into(), PartitionState::Offline).await.unwrap();
        let new = NewPartition::point(text("tenant-0000004a"), None);
        self.manager.add_partition(self.container, new).await.unwrap();
        self.rows.0.load(Ordering::Relaxed) - before
    }
}

#[tokio::test]
async fn a_change_of_a_large_map_costs_no_more_than_one_of_a_small_map() {
    let small = Large::new(10).await.cost_of_change().await;
    let large = Large::new(40_000).await.cost_of_change().await;
    println!("{small} rows in a small map, {large} in a large one");
    assert!(large <= small + 4, "{small} rows in a small map, {large} in a large one");
}

/// Rows read and written to create a container and to delete it again, beside `others`
/// containers of one partition each.
async fn cost_of_creation(others: usize) -> [usize; 2] {
    let large = Large::new(0).await;
    let rows = || large.rows.0.load(Ordering::Relaxed);
    let table = |nth: usize| new_container(&format!("tables/a/t{nth:06}"), MapKind::Range, WHOLE);
    for nth in 0..others {
        large.manager.create_container(&table(nth)).await.unwrap();
    }
    let before = rows();
    let created = large.manager.create_container(&table(others)).await.unwrap();
    let creation = rows() - before;
    let before = rows();
    large.manager.delete_container(created.id, created.version).await.unwrap();
    [creation, rows() - before]
}

#[tokio::test]
async fn the_last_of_many_containers_costs_no_more_rows_than_the_first() {
    let few = cost_of_creation(10).await;
    let many = cost_of_creation(2_000).await;
    println!("rows to create and to delete a container: {few:?} beside 10, {many:?} beside 2,000");
    assert_eq!(few, many, "rows to create and to delete a container beside 10 and 2,000 others");
}

#[tokio::test]
async fn containers_are_read_in_pages_and_counted_again_after_a_change() {
    let large = Large::new(0).await;
    let catalog = large.manager.catalog();
    let table = |nth: usize| new_container(&format!("t{nth}"), MapKind::Range, WHOLE);
    for nth in 0..9 {
        large.manager.create_container(&table(nth)).await.unwrap();
        // With the one that every `Large` has.
        assert_eq!(catalog.container_count().await.unwrap(), nth + 2);
    }
    let before = large.rows.0.load(Ordering::Relaxed);
    assert_eq!(catalog.container_count().await.unwrap(), 10);
    let asked = large.rows.0.load(Ordering::Relaxed) - before;
    assert!(asked <= 2, "nothing has changed, and {asked} rows were read");
    let (mut pages, mut first) = (Vec::new(), ContainerId(0));
    loop {
        let page = catalog.containers_from(first, 4).await.unwrap();
        let Some(last) = page.last() else { break };
        first = ContainerId(last.id.0 + 1);
        pages.push(page);
    }
    let sizes: Vec<usize> = pages.iter().map(Vec::len).collect();
    assert_eq!(sizes, [4, 4, 2]);
    assert_eq!(pages.concat(), catalog.containers().await.unwrap());
}

#[tokio::test]
async fn a_container_of_more_than_one_round_is_deleted_whatever_crashes() {
    let world = World::new().await;
    world.add_shard("one").await;
    let tenants = world.list("tenants", &[]).await.id;
    let point = |nth: usize| NewPartition::point(text(&format!("{nth}")), None);
    let points: Vec<_> = (0..OPERATION_PARTITIONS_MAX + 10).map(point).collect();
    for batch in points.chunks(OPERATION_PARTITIONS_MAX) {
        world.manager.add_partitions(tenants, batch).await.unwrap();
    }
    let version = world.catalog().container(tenants).await.unwrap().version;
    // Two rounds of three commits.
    for (nth, fault) in
        [(1, Fault::After), (3, Fault::Before), (4, Fault::Before), (5, Fault::After)]
    {
        let disks = world.disks.copy().await;
        let crashing = World::open(disks, Crash::at(nth, fault)).await;
        assert!(crashing.manager.delete_container(tenants, version).await.is_err());
        let later = crashing.restart(Crash::never()).await;
        assert!(later.manager.reconcile().await.unwrap().is_clean());
        later.check().await;
        assert!(later.truth().await.entries.is_empty());
        assert_eq!(later.catalog().garbage().await.unwrap().len(), 1);
    }
}

#[tokio::test]
#[ignore = "takes a minute and prints figures"]
async fn a_million_partitions() {
    let env = lazuli_env::real::env();
    let time = |what: &str, since: std::time::Duration| {
        println!("{what}: {:.3} s", (env.clock.uptime() - since).as_secs_f64());
    };
    let start = env.clock.uptime();
    let large = Large::new(1_000_000).await;
    time("add 1,000,000 points", start);
    let start = env.clock.uptime();
    let rows = large.cost_of_change().await;
    time(&format!("two operations ({rows} rows)"), start);
    let start = env.clock.uptime();
    let local = LocalMap::open(large.shard.clone()).await.unwrap();
    time("open the local map", start);
    assert_eq!(local.partitions().unwrap().len(), 1_000_001);
    let start = env.clock.uptime();
    let source: &dyn MapSource = &**large.manager.catalog();
    let (_, partitions) = source.partitions(large.container).await.unwrap();
    time("read the whole map", start);
    assert_eq!(partitions.len(), 1_000_001);
    let start = env.clock.uptime();
    assert!(large.manager.reconcile().await.unwrap().is_clean());
    time("reconcile", start);
}
