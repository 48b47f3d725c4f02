//! Takes samples from an engine and keeps them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lazuli_engine::{Engine, Held, HotEnd, HotKey, Partition, PartitionId, Size, TOLD_ROWS_MAX};
use lazuli_store::Result;

use crate::exchange::{Inbox, Outbox};
use crate::heat::{self, Heat};
use crate::history::History;
use crate::step::Step;

/// How many partitions of unknown size are counted between two samples.
const COUNTED_MAX: usize = 64;

pub struct Recorder {
    engine: Arc<Engine>,
    history: Mutex<History>,
    /// Held while a sample is taken; with it, the time at which all sizes were last read.
    turn: tokio::sync::Mutex<Option<u64>>,
    /// The wall-clock time at zero of the engine's clock. It is read once, so that time never goes back.
    zero_ms: u64,
    /// What other nodes are told and tell; none if there are no others.
    exchange: Option<Exchange>,
}

struct Exchange {
    outbox: Mutex<Outbox>,
    inbox: tokio::sync::Mutex<Inbox>,
    /// What each other node knows of hot keys.
    heat: Mutex<Vec<Heat>>,
}

impl Exchange {
    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        // What this lock guards is whole after every statement.
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn heat(&self) -> MutexGuard<'_, Vec<Heat>> {
        self.heat.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder {
    /// A recorder for at most this many partitions of an engine.
    pub fn new(engine: Arc<Engine>, partitions_max: usize) -> Self {
        let clock = engine.env().clock.clone();
        let uptime_ms = clock.uptime().as_millis() as u64;
        let zero_ms = clock.now_ms().saturating_sub(uptime_ms);
        let history = Mutex::new(History::new(partitions_max, zero_ms + uptime_ms));
        Self { engine, history, turn: tokio::sync::Mutex::default(), zero_ms, exchange: None }
    }

    /// One of several, which tell each other what they sample through the catalog of the engine.
    pub fn of_fleet(engine: Arc<Engine>, partitions_max: usize) -> Self {
        let outbox = Mutex::new(Outbox::new(TOLD_ROWS_MAX));
        let (inbox, heat) = (tokio::sync::Mutex::default(), Mutex::default());
        let exchange = Some(Exchange { outbox, inbox, heat });
        Self { exchange, ..Self::new(engine, partitions_max) }
    }

    /// The hottest keys of a partition, on all nodes as far as they have told: what each is sure of is added up.
    pub fn hot_keys(&self, partition: &Partition) -> Result<Vec<HotKey>> {
        let own = self.engine.hot_keys(partition)?;
        Ok(match &self.exchange {
            Some(exchange) => heat::hottest(own, partition.id, &exchange.heat()),
            None => own,
        })
    }

    /// The containers whose inserts all land at one end of their keys, on any node as far as they have told.
    pub fn hot_ends(&self) -> Vec<HotEnd> {
        let (own, now) = (self.engine.hot_ends(), self.engine.env().clock.uptime());
        match &self.exchange {
            Some(exchange) => heat::all_ends(own, &exchange.heat(), now),
            None => own,
        }
    }

    pub fn is_of_fleet(&self) -> bool {
        self.exchange.is_some()
    }

    /// The history, locked for reading.
    pub fn history(&self) -> MutexGuard<'_, History> {
        // A panic elsewhere may have left a sample incomplete, but never an unreadable series.
        self.history.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes one sample. Call it every ten seconds.
    pub async fn record(&self) -> Result<()> {
        let mut sized_ms = self.turn.lock().await;
        let now_ms = self.now_ms();
        let samples = self.engine.sample();
        if let Some(exchange) = &self.exchange {
            let heat = Heat::of(&self.engine, &samples);
            exchange.outbox().add(&samples, &heat);
        }
        let is_changed = {
            let mut history = self.history();
            history.take(now_ms, &samples);
            history.find(|id, held| self.place(id, held))
        };
        let is_due = sized_ms.is_none_or(|last| now_ms - last >= Step::TenMinutes.ms());
        if is_due || is_changed {
            self.read_sizes().await?;
            *sized_ms = Some(now_ms);
        }
        for (id, held) in self.history().unsized_partitions(COUNTED_MAX) {
            self.engine.count_soon(id, held.shard);
        }
        Ok(())
    }

    /// Tells other nodes what was sampled since the last call. What could not be told is told with the next call.
    pub async fn tell(&self) -> Result<()> {
        let Some(exchange) = &self.exchange else { return Ok(()) };
        let rows = exchange.outbox().rows();
        let Some((newest, _)) = rows.last() else { return Ok(()) };
        self.engine.manager().catalog().tell_figures(self.engine.node(), &rows).await?;
        exchange.outbox().done(*newest);
        Ok(())
    }

    /// Adds what other nodes have told since the last call.
    pub async fn hear(&self) -> Result<()> {
        let Some(exchange) = &self.exchange else { return Ok(()) };
        let mut inbox = exchange.inbox.lock().await;
        let catalog = self.engine.manager().catalog();
        let told = catalog.told_since(self.engine.node(), inbox.seen()).await?;
        let mut samples = inbox.take(told);
        *exchange.heat() = inbox.heat();
        for sample in &mut samples {
            // It may have been moved or split since. Where it is now is known here as well as there.
            sample.held = sample.held.filter(|held| self.is_on(sample.partition, *held));
            sample.size = sample.size.filter(|_| sample.held.is_some());
        }
        if !samples.is_empty() {
            self.history().hear(self.now_ms(), &samples);
        }
        Ok(())
    }

    fn is_on(&self, id: PartitionId, held: Held) -> bool {
        let Ok(shard) = self.engine.shards().get(held.shard) else { return false };
        let row = shard.local().get(id);
        row.is_ok_and(|row| row.is_some_and(|row| row.container == held.container))
    }

    /// Time until the next step of ten seconds begins.
    pub fn until_next(&self) -> std::time::Duration {
        let step = Step::TenSeconds.ms();
        std::time::Duration::from_millis(step - self.now_ms() % step)
    }

    fn now_ms(&self) -> u64 {
        self.zero_ms + self.engine.env().clock.uptime().as_millis() as u64
    }

    /// The shard of a partition; its last known shard, if the local map is being reloaded.
    fn place(&self, id: PartitionId, last: Held) -> Option<Held> {
        let Ok(shard) = self.engine.shards().get(last.shard) else { return Some(last) };
        match shard.local().get(id) {
            Ok(None) => {}
            Ok(Some(_)) | Err(_) => return Some(last),
        }
        self.engine.shards().all().into_iter().find_map(|shard| {
            let row = shard.local().get(id).ok()??;
            Some(Held { shard: shard.id, container: row.container })
        })
    }

    async fn read_sizes(&self) -> Result<()> {
        for shard in self.engine.shards().all() {
            let sizes = shard.sizes().await?.into_iter();
            let sizes = sizes.map(|(id, (row, size))| -> (PartitionId, Held, Option<Size>) {
                (id, Held { shard: shard.id, container: row.container }, size)
            });
            self.history().resize(sizes);
        }
        Ok(())
    }
}
