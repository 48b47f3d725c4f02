//! Producers and readers of a hub whose partitions are moved, and whose number of partitions grows.
//!
//! Some producers are idempotent: each sends to its own partition, repeats what was not answered, and every record is there
//! once and in order. Others send by key and repeat nothing: what was answered is there once, what was not is there at most
//! once, and in every partition the records of a key are in the order in which they were sent. Whatever a reader sees at an
//! offset stays there: no gap, no repeat, no reorder.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use lazuli_engine::{Engine, KeySchema, KeyType, MapKind};
use lazuli_log::{HubSettings, LogReason, Logs, NewBatch, Page, Producer, ReadLimit};

use super::{Built, Client, Workload};
use crate::answer::Answer;
use crate::cluster::{Cluster, Table};
use crate::scenario::Found;
use crate::{ensure, lock};

const NAMESPACE: &str = "sim";
const HUB: &str = "hub";
const CONTAINER: &str = "hubs/sim/hub";
const PARTITIONS: u32 = 2;
const PARTITIONS_MAX: u32 = 5;
/// Requests of each client for every round of other workloads.
const REQUESTS_PER_ROUND: u64 = 3;
const BATCH_MAX: u64 = 4;
const REPEATS_MAX: usize = 2_000;

/// What was sent in one place, in its order: the number of a record, and whether it was answered.
type Sent = Vec<(u64, bool)>;

pub struct HubLogs {
    /// By idempotent producer: client and partition.
    produced: Mutex<BTreeMap<(u64, u32), Sent>>,
    by_key: Mutex<BTreeMap<u64, Sent>>,
    /// What was seen at each offset of each partition.
    seen: Mutex<BTreeMap<(u32, u64), Bytes>>,
}

/// Who sent a record, and which of its records it is.
fn record(kind: u8, client: u64, number: u64) -> Bytes {
    let mut bytes = vec![kind];
    bytes.extend(client.to_be_bytes());
    bytes.extend(number.to_be_bytes());
    bytes.into()
}

fn decode(record: &Bytes) -> Result<(u8, u64, u64), String> {
    let strange = || format!("unknown record {record:?}");
    let (kind, rest) = record.split_first().ok_or_else(strange)?;
    let (client, number) = rest.split_first_chunk::<8>().ok_or_else(strange)?;
    let number = number.try_into().map_err(|_| strange())?;
    Ok((*kind, u64::from_be_bytes(*client), u64::from_be_bytes(number)))
}

const PRODUCED: u8 = b'p';
const KEYED: u8 = b'k';

/// Makes the hub, and has the cluster know its container.
pub(super) async fn make_hub(
    cluster: &Cluster,
    (hub, container): (&'static str, &'static str),
    settings: &HubSettings,
) -> Found {
    let client = Client::outside(cluster);
    client
        .ask_surely("create a hub", || {
            let settings = settings.clone();
            move |engine| async move {
                let logs = Logs::new(engine, false);
                match logs.create_hub(NAMESPACE, hub, &settings).await {
                    Err(error) if error.is(LogReason::HubExists) => logs.hub(NAMESPACE, hub).await,
                    created => created,
                }
            }
        })
        .await?;
    let id = client
        .ask_surely("find the container", || {
            move |engine: Arc<Engine>| async move {
                Ok(engine.manager().catalog().container_named(container).await?.id)
            }
        })
        .await?;
    cluster.adopt(Table {
        name: container,
        id,
        kind: MapKind::List,
        schema: KeySchema::one(KeyType::Int32),
        shardlets: 0..0,
    });
    Ok(())
}

impl HubLogs {
    pub async fn setup(cluster: &Cluster) -> Built {
        make_hub(cluster, (HUB, CONTAINER), &HubSettings::new(PARTITIONS)).await?;
        let (produced, by_key) = (Mutex::default(), Mutex::default());
        Ok(Arc::new(Self { produced, by_key, seen: Mutex::default() }))
    }

    /// Sends a batch as an idempotent producer, again and again until it is answered.
    async fn produce(&self, client: &Client, sequence: &mut u64) -> Found {
        let partition = (client.number % u64::from(PARTITIONS)) as u32;
        let count = client.random.between(1, BATCH_MAX);
        let numbers = *sequence..*sequence + count;
        let producer = Producer { id: client.number as i64, epoch: 0, sequence: *sequence as i32 };
        let batch: Vec<_> =
            numbers.clone().map(|number| record(PRODUCED, client.number, number)).collect();
        for _ in 0..REPEATS_MAX {
            let batch = NewBatch::amqp(batch.clone(), Some(producer));
            let append = move |engine| async move {
                let logs = Logs::new(engine, false);
                let hub = logs.hub(NAMESPACE, HUB).await?;
                logs.append(&hub, partition, batch).await
            };
            match client.ask("produce", append).await? {
                Answer::Done(_) => {
                    *sequence += count;
                    let mut produced = lock(&self.produced);
                    let sent = produced.entry((client.number, partition)).or_default();
                    sent.extend(numbers.map(|number| (number, true)));
                    return Ok(());
                }
                Answer::Refused(error) => return Err(format!("an append was refused: {error}")),
                Answer::Unknown => client.think().await,
            }
            client.cluster.world.sleep(std::time::Duration::from_millis(20)).await;
        }
        Err("an append was never answered".to_owned())
    }

    /// Sends one record by key, once.
    async fn send(&self, client: &Client, number: u64) -> Found {
        let batch = NewBatch::amqp(vec![record(KEYED, client.number, number)], None);
        let key = format!("key {}", client.number);
        let append = move |engine| async move {
            Logs::new(engine, false).append_by_key(NAMESPACE, HUB, &key, batch).await
        };
        let is_done = match client.ask("send by key", append).await? {
            Answer::Done(_) => true,
            Answer::Unknown => false,
            Answer::Refused(error) => return Err(format!("a send was refused: {error}")),
        };
        lock(&self.by_key).entry(client.number).or_default().push((number, is_done));
        Ok(())
    }

    async fn page(client: &Client, partition: u32, offset: u64) -> Result<Option<Page>, String> {
        let read = move |engine| async move {
            let logs = Logs::new(engine, false);
            let hub = logs.hub(NAMESPACE, HUB).await?;
            if partition >= hub.settings.partitions {
                return Ok(None);
            }
            let limit = ReadLimit { bytes: 500, batches: 20 };
            logs.read(&hub, partition, offset, limit).await.map(Some)
        };
        Ok(client.ask("read", read).await?.done().flatten())
    }

    /// Reads from some offset and compares with what others saw. Answers where to go on.
    async fn read(
        &self,
        client: &Client,
        partition: u32,
        offset: u64,
    ) -> Result<Option<u64>, String> {
        let Some(page) = Self::page(client, partition, offset).await? else { return Ok(None) };
        ensure!(page.state.first == 0, "a log lost its beginning: {:?}", page.state);
        let mut next = None;
        let mut seen = lock(&self.seen);
        for (at, bytes) in page.batches.iter().flat_map(|batch| batch.messages()) {
            ensure!(next.is_none_or(|next| next == at), "partition {partition} jumps to {at}");
            ensure!(next.is_some() || at <= offset, "{offset} leads to {at}");
            next = Some(at + 1);
            let before = seen.entry((partition, at)).or_insert_with(|| bytes.clone());
            ensure!(*before == bytes, "offset {at} of partition {partition} has changed");
        }
        Ok(next)
    }

    async fn grow(&self, client: &Client) -> Found {
        let count = client.random.between(u64::from(PARTITIONS), u64::from(PARTITIONS_MAX)) as u32;
        let grow = move |engine| async move {
            Logs::new(engine, false).set_partitions(NAMESPACE, HUB, count).await
        };
        match client.ask("grow", grow).await? {
            Answer::Done(_) | Answer::Unknown => Ok(()),
            // Another client made it larger.
            Answer::Refused(error) if error.is(LogReason::BadSettings) => Ok(()),
            Answer::Refused(error) => Err(format!("growing was refused: {error}")),
        }
    }
}

impl Workload for HubLogs {
    /// A client that hangs up and sends its next record does not know which of the two comes first.
    fn client(client: Client) -> Client {
        client.patient()
    }

    async fn live(&self, client: &Client) -> Found {
        let requests = client.rounds() * REQUESTS_PER_ROUND;
        let (mut sequence, mut number) = (0, 0);
        let mut positions = BTreeMap::new();
        for _ in 0..requests {
            match client.random.index(20) {
                0..=6 => self.produce(client, &mut sequence).await?,
                7..=12 => {
                    self.send(client, number).await?;
                    number += 1;
                }
                13..=18 => {
                    let partition = client.random.index(PARTITIONS_MAX as usize) as u32;
                    let offset = *positions.get(&partition).unwrap_or(&0);
                    let next = self.read(client, partition, offset).await?;
                    // Now and then a reader begins anew, somewhere in what it has read.
                    let next = next.filter(|_| !client.random.chance(100));
                    let back = client.random.between(0, offset);
                    positions.insert(partition, next.unwrap_or(back));
                }
                _ => self.grow(client).await?,
            }
            client.think().await;
        }
        Ok(())
    }

    /// Reads everything, and looks for what is missing, twice or out of order.
    async fn check(&self, client: &Client) -> Found {
        let mut produced: BTreeMap<(u64, u32), Vec<u64>> = BTreeMap::new();
        let mut keyed: BTreeMap<u64, BTreeMap<u32, Vec<u64>>> = BTreeMap::new();
        for partition in 0..PARTITIONS_MAX {
            let mut offset = 0;
            while let Some(next) = self.read(client, partition, offset).await? {
                offset = next;
            }
            let seen = lock(&self.seen);
            let here = seen.range((partition, 0)..=(partition, u64::MAX));
            for (expected, ((_, at), bytes)) in here.enumerate() {
                ensure!(*at == expected as u64, "partition {partition} lacks offset {expected}");
                let (kind, sender, number) = decode(bytes)?;
                match kind {
                    PRODUCED => produced.entry((sender, partition)).or_default().push(number),
                    _ => {
                        let partitions = keyed.entry(sender).or_default();
                        partitions.entry(partition).or_default().push(number);
                    }
                }
            }
        }
        for (sender, sent) in lock(&self.produced).iter() {
            let expected: Vec<u64> = sent.iter().map(|(number, _)| *number).collect();
            let found = produced.remove(sender).unwrap_or_default();
            ensure!(found == expected, "producer {sender:?} sent {expected:?}, there is {found:?}");
        }
        ensure!(produced.is_empty(), "nobody sent {produced:?}");
        for (sender, sent) in lock(&self.by_key).iter() {
            let found = keyed.remove(sender).unwrap_or_default();
            for (partition, numbers) in &found {
                let is_sorted = numbers.is_sorted_by(|a, b| a < b);
                ensure!(is_sorted, "key {sender} in partition {partition}: {numbers:?}");
            }
            let mut all: Vec<u64> = found.into_values().flatten().collect();
            all.sort_unstable();
            ensure!(all.windows(2).all(|two| two[0] != two[1]), "key {sender} repeats: {all:?}");
            for (number, is_done) in sent {
                let is_there = all.binary_search(number).is_ok();
                ensure!(is_there || !is_done, "key {sender}: {number} was answered and is gone");
            }
        }
        Ok(())
    }
}
