//! Retention: old batches are deleted in the background, whole ones only, from the beginning of the log on.
//!
//! The state of a log says when its first batch came and how much it holds. So a log that has nothing to delete costs one
//! look at one row, and one that has costs as much as it deletes, whatever was deleted before.

use std::sync::{Arc, Weak};
use std::time::Duration;

use lazuli_engine::{
    Direction, Engine, Error, ItemKey, KeyRange, PREFIX_BYTES, PageLimit, Result, Space,
    Transaction, Tx, Work,
};

use crate::Logs;
use crate::directory::{CONTAINERS, SCHEMA};
use crate::hub::{Hub, HubSettings, LogPlace};
use crate::limits::{RETENTION_INTERVAL, TRIM_BATCHES};
use crate::rows::{Batch, LogState, damaged};

/// Hubs that one look at the catalog answers.
const HUBS_AT_ONCE: usize = 100;

/// What a log may keep.
#[derive(Clone, Copy, Debug)]
struct Keep {
    time_ms: Option<u64>,
    bytes: Option<u64>,
}

impl Keep {
    fn of(settings: &HubSettings) -> Self {
        let time_ms = settings.retention.map(|time| time.as_millis() as u64);
        // With compaction the last record of a key stays, however old it is.
        let time_ms = time_ms.filter(|_| !settings.compact);
        Self { time_ms, bytes: settings.retention_bytes.filter(|_| !settings.compact) }
    }

    /// Whether the first batch of a log has to go.
    fn is_over(&self, state: &LogState, now_ms: u64) -> bool {
        let is_old = |keep: u64| state.first_ms.saturating_add(keep) < now_ms;
        let is_full = |keep: u64| state.bytes > keep && state.batches > 1;
        !state.is_empty() && (self.time_ms.is_some_and(is_old) || self.bytes.is_some_and(is_full))
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
        let range = KeyRange::new(place.bound(state.first), Some(place.bound(state.next)));
        let limit = PageLimit::items(TRIM_BATCHES + 1);
        let space = Space::LOG_BATCHES;
        let page = tx.scan(place.container, space, &range, Direction::Forward, limit).await?;
        let more = page.next.is_some();
        let count = page.items.len();
        for (at, (key, item)) in page.items.into_iter().enumerate() {
            let row = key.get(PREFIX_BYTES + place.route.len()..);
            let first = row.and_then(|row| row.try_into().ok()).map(u64::from_be_bytes);
            let first = first.ok_or_else(|| damaged("the key of a batch"))?;
            let batch = Batch::decode(first, item.payload.clone())?;
            state.first = first;
            state.first_ms = batch.enqueued_ms;
            // The last batch of the page stays until the next one, which sees what follows it.
            let is_last = more && at + 1 == count;
            if is_last || !keep.is_over(&state, now) {
                break;
            }
            state.bytes = state.bytes.saturating_sub(item.payload.len() as u64);
            state.batches = state.batches.saturating_sub(1);
            state.first = batch.end();
            tx.remove(&ItemKey::from_bytes(key, place.route.len())?, &item)?;
        }
        tx.replace(&place.state(), Some(&old), state.encode(), None)?;
        Ok(more)
    }

    fn cost(&self) -> u32 {
        0
    }
}

impl Logs {
    /// Starts the retention. It ends by itself when the engine is dropped.
    pub fn start(&self) {
        let engine: Weak<Engine> = Arc::downgrade(&self.engine);
        let (wakes, known) = (self.wakes.clone(), self.known.clone());
        let (growing, poll) = (self.growing.clone(), self.poll);
        let clock = self.engine.env().clock.clone();
        let task = async move {
            loop {
                clock.sleep(RETENTION_INTERVAL).await;
                let Some(engine) = engine.upgrade() else { return };
                let logs = Logs {
                    engine,
                    wakes: wakes.clone(),
                    known: known.clone(),
                    growing: growing.clone(),
                    poll,
                };
                if logs.engine.may(Work::Reconcile) {
                    // What fails now is tried again with the next round.
                    let _ = logs.retain_all().await;
                }
            }
        };
        self.engine.env().spawn.spawn("log-retention", Box::pin(task));
    }

    /// Deletes what no hub has to keep any more, once. The first error is answered when all hubs were looked at.
    pub async fn retain_all(&self) -> Result<()> {
        let mut outcome: Result<(), Error> = Ok(());
        let mut after: Option<String> = None;
        loop {
            let found = self.engine.containers(CONTAINERS, after.as_deref(), HUBS_AT_ONCE).await?;
            let Some(last) = found.last() else { return outcome };
            after = Some(last.name.clone());
            for container in found.into_iter().filter(|one| one.schema == SCHEMA) {
                let hub = Hub::of(Arc::new(container))?;
                outcome = outcome.and(self.retain(&hub).await);
            }
        }
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
