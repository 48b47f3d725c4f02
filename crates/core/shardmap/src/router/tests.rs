//! The router on a catalog of one process that counts what it is asked and can be away. Groups b
//! and f of the semantics that shard maps are known by, and what happens when many wait.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use lazuli_env::{BoxFuture, Clock, Random, Spawn};

use super::*;
use crate::key::{KeySchema, KeyType};
use crate::{MapKind, Partition, PartitionState, Policies};

const ORDERS: ContainerId = ContainerId(7);

#[derive(Default)]
struct Catalog {
    containers: BTreeMap<ContainerId, Container>,
    partitions: BTreeMap<PartitionId, Partition>,
    version: u64,
    /// Which partition was touched at which version.
    log: Vec<(u64, PartitionId)>,
}

/// A catalog in memory.
#[derive(Default)]
struct Memory {
    catalog: Mutex<Catalog>,
    away: AtomicBool,
    full_reads: AtomicUsize,
    delta_reads: AtomicUsize,
}

impl Memory {
    fn change<T>(&self, change: impl FnOnce(&mut Catalog) -> T) -> T {
        let mut catalog = self.catalog.lock().unwrap();
        catalog.version += 1;
        change(&mut catalog)
    }

    fn add_container(&self, id: ContainerId, name: &str) {
        let container = Container {
            id,
            name: name.to_owned(),
            kind: MapKind::Range,
            key: KeySchema::one(KeyType::Text),
            schema: "orders-1".to_owned(),
            placement: Vec::new(),
            policies: Policies::default(),
            version: 1,
        };
        self.change(|catalog| catalog.containers.insert(id, container));
    }

    fn put(&self, container: ContainerId, id: u64, start: &str, end: &str, epoch: u64, shard: u32) {
        let end = (!end.is_empty()).then(|| end.to_owned().into());
        let partition = Partition {
            id: PartitionId(id),
            container,
            routes: KeyRange::new(start.to_owned(), end),
            shard: ShardId(shard),
            epoch: Epoch(epoch),
            state: PartitionState::Online,
        };
        self.change(|catalog| {
            catalog.log.push((catalog.version, partition.id));
            catalog.partitions.insert(partition.id, partition);
        });
    }

    fn remove(&self, id: u64) {
        self.change(|catalog| {
            catalog.log.push((catalog.version, PartitionId(id)));
            catalog.partitions.remove(&PartitionId(id));
        });
    }

    /// Gives a container a new version together with new epochs of all its partitions, both this number.
    fn change_rules(&self, id: ContainerId, number: u64) {
        self.change(|catalog| {
            catalog.containers.get_mut(&id).unwrap().version = number;
            for partition in catalog.partitions.values_mut().filter(|it| it.container == id) {
                partition.epoch = Epoch(number);
                catalog.log.push((catalog.version, partition.id));
            }
        });
    }

    fn reads(&self) -> (usize, usize) {
        (self.full_reads.load(Ordering::Relaxed), self.delta_reads.load(Ordering::Relaxed))
    }

    /// Reads as a catalog elsewhere does: others run before the answer is there.
    async fn read<T>(&self, read: impl FnOnce(&Catalog) -> T) -> Result<T> {
        tokio::task::yield_now().await;
        let away = self.away.load(Ordering::Relaxed);
        let outcome = read(&self.catalog.lock().unwrap());
        tokio::task::yield_now().await;
        if away {
            Err(Error::unavailable("catalog-away", "the catalog is away"))
        } else {
            Ok(outcome)
        }
    }
}

impl MapSource for Memory {
    fn container(&self, id: ContainerId) -> BoxFuture<'_, Result<Container>> {
        Box::pin(async move {
            let found = self.read(|catalog| catalog.containers.get(&id).cloned()).await?;
            found.ok_or_else(|| no_container(id))
        })
    }

    fn container_named<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Container>> {
        Box::pin(async move {
            let named = |catalog: &Catalog| {
                catalog.containers.values().find(|container| container.name == name).cloned()
            };
            self.read(named).await?.ok_or_else(|| no_container(ContainerId(0)))
        })
    }

    fn partitions(&self, id: ContainerId) -> BoxFuture<'_, Result<(u64, Vec<Partition>)>> {
        self.full_reads.fetch_add(1, Ordering::Relaxed);
        Box::pin(self.read(move |catalog| {
            let held = catalog.partitions.values().filter(|partition| partition.container == id);
            (catalog.version, held.cloned().collect())
        }))
    }

    fn changes_since(&self, _: ContainerId, version: u64) -> BoxFuture<'_, Result<MapDelta>> {
        self.delta_reads.fetch_add(1, Ordering::Relaxed);
        Box::pin(self.read(move |catalog| {
            let (mut removed, mut put) = (Vec::new(), Vec::new());
            for (_, id) in catalog.log.iter().filter(|(at, _)| *at > version) {
                match catalog.partitions.get(id) {
                    Some(partition) => put.push(partition.clone()),
                    None => removed.push(*id),
                }
            }
            MapDelta::Changes { version: catalog.version, removed, put }
        }))
    }
}

/// Sleeping takes no time, and all of it.
#[derive(Default)]
struct ManualClock(AtomicU64);

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.uptime().as_millis() as u64
    }

    fn uptime(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.0.fetch_add(duration.as_nanos() as u64, Ordering::Relaxed);
        Box::pin(tokio::task::yield_now())
    }
}

struct Fixed;

impl Random for Fixed {
    fn next_u64(&self) -> u64 {
        u64::MAX
    }
}

impl Spawn for Fixed {
    fn spawn(&self, _: &'static str, _: BoxFuture<'static, ()>) {
        unreachable!("a router starts no tasks")
    }
}

struct World {
    clock: Arc<ManualClock>,
    memory: Arc<Memory>,
    router: Arc<Router>,
}

fn world(settings: RouterSettings) -> World {
    let clock = Arc::new(ManualClock::default());
    let memory = Arc::new(Memory::default());
    memory.add_container(ORDERS, "tables/shop/orders");
    memory.put(ORDERS, 1, "", "m", 1, 1);
    memory.put(ORDERS, 2, "m", "x", 1, 2);
    let env = Env::new(clock.clone(), Arc::new(Fixed), Arc::new(Fixed));
    let router = Arc::new(Router::with_settings(env, memory.clone(), settings));
    World { clock, memory, router }
}

fn plain() -> World {
    world(RouterSettings::default())
}

fn moved() -> Error {
    Error::moved("not here")
}

/// Group f.
#[tokio::test]
async fn a_hit_asks_nothing_of_the_catalog() {
    let World { memory, router, .. } = plain();
    assert!(router.cached(ORDERS, b"a").is_none());
    for (route, shard) in [(&b"a"[..], 1), (b"l\xff", 1), (b"m", 2), (b"w\xff", 2)] {
        let placed = router.place(ORDERS, route).await.unwrap();
        assert_eq!(placed.shard, ShardId(shard));
        assert_eq!(router.cached(ORDERS, route), Some(placed));
    }
    assert_eq!(memory.reads(), (1, 0));
}

/// Group b, and f: added without the cache knowing.
#[tokio::test]
async fn a_key_outside_any_mapping_is_not_found_until_it_is_added() {
    let World { memory, router, .. } = plain();
    let missing = router.place(ORDERS, b"y").await.unwrap_err();
    assert_eq!((missing.kind(), missing.code()), (Kind::NotFound, "mapping-not-found"));
    memory.put(ORDERS, 3, "x", "", 1, 3);
    assert_eq!(router.place(ORDERS, b"y").await.unwrap().shard, ShardId(3));
    assert_eq!(memory.reads(), (1, 1));
    let unknown = router.place(ContainerId(9), b"y").await.unwrap_err();
    assert_eq!(unknown.code(), "container-not-found");
}

/// Group b.
#[tokio::test]
async fn the_partitions_of_a_range_are_found_and_gaps_are_asked_about() {
    let World { memory, router, .. } = plain();
    let ids = async |start: &'static str, end: Option<&'static str>| {
        let routes = KeyRange::new(start, end.map(Into::into));
        let found = router.partitions(ORDERS, &routes).await.unwrap();
        found.into_iter().map(|(_, placed)| placed.partition.0).collect::<Vec<_>>()
    };
    assert_eq!(ids("a", Some("n")).await, [1, 2]);
    assert_eq!(ids("n", Some("x")).await, [2]);
    assert_eq!(memory.reads(), (1, 0));
    assert_eq!(ids("n", None).await, [2]);
    memory.put(ORDERS, 3, "x", "", 1, 3);
    assert_eq!(ids("n", None).await, [2, 3]);
    assert_eq!(ids("n", None).await, [2, 3]);
    assert_eq!(memory.reads(), (1, 2));
}

#[tokio::test]
async fn all_goes_on_by_cached_maps_while_the_catalog_is_away() {
    let World { memory, router, .. } = plain();
    router.open("tables/shop/orders", "orders-1").await.unwrap();
    memory.away.store(true, Ordering::Relaxed);
    router.open("tables/shop/orders", "orders-1").await.unwrap();
    assert_eq!(router.container(ORDERS).await.unwrap().id, ORDERS);
    assert!(router.place(ORDERS, b"a").await.is_ok());
    let done = router.routed(ORDERS, b"a", async |placed| Ok(placed.shard)).await;
    assert_eq!(done.unwrap(), ShardId(1));
    // Also where the map has gaps, of which nobody can say whether they still are.
    assert_eq!(router.partitions(ORDERS, &KeyRange::all()).await.unwrap().len(), 2);
    assert_eq!(router.place(ORDERS, b"y").await.unwrap_err().code(), "catalog-away");
    let other = router.open("tables/shop/other", "orders-1").await.unwrap_err();
    assert_eq!(other.code(), "catalog-away");
}

/// Who is routed by an epoch that came with new rules must not go by the old ones, wherever the change comes in between
/// the reads of the catalog.
#[tokio::test]
async fn a_container_is_never_known_older_than_the_epochs_of_its_partitions() {
    for (is_known, turns) in [false, true].into_iter().flat_map(|is| (0..10).map(move |n| (is, n)))
    {
        let World { memory, router, .. } = plain();
        if is_known {
            router.place(ORDERS, b"a").await.unwrap();
        }
        let change = async {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            memory.change_rules(ORDERS, 2);
        };
        let (refreshed, ()) = tokio::join!(router.refresh(ORDERS, None), change);
        refreshed.unwrap();
        let placed = router.cached(ORDERS, b"a").unwrap();
        let container = router.container(ORDERS).await.unwrap();
        assert!(container.version >= placed.epoch.0, "after {turns} turns: {placed:?}");
    }
}

#[tokio::test]
async fn a_refresh_that_was_overtaken_reads_nothing() {
    let World { memory, router, .. } = plain();
    let old = router.place(ORDERS, b"a").await.unwrap();
    memory.put(ORDERS, 1, "", "m", 2, 2);
    let stale = Some((old.partition, old.epoch));
    router.refresh(ORDERS, stale).await.unwrap();
    router.refresh(ORDERS, stale).await.unwrap();
    assert_eq!(memory.reads(), (1, 1));
    assert_eq!(router.cached(ORDERS, b"a").unwrap().epoch, Epoch(2));
    // A split takes the id away: that is news enough, too.
    memory.remove(2);
    memory.put(ORDERS, 4, "m", "p", 3, 2);
    memory.put(ORDERS, 5, "p", "x", 3, 2);
    let stale = Some((PartitionId(2), Epoch(1)));
    router.refresh(ORDERS, stale).await.unwrap();
    router.refresh(ORDERS, stale).await.unwrap();
    assert_eq!(memory.reads(), (1, 2));
    assert_eq!(router.cached(ORDERS, b"q").unwrap().partition, PartitionId(5));
}

/// Runs this many at once, each in its own task.
async fn at_once<F>(tasks: usize, run: impl Fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    #[allow(clippy::disallowed_methods, reason = "tests run on the real runtime")]
    let tasks: Vec<_> = (0..tasks).map(|_| tokio::spawn(run())).collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn many_who_wait_for_a_map_are_served_by_one_reading() {
    let World { memory, router, .. } = plain();
    at_once(500, || {
        let router = router.clone();
        async move { assert!(router.place(ORDERS, b"a").await.is_ok()) }
    })
    .await;
    assert_eq!(memory.reads(), (1, 0));
}

#[tokio::test]
async fn many_who_were_told_that_they_are_stale_are_served_by_one_reading() {
    let World { memory, router, .. } = plain();
    router.place(ORDERS, b"a").await.unwrap();
    memory.put(ORDERS, 1, "", "m", 2, 2);
    at_once(500, || {
        let router = router.clone();
        async move {
            let current = async |placed: Placed| {
                if placed.epoch == Epoch(2) { Ok(()) } else { Err(moved()) }
            };
            router.routed(ORDERS, b"a", current).await.unwrap();
        }
    })
    .await;
    assert_eq!(memory.reads(), (1, 1));
}

#[tokio::test]
async fn many_who_ask_for_what_is_missing_or_find_the_catalog_away_read_twice_at_most() {
    let World { memory, router, .. } = plain();
    router.place(ORDERS, b"a").await.unwrap();
    let ask = |code| {
        let router = router.clone();
        async move { assert_eq!(router.place(ORDERS, b"y").await.unwrap_err().code(), code) }
    };
    at_once(500, || ask("mapping-not-found")).await;
    assert!(memory.reads().1 <= 2, "{:?}", memory.reads());
    memory.away.store(true, Ordering::Relaxed);
    let before = memory.reads().1;
    at_once(500, || ask("catalog-away")).await;
    assert!(memory.reads().1 <= before + 2, "{:?}", memory.reads());
}

/// A reading that began before a change may have missed it, so who saw the change happen reads
/// again.
#[tokio::test]
async fn a_reading_that_began_too_early_does_not_count() {
    let World { memory, router, .. } = plain();
    router.place(ORDERS, b"a").await.unwrap();
    let early = router.place(ORDERS, b"y");
    let late = async {
        // The early one has read by now, and has not yet answered.
        while memory.reads().1 == 0 {
            tokio::task::yield_now().await;
        }
        tokio::task::yield_now().await;
        memory.put(ORDERS, 3, "x", "", 1, 3);
        router.place(ORDERS, b"y").await
    };
    let (early, late) = tokio::join!(biased; early, late);
    assert_eq!(early.unwrap_err().code(), "mapping-not-found");
    assert_eq!(late.unwrap().shard, ShardId(3));
}

#[tokio::test]
async fn who_vanishes_while_reading_leaves_the_turn_to_the_next() {
    let World { memory, router, .. } = plain();
    let mut vanishing = Box::pin(router.place(ORDERS, b"a"));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(vanishing.as_mut().poll(&mut context).is_pending());
    drop(vanishing);
    assert!(router.place(ORDERS, b"a").await.is_ok());
    assert_eq!(memory.reads(), (2, 0), "the first one was begun, too");
}

/// S13.
#[tokio::test]
async fn who_opens_with_another_schema_is_refused() {
    let World { memory, router, .. } = plain();
    for _ in 0..2 {
        let refused = router.open("tables/shop/orders", "orders-2").await.unwrap_err();
        assert_eq!((refused.kind(), refused.code()), (Kind::Invalid, "schema-mismatch"));
    }
    assert_eq!(router.open("tables/shop/orders", "orders-1").await.unwrap().id, ORDERS);
    // What is cached does not refuse what the catalog has since allowed.
    memory.change(|catalog| {
        catalog.containers.get_mut(&ORDERS).unwrap().schema = "orders-2".to_owned();
    });
    assert_eq!(router.open("tables/shop/orders", "orders-2").await.unwrap().schema, "orders-2");
}

#[tokio::test]
async fn a_container_that_is_gone_is_forgotten_and_its_name_free() {
    let World { memory, router, .. } = plain();
    router.open("tables/shop/orders", "orders-1").await.unwrap();
    memory.change(|catalog| catalog.containers.clear());
    memory.add_container(ContainerId(8), "tables/shop/orders");
    let gone = router.refresh(ORDERS, None).await.unwrap_err();
    assert_eq!(gone.code(), "container-not-found");
    let opened = router.open("tables/shop/orders", "orders-1").await.unwrap();
    assert_eq!(opened.id, ContainerId(8));
}

#[tokio::test]
async fn what_is_forgotten_is_read_again() {
    let World { memory, router, .. } = plain();
    router.place(ORDERS, b"a").await.unwrap();
    router.forget(ORDERS);
    assert!(router.cached(ORDERS, b"a").is_none());
    router.place(ORDERS, b"a").await.unwrap();
    assert_eq!(memory.reads(), (2, 0));
}

#[tokio::test]
async fn an_operation_that_is_moved_follows_its_route() {
    let World { memory, router, .. } = plain();
    router.place(ORDERS, b"a").await.unwrap();
    memory.put(ORDERS, 1, "", "m", 2, 2);
    let tries = AtomicUsize::new(0);
    let follow = async |placed: Placed| {
        tries.fetch_add(1, Ordering::Relaxed);
        if placed.shard == ShardId(2) { Ok(placed.epoch) } else { Err(moved()) }
    };
    assert_eq!(router.routed(ORDERS, b"a", follow).await.unwrap(), Epoch(2));
    assert_eq!((tries.into_inner(), memory.reads()), (2, (1, 1)));
}

#[tokio::test]
async fn a_map_that_does_not_settle_is_given_up_on_after_a_bounded_time() {
    let World { clock, router, .. } = plain();
    let tries = AtomicU64::new(0);
    let never = async |_| -> Result<()> {
        tries.fetch_add(1, Ordering::Relaxed);
        Err(moved())
    };
    let unsettled = router.routed(ORDERS, b"a", never).await.unwrap_err();
    assert!(matches!(unsettled.kind(), Kind::Unavailable { .. }));
    assert_eq!(unsettled.code(), "map-unsettled");
    assert_eq!(tries.into_inner(), u64::from(router.settings().moved_retries_max) + 1);
    let waited = clock.uptime();
    assert!(Duration::from_millis(250) < waited && waited < Duration::from_secs(2), "{waited:?}");
}

#[tokio::test]
async fn other_errors_of_an_operation_are_its_answer() {
    let World { memory, router, .. } = plain();
    let exists = async |_| -> Result<()> { Err(Error::exists("item-exists", "there is one")) };
    assert_eq!(router.routed(ORDERS, b"a", exists).await.unwrap_err().code(), "item-exists");
    assert_eq!(memory.reads(), (1, 0));
}

/// Group f: ten requests to a shard that is down ask the catalog once.
#[tokio::test]
async fn a_shard_that_is_down_hammers_neither_itself_nor_the_catalog() {
    let World { clock, memory, router, .. } = plain();
    let asked = AtomicUsize::new(0);
    let fail = async |placed: Placed| -> Result<()> {
        asked.fetch_add(1, Ordering::Relaxed);
        router.shard_failed(placed.shard);
        Err(Error::unavailable("store-away", "the disk is gone"))
    };
    let mut codes = BTreeMap::<_, usize>::new();
    for _ in 0..10 {
        let failed = router.routed(ORDERS, b"a", fail).await.unwrap_err();
        *codes.entry(failed.code()).or_default() += 1;
    }
    assert_eq!(codes, BTreeMap::from([("store-away", 2), ("shard-down", 8)]));
    assert_eq!((asked.load(Ordering::Relaxed), memory.reads()), (2, (1, 1)));
    // The other shard is as well as ever.
    assert!(router.routed(ORDERS, b"n", async |_| Ok(())).await.is_ok());
    // After the back-off one request probes, and its success lets all others through.
    let wait = router.settings().backoff_first;
    assert_eq!(
        router.shard_ready(ShardId(1)).unwrap_err().kind(),
        Kind::Unavailable { retry_after: wait }
    );
    clock.sleep(wait).await;
    assert!(router.routed(ORDERS, b"a", async |_| Ok(())).await.is_ok());
    assert!(router.routed(ORDERS, b"a", async |_| Ok(())).await.is_ok());
    assert_eq!(memory.reads(), (1, 2));
}

#[tokio::test]
async fn a_partition_that_was_given_to_another_shard_leaves_the_failed_one_behind() {
    let World { memory, router, .. } = plain();
    router.place(ORDERS, b"a").await.unwrap();
    router.shard_failed(ShardId(1));
    memory.put(ORDERS, 1, "", "m", 2, 2);
    let shard = router.routed(ORDERS, b"a", async |placed| Ok(placed.shard)).await.unwrap();
    assert_eq!(shard, ShardId(2));
}

#[tokio::test]
async fn the_containers_that_are_kept_are_bounded_and_the_used_ones_stay() {
    let World { memory, router, .. } =
        world(RouterSettings { containers_max: 10, ..RouterSettings::default() });
    router.place(ORDERS, b"a").await.unwrap();
    for id in 100..200 {
        memory.add_container(ContainerId(id), &format!("c{id}"));
        memory.put(ContainerId(id), u64::from(id), "", "", 1, 1);
        router.place(ContainerId(id), b"a").await.unwrap();
        assert!(router.cached(ORDERS, b"a").is_some(), "used between any two others");
    }
    let kept = (100..200).filter(|id| router.cached(ContainerId(*id), b"a").is_some()).count();
    assert!((8..=9).contains(&kept), "{kept}");
}

#[tokio::test]
async fn the_partitions_that_are_kept_are_bounded() {
    let World { memory, router, .. } =
        world(RouterSettings { entries_max: 3, ..RouterSettings::default() });
    router.place(ORDERS, b"a").await.unwrap();
    memory.add_container(ContainerId(8), "other");
    memory.put(ContainerId(8), 11, "", "m", 1, 1);
    memory.put(ContainerId(8), 12, "m", "", 1, 1);
    router.place(ContainerId(8), b"a").await.unwrap();
    assert!(router.cached(ORDERS, b"a").is_none(), "two and two are more than three");
    memory.put(ORDERS, 3, "x", "y", 1, 1);
    memory.put(ORDERS, 4, "y", "z", 1, 1);
    assert_eq!(router.place(ORDERS, b"a").await.unwrap_err().code(), "map-too-large");
    // Also if it grows by and by.
    memory.put(ContainerId(8), 13, "m", "p", 2, 1);
    memory.put(ContainerId(8), 14, "p", "r", 2, 1);
    memory.put(ContainerId(8), 12, "r", "", 2, 1);
    let grown = router.refresh(ContainerId(8), None).await.unwrap_err();
    assert_eq!(grown.code(), "map-too-large");
    assert!(router.cached(ContainerId(8), b"a").is_none());
}

#[tokio::test]
async fn changes_that_make_no_sense_lead_to_a_full_reading() {
    let World { memory, router, .. } = plain();
    router.place(ORDERS, b"a").await.unwrap();
    memory.put(ORDERS, 3, "z", "y", 1, 1);
    assert_eq!(router.refresh(ORDERS, None).await.unwrap_err().code(), "map-bounds");
    memory.remove(3);
    router.place(ORDERS, b"a").await.unwrap();
    assert_eq!(memory.reads(), (2, 1));
}
