//! An engine with a catalog and some shards, each in a store of its own, and one container of one partition.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{
    Container, Cuts, Engine, Item, ItemKey, KeyPart, KeySchema, KeyType, Lsn, MapKind, Move,
    MoveOptions, NewContainer, Partition, Policies, Settings, Space,
};
use lazuli_server::behind::Behind;
use lazuli_shardmap::manager::NewShard;
use lazuli_store::{Error, KeyRange, Result, Store};
use lazuli_store_embedded::EmbeddedStore;

use crate::figures::Put;
use crate::store::load::Load;

/// Items that are handed to the store at once.
const FILL_BYTES: usize = 16 * 1024 * 1024;
/// The first version of every item.
const VERSION: Lsn = Lsn(1);

pub(super) struct World {
    pub(super) engine: Arc<Engine>,
    pub(super) container: Container,
    stores: Vec<Arc<EmbeddedStore>>,
    load: Load,
    _behind: Behind,
    /// How many items there are.
    items: std::sync::atomic::AtomicU64,
}

impl World {
    /// The partition is on the first shard.
    pub(super) async fn open(folder: &Path, shards: usize, shares_tables: bool) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(|error| Error::internal("folder", error))?;
        // As the server has them.
        let settings = lazuli_store_embedded::Settings { shares_tables, ..Default::default() };
        let catalog = Arc::new(EmbeddedStore::open(folder.join("catalog"), &settings)?);
        // As the server has it.
        let behind = Behind::start().map_err(|error| Error::internal("no-threads", error))?;
        let engine = Engine::on(behind.env(), Settings::default(), catalog).await?;
        let mut stores = Vec::new();
        for number in 1..=shards {
            let name = format!("shard-{number}");
            let new = NewShard {
                name: name.clone(),
                location: name.clone(),
                region: String::new(),
                labels: Default::default(),
            };
            let store = Arc::new(EmbeddedStore::open(folder.join(&name), &settings)?);
            engine.add_shard(&new, store.clone()).await?;
            stores.push(store);
        }
        let new = NewContainer {
            name: "items".into(),
            kind: MapKind::Range,
            key: KeySchema::one(KeyType::Int64),
            schema: "bench/1".into(),
            placement: vec![],
            policies: Policies::default(),
            cuts: Cuts::At(vec![]),
            shards: vec![engine.shards().all()[0].id],
        };
        let container = engine.manager().create_container(&new).await?;
        let load = Load::new(1);
        Ok(Self { engine, container, stores, load, _behind: behind, items: Default::default() })
    }

    pub(super) fn route(&self, number: u64) -> Result<Bytes> {
        let part = KeyPart::Int64(number as i64);
        self.container.kind.route(&self.container.key, &[part])
    }

    /// One shardlet for each item, in the order of their numbers.
    fn key(&self, number: u64) -> Result<ItemKey> {
        Ok(ItemKey::new(self.container.id, Space::ITEMS, &self.route(number)?, b"row"))
    }

    pub(super) async fn partitions(&self) -> Result<Vec<Partition>> {
        let catalog = self.engine.manager().catalog();
        let found = catalog.partitions_in(self.container.id, &KeyRange::all(), 1_000).await?;
        Ok(found.into_iter().map(|entry| entry.partition).collect())
    }

    async fn store(&self) -> Result<Arc<EmbeddedStore>> {
        let shard = self.partitions().await?[0].shard;
        let all = self.engine.shards().all();
        let at = all.iter().position(|live| live.id == shard);
        Ok(self.stores[at.expect("the partition is on one of them")].clone())
    }

    /// Fills the partition with so many bytes of entities, past the engine, and lets it count them.
    pub(super) async fn fill(&self, bytes: u64) -> Result<()> {
        let load = self.load.clone();
        let mut left = bytes;
        let items = self.fill_with(|number| {
            let payload = (left > 0).then(|| load.value(number));
            left = left.saturating_sub(payload.as_ref().map_or(0, |it| it.len() as u64));
            payload
        });
        self.items.store(items.await?, std::sync::atomic::Ordering::Relaxed);
        let partition = self.partitions().await?[0].clone();
        self.engine.partition_stats(partition.id, partition.shard).await.map(|_| ())
    }

    /// Fills the partition with the payloads of numbers from 0 on, up to the first one that has none. Returns how many.
    pub(super) async fn fill_with(
        &self,
        mut payload: impl FnMut(u64) -> Option<Bytes>,
    ) -> Result<u64> {
        let store = self.store().await?;
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let mut number = 0;
        while let Some(payload) = payload(number) {
            let item = Item { version: VERSION, expires_ms: None, written_ms: None, payload };
            let row = (self.key(number)?.bytes().clone(), item.encode());
            bytes += row.0.len() + row.1.len();
            batch.push(row);
            if bytes >= FILL_BYTES {
                store.ingest(vec![], std::mem::take(&mut batch)).await?;
                bytes = 0;
            }
            number += 1;
        }
        store.ingest(vec![], batch).await?;
        Ok(number)
    }

    /// Replaces one of the items by another of about the same size.
    pub(super) async fn write(&self, at: u64) -> Result<()> {
        let items = self.items.load(std::sync::atomic::Ordering::Relaxed);
        let key = self.key(lazuli_env::mix(at) % items)?;
        let put = Put(key.clone(), self.load.value(at));
        self.engine.write(self.container.id, key.route(), put).await
    }

    /// Begins to move the partition to the next shard, which has never had anything of it.
    pub(super) async fn begin_move(&self, options: MoveOptions) -> Result<Move> {
        let partition = self.partitions().await?[0].clone();
        let all = self.engine.shards().all();
        let at = all.iter().position(|live| live.id == partition.shard);
        let next = at.and_then(|at| all.get(at + 1)).expect("there are shards for every move");
        self.engine.move_partition(partition.id, next.id, options).await
    }
}
