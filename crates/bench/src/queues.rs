//! Queues on the embedded store: a queue in which little lies against queues in which very much does, visible, hidden,
//! expired, or deleted a moment ago. All take turns, so that whatever else the machine does hits all of them.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lazuli_engine::{Engine, Settings};
use lazuli_shapes::queue::{NewMessage, Queues};
use lazuli_shardmap::manager::NewShard;
use lazuli_store::{Error, Result};
use lazuli_store_embedded::{Durability, EmbeddedStore};

/// What an operation takes, at most, of what it takes where little lies.
pub const TIMES_MAX: f64 = 1.3;

/// How much lies in the large queues, and how often everything is measured.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub messages: usize,
    pub rounds: usize,
}

impl Size {
    /// What the bounds are for.
    pub const FULL: Self = Self { messages: 1_000_000, rounds: 101 };
    /// Enough to see that it runs.
    pub const TINY: Self = Self { messages: 300, rounds: 1 };
}

const ACCOUNT: &str = "bench";
/// How long messages live that are to be found expired.
const EXPIRED_MS: u64 = 1;
/// Messages of the queue that all are compared with.
const FEW: usize = 1_000;
/// Operations of one round.
const OPERATIONS: usize = 50;
/// Who fill and empty queues at the same time.
const WORKERS: usize = 128;
const CONTENT_BYTES: usize = 100;
const HIDDEN_MS: u64 = 30_000;
/// Longer than any run takes.
const LONG_MS: u64 = 24 * 60 * 60 * 1_000;

/// What lies in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lies {
    Few,
    Waiting,
    Hidden,
    Expired,
    Deleted,
}

const ALL: [Lies; 5] = [Lies::Few, Lies::Waiting, Lies::Hidden, Lies::Expired, Lies::Deleted];

impl Lies {
    fn name(self) -> &'static str {
        match self {
            Self::Few => "few",
            Self::Waiting => "waiting",
            Self::Hidden => "hidden",
            Self::Expired => "expired",
            Self::Deleted => "deleted",
        }
    }
}

/// The times of one operation on each queue, one for each round.
#[derive(Clone, Debug, Default)]
struct Times {
    put: Vec<Duration>,
    cycle: Vec<Duration>,
}

/// One figure: the median time of an operation, and how often it holds that of a queue with few messages.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    pub micros: f64,
    pub times: f64,
}

#[derive(Clone, Debug, Default)]
pub struct Report {
    pub rows: Vec<Row>,
}

impl Report {
    pub fn is_met(&self) -> bool {
        self.rows.iter().all(|row| row.times <= TIMES_MAX)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<32} {:>9} {:>7}", "in a queue with many", "median us", "times")?;
        for row in &self.rows {
            let verdict = if row.times <= TIMES_MAX { "ok" } else { "MISSED" };
            writeln!(f, "{:<32} {:>9.1} {:>7.2} {verdict}", row.name, row.micros, row.times)?;
        }
        Ok(())
    }
}

async fn open(folder: &Path) -> Result<Queues> {
    // Not synced: what the disk takes would hide what is measured.
    let settings = crate::store::settings(Durability::Relaxed);
    let catalog = Arc::new(EmbeddedStore::open(folder.join("catalog"), &settings)?);
    let engine = Engine::on(lazuli_env::real::env(), Settings::default(), catalog).await?;
    let new = NewShard {
        name: "one".into(),
        location: "one".into(),
        region: String::new(),
        labels: Default::default(),
    };
    engine.add_shard(&new, Arc::new(EmbeddedStore::open(folder.join("one"), &settings)?)).await?;
    Ok(Queues::new(engine))
}

async fn put(queues: &Queues, lies: Lies, hidden_ms: u64, lives_ms: u64) -> Result<()> {
    let content = Bytes::from_static(&[b'x'; CONTENT_BYTES]);
    let new = NewMessage { content, hidden_ms, lives_ms: Some(lives_ms) };
    queues.put(ACCOUNT, lies.name(), new).await.map(|_| ())
}

async fn receive_and_delete(queues: &Queues, lies: Lies, most: usize) -> Result<usize> {
    let deliveries = queues.receive(ACCOUNT, lies.name(), most, HIDDEN_MS).await?;
    for delivery in &deliveries {
        let (id, receipt) = (delivery.message.id, delivery.hold.receipt);
        queues.delete_message(ACCOUNT, lies.name(), id, receipt).await?;
    }
    Ok(deliveries.len())
}

/// Runs one piece of work many times, many at once.
async fn many<F>(times: usize, work: impl Fn() -> F + Clone + Send + 'static) -> Result<()>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let work = work.clone();
        workers.spawn(async move {
            for _ in 0..times / WORKERS + usize::from(worker < times % WORKERS) {
                work().await?;
            }
            Ok(())
        });
    }
    while let Some(done) = workers.join_next().await {
        done.map_err(|error| Error::internal("worker", error))??;
    }
    Ok(())
}

async fn fill(queues: &Queues, lies: Lies, messages: usize) -> Result<()> {
    queues.create(ACCOUNT, lies.name(), Vec::new()).await?;
    let (messages, hidden_ms, lives_ms) = match lies {
        Lies::Few => (FEW, 0, LONG_MS),
        Lies::Waiting | Lies::Deleted => (messages, 0, LONG_MS),
        Lies::Hidden => (messages, LONG_MS, 2 * LONG_MS),
        Lies::Expired => (messages, 0, EXPIRED_MS),
    };
    let filled = queues.clone();
    many(messages, move || {
        let queues = filled.clone();
        async move { put(&queues, lies, hidden_ms, lives_ms).await }
    })
    .await?;
    if lies == Lies::Deleted {
        let emptied = queues.clone();
        many(WORKERS, move || {
            let queues = emptied.clone();
            async move {
                while receive_and_delete(&queues, lies, 32).await? > 0 {}
                Ok(())
            }
        })
        .await?;
    }
    if lies == Lies::Expired {
        // Nobody may receive the last ones while they live.
        tokio::time::sleep(Duration::from_millis(10 * EXPIRED_MS)).await;
    }
    // What stands in front is stepped over once, by whoever comes first.
    put(queues, lies, 0, LONG_MS).await?;
    receive_and_delete(queues, lies, 1).await.map(|_| ())
}

async fn measure(queues: &Queues, lies: Lies, times: &mut Times) -> Result<()> {
    let start = Instant::now();
    for _ in 0..OPERATIONS {
        put(queues, lies, 0, LONG_MS).await?;
    }
    times.put.push(start.elapsed());
    let start = Instant::now();
    for _ in 0..OPERATIONS {
        if receive_and_delete(queues, lies, 1).await? != 1 {
            return Err(Error::internal("no-message", "a queue ran empty"));
        }
    }
    times.cycle.push(start.elapsed());
    Ok(())
}

/// Runs everything in `folder`, which must be on the disk that counts.
pub async fn run(folder: &Path, size: Size) -> Result<Report> {
    let queues = open(folder).await?;
    for lies in ALL {
        fill(&queues, lies, size.messages).await?;
    }
    let mut times = vec![Times::default(); ALL.len()];
    for _ in 0..size.rounds {
        for (lies, times) in ALL.into_iter().zip(&mut times) {
            measure(&queues, lies, times).await?;
        }
    }
    let mut report = Report::default();
    for (operation, of) in [
        ("put", (|times| &times.put) as fn(&Times) -> &Vec<Duration>),
        ("receive and delete", |times| &times.cycle),
    ] {
        let few = median(of(&times[0]));
        for (lies, times) in ALL.into_iter().zip(&times) {
            let micros = median(of(times));
            let name = format!("{operation}, {}", lies.name());
            report.rows.push(Row { name, micros, times: micros / few });
        }
    }
    Ok(report)
}

/// In microseconds for one operation.
fn median(rounds: &[Duration]) -> f64 {
    let mut sorted = rounds.to_vec();
    sorted.sort_unstable();
    let middle = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    middle.as_secs_f64() * 1e6 / OPERATIONS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_tiny_run_measures_everything() {
        let folder = tempfile::tempdir().unwrap();
        let report = run(folder.path(), Size::TINY).await.unwrap();
        assert_eq!(report.rows.len(), 2 * ALL.len());
        assert!(report.rows.iter().all(|row| row.micros > 0.0), "{report}");
    }
}
