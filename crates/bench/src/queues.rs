//! Queues on the embedded store: a queue with few messages against queues with very many that are visible, hidden, expired,
//! or deleted a moment ago. All take turns, so that other load on the machine affects all of them.

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lazuli_engine::Settings;
use lazuli_shapes::queue::{NewMessage, Queues};
use lazuli_store::{Error, Result};

use crate::figures::{median, spread, unsynced_engine};
use crate::report::Report;

/// The most time of an operation, as a multiple of that in a queue with few messages.
pub const TIMES_MAX: f64 = 1.3;

/// How many messages the large queues have, and how often everything is measured.
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

/// The messages of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backlog {
    Few,
    Waiting,
    Hidden,
    Expired,
    Deleted,
}

const ALL: [Backlog; 5] =
    [Backlog::Few, Backlog::Waiting, Backlog::Hidden, Backlog::Expired, Backlog::Deleted];

impl Backlog {
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

async fn put(queues: &Queues, backlog: Backlog, hidden_ms: u64, lives_ms: u64) -> Result<()> {
    let content = Bytes::from_static(&[b'x'; CONTENT_BYTES]);
    let new = NewMessage { content, hidden_ms, lives_ms: Some(lives_ms) };
    queues.put(ACCOUNT, backlog.name(), new).await.map(|_| ())
}

async fn receive_and_delete(queues: &Queues, backlog: Backlog, most: usize) -> Result<usize> {
    let deliveries = queues.receive(ACCOUNT, backlog.name(), most, HIDDEN_MS).await?;
    for delivery in &deliveries {
        let (id, receipt) = (delivery.message.id, delivery.hold.receipt);
        queues.delete_message(ACCOUNT, backlog.name(), id, receipt).await?;
    }
    Ok(deliveries.len())
}

async fn fill(queues: &Queues, backlog: Backlog, messages: usize) -> Result<()> {
    queues.create(ACCOUNT, backlog.name(), Vec::new()).await?;
    let (messages, hidden_ms, lives_ms) = match backlog {
        Backlog::Few => (FEW, 0, LONG_MS),
        Backlog::Waiting | Backlog::Deleted => (messages, 0, LONG_MS),
        Backlog::Hidden => (messages, LONG_MS, 2 * LONG_MS),
        Backlog::Expired => (messages, 0, EXPIRED_MS),
    };
    let filled = queues.clone();
    spread(WORKERS, messages, move |_| {
        let queues = filled.clone();
        async move { put(&queues, backlog, hidden_ms, lives_ms).await }
    })
    .await?;
    if backlog == Backlog::Deleted {
        let emptied = queues.clone();
        spread(WORKERS, WORKERS, move |_| {
            let queues = emptied.clone();
            async move {
                while receive_and_delete(&queues, backlog, 32).await? > 0 {}
                Ok(())
            }
        })
        .await?;
    }
    if backlog == Backlog::Expired {
        // The last messages must have expired before anything is received.
        tokio::time::sleep(Duration::from_millis(10 * EXPIRED_MS)).await;
    }
    // The first receive skips the messages in front; later ones do not pay for it.
    put(queues, backlog, 0, LONG_MS).await?;
    receive_and_delete(queues, backlog, 1).await.map(|_| ())
}

async fn measure(queues: &Queues, backlog: Backlog, times: &mut Times) -> Result<()> {
    let start = Instant::now();
    for _ in 0..OPERATIONS {
        put(queues, backlog, 0, LONG_MS).await?;
    }
    times.put.push(start.elapsed());
    let start = Instant::now();
    for _ in 0..OPERATIONS {
        if receive_and_delete(queues, backlog, 1).await? != 1 {
            return Err(Error::internal("no-message", "a queue ran empty"));
        }
    }
    times.cycle.push(start.elapsed());
    Ok(())
}

/// Runs everything in `folder`, which must be on the disk that counts.
pub async fn run(folder: &Path, size: Size) -> Result<Report> {
    let queues = Queues::new(unsynced_engine(folder, Settings::default()).await?);
    for backlog in ALL {
        fill(&queues, backlog, size.messages).await?;
    }
    let mut times = vec![Times::default(); ALL.len()];
    for _ in 0..size.rounds {
        for (backlog, times) in ALL.into_iter().zip(&mut times) {
            measure(&queues, backlog, times).await?;
        }
    }
    let mut report = Report::default();
    for (operation, of) in [
        ("put", (|times| &times.put) as fn(&Times) -> &Vec<Duration>),
        ("receive and delete", |times| &times.cycle),
    ] {
        let few = micros(of(&times[0]));
        for (backlog, times) in ALL.into_iter().zip(&times) {
            let (micros, name) = (micros(of(times)), backlog.name());
            report.figure(format!("{operation}, {name}, median us"), micros);
            report.at_most(format!("{operation}, {name}, times few"), micros / few, TIMES_MAX);
        }
    }
    Ok(report)
}

/// The median, in microseconds for one operation.
fn micros(rounds: &[Duration]) -> f64 {
    median(rounds.iter().map(|round| round.as_secs_f64() * 1e6 / OPERATIONS as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_tiny_run_measures_everything() {
        let folder = tempfile::tempdir().unwrap();
        let report = run(folder.path(), Size::TINY).await.unwrap();
        let values = [report.values("put, "), report.values("receive and delete, ")].concat();
        assert_eq!(values.len(), 4 * ALL.len());
        assert!(values.iter().all(|value| *value > 0.0), "{report}");
    }
}
