//! Retention: old batches are deleted in the background, whole ones only, from the beginning of the log on. People may also
//! say where a log is to begin.
//!
//! The state of a log says when its first batch came and how much it holds. So a log that has nothing to delete costs one
//! look at one row, and one that has costs as much as it deletes, whatever was deleted before.

use std::sync::{Arc, Weak};
use std::time::Duration;

use lazuli_engine::{
    BoxFuture, Direction, Engine, Error, ItemKey, KeyRange, PREFIX_BYTES, PageLimit, Result, Space,
    Transaction, Tx, Work,
};

use crate::directory::{CONTAINERS, SCHEMA};
use crate::hub::{Hub, HubSettings, LogPlace};
use crate::limits::{COMPACTION_INTERVAL, RETENTION_INTERVAL, TRIM_BATCHES};
use crate::rows::{Batch, LogState, damaged};
use crate::{LogReason, Logs};

/// Hubs that one look at the catalog answers.
const HUBS_AT_ONCE: usize = 100;

/// What a log may keep.
#[derive(Clone, Copy, Debug)]
struct Keep {
    time_ms: Option<u64>,
    bytes: Option<u64>,
    /// Nothing in front of this offset.
    from: u64,
}

impl Keep {
    fn of(settings: &HubSettings) -> Self {
        let time_ms = settings.retention.map(|time| time.as_millis() as u64);
        // With compaction alone the last record of a key stays, however old it is.
        let deletes = settings.cleanup.deletes();
        let bytes = settings.retention_bytes.filter(|_| deletes);
        Self { time_ms: time_ms.filter(|_| deletes), bytes, from: 0 }
    }

    fn from(offset: u64) -> Self {
        Self { time_ms: None, bytes: None, from: offset }
    }

    /// Whether the first batch of a log has to go.
    fn is_over(&self, state: &LogState, now_ms: u64) -> bool {
        self.is_over_now(state, now_ms) || (!state.is_empty() && state.first < self.from)
    }

    /// Whether it is too old or too much.
    fn is_over_now(&self, state: &LogState, now_ms: u64) -> bool {
        let is_old = |keep: u64| state.first_ms.saturating_add(keep) < now_ms;
        let is_full = |keep: u64| state.bytes > keep && state.batches > 1;
        !state.is_empty() && (self.time_ms.is_some_and(is_old) || self.bytes.is_some_and(is_full))
    }
}

/// The offset that the key of a batch has.
fn first_of(key: &[u8], place: &LogPlace) -> Result<u64> {
    let row = key.get(PREFIX_BYTES + place.route.len()..);
    let first = row.and_then(|row| row.try_into().ok()).map(u64::from_be_bytes);
    first.ok_or_else(|| damaged("the key of a batch"))
}

impl LogPlace {
    /// Where the batch begins that holds the first offset of the log: a log may begin in the middle of it.
    async fn start_of(&self, tx: &Tx<'_>, first: u64) -> Result<u64> {
        let range = KeyRange::new(self.bound(0), Some(self.bound(first.saturating_add(1))));
        let (space, one) = (Space::LOG_BATCHES, PageLimit::items(1));
        let page = tx.scan(self.container, space, &range, Direction::Backward, one).await?;
        let Some((key, item)) = page.items.into_iter().next() else { return Ok(first) };
        let batch = Batch::decode(first_of(&key, self)?, item.payload)?;
        Ok(if batch.end() > first { batch.first } else { first })
    }
}

/// Deletes a bounded number of batches, and says whether there may be more to delete.
struct Trim {
    place: LogPlace,
    keep: Keep,
}

impl Transaction for Trim {
    type Output = bool;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<bool> {
        let Self { place, keep } = self;
        let Some(old) = tx.get(&place.state()).await? else { return Ok(false) };
        let mut state = LogState::decode(old.payload.clone())?;
        let now = tx.now_ms();
        if !keep.is_over(&state, now) {
            return Ok(false);
        }
        let start = place.start_of(tx, state.first).await?;
        let range = KeyRange::new(place.bound(start), Some(place.bound(state.next)));
        let limit = PageLimit::items(TRIM_BATCHES + 1);
        let space = Space::LOG_BATCHES;
        let page = tx.scan(place.container, space, &range, Direction::Forward, limit).await?;
        let more = page.next.is_some();
        let count = page.items.len();
        for (at, (key, item)) in page.items.into_iter().enumerate() {
            let batch = Batch::decode(first_of(&key, place)?, item.payload.clone())?;
            state.first_ms = batch.enqueued_ms;
            // The last batch of the page stays until the next one, which sees what follows it.
            let is_last = more && at + 1 == count;
            let is_needed = batch.end() > keep.from && !keep.is_over_now(&state, now);
            if is_last || is_needed {
                break;
            }
            state.bytes = state.bytes.saturating_sub(item.payload.len() as u64);
            state.batches = state.batches.saturating_sub(1);
            state.first = batch.end();
            tx.remove(&ItemKey::from_bytes(key, place.route.len())?, &item)?;
        }
        if !more {
            // In the middle of a batch, or where there was one before compaction.
            state.first = state.first.max(keep.from).min(state.next);
        }
        tx.replace(&place.state(), Some(&old), state.encode(), None)?;
        Ok(more)
    }

    fn cost(&self) -> u32 {
        0
    }
}

impl Logs {
    /// Starts retention and compaction. They end by themselves when the engine is dropped.
    pub fn start(&self) {
        // What fails is tried again with the next round.
        self.repeat("log-retention", RETENTION_INTERVAL, |logs| {
            Box::pin(async move { drop(logs.retain_all().await) })
        });
        if self.records.is_some() {
            self.repeat("log-compaction", COMPACTION_INTERVAL, |logs| {
                Box::pin(async move { drop(logs.compact_all().await) })
            });
        }
    }

    fn repeat(
        &self,
        name: &'static str,
        interval: Duration,
        work: fn(Self) -> BoxFuture<'static, ()>,
    ) {
        let engine: Weak<Engine> = Arc::downgrade(&self.engine);
        let (wakes, known) = (self.wakes.clone(), self.known.clone());
        let (growing, records, poll) = (self.growing.clone(), self.records.clone(), self.poll);
        let clock = self.engine.env().clock.clone();
        let task = async move {
            loop {
                clock.sleep(interval).await;
                let Some(engine) = engine.upgrade() else { return };
                let (wakes, known) = (wakes.clone(), known.clone());
                let (growing, records) = (growing.clone(), records.clone());
                let logs = Self { engine, wakes, known, growing, poll, records };
                if logs.engine.may(Work::Reconcile) {
                    work(logs).await;
                }
            }
        };
        self.engine.env().spawn.spawn(name, Box::pin(task));
    }

    /// Deletes what no hub has to keep any more, once. The first error is answered when all hubs were looked at.
    pub async fn retain_all(&self) -> Result<()> {
        self.each_hub(async |logs, hub| logs.retain(hub).await).await
    }

    pub(crate) async fn each_hub(
        &self,
        work: impl AsyncFn(&Self, &Hub) -> Result<()>,
    ) -> Result<()> {
        let mut outcome: Result<(), Error> = Ok(());
        let mut after: Option<String> = None;
        loop {
            let found = self.engine.containers(CONTAINERS, after.as_deref(), HUBS_AT_ONCE).await?;
            let Some(last) = found.last() else { return outcome };
            after = Some(last.name.clone());
            for container in found.into_iter().filter(|one| one.schema == SCHEMA) {
                let hub = Hub::of(Arc::new(container))?;
                outcome = outcome.and(work(self, &hub).await);
            }
        }
    }

    /// Deletes all records in front of an offset, or all there are, and says where the log begins then. Fails with
    /// `OffsetOutOfRange` for an offset behind the end.
    pub async fn delete_records(
        &self,
        hub: &Hub,
        partition: u32,
        before: Option<u64>,
    ) -> Result<u64> {
        let state = self.state(hub, partition).await?;
        let before = before.unwrap_or(state.next);
        if before > state.next {
            let message = format!("the log ends at {}, in front of {before}", state.next);
            return Err(Error::invalid(LogReason::OffsetOutOfRange, message));
        }
        self.trim(hub, partition, Keep::from(before)).await?;
        Ok(self.state(hub, partition).await?.first)
    }

    /// The same for one hub.
    pub async fn retain(&self, hub: &Hub) -> Result<()> {
        let keep = Keep::of(&hub.settings);
        let mut outcome = Ok(());
        for partition in 0..hub.settings.partitions {
            outcome = outcome.and(self.trim(hub, partition, keep).await);
        }
        outcome
    }

    async fn trim(&self, hub: &Hub, partition: u32, keep: Keep) -> Result<()> {
        let place = hub.log(partition)?;
        let now_ms = self.engine.env().clock.now_ms();
        while keep.is_over(&self.state(hub, partition).await?, now_ms) {
            let trim = Trim { place: place.clone(), keep };
            if !self.engine.write(place.container, &place.route, trim).await? {
                break;
            }
            self.engine.env().clock.sleep(Duration::ZERO).await;
        }
        Ok(())
    }
}
