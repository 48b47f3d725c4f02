//! A catalog and its shards in memory, whose disks survive crashes and fail on command.

#![allow(unreachable_pub, reason = "only the modules beside it see it")]

pub mod cases;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use lazuli_env::{Env, Id};
use lazuli_shardmap::catalog::Entry;
use lazuli_shardmap::manager::{Cuts, LocalMaps, Manager, NewContainer, NewPartition, NewShard};
use lazuli_shardmap::{
    Catalog, Container, ContainerId, Garbage, Identity, KeyPart, KeySchema, KeyType, LocalMap,
    MapKind, Move, MoveStage, Partition, Policies, Shard, ShardId,
};
use lazuli_store::faulty::{Fault, FaultyStore, Plan};
use lazuli_store::mem::MemStore;
use lazuli_store::{Direction, Error, KeyRange, PageLimit, Result, Store, after_key};

/// Crashes everything at one durable commit, before or after it is written. Counts commits otherwise.
pub struct Crash {
    left: AtomicUsize,
    fault: Fault,
    lasting: bool,
    crashed: AtomicBool,
    pub commits: AtomicUsize,
}

impl Crash {
    pub fn never() -> Arc<Self> {
        Self::new(usize::MAX, Fault::None, false)
    }

    /// At the `nth` commit, counted from one. From then on nothing answers.
    pub fn at(nth: usize, fault: Fault) -> Arc<Self> {
        Self::new(nth, fault, true)
    }

    /// One commit fails; everything goes on.
    pub fn once(nth: usize, fault: Fault) -> Arc<Self> {
        Self::new(nth, fault, false)
    }

    fn new(nth: usize, fault: Fault, lasting: bool) -> Arc<Self> {
        let (crashed, commits) = (AtomicBool::new(false), AtomicUsize::new(0));
        Arc::new(Self { left: AtomicUsize::new(nth), fault, lasting, crashed, commits })
    }

    pub fn crashed(&self) -> bool {
        self.crashed.load(Ordering::Relaxed)
    }
}

impl Plan for Crash {
    fn commit(&self) -> Fault {
        self.commits.fetch_add(1, Ordering::Relaxed);
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.crashed.store(true, Ordering::Relaxed);
            return self.fault;
        }
        Fault::None
    }

    fn is_up(&self) -> bool {
        !(self.lasting && self.crashed())
    }
}

/// What survives a crash.
#[derive(Default)]
pub struct Disks {
    pub catalog: MemStore,
    pub shards: Mutex<BTreeMap<ShardId, MemStore>>,
}

impl Disks {
    pub fn shard(&self, id: ShardId) -> MemStore {
        self.shards.lock().unwrap()[&id].clone()
    }

    pub async fn copy(&self) -> Arc<Self> {
        let mut shards = BTreeMap::new();
        let originals = self.shards.lock().unwrap().clone();
        for (id, store) in originals {
            shards.insert(id, copy(&store).await);
        }
        let catalog = copy(&self.catalog).await;
        Arc::new(Self { catalog, shards: Mutex::new(shards) })
    }
}

pub async fn copy(store: &MemStore) -> MemStore {
    let copied = MemStore::new();
    let mut range = KeyRange::all();
    loop {
        let page = store.scan(&range, Direction::Forward, PageLimit::MAX).await.unwrap();
        let Some((last, _)) = page.items.last() else { return copied };
        range.start = after_key(last);
        copied.ingest(vec![], page.items).await.unwrap();
    }
}

/// The shards that are open.
#[derive(Default)]
pub struct Shards {
    pub open: Mutex<BTreeMap<ShardId, Arc<LocalMap>>>,
    pub down: Mutex<BTreeSet<ShardId>>,
}

impl LocalMaps for Shards {
    fn local(&self, shard: ShardId) -> Result<Arc<LocalMap>> {
        let open = self.open.lock().unwrap();
        match open.get(&shard).filter(|_| !self.down.lock().unwrap().contains(&shard)) {
            Some(local) => Ok(local.clone()),
            None => Err(Error::unavailable("shard-down", format!("shard {shard} is down"))),
        }
    }
}

pub struct World {
    pub env: Env,
    pub disks: Arc<Disks>,
    pub crash: Arc<Crash>,
    pub shards: Arc<Shards>,
    pub manager: Arc<Manager>,
}

impl World {
    pub async fn new() -> Self {
        Self::open(Arc::default(), Crash::never()).await
    }

    /// A process that starts on these disks.
    pub async fn open(disks: Arc<Disks>, crash: Arc<Crash>) -> Self {
        Self::open_in(lazuli_env::real::env(), disks, crash.clone(), crash).await
    }

    /// The same in given surroundings, with a plan that may do more than crash.
    pub async fn open_in(
        env: Env,
        disks: Arc<Disks>,
        crash: Arc<Crash>,
        plan: Arc<dyn Plan>,
    ) -> Self {
        Catalog::init(Arc::new(disks.catalog.clone()), env.clone()).await.unwrap();
        let faulty = |store: MemStore| -> Arc<dyn Store> {
            Arc::new(FaultyStore::new(Arc::new(store), plan.clone(), env.clone()))
        };
        let catalog = Catalog::open(faulty(disks.catalog.clone()), env.clone()).await.unwrap();
        let shards = Arc::new(Shards::default());
        let stores = disks.shards.lock().unwrap().clone();
        for (id, store) in stores {
            let local = LocalMap::open(faulty(store)).await.unwrap();
            shards.open.lock().unwrap().insert(id, Arc::new(local));
        }
        let manager = Arc::new(Manager::new(env.clone(), Arc::new(catalog), shards.clone()));
        let world = Self { env, disks, crash, shards, manager };
        for shard in world.catalog().shards().await.unwrap() {
            if !world.shards.open.lock().unwrap().contains_key(&shard.id) {
                world.start_shard(&shard).await;
            }
        }
        world
    }

    /// The same disks after a crash or a stop.
    pub async fn restart(&self, crash: Arc<Crash>) -> Self {
        Self::open(self.disks.clone(), crash).await
    }

    pub fn catalog(&self) -> &Catalog {
        self.manager.catalog()
    }

    /// Gives a shard of the catalog an empty disk.
    pub async fn start_shard(&self, shard: &Shard) {
        let store = MemStore::new();
        let identity = Identity { catalog: self.catalog().id(), shard: shard.id };
        let plain: Arc<dyn Store> = Arc::new(store.clone());
        LocalMap::init(&plain, identity).await.unwrap();
        let faulty = FaultyStore::new(plain, self.crash.clone(), self.env.clone());
        let local = LocalMap::open(Arc::new(faulty)).await.unwrap();
        self.disks.shards.lock().unwrap().insert(shard.id, store);
        self.shards.open.lock().unwrap().insert(shard.id, Arc::new(local));
    }

    pub async fn add_shard(&self, name: &str) -> Shard {
        let shard = self.manager.add_shard(&new_shard(name)).await.unwrap();
        self.start_shard(&shard).await;
        shard
    }

    pub fn local(&self, shard: ShardId) -> Arc<LocalMap> {
        self.shards.open.lock().unwrap()[&shard].clone()
    }

    pub async fn list(&self, name: &str, points: &[&str]) -> Container {
        let container = self.create(name, MapKind::List, Cuts::Empty).await;
        let new: Vec<_> =
            points.iter().map(|point| NewPartition::point(text(point), None)).collect();
        self.manager.add_partitions(container.id, &new).await.unwrap();
        self.catalog().container(container.id).await.unwrap()
    }

    pub async fn range(&self, name: &str, cuts: &[&str]) -> Container {
        let cuts = Cuts::At(cuts.iter().map(|cut| text(cut)).collect());
        self.create(name, MapKind::Range, cuts).await
    }

    pub async fn hash(&self, name: &str, parts: u16) -> Container {
        self.create(name, MapKind::Hash, Cuts::Even(parts)).await
    }

    async fn create(&self, name: &str, kind: MapKind, cuts: Cuts) -> Container {
        self.manager.create_container(&new_container(name, kind, cuts)).await.unwrap()
    }

    pub async fn partitions(&self, container: ContainerId) -> Vec<Partition> {
        self.entries(container).await.into_iter().map(|entry| entry.partition).collect()
    }

    pub async fn entries(&self, container: ContainerId) -> Vec<Entry> {
        self.catalog().partitions_in(container, &KeyRange::all(), usize::MAX).await.unwrap()
    }

    /// The partition that holds this key of a list or range map.
    pub async fn at(&self, container: &str, key: &str) -> Partition {
        self.find(container, key).await.unwrap()
    }

    pub async fn find(&self, container: &str, key: &str) -> Result<Partition> {
        let container = self.catalog().container_named(container).await?;
        let routes = KeyRange::prefix(text(key));
        let found = self.catalog().partitions_in(container.id, &routes, 1).await?;
        let none = || Error::not_found("mapping-not-found", "no partition holds the key");
        found.into_iter().next().map(|entry| entry.partition).ok_or_else(none)
    }

    /// Everything the catalog knows that is not a version.
    pub async fn truth(&self) -> Truth {
        let catalog = self.catalog();
        let mut truth = Truth { garbage: catalog.garbage().await.unwrap(), ..Truth::default() };
        for shard in catalog.shards().await.unwrap() {
            truth.shards.push(Shard { version: 0, ..shard });
        }
        for container in catalog.containers().await.unwrap() {
            truth.entries.extend(self.entries(container.id).await);
            truth.containers.push(Container { version: 0, ..container });
        }
        let unknown = Id::from_bytes([0; 16]);
        for moving in catalog.moves().await.unwrap() {
            for entry in truth.entries.iter_mut().filter(|it| it.lock == Some(moving.token)) {
                entry.lock = Some(unknown);
            }
            // What chance, time and the number of tries decide is not part of the truth.
            truth.moves.push(Move { number: 0, token: unknown, begun_ms: 0, ..moving });
        }
        truth
    }

    /// Catalog and local maps say the same, nothing overlaps, hash maps have no gaps, and nothing is pending.
    pub async fn check(&self) {
        let truth = self.truth().await;
        assert!(self.catalog().operations().await.unwrap().is_empty(), "nothing is pending");
        let mut routes: BTreeMap<ContainerId, Option<Bytes>> = BTreeMap::new();
        for Entry { partition, .. } in &truth.entries {
            assert!(!partition.routes.is_empty());
            match routes.get(&partition.container) {
                Some(Some(end)) => assert!(*end <= partition.routes.start, "no overlap"),
                Some(None) => panic!("something behind the end"),
                None => {}
            }
            routes.insert(partition.container, partition.routes.end.clone());
        }
        for container in truth.containers.iter().filter(|it| it.kind == MapKind::Hash) {
            self.check_tiles(container.id).await;
        }
        let mut on_shards = Vec::new();
        let (mut garbage, mut arrivals) = (Vec::new(), Vec::new());
        for shard in &truth.shards {
            if !self.shards.open.lock().unwrap().contains_key(&shard.id) {
                self.start_shard(shard).await;
            }
            let local = self.local(shard.id);
            assert!(local.seen().unwrap() <= self.catalog().version().await.unwrap());
            on_shards.extend(local.partitions().unwrap());
            garbage.extend(local.garbage().await.unwrap());
            arrivals.extend(local.arrivals().unwrap());
            let held = self.catalog().partition_count(shard.id).await.unwrap();
            assert_eq!(held, local.partitions().unwrap().len() as u64, "the count is right");
            let listed = self.catalog().partitions_on(shard.id, usize::MAX).await.unwrap();
            assert_eq!(listed.len() as u64, held);
        }
        let mut in_catalog: Vec<_> = truth.entries.iter().map(|it| it.partition.clone()).collect();
        in_catalog.sort_by_key(|it| it.id);
        on_shards.sort_by_key(|it| it.id);
        assert_eq!(in_catalog, on_shards, "the catalog and the local maps agree");
        let mut known: Vec<Garbage> = truth.garbage.clone();
        known.sort_by_key(|it| it.id);
        garbage.sort_by_key(|it| it.id);
        assert_eq!(known, garbage, "the catalog and the shards agree on garbage");
        let moves = self.catalog().moves().await.unwrap();
        let expects = |it: &&Move| it.is_open() || it.stage == MoveStage::Cancelled;
        let open = moves.iter().filter(expects);
        let open: BTreeSet<_> = open.map(|it| (it.number, it.epoch, it.target)).collect();
        let arrivals = arrivals.iter().map(|it| (it.number, it.epoch, it.shard));
        assert_eq!(open, arrivals.collect(), "the catalog and the shards agree on arrivals");
    }

    /// Calls off every move that can be, so that their partitions may be changed.
    pub async fn call_off_moves(&self) {
        for moving in self.catalog().moves().await.unwrap() {
            if moving.is_open() {
                self.manager.cancel_move(moving.number).await.unwrap();
            }
        }
    }

    async fn check_tiles(&self, container: ContainerId) {
        let mut next = Some(Bytes::new());
        for partition in self.partitions(container).await {
            assert_eq!(next, Some(partition.routes.start), "no gap");
            next = partition.routes.end;
        }
        assert_eq!(next, None, "to the very end");
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    pub shards: Vec<Shard>,
    pub containers: Vec<Container>,
    pub entries: Vec<Entry>,
    pub garbage: Vec<Garbage>,
    pub moves: Vec<Move>,
}

pub fn new_shard(name: &str) -> NewShard {
    let (name, location) = (name.to_owned(), format!("disk-of-{name}"));
    NewShard { name, location, region: "home".into(), labels: BTreeMap::new() }
}

pub fn new_container(name: &str, kind: MapKind, cuts: Cuts) -> NewContainer {
    NewContainer {
        name: name.to_owned(),
        kind,
        key: KeySchema::one(KeyType::Text),
        schema: String::new(),
        placement: vec![],
        policies: Policies::default(),
        cuts,
        shards: vec![],
    }
}

/// The route of a text key in a list or range map.
pub fn text(key: &str) -> Bytes {
    KeySchema::one(KeyType::Text).encode(&[KeyPart::from(key)]).unwrap()
}

pub fn between(start: Option<&str>, end: Option<&str>) -> KeyRange {
    KeyRange::new(start.map_or(Bytes::new(), text), end.map(text))
}

/// The word for what went wrong.
pub fn code<T: std::fmt::Debug>(result: Result<T>) -> &'static str {
    result.unwrap_err().code()
}
