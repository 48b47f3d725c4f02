//! A primary that fails under writes, and its synchronous standby that is promoted: how long no write is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use lazuli_postgres_server::{Server, Stop};
use lazuli_store::{Result, Store, Write};
use lazuli_store_postgres::{Host, PostgresStore, Settings};

use super::Size;
use crate::figures::failed;
use crate::report::Report;

/// The longest gap between two answered writes of one partition.
const GAP_SECONDS_MAX: f64 = 2.0;
/// How long a writer waits before it tries again.
const PAUSE: Duration = Duration::from_millis(2);
/// Longer than any failover takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a writer has seen.
struct Seen {
    answered: Vec<u64>,
    gap: Duration,
}

/// Fails over once; the servers are new ones. The bound holds where nothing but this runs.
pub(super) async fn run(size: Size, report: &mut Report) -> Result<()> {
    let Some(primary) = Server::start().map_err(failed)? else { return Ok(()) };
    let standby = primary.standby("b", &[]).map_err(failed)?;
    primary.wait_for_standbys("FIRST 1 (b)").map_err(failed)?;
    let mut settings = Settings::parse(&primary.address("postgres"))?;
    let host = |server: &Server| Host { name: "127.0.0.1".to_owned(), port: server.port() };
    settings.hosts = vec![host(&primary), host(&standby)];
    let store = Arc::new(PostgresStore::open(settings).await?);
    let guard = vec![Write::Put("guard".into(), Bytes::new())];
    store.begin(vec![]).await?.commit(guard).await?;
    let is_over = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn(write(store.clone(), is_over.clone()));
    tokio::time::sleep(Duration::from_millis(size.turn_ms)).await;
    let mut primary = primary;
    let failing = tokio::task::spawn_blocking(move || {
        primary.stop(Stop::Immediate).and_then(|()| standby.promote()).map(|()| standby)
    });
    let standby = failing.await.map_err(failed)?.map_err(failed)?;
    is_over.store(true, Ordering::Release);
    let seen = tokio::time::timeout(PATIENCE, writer).await.map_err(failed)?.map_err(failed)?;
    let mut lost = 0;
    for n in &seen.answered {
        lost += u64::from(store.get(key(*n).as_bytes()).await?.is_none());
    }
    drop(standby);
    report.say(format_args!("failover: {} writes answered", seen.answered.len()));
    report.at_most("failover, answered writes lost", lost as f64, 0.0);
    report.at_most("failover, gap in seconds", seen.gap.as_secs_f64(), GAP_SECONDS_MAX);
    Ok(())
}

fn key(n: u64) -> String {
    format!("key-{n:06}")
}

/// Writes one key after another, until a write was answered after the failover.
async fn write(store: Arc<PostgresStore>, is_over: Arc<AtomicBool>) -> Seen {
    let (mut answered, mut gap, mut last) = (Vec::new(), Duration::ZERO, Instant::now());
    for n in 0.. {
        let was_over = is_over.load(Ordering::Acquire);
        let put = async {
            let txn = store.begin(vec!["guard".into()]).await?;
            txn.commit(vec![Write::Put(key(n).into(), Bytes::new())]).await
        };
        if put.await.is_err() {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        answered.push(n);
        gap = gap.max(last.elapsed());
        last = Instant::now();
        if was_over {
            break;
        }
    }
    Seen { answered, gap }
}
