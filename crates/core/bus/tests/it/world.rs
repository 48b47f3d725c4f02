//! A bus on stores in memory, with a clock that only tests turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lazuli_bus_shape::filter::Value;
use lazuli_bus_shape::{
    Address, Bus, BusSettings, Delivery, Description, Endpoint, EntityKind, NewMessage, Outcome,
    ReadMessage, ReceiveMode, SessionLock, Settlement, SystemProperty,
};
use lazuli_engine::{Direction, Engine, KeyRange, PageLimit, Result, Settings, Space};
use lazuli_env::{BoxFuture, Clock, Env};
use lazuli_shardmap::manager::NewShard;
use lazuli_store::Store;
use lazuli_store::mem::MemStore;

pub(crate) const NS: &str = "ns";
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

/// Bodies of tests: `Label|name=value,name=value|text`, where only the last part must be there.
pub(crate) struct Plain;

impl ReadMessage for Plain {
    fn system(&self, body: &[u8], property: SystemProperty) -> Option<String> {
        let text = String::from_utf8_lossy(body).into_owned();
        let parts: Vec<&str> = text.split('|').collect();
        let is_label = property == SystemProperty::Label && parts.len() == 3;
        is_label.then(|| parts[0].to_owned())
    }

    fn user(&self, body: &[u8]) -> Result<Vec<(String, Value)>> {
        let text = String::from_utf8_lossy(body).into_owned();
        let parts: Vec<&str> = text.split('|').collect();
        let Some(pairs) = parts.get(1).filter(|_| parts.len() == 3) else { return Ok(Vec::new()) };
        let pairs = pairs.split(',').filter_map(|pair| pair.split_once('='));
        Ok(pairs
            .map(|(name, value)| {
                let number = value.parse().map(Value::Integer);
                (name.to_owned(), number.unwrap_or_else(|_| Value::text(value)))
            })
            .collect())
    }
}

pub(crate) struct World {
    pub(crate) clock: Arc<HandClock>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) stores: Vec<MemStore>,
    pub(crate) bus: Bus,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::on(1).await
    }

    pub(crate) async fn on(shards: usize) -> Self {
        let real = lazuli_env::real::env();
        let now_ms = AtomicU64::new(1_800_000_000_000);
        let clock = Arc::new(HandClock { now_ms, real: real.clock.clone() });
        let env = Env::new(clock.clone(), real.random.clone(), real.spawn.clone());
        let catalog = Arc::new(MemStore::new());
        let engine = Engine::on(env, Settings::default(), catalog).await.unwrap();
        let mut stores = Vec::new();
        for number in 0..shards {
            let name = format!("shard-{number}");
            let new = NewShard {
                name: name.clone(),
                location: name,
                region: "here".into(),
                labels: Default::default(),
            };
            let store = MemStore::new();
            engine.add_shard(&new, Arc::new(store.clone())).await.unwrap();
            stores.push(store);
        }
        let bus = Bus::new(engine.clone(), Arc::new(Plain), BusSettings::default());
        Self { clock, engine, stores, bus }
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.now_ms()
    }

    pub(crate) fn pass(&self, millis: u64) {
        self.clock.now_ms.fetch_add(millis, Ordering::Relaxed);
    }

    /// A queue with some properties changed.
    pub(crate) async fn queue(
        &self,
        name: &str,
        change: impl FnOnce(&mut Description),
    ) -> Endpoint {
        let mut description = Description::queue();
        change(&mut description);
        self.bus.create_entity(NS, EntityKind::Queue, name, description).await.unwrap();
        self.open(name).await
    }

    pub(crate) async fn topic(&self, name: &str) -> Endpoint {
        let description = Description::topic();
        self.bus.create_entity(NS, EntityKind::Topic, name, description).await.unwrap();
        self.open(name).await
    }

    pub(crate) async fn open(&self, address: &str) -> Endpoint {
        self.bus.open(NS, &Address::parse(address).unwrap()).await.unwrap()
    }

    pub(crate) async fn send(&self, to: &Endpoint, body: &str) -> u64 {
        let new = NewMessage::new(body.to_owned());
        self.bus.send(to, vec![new]).await.unwrap().remove(0)
    }

    pub(crate) async fn receive(&self, from: &Endpoint, most: usize) -> Vec<Delivery> {
        self.receive_by(from, most, ReceiveMode::PeekLock, None).await
    }

    pub(crate) async fn receive_by(
        &self,
        from: &Endpoint,
        most: usize,
        mode: ReceiveMode,
        session: Option<&SessionLock>,
    ) -> Vec<Delivery> {
        self.bus.receiver(from, mode, session.cloned()).take(most).await.unwrap()
    }

    pub(crate) async fn settle(
        &self,
        from: &Endpoint,
        delivery: &Delivery,
        outcome: Outcome,
    ) -> Result<()> {
        let settlement = Settlement { token: delivery.lock.unwrap().token, outcome };
        self.bus.settle(from, None, vec![settlement]).await.unwrap().remove(0)
    }

    pub(crate) async fn complete(&self, from: &Endpoint, delivery: &Delivery) {
        self.settle(from, delivery, Outcome::Complete).await.unwrap();
    }

    pub(crate) async fn abandon(&self, from: &Endpoint, delivery: &Delivery) {
        let outcome = Outcome::Abandon { changes: Vec::new() };
        self.settle(from, delivery, outcome).await.unwrap();
    }

    pub(crate) async fn sweep(&self) {
        while self.engine.sweep_all().await.unwrap() > 0 {}
    }

    /// All that waits, received and deleted.
    pub(crate) async fn drain(&self, from: &Endpoint) -> Vec<String> {
        let mut receiver = self.bus.receiver(from, ReceiveMode::ReceiveAndDelete, None);
        let mut all = Vec::new();
        loop {
            let got = receiver.take(100).await.unwrap();
            if got.is_empty() {
                return all;
            }
            all.extend(texts(&got));
        }
    }

    /// The rows of messages in the stores, and those that are to expire.
    pub(crate) async fn rows(&self) -> usize {
        let spaces = [
            Space::BUS_MESSAGES,
            Space::BUS_DELIVERIES,
            Space::BUS_BODIES,
            Space::BUS_ORDER,
            Space::BUS_SESSIONS,
            Space::BUS_SEEN,
            Space::BUS_TIMERS,
            Space::EXPIRY,
        ];
        let mut rows = 0;
        for store in &self.stores {
            let all = KeyRange::all();
            let page = store.scan(&all, Direction::Forward, PageLimit::MAX).await.unwrap();
            assert!(!page.more);
            let is_one = |key: &[u8]| key[..4] != [0; 4] && spaces.contains(&Space(key[4]));
            rows += page.items.iter().filter(|(key, _)| is_one(key)).count();
        }
        rows
    }
}

pub(crate) fn texts(deliveries: &[Delivery]) -> Vec<String> {
    let text = |it: &Delivery| String::from_utf8(it.message.body.to_vec()).unwrap();
    deliveries.iter().map(text).collect()
}
