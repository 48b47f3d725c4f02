//! The embedded store against the bare engine: the same disk, the same options, the same group commit, in turns.
//!
//! What the store adds over the engine is what is measured: the trait, guards, markers, the answered file, snapshots
//! that show whole commits. Each figure is the median over rounds of ours divided by theirs, the two measured one right
//! after the other, so that other load on the machine affects both.

pub(crate) mod load;
mod raw;

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use lazuli_store::{Result, Store, Write};
use lazuli_store_embedded::{Durability, EmbeddedStore, Settings};
use tokio::runtime::Runtime;

use crate::figures::{cpu_time, milliseconds};
use crate::report::{Report, Turns};
use load::Load;
use raw::RawStore;

/// Durable commits per second are at least this share of the bare engine's.
pub const COMMIT_SHARE_LEAST: f64 = 0.90;
/// Point gets per second are at least this share of the bare engine's.
pub const GET_SHARE_LEAST: f64 = 0.80;
/// How long a store of a million items may take to open after a clean stop.
pub const OPEN_MS_MAX: f64 = 500.0;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub items: u64,
    pub rounds: usize,
    pub round: Duration,
}

impl Size {
    /// What the bounds are for.
    pub const FULL: Self = Self { items: 1_000_000, rounds: 201, round: Duration::from_millis(80) };
    /// Enough to see that it runs.
    pub const TINY: Self = Self { items: 2_000, rounds: 1, round: Duration::from_millis(30) };
}

type Count = u32;

const CLIENTS: [usize; 3] = [1, 16, 128];

pub(crate) fn settings(durability: Durability) -> Settings {
    Settings { cache_bytes: 256 * 1024 * 1024, durability, ..Settings::default() }
}

/// How many gets go by between two looks at the clock.
const GETS_PER_LOOK: Count = 100;

/// What is compared, and what both are given to do.
struct Both {
    ours: EmbeddedStore,
    raw: RawStore,
    load: Load,
    numbers: AtomicU64,
}

impl Both {
    fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

/// Runs everything in `folder`, which must be on the disk that counts.
pub fn run(folder: &Path, size: Size) -> Result<Report> {
    let load = Load::new(size.items);
    let runtime = crate::figures::runtime()?;
    let (ours_at, raw_at) = (folder.join("ours"), folder.join("raw"));
    let mut report = Report::default();

    let raw = RawStore::open(&raw_at);
    raw.fill(&load);
    drop(raw);
    let ours = EmbeddedStore::open(&ours_at, &settings(Durability::Relaxed))?;
    runtime.block_on(fill(&ours, &load))?;
    runtime.block_on(ours.close())?;
    drop(ours);

    let start = Instant::now();
    let ours = EmbeddedStore::open(&ours_at, &settings(Durability::Synced))?;
    let clean = milliseconds(start.elapsed());
    report.at_most("open after a clean stop, ms", clean, OPEN_MS_MAX);
    let raw = RawStore::open(&raw_at);
    let both = Arc::new(Both { ours, raw, load, numbers: AtomicU64::new(0) });
    gets(&mut report, &both, size);
    for clients in CLIENTS {
        commits(&mut report, &runtime, clients, &both, size);
    }
    drop(both);
    let start = Instant::now();
    drop(EmbeddedStore::open(&ours_at, &settings(Durability::Synced))?);
    report.figure("open after any other stop, ms", milliseconds(start.elapsed()));
    Ok(report)
}

async fn fill(store: &EmbeddedStore, load: &Load) -> Result<()> {
    for batch in load.batches() {
        let txn = store.begin(vec![]).await?;
        txn.commit(batch).await?;
    }
    let guards = (0..load::GUARDS).map(|n| Write::Put(load.guard(n), Bytes::new()));
    store.begin(vec![]).await?.commit(guards.collect()).await
}

/// How much one of the two has done in all, and at what cost.
#[derive(Default)]
struct Done {
    count: f64,
    cpu: Duration,
}

impl Done {
    /// The rate of one more round.
    fn measure(&mut self, work: &impl Fn() -> Count) -> f64 {
        let (start, cpu) = (Instant::now(), cpu_time());
        let count = f64::from(work());
        let per_second = count / start.elapsed().as_secs_f64();
        self.count += count;
        self.cpu += cpu_time().saturating_sub(cpu);
        per_second
    }

    /// Processor time per piece of work, in microseconds.
    fn cost(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.count.max(1.0)
    }
}

/// Measures the two in turns, and changes who is first with every round.
fn rounds(
    report: &mut Report,
    name: &str,
    share_least: f64,
    size: Size,
    ours: impl Fn() -> Count,
    raw: impl Fn() -> Count,
) {
    let (mut turns, mut our, mut their) = (Turns::default(), Done::default(), Done::default());
    for round in 0..size.rounds {
        if round % 2 == 0 {
            turns.theirs.push(their.measure(&raw));
            turns.ours.push(our.measure(&ours));
        } else {
            turns.ours.push(our.measure(&ours));
            turns.theirs.push(their.measure(&raw));
        }
    }
    let ([ours, raw], our_us, their_us) = (turns.medians(), our.cost(), their.cost());
    report.say(format_args!(
        "{name}: {ours:.0} per second, engine {raw:.0}; CPU us each {our_us:.1} / {their_us:.1}"
    ));
    report.at_least(format!("{name}, share"), turns.share(), share_least);
}

fn gets(report: &mut Report, both: &Both, size: Size) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime of this thread alone");
    let (ours_at, raw_at) = (AtomicU64::new(1), AtomicU64::new(1));
    let key = |at: &AtomicU64| both.load.any_key(at.fetch_add(1, Ordering::Relaxed));
    let ours = || {
        runtime.block_on(async {
            let (start, mut count) = (Instant::now(), 0);
            while start.elapsed() < size.round {
                for _ in 0..GETS_PER_LOOK {
                    let found = both.ours.get(&key(&ours_at)).await;
                    assert!(found.is_ok_and(|value| value.is_some()), "every key is there");
                }
                count += GETS_PER_LOOK;
            }
            count
        })
    };
    let raw = || {
        let (start, mut count) = (Instant::now(), 0);
        while start.elapsed() < size.round {
            for _ in 0..GETS_PER_LOOK {
                assert!(both.raw.get(&key(&raw_at)).is_some(), "every key is there");
            }
            count += GETS_PER_LOOK;
        }
        count
    };
    rounds(report, "point gets", GET_SHARE_LEAST, size, ours, raw);
}

fn commits(report: &mut Report, runtime: &Runtime, clients: usize, both: &Arc<Both>, size: Size) {
    let ours = || {
        let both = both.clone();
        run_clients(runtime, clients, size.round, move |client| {
            let both = both.clone();
            async move {
                let number = both.next_number();
                let txn = both.ours.begin(vec![both.load.guard(client as u64)]).await?;
                txn.get(&both.load.key(number)).await?;
                txn.commit(both.load.commit(client, number)).await
            }
        })
    };
    let raw = || {
        let both = both.clone();
        run_clients(runtime, clients, size.round, move |client| {
            let both = both.clone();
            async move {
                let number = both.next_number();
                both.raw.get(&both.load.key(number));
                both.raw.commit(both.load.commit(client, number)).await;
                Ok(())
            }
        })
    };
    let name = format!("durable commits, {clients} clients");
    rounds(report, &name, COMMIT_SHARE_LEAST, size, ours, raw);
}

/// How many commits so many clients get done in a while, each waiting for its own.
fn run_clients<F: Future<Output = Result<()>> + Send + 'static>(
    runtime: &Runtime,
    clients: usize,
    round: Duration,
    commit: impl Fn(usize) -> F + Clone + Send + 'static,
) -> Count {
    let done = Arc::new(AtomicBool::new(false));
    runtime.block_on(async {
        let clients = (0..clients).map(|client| {
            let (done, commit) = (done.clone(), commit.clone());
            tokio::spawn(async move {
                let mut count = 0;
                while !done.load(Ordering::Relaxed) {
                    commit(client).await.expect("the store takes commits");
                    count += 1;
                }
                count
            })
        });
        let clients: Vec<_> = clients.collect();
        tokio::time::sleep(round).await;
        done.store(true, Ordering::Relaxed);
        let mut count = 0;
        for client in clients {
            count += client.await.expect("clients do not panic");
        }
        count
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tiny_run_measures_everything() {
        let folder = tempfile::tempdir().unwrap();
        let report = run(folder.path(), Size::TINY).unwrap();
        let values = report.values("");
        assert_eq!(values.len(), 4 + 2);
        assert!(values.iter().all(|value| *value > 0.0), "{report}");
    }
}
