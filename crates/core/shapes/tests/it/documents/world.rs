//! Documents on stores in memory, with a clock that only tests turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lazuli_engine::{Component, Engine, MoveOptions, Settings, ShardId};
use lazuli_env::{BoxFuture, Clock, Env};
use lazuli_shapes::document::{
    Body, Collection, Document, Documents, Etag, IndexingPolicy, KeyKind, NewCollection,
    NewDefinition, Operation, Outcome, PartitionKey, Path, ResourceKind,
};
use lazuli_shardmap::manager::NewShard;
use lazuli_store::mem::MemStore;
use lazuli_store::{KeyRange, Result};
use lazuli_value::{Object, Value};

pub(crate) const ACCOUNT: &str = "account";

/// Stands still unless it is turned.
pub(crate) struct HandClock {
    now_ms: AtomicU64,
    real: Arc<dyn Clock>,
}

impl Clock for HandClock {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    fn uptime(&self) -> Duration {
        Duration::from_millis(self.now_ms())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.real.sleep(duration)
    }
}

pub(crate) struct World {
    pub(crate) clock: Arc<HandClock>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) shards: Vec<ShardId>,
    pub(crate) documents: Documents,
}

impl World {
    pub(crate) async fn new(shards: usize) -> Self {
        let real = lazuli_env::real::env();
        let now_ms = AtomicU64::new(1_800_000_000_000);
        let clock = Arc::new(HandClock { now_ms, real: real.clock.clone() });
        let env = Env::new(clock.clone(), real.random.clone(), real.spawn.clone());
        let catalog = Arc::new(MemStore::new());
        let settings =
            Settings { deriving: lazuli_shapes::document::deriving(), ..Settings::default() };
        let engine = Engine::on(env, settings, catalog).await.unwrap();
        let mut ids = Vec::new();
        for number in 0..shards {
            let name = format!("shard-{number}");
            let new = NewShard {
                location: name.clone(),
                name,
                region: "here".into(),
                labels: Default::default(),
            };
            let store = Arc::new(MemStore::new());
            ids.push(engine.add_shard(&new, store).await.unwrap().id);
        }
        let documents = Documents::new(engine.clone());
        let body = Value::Object(Object::new());
        let kind = ResourceKind::Database;
        documents.create_resource(ACCOUNT, kind, None, Some("db"), body).await.unwrap();
        Self { clock, engine, shards: ids, documents }
    }

    /// A container `c` by the key `/pk`.
    pub(crate) async fn collection(&self, ranges: u16) -> Collection {
        self.collection_with("c", ranges, |_| ()).await
    }

    pub(crate) async fn collection_with(
        &self,
        id: &str,
        ranges: u16,
        change: impl FnOnce(&mut NewDefinition),
    ) -> Collection {
        let mut definition = NewDefinition {
            key_paths: vec![Path::parse("/pk").unwrap()],
            key_kind: KeyKind::V2,
            indexing: IndexingPolicy::default(),
            unique_keys: Vec::new(),
            ttl_s: None,
            versions_kept_s: 0,
        };
        change(&mut definition);
        let body = Value::Object(Object::new());
        let new = NewCollection { definition, ranges, throughput: None, body };
        let kind = ResourceKind::Database;
        let database = self.documents.resource(ACCOUNT, kind, None, "db").await.unwrap();
        let made = self.documents.create_collection(ACCOUNT, &database.rid, id, new).await;
        made.unwrap().1
    }

    /// Moves every range to another shard.
    pub(crate) async fn move_all(&self, collection: &Collection) {
        let catalog = self.engine.manager().catalog();
        let (id, all) = (collection.container().id, KeyRange::all());
        for entry in catalog.partitions_in(id, &all, 1_000).await.unwrap() {
            let partition = entry.partition;
            let others = self.shards.iter().filter(|shard| **shard != partition.shard);
            let target = *others.min().unwrap();
            let options = MoveOptions::default();
            self.engine.move_partition(partition.id, target, options).await.unwrap();
            while !self.engine.manager().catalog().moves().await.unwrap().is_empty() {
                self.engine.run_moves().await.unwrap();
            }
        }
    }

    /// Every shard is in order, and indexes are what their items say.
    pub(crate) async fn check(&self) {
        self.engine.delete_garbage().await.unwrap();
        for shard in &self.shards {
            let live = self.engine.shards().get(*shard).unwrap();
            let report = live.check(self.engine.manager().catalog()).await.unwrap();
            assert_eq!(report.findings, []);
        }
    }

    pub(crate) fn pass(&self, millis: u64) {
        self.clock.now_ms.fetch_add(millis, Ordering::Relaxed);
    }

    pub(crate) async fn create(&self, collection: &Collection, json: &str) -> Result<Outcome> {
        let (key, body) = parsed(collection, json);
        self.documents.run_one(collection, &key, Operation::create(body)).await
    }

    pub(crate) async fn upsert(&self, collection: &Collection, json: &str) -> Outcome {
        let (key, body) = parsed(collection, json);
        self.documents.run_one(collection, &key, Operation::upsert(body)).await.unwrap()
    }

    pub(crate) async fn read(&self, c: &Collection, pk: &str, id: &str) -> Result<Document> {
        let read = self.documents.read(c, &key(pk), id, Etag::Any).await?;
        Ok(read.document.unwrap())
    }
}

fn parsed(collection: &Collection, json: &str) -> (PartitionKey, Body) {
    let body = Body::from_json(json.as_bytes()).unwrap();
    let paths = &collection.definition().key_paths;
    (PartitionKey::of(paths, body.view().into()).unwrap(), body)
}

pub(crate) fn key(text: &str) -> PartitionKey {
    PartitionKey(vec![Component::Text(text.into())])
}
