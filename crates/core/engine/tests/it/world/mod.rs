//! A small world for tests: a catalog and some shards in memory, an engine on top, a clock that tests turn.

#![allow(unreachable_pub, reason = "only the modules beside it see it")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{
    Condition, Deriver, Deriving, Engine, Item, ItemKey, LiveShard, Rules, Settings, Shards,
    Standing, Transaction, Tx,
};
use lazuli_env::{BoxFuture, Clock, Env};
use lazuli_shardmap::catalog::Catalog;
use lazuli_shardmap::key::{KeyPart, KeySchema, KeyType};
use lazuli_shardmap::layout::Space;
use lazuli_shardmap::local::{Identity, LocalMap};
use lazuli_shardmap::manager::{Cuts, Known, Manager, NewContainer, NewPartition, NewShard};
use lazuli_shardmap::router::Router;
use lazuli_shardmap::{Container, MapKind, Partition, Policies, ShardId};
use lazuli_store::faulty::{Fault, FaultyStore, Plan};
use lazuli_store::mem::MemStore;
use lazuli_store::{Error, Result, Store, StoreHealth};

/// Every item of these tests has entries for its value and for how long it is: whatever happens to items, `fsck` finds
/// their entries.
struct ByValue;

impl Deriver for ByValue {
    fn schema(&self) -> &'static str {
        "test/1"
    }

    fn rules(&self, _: &Container) -> Result<Option<Arc<dyn Rules>>> {
        Ok(Some(Arc::new(Self)))
    }
}

impl Rules for ByValue {
    fn entries(&self, _: &ItemKey, item: &Item) -> Result<Vec<Bytes>> {
        let value = [&b"value "[..], &item.payload[..item.payload.len().min(20)]].concat();
        let length = format!("length {}", item.payload.len());
        Ok(vec![length.into(), value.into()])
    }

    fn standing(&self, _: &[u8]) -> Standing {
        Standing::Complete
    }
}

/// The real clock, moved forward by hand.
pub struct TurnedClock {
    real: Arc<dyn Clock>,
    ahead_ms: AtomicU64,
}

impl TurnedClock {
    pub fn turn(&self, time: Duration) {
        self.ahead_ms.fetch_add(time.as_millis() as u64, Ordering::Relaxed);
    }

    /// Forgets by how much it was turned forward.
    pub fn turn_back(&self) {
        self.ahead_ms.store(0, Ordering::Relaxed);
    }
}

impl Clock for TurnedClock {
    fn now_ms(&self) -> u64 {
        self.real.now_ms() + self.ahead_ms.load(Ordering::Relaxed)
    }

    fn uptime(&self) -> Duration {
        self.real.uptime() + Duration::from_millis(self.ahead_ms.load(Ordering::Relaxed))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.real.sleep(duration)
    }
}

/// Fails the commit with this number, counted from one over all stores of the world; zero fails none.
#[derive(Default)]
pub struct FailOnce {
    pub at: AtomicU64,
    pub after: Mutex<bool>,
    pub seen: AtomicU64,
    /// From the failing commit on nothing works any more, as after a crash.
    pub dead: Mutex<bool>,
    /// The commit with this number takes so long.
    pub slow: Mutex<Option<(u64, Arc<TurnedClock>, Duration)>>,
}

impl Plan for FailOnce {
    fn commit(&self) -> Fault {
        let seen = self.seen.fetch_add(1, Ordering::SeqCst) + 1;
        if *self.dead.lock().unwrap() {
            return Fault::Before;
        }
        if let Some((at, clock, time)) = &*self.slow.lock().unwrap()
            && *at == seen
        {
            clock.turn(*time);
        }
        if seen == self.at.load(Ordering::SeqCst) {
            *self.dead.lock().unwrap() = true;
            return if *self.after.lock().unwrap() { Fault::After } else { Fault::Before };
        }
        Fault::None
    }
}

/// A shard that is down or up, and whose disk is full or not.
#[derive(Default)]
pub struct Down(pub std::sync::atomic::AtomicBool, pub Mutex<Option<StoreHealth>>);

impl Plan for Down {
    fn commit(&self) -> Fault {
        Fault::None
    }

    fn is_up(&self) -> bool {
        !self.0.load(Ordering::SeqCst)
    }

    fn health(&self) -> StoreHealth {
        self.1.lock().unwrap().clone().unwrap_or(StoreHealth::Well)
    }
}

pub struct World {
    pub env: Env,
    pub clock: Arc<TurnedClock>,
    pub catalog_store: MemStore,
    pub shard_stores: BTreeMap<ShardId, MemStore>,
    pub down: BTreeMap<ShardId, Arc<Down>>,
    pub faults: Arc<FailOnce>,
    pub engine: Arc<Engine>,
    pub settings: Settings,
    /// Whether shards hand over what they hold as it is.
    packing: bool,
}

impl World {
    /// An empty catalog with so many shards, named `shard-1` and so on.
    pub async fn new(shards: u32) -> Self {
        Self::with(shards, false).await
    }

    /// The same with shards that hand over what they hold as it is, or with those that are read row by row.
    pub async fn with(shards: u32, packing: bool) -> Self {
        let real = lazuli_env::real::env();
        let clock = Arc::new(TurnedClock { real: real.clock.clone(), ahead_ms: AtomicU64::new(0) });
        let env = Env::new(clock.clone(), real.random.clone(), real.spawn.clone());
        let catalog_store = MemStore::new();
        Catalog::init(Arc::new(catalog_store.clone()), env.clone()).await.unwrap();
        let faults = Arc::new(FailOnce::default());
        let settings =
            Settings { deriving: Deriving::new(Arc::new(ByValue)), ..Settings::default() };
        let (shard_stores, down) = (BTreeMap::new(), BTreeMap::new());
        let engine =
            open(&env, &catalog_store, &shard_stores, &down, &faults, &settings).await.unwrap();
        let mut world = Self {
            env,
            clock,
            catalog_store,
            shard_stores,
            down,
            faults,
            engine,
            settings,
            packing,
        };
        for number in 1..=shards {
            world.add_shard(&format!("shard-{number}"), "here").await;
        }
        world
    }

    pub async fn add_shard(&mut self, name: &str, region: &str) -> ShardId {
        let new = NewShard {
            name: name.into(),
            location: name.into(),
            region: region.into(),
            labels: BTreeMap::new(),
        };
        let shard = self.engine.manager().add_shard(&new).await.unwrap();
        let store = if self.packing { MemStore::packing() } else { MemStore::new() };
        let catalog = self.engine.manager().catalog().id();
        let identity = Identity { catalog, shard: shard.id };
        let dynamic: Arc<dyn Store> = Arc::new(store.clone());
        LocalMap::init(&dynamic, identity).await.unwrap();
        self.shard_stores.insert(shard.id, store);
        self.down.insert(shard.id, Arc::default());
        self.restart().await;
        shard.id
    }

    /// Everything in memory is lost; everything is opened again from the stores.
    pub async fn restart(&mut self) {
        self.try_restart().await.unwrap();
    }

    pub async fn try_restart(&mut self) -> Result<()> {
        self.faults = Arc::default();
        let settings = &self.settings;
        self.engine = open(
            &self.env,
            &self.catalog_store,
            &self.shard_stores,
            &self.down,
            &self.faults,
            settings,
        )
        .await?;
        self.engine.manager().reconcile().await.map(|_| ())
    }

    pub fn pass(&self, time: Duration) {
        self.clock.turn(time);
    }

    /// A range map over text keys, cut at these keys.
    pub async fn range(&self, name: &str, cuts: &[&str]) -> Container {
        let schema = KeySchema::one(KeyType::Text);
        let cut = |key: &&str| MapKind::Range.route(&schema, &[text(key)]).unwrap();
        let cuts = Cuts::At(cuts.iter().map(cut).collect());
        self.create(name, MapKind::Range, cuts, Policies::default()).await
    }

    /// A hash map over text keys in so many partitions.
    pub async fn hash(&self, name: &str, parts: u16) -> Container {
        self.create(name, MapKind::Hash, Cuts::Even(parts), Policies::default()).await
    }

    pub async fn create(
        &self,
        name: &str,
        kind: MapKind,
        cuts: Cuts,
        policies: Policies,
    ) -> Container {
        let new = NewContainer {
            name: name.into(),
            kind,
            key: KeySchema::one(KeyType::Text),
            schema: "test/1".into(),
            placement: vec![],
            policies,
            cuts,
            shards: vec![],
        };
        self.engine.manager().create_container(&new).await.unwrap()
    }

    pub async fn add_point(&self, container: &Container, key: &str, shard: ShardId) -> Partition {
        let routes = lazuli_store::KeyRange::prefix(route(container, key));
        let new = NewPartition { routes, shard: Some(shard) };
        self.engine.manager().add_partition(container.id, new).await.unwrap()
    }

    pub async fn partitions(&self, container: &Container) -> Vec<Partition> {
        let catalog = self.engine.manager().catalog();
        let all = lazuli_store::KeyRange::all();
        let found = catalog.partitions_in(container.id, &all, 100_000).await.unwrap();
        found.into_iter().map(|entry| entry.partition).collect()
    }

    pub async fn partition_of(&self, container: &Container, key: &str) -> Partition {
        let route = route(container, key);
        let all = self.partitions(container).await;
        all.into_iter().find(|partition| partition.routes.contains(&route)).unwrap()
    }

    /// Splits the partition of a key right before that key.
    pub async fn split_at(&self, container: &Container, key: &str) {
        let partition = self.partition_of(container, key).await;
        let at = route(container, key);
        self.engine.manager().split(Known::from(&partition), at).await.unwrap();
    }

    pub async fn put(
        &self,
        container: &Container,
        key: &str,
        row: &str,
        value: &str,
    ) -> Result<()> {
        let item = item_key(container, key, row);
        let put = Put { key: item.clone(), value: value.to_owned().into(), expires_ms: None };
        self.engine.write(container.id, item.route(), put).await
    }

    pub async fn get(&self, container: &Container, key: &str, row: &str) -> Result<Option<String>> {
        let item = item_key(container, key, row);
        let view = self.engine.read(container.id, item.route(), 1).await?;
        let found = view.get(&item).await?;
        Ok(found.map(|item| String::from_utf8(item.payload.to_vec()).unwrap()))
    }

    pub async fn item(&self, container: &Container, key: &str, row: &str) -> Option<Item> {
        let item = item_key(container, key, row);
        let view = self.engine.read(container.id, item.route(), 1).await.unwrap();
        view.get(&item).await.unwrap()
    }
}

async fn open(
    env: &Env,
    catalog_store: &MemStore,
    shard_stores: &BTreeMap<ShardId, MemStore>,
    down: &BTreeMap<ShardId, Arc<Down>>,
    faults: &Arc<FailOnce>,
    settings: &Settings,
) -> Result<Arc<Engine>> {
    let faulty = |store: &MemStore| -> Arc<dyn Store> {
        Arc::new(FaultyStore::new(Arc::new(store.clone()), faults.clone(), env.clone()))
    };
    let catalog = Arc::new(Catalog::open(faulty(catalog_store), env.clone()).await?);
    let shards = Arc::new(Shards::default());
    for (id, store) in shard_stores {
        let store: Arc<dyn Store> =
            Arc::new(FaultyStore::new(faulty(store), down[id].clone(), env.clone()));
        let local = Arc::new(LocalMap::open(store.clone()).await?);
        let shard = LiveShard::open(env.clone(), settings.clone(), *id, store, local).await?;
        shards.insert(Arc::new(shard));
    }
    let manager = Arc::new(Manager::new(env.clone(), catalog, shards.clone()));
    let router = Arc::new(Router::new(env.clone(), manager.clone()));
    Ok(Arc::new(Engine::new(env.clone(), settings.clone(), router, manager, shards)))
}

pub fn text(key: &str) -> KeyPart {
    KeyPart::Text(key.into())
}

pub fn route(container: &Container, key: &str) -> Bytes {
    container.kind.route(&container.key, &[text(key)]).unwrap()
}

pub fn item_key(container: &Container, key: &str, row: &str) -> ItemKey {
    ItemKey::new(container.id, Space::ITEMS, &route(container, key), row.as_bytes())
}

/// Writes one item whatever was there.
pub struct Put {
    pub key: ItemKey,
    pub value: Bytes,
    pub expires_ms: Option<u64>,
}

impl Transaction for Put {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        tx.put_until(&self.key, self.value.clone(), self.expires_ms).await
    }
}

/// Deletes one item and says whether there was one.
pub struct Delete(pub ItemKey);

impl Transaction for Delete {
    type Output = bool;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<bool> {
        tx.delete(&self.0).await
    }
}

/// Adds to a number in an item, and fails afterwards if told to.
pub struct Add {
    pub key: ItemKey,
    pub amount: i64,
    pub then_fail: bool,
}

impl Transaction for Add {
    type Output = i64;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<i64> {
        let sum = number(tx.get(&self.key).await?.as_ref()) + self.amount;
        tx.put(&self.key, sum.to_string().into()).await?;
        if self.then_fail {
            return Err(Error::precondition("on-purpose", "told to fail"));
        }
        Ok(sum)
    }
}

pub fn number(item: Option<&Item>) -> i64 {
    item.map_or(0, |item| std::str::from_utf8(&item.payload).unwrap().parse().unwrap())
}

/// Moves an amount from one item to another, if both are there and the first has enough.
pub struct Transfer {
    pub from: ItemKey,
    pub to: ItemKey,
    pub amount: i64,
}

impl Transaction for Transfer {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let from = number(tx.check(&self.from, Condition::Present).await?.as_ref());
        tx.put(&self.from, (from - self.amount).to_string().into()).await?;
        let to = number(tx.check(&self.to, Condition::Present).await?.as_ref());
        tx.put(&self.to, (to + self.amount).to_string().into()).await?;
        if from < self.amount {
            return Err(Error::precondition("too-little", "not enough to transfer"));
        }
        Ok(())
    }
}
