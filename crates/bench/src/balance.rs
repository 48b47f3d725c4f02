//! From one shard to eight: how long the balancer takes until all are even, what it copies, and what writers see of it.
//!
//! A server in this process, used over the wire: a table is filled on its only shard, seven shards are added, and the
//! balancer runs while some connections insert. Latency is measured before, and while it works.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lazuli_store::Result;
use lazuli_trial::client::{Client, Request, transaction};
use serde_json::{Value, json};

use crate::figures::{Latency, failed, mebibytes};
use crate::report::Report;
use crate::server::{Admin, BenchServer};

/// How far from the mean any shard may be in the end.
pub const BAND: f64 = 0.10;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Partition keys, each with about a mebibyte in so many entities.
    pub keys: usize,
    pub entities: usize,
    /// How long writers write before anything moves.
    pub before: Duration,
}

impl Size {
    /// What the bound is for.
    pub const FULL: Self = Self { keys: 512, entities: 32, before: Duration::from_secs(5) };
    /// Enough to see that it runs.
    pub const TINY: Self = Self { keys: 64, entities: 1, before: Duration::from_millis(100) };
}

const SHARDS: usize = 8;
const WRITERS: usize = 4;
/// What a writer rests between two requests: the load is to be steady, not all that the machine can do.
const REST: Duration = Duration::from_millis(4);
/// What a property may hold: 64 KiB of UTF-16.
const TEXT_BYTES: usize = 32_000;
const TABLE: &str = "things";
const LOOK: Duration = Duration::from_millis(50);
/// Longer than any run takes.
const PATIENCE: Duration = Duration::from_secs(1_200);
/// Only bytes count: those are the same in every run.
const SETTINGS: &[(&str, &str)] =
    &[("balance-goals", "bytes=1"), ("balance-floor-bytes", "64KiB"), ("balance-merge-bytes", "0")];

fn entity(key: usize, row: &str, bytes: usize) -> Request {
    let mut entity = json!({ "PartitionKey": format!("key{key:05}"), "RowKey": row });
    entity["Text"] = json!("x".repeat(bytes));
    Request::tables("POST", &format!("/{TABLE}"), "", entity.to_string())
}

fn fill(address: SocketAddr, size: Size) -> Result<()> {
    let mut client = Client::connect(address).map_err(failed)?;
    client.create_table(TABLE).map_err(failed)?;
    for key in 0..size.keys {
        let one = |row: usize| entity(key, &format!("{row:03}"), TEXT_BYTES);
        let entities: Vec<Request> = (0..size.entities).map(one).collect();
        let answer = client.send(transaction(&entities)).map_err(failed)?;
        // The status is always 202; the outcome is inside of the answer.
        if answer.status != 202 || !answer.text().contains("HTTP/1.1 204") {
            return Err(failed(format_args!("{} {}", answer.status, answer.text())));
        }
    }
    Ok(())
}

/// Inserts until `stop` is set. Every request must succeed at the first attempt.
fn write(
    address: SocketAddr,
    writer: usize,
    size: Size,
    moving: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
) -> JoinHandle<Result<[Vec<Duration>; 2]>> {
    std::thread::spawn(move || {
        let mut client = Client::connect(address).map_err(failed)?;
        let mut latencies = [Vec::new(), Vec::new()];
        for n in 0.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let key = (n * 31 + writer * 7) % size.keys;
            let request = entity(key, &format!("w{writer}-{n}"), 100);
            let when = usize::from(moving.load(Ordering::Relaxed));
            let began = Instant::now();
            let answer = client.send(request).map_err(failed)?;
            latencies[when].push(began.elapsed());
            if answer.status != 204 {
                return Err(failed(format_args!("{} {}", answer.status, answer.text())));
            }
            std::thread::sleep(REST);
        }
        Ok(latencies)
    })
}

/// Runs everything in `folder`, which must be on the disk that counts.
pub async fn run(folder: &Path, size: Size) -> Result<Report> {
    let server = BenchServer::start(folder, SETTINGS).await?;
    let (tables, admin) = (server.address("tables")?, server.address("admin")?);
    let measured = tokio::task::spawn_blocking(move || measure(tables, admin, size)).await;
    server.stop().await;
    measured.map_err(failed)?
}

fn measure(tables: SocketAddr, admin: SocketAddr, size: Size) -> Result<Report> {
    fill(tables, size)?;
    let mut admin = Admin::connect(admin)?;
    for number in 2..=SHARDS {
        admin.json("POST", "/v1/shards", &json!({ "name": format!("shard-{number}") }))?;
    }
    let (moving, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let writer = |n| write(tables, n, size, moving.clone(), stop.clone());
    let writers: Vec<_> = (0..WRITERS).map(writer).collect();
    std::thread::sleep(size.before);
    moving.store(true, Ordering::Relaxed);
    let began = Instant::now();
    let mut state = admin.json("POST", "/v1/rebalance", &Value::Null)?;
    while !state["running"].is_null() {
        if began.elapsed() > PATIENCE {
            return Err(failed(format_args!("not even after {PATIENCE:?}: {state}")));
        }
        std::thread::sleep(LOOK);
        state = admin.json("GET", "/v1/rebalance", &Value::Null)?;
    }
    let took = began.elapsed();
    stop.store(true, Ordering::Relaxed);
    let mut latencies = [Vec::new(), Vec::new()];
    for writer in writers {
        let its = writer.join().map_err(|_| failed("a writer panicked"))??;
        latencies.iter_mut().zip(its).for_each(|(all, its)| all.extend(its));
    }
    if let Some(trouble) = state["trouble"].as_str() {
        return Err(failed(trouble));
    }
    report(&mut admin, &state, took, latencies.map(Latency::of))
}

fn report(
    admin: &mut Admin,
    state: &Value,
    took: Duration,
    [before, during]: [Latency; 2],
) -> Result<Report> {
    let plan = admin.json("GET", "/v1/rebalance/plan", &Value::Null)?;
    let shards = plan["shards"].as_array().into_iter().flatten();
    let held: Vec<u64> = shards.filter_map(|shard| shard["before"]["bytes"].as_u64()).collect();
    let bytes: u64 = held.iter().sum();
    let mean = bytes as f64 / held.len().max(1) as f64;
    let done = |kind: &str| state["counts"][kind]["done"].as_f64().unwrap_or(0.0);
    let levels: Vec<f64> = held.iter().map(|bytes| *bytes as f64 / mean).collect();
    let off = levels.iter().map(|level| (level - 1.0).abs()).fold(0.0, f64::max);
    let copied = mebibytes(admin.metric("lazuli_moves_bytes_total")? as u64);
    let seconds = took.as_secs_f64();
    let mut report = Report::default();
    report.figure("on one shard at first, MiB", mebibytes(bytes));
    report.figure("until the shards are even, s", seconds);
    report.figure("copied, MiB", copied);
    report.figure("copied, MiB/s", copied / seconds.max(f64::MIN_POSITIVE));
    report.figure("plans", state["plans"].as_f64().unwrap_or(0.0));
    report.figure("splits", done("split"));
    report.figure("moves", done("move"));
    report.at_least("shards", levels.len() as f64, SHARDS as f64);
    report.at_most("furthest from the mean, as a part of it", off, BAND + 1e-9);
    report.latency("inserts before", before);
    report.latency("inserts during", during);
    report.figure("longest pause, ms", admin.metric("lazuli_moves_pause_seconds_max")? * 1e3);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_tiny_run_ends_even() {
        let folder = tempfile::tempdir().unwrap();
        let report = run(folder.path(), Size::TINY).await.unwrap();
        assert!(report.is_met() && report.values("moves")[0] >= 7.0, "{report}");
        assert!(report.values("inserts ").iter().all(|count| *count > 0.0), "{report}");
    }
}
