//! Logs on an engine whose stores are in memory, with a clock that only tests turn.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]
#![allow(clippy::disallowed_methods, reason = "these tests run on the real runtime")]

mod compaction;
mod growth;
mod logs;
mod offsets;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{Engine, Settings};
use lazuli_env::{BoxFuture, Clock, Env};
use lazuli_log::{Appended, Hub, HubSettings, Logs, NewBatch, Page, ReadLimit};
use lazuli_shardmap::manager::NewShard;
use lazuli_store::mem::MemStore;

pub(crate) const SPACE: &str = "namespace";

/// Stands still unless it is turned.
pub(crate) struct HandClock {
    pub(crate) now_ms: AtomicU64,
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
    pub(crate) logs: Logs,
}

impl World {
    pub(crate) async fn new() -> Self {
        let real = lazuli_env::real::env();
        let now_ms = AtomicU64::new(1_800_000_000_000);
        let clock = Arc::new(HandClock { now_ms, real: real.clock.clone() });
        let env = Env::new(clock.clone(), real.random.clone(), real.spawn.clone());
        let catalog = Arc::new(MemStore::new());
        let engine = Engine::on(env, Settings::default(), catalog).await.unwrap();
        for name in ["one", "two"] {
            let new = NewShard {
                name: name.into(),
                location: name.into(),
                region: "here".into(),
                labels: Default::default(),
            };
            engine.add_shard(&new, Arc::new(MemStore::new())).await.unwrap();
        }
        Self { clock, logs: Logs::new(engine, false) }
    }

    pub(crate) fn pass(&self, millis: u64) {
        self.clock.now_ms.fetch_add(millis, Ordering::Relaxed);
    }

    pub(crate) async fn hub(&self, partitions: u32) -> Arc<Hub> {
        self.logs.create_hub(SPACE, "Hub", &HubSettings::new(partitions)).await.unwrap()
    }

    pub(crate) async fn append(&self, hub: &Hub, texts: &[&str]) -> Appended {
        self.logs.append(hub, 0, batch(texts)).await.unwrap()
    }

    pub(crate) async fn read(&self, hub: &Hub, partition: u32, offset: u64) -> Page {
        let limit = ReadLimit { bytes: 1 << 20, batches: 1_000 };
        self.logs.read(hub, partition, offset, limit).await.unwrap()
    }

    /// All records of a partition that are still there, checked to be without gap, repeat or reorder.
    pub(crate) async fn texts(&self, hub: &Hub, partition: u32) -> Vec<String> {
        let (mut texts, mut next) = (Vec::new(), None);
        loop {
            let page = self.read(hub, partition, next.unwrap_or(0)).await;
            for (offset, message) in page.batches.iter().flat_map(|batch| batch.messages()) {
                assert_eq!(offset, next.unwrap_or(page.state.first));
                next = Some(offset + 1);
                texts.push(String::from_utf8(message.to_vec()).unwrap());
            }
            if page.batches.is_empty() {
                assert_eq!(next.unwrap_or(page.state.next), page.state.next);
                return texts;
            }
        }
    }
}

pub(crate) fn batch(texts: &[&str]) -> NewBatch {
    NewBatch::amqp(texts.iter().map(|text| Bytes::from(text.as_bytes().to_vec())).collect(), None)
}
