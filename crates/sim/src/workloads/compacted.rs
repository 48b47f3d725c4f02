//! Producers and readers of a hub that is compacted by key, by several processes at once, while its partitions move.
//!
//! Each client writes a few keys of its own, as an idempotent producer that repeats what was not answered, so it knows what
//! the newest record of each key is. That one must never be missing, unless it says that the key is gone. What is read at an
//! offset stays the same as long as it is there, and what has gone never comes back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::Engine;
use lazuli_log::{
    Batch, Cleanup, Compaction, HubSettings, KeyedRecord, Logs, NewBatch, Producer, ReadLimit,
    ReadRecords,
};

use super::logs::make_hub;
use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::cluster::Cluster;
use crate::scenario::Found;
use crate::{ensure, lock};

const NAMESPACE: &str = "sim";
const HUB: &str = "kept";
const CONTAINER: &str = "hubs/sim/kept";
const PARTITIONS: u32 = 2;
const REQUESTS_PER_ROUND: u64 = 3;
const BATCH_MAX: u64 = 5;
const KEYS: u64 = 3;
const REPEATS_MAX: usize = 2_000;
/// How long a record stays that says that its key is gone.
const TOMBSTONES: Duration = Duration::from_millis(300);

pub struct CompactedHub {
    reader: Arc<dyn ReadRecords>,
    /// The newest record of each key that was answered: partition, and the record.
    newest: Mutex<BTreeMap<Bytes, (u32, Bytes)>>,
    /// What was seen at each offset of each partition.
    seen: Mutex<BTreeMap<(u32, u64), Bytes>>,
}

/// `client (8) | key (1) | number (8) | whether the key is gone (1)`; the first two are the key.
fn record(client: u64, key: u64, number: u64, is_gone: bool) -> Bytes {
    let mut bytes = client.to_be_bytes().to_vec();
    bytes.push(key as u8);
    bytes.extend(number.to_be_bytes());
    bytes.push(u8::from(is_gone));
    bytes.into()
}

const KEY_BYTES: usize = 9;

fn is_gone(record: &Bytes) -> bool {
    record.last() == Some(&1)
}

/// Knows these records. Careless, it takes the keys of a client for one and the same: the bug of a canary.
struct Reader {
    is_careless: bool,
}

impl ReadRecords for Reader {
    fn read(&self, batch: &Batch) -> Option<Vec<KeyedRecord>> {
        let key_bytes = if self.is_careless { KEY_BYTES - 1 } else { KEY_BYTES };
        let read = |(offset, record): (u64, Bytes)| KeyedRecord {
            offset,
            key: Some(record.slice(..key_bytes)),
            is_tombstone: is_gone(&record),
            bytes: record.len(),
        };
        Some(batch.messages().map(read).collect())
    }

    fn write(&self, _: &Batch, _: u64, _: u32, _: &[u64]) -> Bytes {
        // No batch of Kafka's is ever written here.
        Bytes::new()
    }
}

/// The same with a bug.
pub struct CarelessHub;

impl CarelessHub {
    pub async fn setup(cluster: &Cluster) -> Built {
        CompactedHub::build(cluster, true).await
    }
}

fn settings() -> HubSettings {
    let compaction =
        Compaction { tombstones: TOMBSTONES, dirty_permille: 0, ..Compaction::default() };
    HubSettings { cleanup: Cleanup::Compact, compaction, ..HubSettings::new(PARTITIONS) }
}

impl CompactedHub {
    pub async fn setup(cluster: &Cluster) -> Built {
        Self::build(cluster, false).await
    }

    async fn build(cluster: &Cluster, is_careless: bool) -> Built {
        make_hub(cluster, (HUB, CONTAINER), &settings()).await?;
        let reader = Arc::new(Reader { is_careless });
        Ok(Arc::new(Self { reader, newest: Mutex::default(), seen: Mutex::default() }))
    }

    /// Sends a batch as an idempotent producer, again and again until it is answered.
    async fn produce(&self, client: &Client, sequence: &mut u64) -> Found {
        let partition = (client.number % u64::from(PARTITIONS)) as u32;
        let count = client.random.between(1, BATCH_MAX);
        let producer = Producer { id: client.number as i64, epoch: 0, sequence: *sequence as i32 };
        let records: Vec<Bytes> = (*sequence..*sequence + count)
            .map(|number| {
                let key = client.random.between(0, KEYS - 1);
                record(client.number, key, number, client.random.index(4) == 0)
            })
            .collect();
        for _ in 0..REPEATS_MAX {
            let batch = NewBatch::amqp(records.clone(), Some(producer));
            let append = move |engine| async move {
                let logs = Logs::new(engine, false);
                let hub = logs.hub(NAMESPACE, HUB).await?;
                logs.append(&hub, partition, batch).await
            };
            match client.ask("produce", append).await? {
                Answer::Done(_) => {
                    *sequence += count;
                    let mut newest = lock(&self.newest);
                    for record in records {
                        newest.insert(record.slice(..KEY_BYTES), (partition, record));
                    }
                    return Ok(());
                }
                Answer::Refused(error) => return Err(format!("an append was refused: {error}")),
                Answer::Unknown => client.think().await,
            }
            client.cluster.world.sleep(Duration::from_millis(20)).await;
        }
        Err("an append was never answered".to_owned())
    }

    /// Reads from some offset and compares with what others saw. Answers what there is, and where to go on.
    async fn read(
        &self,
        client: &Client,
        partition: u32,
        offset: u64,
    ) -> Result<Option<(Vec<(u64, Bytes)>, u64)>, String> {
        let read = move |engine| async move {
            let logs = Logs::new(engine, false);
            let hub = logs.hub(NAMESPACE, HUB).await?;
            let limit = ReadLimit { bytes: 500, batches: 20 };
            logs.read(&hub, partition, offset, limit).await
        };
        let Some(page) = client.ask("read", read).await?.done() else { return Ok(None) };
        ensure!(page.state.first == 0, "a log lost its beginning: {:?}", page.state);
        let Some(next) = page.batches.last().map(Batch::end) else { return Ok(None) };
        let (mut found, mut least) = (Vec::new(), 0);
        let mut seen = lock(&self.seen);
        for (at, bytes) in page.batches.iter().flat_map(Batch::messages) {
            ensure!(at >= least, "partition {partition} steps back to {at}");
            least = at + 1;
            let before = seen.entry((partition, at)).or_insert_with(|| bytes.clone());
            ensure!(*before == bytes, "offset {at} of partition {partition} has changed");
            found.push((at, bytes));
        }
        ensure!(next > offset, "reading at {offset} leads back to {next}");
        Ok(Some((found, next)))
    }

    async fn compact(&self, client: &Client) -> Found {
        let reader = self.reader.clone();
        let compact = move |engine: Arc<Engine>| async move {
            Logs::new(engine, false).reading(reader).compact_all().await
        };
        match client.ask("compact", compact).await? {
            Answer::Done(()) | Answer::Unknown => Ok(()),
            Answer::Refused(error) => Err(format!("a compaction was refused: {error}")),
        }
    }

    /// All that is left of a partition.
    async fn all(&self, client: &Client, partition: u32) -> Result<BTreeMap<u64, Bytes>, String> {
        let (mut all, mut offset) = (BTreeMap::new(), 0);
        while let Some((found, next)) = self.read(client, partition, offset).await? {
            all.extend(found);
            offset = next;
        }
        Ok(all)
    }
}

impl Workload for CompactedHub {
    async fn live(&self, client: &Client) -> Found {
        let requests = client.rounds() * REQUESTS_PER_ROUND;
        let (mut sequence, mut positions) = (0, BTreeMap::new());
        for _ in 0..requests {
            match client.random.index(20) {
                0..=8 => self.produce(client, &mut sequence).await?,
                9..=14 => {
                    let partition = client.random.index(PARTITIONS as usize) as u32;
                    let offset = *positions.get(&partition).unwrap_or(&0);
                    let next = self.read(client, partition, offset).await?.map(|(_, next)| next);
                    let back = client.random.between(0, offset);
                    positions.insert(partition, next.unwrap_or(back));
                }
                _ => self.compact(client).await?,
            }
            client.think().await;
        }
        Ok(())
    }

    async fn check(&self, client: &Client) -> Found {
        for is_compacted in [false, true] {
            if is_compacted {
                self.compact(client).await?;
            }
            for partition in 0..PARTITIONS {
                let all = self.all(client, partition).await?;
                let mut last: BTreeMap<Bytes, &Bytes> = BTreeMap::new();
                for record in all.values() {
                    last.insert(record.slice(..KEY_BYTES), record);
                }
                for (key, (at, newest)) in lock(&self.newest).iter() {
                    if *at != partition {
                        continue;
                    }
                    let Some(found) = last.remove(key) else {
                        ensure!(is_gone(newest), "the newest record of {key:?} is lost");
                        continue;
                    };
                    ensure!(found == newest, "{key:?} ends with {found:?}, not {newest:?}");
                }
                ensure!(last.is_empty(), "nobody sent {last:?}");
            }
        }
        Ok(())
    }
}
