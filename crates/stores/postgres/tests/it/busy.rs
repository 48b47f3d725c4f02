//! Limits: connections, locks, time, and a database that is away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lazuli_store::{Reads, Store, StoreHealth, Write};
use lazuli_store_postgres::PostgresStore;

use crate::place;
use crate::proxy::Proxy;

async fn put(store: &PostgresStore, key: &'static str) -> lazuli_store::Result<()> {
    let txn = store.begin(vec![]).await?;
    txn.commit(vec![Write::Put(key.into(), Bytes::new())]).await
}

#[tokio::test]
async fn a_store_whose_connections_are_all_in_use_says_so() {
    let Some(mut settings) = place::settings() else { return };
    settings.read_connections = 1;
    let store = PostgresStore::open(settings).await.unwrap();
    let snapshot = store.snapshot(&[], Reads::Several).await.unwrap();
    let begun = Instant::now();
    let busy = store.get(b"a").await.unwrap_err();
    assert_eq!(busy.code(), "database-busy");
    assert!(begun.elapsed() < Duration::from_secs(7));
    put(&store, "writes have connections of their own").await.unwrap();
    drop(snapshot);
    assert_eq!(store.get(b"a").await.unwrap(), None, "the connection is free again");
}

#[tokio::test]
async fn a_lock_is_waited_for_a_bounded_time() {
    let Some(settings) = place::settings() else { return };
    let store = PostgresStore::open(settings.clone()).await.unwrap();
    let other = PostgresStore::open(settings).await.unwrap();
    put(&store, "guard").await.unwrap();
    let holder = store.begin(vec!["guard".into()]).await.unwrap();
    let begun = Instant::now();
    let refused = other.begin(vec!["guard".into()]).await.err().unwrap();
    assert_eq!(refused.code(), "database-lock-timeout");
    assert!(begun.elapsed() < Duration::from_secs(4));
    holder.commit(vec![]).await.unwrap();
    other.begin(vec!["guard".into()]).await.unwrap();
}

#[tokio::test]
async fn a_transaction_that_is_forgotten_loses_its_locks_and_writes_nothing() {
    let Some(settings) = place::settings() else { return };
    let store = PostgresStore::open(settings.clone()).await.unwrap();
    let other = PostgresStore::open(settings).await.unwrap();
    put(&store, "guard").await.unwrap();
    let sleeper = store.begin(vec!["guard".into()]).await.unwrap();
    let begun = Instant::now();
    loop {
        match other.begin(vec!["guard".into()]).await {
            Ok(txn) => break txn.commit(vec![]).await.unwrap(),
            Err(error) => assert_eq!(error.code(), "database-lock-timeout"),
        }
        assert!(begun.elapsed() < Duration::from_secs(12), "the lock was not given back");
    }
    let late = sleeper.commit(vec![Write::Put("late".into(), Bytes::new())]).await;
    assert!(late.is_err());
    assert_eq!(other.get(b"late").await.unwrap(), None);
}

#[tokio::test]
async fn a_snapshot_ends_with_its_time() {
    let Some(mut settings) = place::settings() else { return };
    settings.snapshot_life = Duration::from_millis(200);
    let store = PostgresStore::open(settings.clone()).await.unwrap();
    let snapshot = store.snapshot(&[], Reads::Several).await.unwrap();
    assert_eq!(snapshot.get(b"a").await.unwrap(), None);
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(snapshot.get(b"a").await.unwrap_err().code(), "snapshot-too-old");
    let open = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                AND application_name = 'lazuli' AND xact_start IS NOT NULL";
    let server = place::server().unwrap();
    assert_eq!(server.psql(&settings.database, open).unwrap(), "0");
    let long = [(); 2].map(|()| store.snapshot(&[], Reads::Long));
    let long = futures_of(long).await;
    let refused = store.snapshot(&[], Reads::Long).await.err().unwrap();
    assert_eq!(refused.code(), "snapshot-refused");
    drop(long);
    assert!(store.snapshot(&[], Reads::Long).await.is_ok());
}

async fn futures_of<T>(all: [impl Future<Output = lazuli_store::Result<T>>; 2]) -> Vec<T> {
    let mut done = Vec::new();
    for one in all {
        done.push(one.await.unwrap());
    }
    done
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_away_is_told_at_once_and_comes_back_by_itself() {
    let Some(mut settings) = place::settings() else { return };
    let proxy = Proxy::before(&mut settings).await;
    let store = Arc::new(PostgresStore::start(settings).unwrap());
    put(&store, "before").await.unwrap();
    proxy.hold(true);
    // Those that are under way take as long as they may; the others are told what those found out.
    let begun = Instant::now();
    assert!(store.get(b"before").await.is_err());
    assert!(begun.elapsed() < Duration::from_secs(10));
    let begun = Instant::now();
    while matches!(store.health(), StoreHealth::Well) {
        assert!(begun.elapsed() < Duration::from_secs(10), "nobody looks after it");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (begun, before) = (Instant::now(), proxy.connections());
    let calls = (0..500).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { put(&store, "meanwhile").await })
    });
    for call in calls.collect::<Vec<_>>() {
        assert!(call.await.unwrap().is_err());
    }
    assert!(begun.elapsed() < Duration::from_secs(2), "they did not wait for the database");
    assert!(proxy.connections() - before <= 2, "one task tries to reach it");
    proxy.hold(false);
    let begun = Instant::now();
    while store.get(b"before").await.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(10), "it does not come back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    put(&store, "after").await.unwrap();
    assert!(matches!(store.health(), StoreHealth::Well));
}

#[tokio::test]
async fn a_store_can_start_before_its_database() {
    let Some(mut settings) = place::settings() else { return };
    let proxy = Proxy::before(&mut settings).await;
    let port = proxy.port();
    settings.hosts[0].port = 1;
    assert!(PostgresStore::open(settings.clone()).await.is_err());
    let store = PostgresStore::start(settings.clone()).unwrap();
    assert!(put(&store, "a").await.is_err());
    store.close().await.unwrap();
    settings.hosts[0].port = port;
    let store = PostgresStore::start(settings).unwrap();
    put(&store, "a").await.unwrap();
    store.close().await.unwrap();
    assert_eq!(put(&store, "b").await.unwrap_err().code(), "store-closed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_goes_away_leaves_the_connections_usable() {
    let Some(mut settings) = place::settings() else { return };
    (settings.read_connections, settings.write_connections) = (2, 2);
    let store = PostgresStore::open(settings).await.unwrap();
    put(&store, "guard").await.unwrap();
    for n in 0..100_u64 {
        let time = Duration::from_micros(n * 17);
        let reading = async {
            let snapshot = store.snapshot(&["guard".into()], Reads::Several).await?;
            snapshot.get(b"a").await
        };
        let _ = tokio::time::timeout(time, reading).await;
        let writing = async {
            let txn = store.begin(vec!["guard".into()]).await?;
            txn.get(b"a").await?;
            txn.commit(vec![Write::Put("a".into(), n.to_be_bytes().to_vec().into())]).await
        };
        let _ = tokio::time::timeout(time, writing).await;
    }
    let txn = store.begin(vec!["guard".into()]).await.unwrap();
    txn.commit(vec![Write::Put("a".into(), "last".into())]).await.unwrap();
    assert_eq!(store.get(b"a").await.unwrap().unwrap(), "last");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_the_server_ends_is_an_error_and_its_connection_goes_on() {
    let Some(mut settings) = place::settings() else { return };
    settings.read_connections = 1;
    let server = place::server().unwrap();
    let store = Arc::new(PostgresStore::open(settings.clone()).await.unwrap());
    assert_eq!(store.get(b"a").await.unwrap(), None);
    let session = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() \
                   AND query LIKE 'SELECT v FROM%'";
    let before = server.psql(&settings.database, session).unwrap();
    let database = settings.database.clone();
    let locked = tokio::task::spawn_blocking(move || {
        // As a statement that takes longer than it may: the server ends it with the same error.
        let end = "BEGIN; LOCK TABLE lazuli.kv IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(0.5); \
                   SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = \
                   'lazuli' AND datname = current_database() AND wait_event_type = 'Lock'";
        server.psql(&database, end).unwrap();
    });
    tokio::time::sleep(Duration::from_millis(250)).await;
    let ended = store.get(b"a").await.unwrap_err();
    assert_eq!(ended.code(), "database-statement-timeout");
    locked.await.unwrap();
    assert_eq!(store.get(b"a").await.unwrap(), None);
    assert_eq!(server.psql(&settings.database, session).unwrap(), before, "the same session");
}

#[test]
fn a_connection_does_not_depend_on_the_runtime_that_asked_for_it() {
    use tokio::runtime::Builder;
    let Some(settings) = place::settings() else { return };
    let front = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let store = front.block_on(PostgresStore::open(settings)).unwrap();
    let behind = Builder::new_current_thread().enable_all().build().unwrap();
    let snapshot = behind.block_on(store.snapshot(&[], Reads::Several)).unwrap();
    drop(behind);
    assert_eq!(front.block_on(snapshot.get(b"a")).unwrap(), None);
}

#[tokio::test]
async fn reads_of_single_values_share_a_connection_and_fail_each_by_itself() {
    let Some(mut settings) = place::settings() else { return };
    settings.read_connections = 1;
    let store = PostgresStore::open(settings).await.unwrap();
    put(&store, "a").await.unwrap();
    let read = |n: usize| {
        let store = &store;
        async move {
            let guards: Vec<Bytes> =
                if n.is_multiple_of(3) { vec!["none".into()] } else { Vec::new() };
            store.snapshot(&guards, Reads::One).await?.get(b"a").await
        }
    };
    let answers = futures_util::future::join_all((0..40).map(read)).await;
    for (n, answer) in answers.into_iter().enumerate() {
        match n % 3 {
            0 => assert!(answer.unwrap_err().is_moved(), "{n}"),
            _ => assert_eq!(answer.unwrap(), Some(Bytes::new()), "{n}"),
        }
    }
    // One that its caller gives up leaves the connection to others.
    for _ in 0..20 {
        let given_up = tokio::time::timeout(Duration::ZERO, read(1)).await;
        assert!(given_up.is_err() || given_up.unwrap().is_ok());
    }
    assert_eq!(read(1).await.unwrap(), Some(Bytes::new()));
}
