//! What several benchmarks share: figures of this process, medians and latencies, and how work is spread.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lazuli_engine::{Engine, Settings};
use lazuli_shardmap::manager::NewShard;
use lazuli_store::{Error, Result};
use lazuli_store_embedded::{Durability, EmbeddedStore};
use tokio::runtime::Runtime;

/// The processor time of this process so far, without the store's compaction threads: they work off what either of the two
/// sides has left. Zero where the system does not say.
pub(crate) fn cpu_time() -> Duration {
    cpu_time_without("fjall")
}

/// The processor time of this process so far, without the threads whose names begin so. Zero where the system does not
/// say.
pub(crate) fn cpu_time_without(prefix: &str) -> Duration {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Duration::ZERO };
    let time = |folder: &Path| {
        let name = std::fs::read_to_string(folder.join("comm")).ok()?;
        let times = std::fs::read_to_string(folder.join("schedstat")).ok()?;
        let nanos = times.split(' ').next()?.parse().ok()?;
        (!name.starts_with(prefix)).then_some(Duration::from_nanos(nanos))
    };
    threads.filter_map(|thread| time(&thread.ok()?.path())).sum()
}

/// The resident memory of this process, where the system says it.
pub(crate) fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// How long some requests took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Latency {
    pub count: usize,
    pub p50: Duration,
    pub p99: Duration,
    pub longest: Duration,
}

impl Latency {
    pub(crate) fn of(mut took: Vec<Duration>) -> Self {
        took.sort_unstable();
        let at = |share: f64| {
            let at = (took.len() as f64 * share) as usize;
            took.get(at).or(took.last()).copied().unwrap_or_default()
        };
        Self { count: took.len(), p50: at(0.5), p99: at(0.99), longest: at(1.0) }
    }
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

pub(crate) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Any failure as an error of a benchmark.
pub(crate) fn failed(error: impl std::fmt::Display) -> Error {
    Error::internal("bench", error)
}

/// A runtime with as many threads as the machines have that the bounds were found on.
pub(crate) fn runtime() -> Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().map_err(failed)
}

/// An engine on embedded stores that do not sync: the disk would hide what is measured. It has one shard.
pub(crate) async fn unsynced_engine(folder: &Path, settings: Settings) -> Result<Arc<Engine>> {
    let kept = crate::store::settings(Durability::Relaxed);
    let catalog = Arc::new(EmbeddedStore::open(folder.join("catalog"), &kept)?);
    let engine = Engine::on(lazuli_env::real::env(), settings, catalog).await?;
    let new = NewShard { name: "one".into(), location: "one".into(), ..NewShard::default() };
    engine.add_shard(&new, Arc::new(EmbeddedStore::open(folder.join("one"), &kept)?)).await?;
    Ok(engine)
}

/// Does `work` for the numbers from 0 to `count`, with so many tasks at once.
pub(crate) async fn spread<F>(
    tasks: usize,
    count: usize,
    work: impl Fn(usize) -> F + Clone + Send + 'static,
) -> Result<()>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let mut running = tokio::task::JoinSet::new();
    for task in 0..tasks {
        let work = work.clone();
        running.spawn(async move {
            for number in (task..count).step_by(tasks) {
                work(number).await?;
            }
            Ok(())
        });
    }
    while let Some(done) = running.join_next().await {
        done.map_err(failed)??;
    }
    Ok(())
}
