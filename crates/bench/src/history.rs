//! What the history costs: inserts with and without it, in turns, and the memory of many partitions that are never quiet.
//!
//! Two engines on embedded stores of their own, with as many partitions, all of them in use. One times its requests and
//! has a recorder, the other one does not. The cost of an insert is processor time, which other programs on the machine
//! disturb least; that of a sample is spread over the ten seconds between two of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{
    Container, ContainerId, Cuts, Engine, Held, ItemKey, KeyPart, KeySchema, KeyType, Latencies,
    MapKind, NewContainer, PartitionId, Policies, Sample, Settings, ShardId, Size as Holds, Space,
    Transaction, Tx,
};
use lazuli_history::{History, Recorder, Step};
use lazuli_store::Result;

use crate::figures::{cpu_time, median, resident_bytes, spread, unsynced_engine};
use crate::report::{Report, Turns};

/// What the history may cost, of the processor time of inserts.
pub const COST_MAX: f64 = 0.01;
/// The memory of one partition that is never quiet for a day.
pub const PARTITION_BYTES_MAX: f64 = 12_000.0;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub partitions: u16,
    pub rounds: usize,
    /// Of one round.
    pub inserts: usize,
}

impl Size {
    /// What the bounds are for.
    pub const FULL: Self = Self { partitions: 10_000, rounds: 401, inserts: 4_096 };
    /// Enough to see that it runs.
    pub const TINY: Self = Self { partitions: 16, rounds: 2, inserts: 64 };
}

/// Who inserts at the same time.
const WORKERS: usize = 64;
/// Rounds between two samples.
const ROUNDS_PER_SAMPLE: usize = 10;
const VALUE: &[u8] = &[b'v'; 200];

struct Insert(ItemKey);

impl Transaction for Insert {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        tx.put(&self.0, Bytes::from_static(VALUE)).await
    }
}

/// One of the two.
#[derive(Clone)]
struct Side {
    engine: Arc<Engine>,
    container: Arc<Container>,
}

impl Side {
    async fn open(folder: &Path, partitions: u16, latencies: bool) -> Result<Self> {
        let settings = Settings { latencies, ..Settings::default() };
        let engine = unsynced_engine(folder, settings).await?;
        let new = NewContainer {
            name: "c".into(),
            kind: MapKind::Hash,
            key: KeySchema::one(KeyType::Int64),
            schema: "bench/1".into(),
            placement: Vec::new(),
            policies: Policies::default(),
            cuts: Cuts::Even(partitions),
            shards: Vec::new(),
        };
        let container = Arc::new(engine.create_container(&new).await?);
        Ok(Self { engine, container })
    }

    async fn insert(&self, number: i64) -> Result<()> {
        let Container { id, kind, key, .. } = &*self.container;
        let route = kind.route(key, &[KeyPart::Int64(number)])?;
        let key = ItemKey::new(*id, Space::ITEMS, &route, b"");
        self.engine.write(*id, &route, Insert(key)).await
    }

    /// The processor time of so many inserts of new items.
    async fn round(&self, first: i64, inserts: usize) -> Result<Duration> {
        let before = cpu_time();
        let side = self.clone();
        spread(WORKERS, inserts, move |at| {
            let side = side.clone();
            async move { side.insert(first + at as i64).await }
        })
        .await?;
        Ok(cpu_time().saturating_sub(before))
    }
}

/// Runs everything in `folder`, which must be on the disk that counts.
pub async fn run(folder: &Path, size: Size) -> Result<Report> {
    let with = Side::open(&folder.join("with"), size.partitions, true).await?;
    let without = Side::open(&folder.join("without"), size.partitions, false).await?;
    let recorder = Recorder::new(with.engine.clone(), usize::from(size.partitions));
    let (mut turns, mut samples) = (Turns::default(), Vec::new());
    for round in 0..size.rounds {
        let first = (round * size.inserts) as i64;
        let one = |side: &Side| {
            let side = side.clone();
            async move { side.round(first, size.inserts).await }
        };
        // Who is first changes with each round.
        let (ours, theirs) = if round % 2 == 0 {
            let ours = one(&with).await?;
            (ours, one(&without).await?)
        } else {
            let theirs = one(&without).await?;
            (one(&with).await?, theirs)
        };
        let each_us = |time: Duration| time.as_secs_f64() * 1e6 / size.inserts as f64;
        turns.ours.push(each_us(ours));
        turns.theirs.push(each_us(theirs).max(f64::MIN_POSITIVE));
        if round % ROUNDS_PER_SAMPLE == 0 {
            let before = cpu_time();
            recorder.record().await?;
            samples.push(cpu_time().saturating_sub(before).as_secs_f64() * 1e3);
        }
    }
    let (busy_bytes, quiet_bytes) = memory(usize::from(size.partitions));
    let (timing, sample_ms) = (turns.share() - 1.0, median(samples.into_iter()));
    // All of it, as a part of one processor that does nothing but inserts.
    let cost = timing + sample_ms / Step::TenSeconds.ms() as f64;
    let mut report = Report::default();
    report.figure("an insert without a history, CPU us", turns.medians()[1]);
    report.figure("timing it, % of that", timing * 100.0);
    report.figure("a sample of all partitions, CPU ms", sample_ms);
    report.at_most("the history, % of inserts", cost * 100.0, COST_MAX * 100.0);
    report.at_most("bytes of a partition, never quiet", busy_bytes, PARTITION_BYTES_MAX);
    report.figure("bytes of a partition, always quiet", quiet_bytes);
    Ok(report)
}

/// What the process grows by for each of so many partitions that are busy for a day, and what a quiet one takes.
fn memory(partitions: usize) -> (f64, f64) {
    let held = Held { shard: ShardId(1), container: ContainerId(1) };
    let holds = Holds { items: 1, bytes: 2, outside: 0 };
    let ids = || (0..partitions as u64).map(PartitionId);
    let before = resident_bytes();
    let mut history = History::new(partitions, 0);
    history.resize(ids().map(|id| (id, held, Some(holds))));
    let quiet = history.bytes() as f64 / partitions as f64;
    let busy = |partition| Sample {
        partition,
        held: Some(held),
        size: Some(holds),
        reads: 1,
        writes: 1,
        throttled: 0,
        read_times: Latencies::of([Duration::from_micros(100)]),
        write_times: Latencies::of([Duration::from_millis(1)]),
    };
    let samples: Vec<Sample> = ids().map(busy).collect();
    let mut now_ms = 0;
    // So that all series are full in the end, without the steps that would be forgotten by then.
    for step in [Step::TenMinutes, Step::Minute, Step::TenSeconds] {
        for _ in 0..step.kept() + 1 {
            now_ms += step.ms();
            history.take(now_ms, &samples);
        }
    }
    let counted = history.bytes() as f64;
    let grown = before.zip(resident_bytes()).map(|(before, after)| after.saturating_sub(before));
    // Where the system does not say, what is known to be there is all there is.
    let grown = grown.map_or(counted, |grown| (grown as f64).max(counted));
    (grown / partitions as f64, quiet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_tiny_run_measures_everything() {
        let folder = tempfile::tempdir().unwrap();
        let report = run(folder.path(), Size::TINY).await.unwrap();
        assert!(report.values("an insert")[0] > 0.0, "{report}");
        let [quiet, busy] = report.values("bytes of a partition")[..] else { panic!("{report}") };
        assert!(quiet > 0.0 && busy > quiet, "{report}");
    }
}
