//! Compaction by key, in the background: of all records of a key only the newest has to stay
//! (`docs/decisions/0245-compaction.md`).
//!
//! A pass looks at what is new in a log and remembers the newest offset of each key, in bounded memory. Then it goes
//! through the log from its beginning and takes away what has a newer record among those. Offsets stay as they are. A record
//! without content says that its key is gone; it stays for a while, so that readers get to know.

mod cleaned;
mod rewrite;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{Direction, KeyRange, PREFIX_BYTES, PageLimit, Result, Space};

use crate::Logs;
use crate::hub::{Hub, LogPlace};
use crate::limits::{
    COMPACTION_BATCHES, COMPACTION_BYTES, COMPACTION_KEY_COST, COMPACTION_KEYS_BYTES,
};
use crate::rows::{Batch, LogState, damaged};
use cleaned::{Cleaned, Note};
use rewrite::{Change, Newest, Outcome, Rewrite, decide};

/// A record, as compaction looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedRecord {
    pub offset: u64,
    /// One without a key is superseded by nothing.
    pub key: Option<Bytes>,
    /// Whether it has no content: its key is gone.
    pub is_tombstone: bool,
    /// About how many bytes it takes.
    pub bytes: usize,
}

/// Reads what stands in batches, in both forms: logs themselves know no protocol.
pub trait ReadRecords: Send + Sync {
    /// The records that are left in a batch, in their order. None if they cannot be read: then all of them stay, and so do
    /// all tombstones behind them.
    fn read(&self, batch: &Batch) -> Option<Vec<KeyedRecord>>;

    /// A record batch of Kafka's with these records of one that was read, which takes `span` offsets from `first` on.
    fn write(&self, batch: &Batch, first: u64, span: u32, offsets: &[u64]) -> Bytes;
}

/// A batch, and the row it was read from.
struct Row {
    batch: Batch,
    version: lazuli_engine::Lsn,
    bytes: u64,
}

impl Logs {
    /// Compacts all logs whose hubs want it, once. The first error is answered when all hubs were looked at.
    pub async fn compact_all(&self) -> Result<()> {
        self.each_hub(async |logs, hub| logs.compact(hub).await).await
    }

    /// The same for one hub.
    pub async fn compact(&self, hub: &Hub) -> Result<()> {
        let Some(reader) = self.records.clone() else { return Ok(()) };
        if !hub.settings.cleanup.compacts() {
            return Ok(());
        }
        let mut outcome = Ok(());
        for partition in 0..hub.settings.partitions {
            outcome = outcome.and(self.compact_log(&reader, hub, partition).await);
        }
        outcome
    }

    async fn compact_log(
        &self,
        reader: &Arc<dyn ReadRecords>,
        hub: &Hub,
        partition: u32,
    ) -> Result<()> {
        let place = hub.log(partition)?;
        let settings = hub.settings.compaction;
        let view = self.engine.read(place.container, &place.route, 1).await?;
        let state = place.state_in(&view).await?;
        let row = view.get(&place.cleaned()).await?;
        // A log may begin in the middle of a batch.
        let holding = place.batch_at(&view, state.first).await?;
        let holding = holding.filter(|batch| batch.end() > state.first);
        let start = holding.map_or(state.first, |batch| batch.first);
        drop(view);
        let row = row.map(|item| Cleaned::decode(item.payload)).transpose()?.unwrap_or_default();
        let now_ms = self.engine.env().clock.now_ms();
        let life = settings.tombstones;
        if state.is_empty() || !row.is_due(&state, now_ms, life, settings.dirty_permille) {
            return Ok(());
        }
        let pass = Pass { logs: self, reader: &**reader, place, state, start, row, now_ms };
        pass.run(life, settings.lag).await
    }
}

/// One pass over one log.
struct Pass<'a> {
    logs: &'a Logs,
    reader: &'a dyn ReadRecords,
    place: LogPlace,
    state: LogState,
    /// Where its first batch begins.
    start: u64,
    row: Cleaned,
    now_ms: u64,
}

impl Pass<'_> {
    async fn run(self, life: Duration, lag: Duration) -> Result<()> {
        let (offsets, to) = self.newest(lag).await?;
        let ripe = self.row.ripe(self.now_ms, life);
        if to <= self.row.to && (ripe == 0 || self.row.tombstones == 0) {
            return Ok(());
        }
        let Some(done) = self.clean(Newest { offsets, ripe }, to).await? else { return Ok(()) };
        let place = self.place.clone();
        let (container, route) = (place.container, place.route.clone());
        let note = Note { place, done, life, ripe };
        self.logs.engine.write(container, &route, note).await
    }

    /// The newest offset of each key behind what is compacted already, and how far it was looked.
    async fn newest(&self, lag: Duration) -> Result<(BTreeMap<Bytes, u64>, u64)> {
        let (mut offsets, mut used) = (BTreeMap::new(), 0);
        let mut at = self.row.to.max(self.start);
        let old_ms = self.now_ms.saturating_sub(lag.as_millis() as u64);
        // Numbers of commits may be ahead of the clock, which must not matter where there is no lag.
        let is_young = |batch: &Batch| !lag.is_zero() && batch.enqueued_ms > old_ms;
        loop {
            let rows = self.page(at, self.state.next).await?;
            if rows.is_empty() {
                return Ok((offsets, self.state.next));
            }
            for Row { batch, .. } in rows {
                if is_young(&batch) || used >= COMPACTION_KEYS_BYTES {
                    return Ok((offsets, at));
                }
                for record in self.reader.read(&batch).into_iter().flatten() {
                    let Some(key) = record.key else { continue };
                    match offsets.get_mut(&key) {
                        Some(offset) => *offset = record.offset,
                        None => {
                            used += key.len() + COMPACTION_KEY_COST;
                            // A copy: a slice would keep the whole batch in memory.
                            offsets.insert(Bytes::copy_from_slice(&key), record.offset);
                        }
                    }
                }
                at = batch.end();
            }
            self.logs.engine.env().clock.sleep(Duration::ZERO).await;
        }
    }

    /// Takes away what need not stay in front of an offset. None if the log was changed by somebody else meanwhile: the
    /// next pass begins anew.
    async fn clean(&self, mut newest: Newest, to: u64) -> Result<Option<Cleaned>> {
        let to = to.max(self.row.to);
        let mut done = Cleaned { to, from: self.state.first, ..Cleaned::default() };
        let mut at = self.start;
        loop {
            let rows = self.page(at, to).await?;
            if rows.is_empty() {
                return Ok(Some(done));
            }
            let (mut changes, mut changed) = (Vec::new(), 0);
            for Row { batch, version, bytes } in rows {
                at = batch.end();
                let Some(records) = self.reader.read(&batch) else {
                    // An older record of any key may be in it: its tombstone must not go before it.
                    newest.ripe = newest.ripe.min(batch.first);
                    done.bytes += bytes;
                    continue;
                };
                let is_last = at == self.state.next;
                let (outcome, tombstones) = decide(self.reader, &newest, &batch, &records, is_last);
                done.tombstones += tombstones;
                let rows = match outcome {
                    Outcome::Stays => {
                        done.bytes += bytes;
                        continue;
                    }
                    Outcome::Becomes(rows) => rows,
                    Outcome::Goes => Vec::new(),
                };
                let left: usize = rows.iter().map(|(_, row)| row.len()).sum();
                done.bytes += left as u64;
                changed += left;
                changes.push(Change { first: batch.first, version, rows });
                if changed >= COMPACTION_BYTES && !self.put(std::mem::take(&mut changes)).await? {
                    return Ok(None);
                }
                changed = if changes.is_empty() { 0 } else { changed };
            }
            // In this order, and before any tombstone behind them goes.
            if !self.put(changes).await? {
                return Ok(None);
            }
            self.logs.engine.env().clock.sleep(Duration::ZERO).await;
        }
    }

    async fn put(&self, changes: Vec<Change>) -> Result<bool> {
        if changes.is_empty() {
            return Ok(true);
        }
        let place = self.place.clone();
        let (container, route) = (place.container, place.route.clone());
        self.logs.engine.write(container, &route, Rewrite { place, changes }).await
    }

    /// Batches that begin at an offset or behind it, and in front of another one.
    async fn page(&self, from: u64, to: u64) -> Result<Vec<Row>> {
        if from >= to {
            return Ok(Vec::new());
        }
        let place = &self.place;
        let view = self.logs.engine.read(place.container, &place.route, 1).await?;
        let range = KeyRange::new(place.bound(from), Some(place.bound(to)));
        let limit = PageLimit { items: COMPACTION_BATCHES, bytes: COMPACTION_BYTES };
        let page = view.scan(Space::LOG_BATCHES, &range, Direction::Forward, limit).await?;
        let start = PREFIX_BYTES + place.route.len();
        let row = |(key, item): (Bytes, lazuli_engine::Item)| {
            let row = key.get(start..).and_then(|row| row.try_into().ok());
            let first = u64::from_be_bytes(row.ok_or_else(|| damaged("the key of a batch"))?);
            let (version, bytes) = (item.version, item.payload.len() as u64);
            Ok(Row { batch: Batch::decode(first, item.payload)?, version, bytes })
        };
        page.items.into_iter().map(row).collect()
    }
}
