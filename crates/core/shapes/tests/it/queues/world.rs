//! Queues on stores in memory, with a clock that only tests turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{Engine, Settings};
use lazuli_env::{BoxFuture, Clock, Env};
use lazuli_shapes::queue::{Delivery, NewMessage, Queues};
use lazuli_shardmap::manager::NewShard;
use lazuli_store::mem::MemStore;

pub(crate) const ACCOUNT: &str = "account";
pub(crate) const SECOND: u64 = 1_000;

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
    pub(crate) store: MemStore,
    pub(crate) queues: Queues,
}

impl World {
    /// With a queue `q`.
    pub(crate) async fn new() -> Self {
        let real = lazuli_env::real::env();
        let now_ms = AtomicU64::new(1_800_000_000_000);
        let clock = Arc::new(HandClock { now_ms, real: real.clock.clone() });
        let env = Env::new(clock.clone(), real.random.clone(), real.spawn.clone());
        let catalog = Arc::new(MemStore::new());
        let engine = Engine::on(env, Settings::default(), catalog).await.unwrap();
        let new = NewShard {
            name: "one".into(),
            location: "one".into(),
            region: "here".into(),
            labels: Default::default(),
        };
        let store = MemStore::new();
        engine.add_shard(&new, Arc::new(store.clone())).await.unwrap();
        let queues = Queues::new(engine.clone());
        queues.create(ACCOUNT, "q", Vec::new()).await.unwrap();
        Self { clock, engine, store, queues }
    }

    pub(crate) fn pass(&self, millis: u64) {
        self.clock.now_ms.fetch_add(millis, Ordering::Relaxed);
    }

    pub(crate) async fn put(&self, content: &str) -> Delivery {
        self.put_for(content, 0, None).await
    }

    pub(crate) async fn put_for(
        &self,
        content: &str,
        hidden_ms: u64,
        lives_ms: Option<u64>,
    ) -> Delivery {
        let content = Bytes::copy_from_slice(content.as_bytes());
        let new = NewMessage { content, hidden_ms, lives_ms };
        self.queues.put(ACCOUNT, "q", new).await.unwrap()
    }

    pub(crate) async fn receive(&self, most: usize, hidden_ms: u64) -> Vec<Delivery> {
        self.queues.receive(ACCOUNT, "q", most, hidden_ms).await.unwrap()
    }

    pub(crate) async fn peek(&self, most: usize) -> Vec<String> {
        let seen = self.queues.peek(ACCOUNT, "q", most).await.unwrap();
        seen.iter().map(|message| text(&message.content)).collect()
    }

    pub(crate) async fn count(&self) -> u64 {
        self.queues.properties(ACCOUNT, "q").await.unwrap().count
    }

    pub(crate) async fn sweep(&self) {
        while self.engine.sweep_all().await.unwrap() > 0 {}
    }
}

pub(crate) fn text(content: &Bytes) -> String {
    String::from_utf8(content.to_vec()).unwrap()
}

pub(crate) fn texts(deliveries: &[Delivery]) -> Vec<String> {
    deliveries.iter().map(|delivery| text(&delivery.message.content)).collect()
}
