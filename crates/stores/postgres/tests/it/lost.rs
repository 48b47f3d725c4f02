//! Connections, sessions and servers that end around a commit: what was answered is there, and once.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use lazuli_env::SplitMix64;
use lazuli_postgres_server::Server;
use lazuli_store::{Kind, Store, Write};
use lazuli_store_postgres::{PostgresStore, Settings};

use crate::place;
use crate::proxy::Proxy;

const LANES: u64 = 8;

#[derive(Default)]
struct Counts {
    answered: AtomicU64,
    failed: AtomicU64,
}

fn number(value: Option<Bytes>) -> u64 {
    value.map_or(0, |value| u64::from_be_bytes(value[..].try_into().unwrap()))
}

async fn prepare(store: &PostgresStore) {
    let guards = (0..LANES).map(|lane| Write::Put(format!("guard-{lane}").into(), Bytes::new()));
    store.begin(vec![]).await.unwrap().commit(guards.collect()).await.unwrap();
}

/// Adds one to a lane's counter and writes a row that says so, again and again. After an answer the counter has exactly the
/// next value; after an error that or the one before, decided by the next transaction.
async fn lane(store: Arc<PostgresStore>, lane: u64, until: Instant, counts: Arc<Counts>) {
    let guard = Bytes::from(format!("guard-{lane}"));
    let counter = Bytes::from(format!("counter-{lane}"));
    let (mut expected, mut is_unsure) = (0, false);
    while Instant::now() < until {
        let Ok(txn) = store.begin(vec![guard.clone()]).await else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        let Ok(value) = txn.get(&counter).await else { continue };
        let now = number(value);
        let is_right = now == expected || (is_unsure && now == expected + 1);
        assert!(is_right, "lane {lane}: {now} instead of {expected}, unsure: {is_unsure}");
        let next = now + 1;
        let mark = Bytes::from(format!("mark-{lane}-{next:08}"));
        let writes = vec![
            Write::Put(counter.clone(), next.to_be_bytes().to_vec().into()),
            Write::Put(mark, Bytes::new()),
            Write::Delete(Bytes::from(format!("mark-{lane}-{:08}", next.saturating_sub(5)))),
        ];
        match txn.commit(writes).await {
            Ok(()) => {
                (expected, is_unsure) = (next, false);
                counts.answered.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                assert!(matches!(error.kind(), Kind::Unavailable { .. }), "{error}");
                (expected, is_unsure) = (now, true);
                counts.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Ends a task in the background, also when the test fails.
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs lanes of two stores on one database while something goes wrong again and again.
async fn trial(stores: [Arc<PostgresStore>; 2], counts: &Arc<Counts>, time: Duration) {
    let until = Instant::now() + time;
    let lanes = (0..LANES).map(|number| {
        let store = stores[(number % 2) as usize].clone();
        tokio::spawn(lane(store, number, until, counts.clone()))
    });
    for lane in lanes.collect::<Vec<_>>() {
        lane.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_around_a_commit_lose_and_double_nothing() {
    let Some(mut settings) = place::settings() else { return };
    let proxy = Proxy::before(&mut settings).await;
    let stores = [(); 2].map(|()| PostgresStore::start(settings.clone()).unwrap());
    let stores = stores.map(Arc::new);
    prepare(&stores[0]).await;
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Over(over.clone());
    let counts = Arc::<Counts>::default();
    let counted = counts.clone();
    let cutter = tokio::spawn(async move {
        let mut noise = SplitMix64::new(7);
        let mut seen = 0;
        while !over.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_micros(noise.next_u64() % 5_000)).await;
            // However slow the machine is, most of the work gets done.
            let answered = counted.answered.load(Ordering::Relaxed);
            if answered < seen + 5 {
                continue;
            }
            seen = answered;
            proxy.cut_one((noise.next_u64() % 64) as usize);
        }
        proxy.connections()
    });
    trial(stores, &counts, Duration::from_secs(4)).await;
    drop(is_over);
    let connections = cutter.await.unwrap();
    let answered = counts.answered.load(Ordering::Relaxed);
    let failed = counts.failed.load(Ordering::Relaxed);
    println!("{answered} answered, {failed} failed, {connections} connections");
    assert!(answered > 50 && connections > 20, "the trial did not try anything");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_the_server_ends_around_a_commit_lose_and_double_nothing() {
    let Some(settings) = place::settings() else { return };
    let server = place::server().unwrap();
    let stores = [(); 2].map(|()| PostgresStore::start(settings.clone()).unwrap());
    let stores = stores.map(Arc::new);
    prepare(&stores[0]).await;
    let (over, database) = (Arc::new(AtomicBool::new(false)), settings.database.clone());
    let is_over = Over(over.clone());
    let ender = tokio::task::spawn_blocking(move || {
        // One call ends many sessions, one after another.
        let end = "DO $$ DECLARE victim int; BEGIN FOR i IN 1..40 LOOP \
                   SELECT pid INTO victim FROM pg_stat_activity WHERE application_name = 'lazuli' \
                   AND datname = current_database() AND state <> 'idle' ORDER BY random() LIMIT 1; \
                   PERFORM pg_terminate_backend(victim); PERFORM pg_sleep(0.005); \
                   PERFORM pg_stat_clear_snapshot(); END LOOP; END $$";
        while !over.load(Ordering::Relaxed) {
            server.psql(&database, end).unwrap();
        }
    });
    let counts = Arc::<Counts>::default();
    trial(stores, &counts, Duration::from_secs(3)).await;
    drop(is_over);
    ender.await.unwrap();
    let answered = counts.answered.load(Ordering::Relaxed);
    let failed = counts.failed.load(Ordering::Relaxed);
    println!("{answered} answered, {failed} failed");
    assert!(answered > 100, "the trial did not try anything");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_crashes_again_and_again_loses_and_doubles_nothing() {
    let Some(server) = Server::start().unwrap() else { return };
    let settings = Settings::parse(&server.address("postgres")).unwrap();
    let stores = [(); 2].map(|()| PostgresStore::start(settings.clone()).unwrap());
    let stores = stores.map(Arc::new);
    prepare(&stores[0]).await;
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Over(over.clone());
    let killer = tokio::task::spawn_blocking(move || {
        let mut crashes = 0;
        while !over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(700));
            // A session that is killed takes all others with it: the server recovers as after a crash.
            let victim =
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'lazuli' LIMIT 1";
            if let Ok(pid) = server.psql("postgres", victim) {
                let kill = ["-9", pid.trim()];
                crashes += u32::from(Command::new("kill").args(kill).status().unwrap().success());
            }
        }
        crashes
    });
    let counts = Arc::<Counts>::default();
    trial(stores, &counts, Duration::from_secs(5)).await;
    drop(is_over);
    let crashes = killer.await.unwrap();
    let answered = counts.answered.load(Ordering::Relaxed);
    let failed = counts.failed.load(Ordering::Relaxed);
    println!("{answered} answered, {failed} failed, {crashes} crashes");
    assert!(answered > 50 && crashes > 0, "the trial did not try anything");
}
