//! A recorder on a real engine in memory: the history shows the clients' requests, also when partitions are split,
//! merged and moved.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{
    Container, Cuts, Engine, ItemKey, KeySchema, KeyType, MapKind, MoveOptions, NewContainer,
    Partition, Policies, Settings, ShardId, Space, Transaction, Tx,
};
use lazuli_env::{BoxFuture, Clock, Env};
use lazuli_history::{PARTITIONS_MAX, Point, Recorder, Step};
use lazuli_shardmap::manager::{Known, NewShard};
use lazuli_store::mem::MemStore;
use lazuli_store::{KeyRange, Result};

/// The real clock, advanced by hand.
struct TurnedClock {
    real: Arc<dyn Clock>,
    ahead_ms: AtomicU64,
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

struct Put(ItemKey);

impl Transaction for Put {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        tx.put(&self.0, Bytes::from_static(b"0123456789")).await
    }
}

struct World {
    clock: Arc<TurnedClock>,
    engine: Arc<Engine>,
    recorder: Recorder,
    container: Container,
}

impl World {
    async fn new() -> Self {
        let real = lazuli_env::real::env();
        let clock = Arc::new(TurnedClock { real: real.clock, ahead_ms: AtomicU64::new(0) });
        let env = Env::new(clock.clone(), real.random, real.spawn);
        let catalog = Arc::new(MemStore::new());
        let engine = Engine::on(env, Settings::default(), catalog).await.unwrap();
        for name in ["one", "two"] {
            let new = NewShard { name: name.into(), location: name.into(), ..NewShard::default() };
            engine.add_shard(&new, Arc::new(MemStore::new())).await.unwrap();
        }
        let container = engine
            .create_container(&NewContainer {
                name: "c".into(),
                kind: MapKind::Range,
                key: KeySchema::one(KeyType::Text),
                schema: "test/1".into(),
                placement: vec![],
                policies: Policies::default(),
                cuts: Cuts::At(vec![]),
                shards: vec![],
            })
            .await
            .unwrap();
        let recorder = Recorder::new(engine.clone(), PARTITIONS_MAX);
        Self { clock, engine, recorder, container }
    }

    fn key(&self, key: &str) -> ItemKey {
        let parts = [key.into()];
        let route = self.container.kind.route(&self.container.key, &parts).unwrap();
        ItemKey::new(self.container.id, Space::ITEMS, &route, b"")
    }

    async fn put(&self, keys: std::ops::Range<u32>) {
        for n in keys {
            let key = self.key(&format!("k{n:04}"));
            self.engine.write(self.container.id, key.route(), Put(key.clone())).await.unwrap();
        }
    }

    async fn read(&self, times: u32) {
        let key = self.key("k0000");
        for _ in 0..times {
            let view = self.engine.read(self.container.id, key.route(), 1).await.unwrap();
            view.get(&key).await.unwrap();
        }
    }

    /// Lets a step pass and takes a sample.
    async fn step(&self) {
        let rest = self.recorder.until_next().as_millis() as u64;
        self.clock.ahead_ms.fetch_add(rest + 1, Ordering::Relaxed);
        self.recorder.record().await.unwrap();
        self.engine.recount_all().await.unwrap();
    }

    async fn partitions(&self) -> Vec<Partition> {
        let catalog = self.engine.manager().catalog();
        let all = KeyRange::new(Bytes::new(), None);
        let entries = catalog.partitions_in(self.container.id, &all, 100).await.unwrap();
        entries.into_iter().map(|entry| entry.partition).collect()
    }

    fn sums(&self) -> Vec<Point> {
        self.recorder.history().container(self.container.id, Step::TenSeconds)
    }

    async fn move_all(&self, to: ShardId) {
        for partition in self.partitions().await {
            let options = MoveOptions::default();
            self.engine.move_partition(partition.id, to, options).await.unwrap();
        }
        self.engine.run_moves().await.unwrap();
    }
}

fn totals(points: &[Point]) -> (u64, u64) {
    points.iter().fold((0, 0), |(reads, writes), one| (reads + one.reads, writes + one.writes))
}

#[tokio::test]
async fn what_clients_do_is_what_the_history_says() {
    let world = World::new().await;
    world.put(0..30).await;
    world.read(7).await;
    world.step().await;
    world.step().await;
    world.put(0..5).await;
    world.step().await;
    let id = world.partitions().await[0].id;
    let series = world.recorder.history().partition(id, Step::TenSeconds).unwrap();
    let seen: Vec<_> = series.iter().map(|p| (p.reads, p.writes, p.size.items)).collect();
    assert_eq!(seen, [(7, 30, 30), (0, 0, 30), (0, 5, 30)]);
    assert!(series[0].write.p99_us > 0 && series[0].read.p99_us > 0, "{series:?}");
    assert_eq!(series[1].write, lazuli_history::Latency::default());
    let stats = world.engine.partition_stats(id, world.partitions().await[0].shard).await.unwrap();
    assert_eq!(series[2].size.bytes, stats.counts.bytes);
}

#[tokio::test]
async fn splits_merges_and_moves_neither_lose_nor_double_anything() {
    let world = World::new().await;
    let shards: Vec<ShardId> = world.engine.shards().all().iter().map(|shard| shard.id).collect();
    world.put(0..40).await;
    world.step().await;
    let whole = world.partitions().await[0].clone();
    let at = world.key("k0020").route().to_vec();
    world.engine.split(Known::from(&whole), at.into()).await.unwrap();
    world.step().await;
    world.put(0..40).await;
    world.step().await;
    for to in [shards[1], shards[0], shards[1]] {
        world.move_all(to).await;
        world.put(0..40).await;
        world.step().await;
    }
    let halves = world.partitions().await;
    world.engine.merge(Known::from(&halves[0]), Known::from(&halves[1])).await.unwrap();
    world.step().await;
    world.put(0..40).await;
    world.step().await;
    world.step().await;
    let sums = world.sums();
    assert_eq!(totals(&sums).1, 6 * 40, "{sums:?}");
    let most = sums.iter().map(|point| point.writes).max();
    assert!(most <= Some(40), "no step has more than what was done in it: {sums:?}");
    for point in &sums {
        assert_eq!(point.size.items, 40, "{sums:?}");
    }
    let here = world.engine.shards().get(shards[1]).unwrap();
    assert!(here.stats().partitions_warm <= 2, "what is gone is let go");
}

#[tokio::test]
async fn partitions_that_nobody_uses_have_their_size_and_are_not_woken() {
    let world = World::new().await;
    world.put(0..10).await;
    let fresh = Recorder::new(world.engine.clone(), PARTITIONS_MAX);
    let world = World { recorder: fresh, ..world };
    world.engine.sample();
    let id = world.partitions().await[0].id;
    world.step().await;
    world.step().await;
    let series = world.recorder.history().partition(id, Step::TenSeconds).unwrap();
    assert_eq!((series[0].writes, series[0].size.items), (0, 10));
}
