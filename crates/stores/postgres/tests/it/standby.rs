//! Reads that allow an old state go to a standby, and the store knows how old it is.

use std::time::{Duration, Instant};

use bytes::Bytes;
use lazuli_postgres_server::{Server, Stop};
use lazuli_store::{Copies, Direction, KeyRange, PageLimit, Reads, Store, Write};
use lazuli_store_postgres::{Host, PostgresStore, Settings};

const PATIENCE: Duration = Duration::from_secs(30);

fn settings(servers: &[&Server]) -> Settings {
    let mut settings = Settings::parse(&servers[0].address("postgres")).unwrap();
    let host = |server: &&Server| Host { name: "127.0.0.1".to_owned(), port: server.port() };
    settings.hosts = servers.iter().map(host).collect();
    settings
}

async fn put(store: &PostgresStore, key: &'static str, value: &'static str) {
    let txn = store.begin(vec![]).await.unwrap();
    txn.commit(vec![Write::Put(key.into(), value.into())]).await.unwrap();
}

async fn newest(store: &PostgresStore, key: &str) -> Option<Bytes> {
    store.get(key.as_bytes()).await.unwrap()
}

async fn stale(store: &PostgresStore, guard: &'static str, key: &str) -> Option<Bytes> {
    let snapshot = store.stale_snapshot(&[guard.into()], Reads::One).await.unwrap();
    snapshot.get(key.as_bytes()).await.unwrap()
}

fn behind(store: &PostgresStore) -> Option<Duration> {
    match store.copies()? {
        Copies::Behind(time) => Some(time),
        Copies::Unused(_) => None,
    }
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "not so in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until the standby shows what was written up to now.
async fn in_step(store: &PostgresStore) {
    let now = Instant::now();
    until("the standby shows what was written", || {
        behind(store).is_some_and(|time| time < now.elapsed())
    })
    .await;
}

/// A primary, a standby that stands still, and what each of them has.
async fn paused() -> Option<(Server, Server, PostgresStore)> {
    let primary = Server::start().unwrap()?;
    let standby = primary.standby("b", &[]).unwrap();
    let store = PostgresStore::open(settings(&[&primary, &standby])).await.unwrap();
    put(&store, "guard", "").await;
    put(&store, "key", "old").await;
    in_step(&store).await;
    standby.psql("postgres", "SELECT pg_wal_replay_pause()").unwrap();
    let state = "SELECT pg_get_wal_replay_pause_state()";
    until("replay is paused", || standby.psql("postgres", state).unwrap() == "paused").await;
    put(&store, "key", "new").await;
    Some((primary, standby, store))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_allows_an_old_state_is_answered_by_the_standby_and_no_other_is() {
    let Some((_primary, standby, store)) = paused().await else { return };
    let since = Instant::now();
    assert_eq!(newest(&store, "key").await.unwrap(), "new");
    assert_eq!(stale(&store, "guard", "key").await.unwrap(), "old");
    for reads in [Reads::One, Reads::Several, Reads::Long] {
        let snapshot = store.stale_snapshot(&["guard".into()], reads).await.unwrap();
        let page = snapshot.scan(&KeyRange::all(), Direction::Forward, PageLimit::MAX).await;
        let page = page.unwrap().items;
        assert_eq!(page, [("guard".into(), Bytes::new()), ("key".into(), "old".into())]);
    }
    // It gets older for as long as it stands still, and is as new as it was before after that.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(behind(&store).unwrap() >= since.elapsed());
    standby.psql("postgres", "SELECT pg_wal_replay_resume()").unwrap();
    in_step(&store).await;
    assert_eq!(stale(&store, "guard", "key").await.unwrap(), "new");
    assert!(behind(&store).unwrap() < since.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_does_not_answer_under_a_guard_that_it_does_not_have_yet() {
    let Some((_primary, _standby, store)) = paused().await else { return };
    put(&store, "later guard", "").await;
    assert_eq!(stale(&store, "later guard", "key").await.unwrap(), "new");
    for reads in [Reads::Several, Reads::Long] {
        let snapshot = store.stale_snapshot(&["later guard".into()], reads).await.unwrap();
        assert_eq!(snapshot.get(b"key").await.unwrap().unwrap(), "new");
    }
    let snapshot = store.stale_snapshot(&["no guard".into()], Reads::One).await.unwrap();
    assert!(snapshot.get(b"key").await.unwrap_err().is_moved());
    let refused = store.stale_snapshot(&["no guard".into()], Reads::Several).await.err().unwrap();
    assert!(refused.is_moved());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_answers_while_the_primary_is_away_until_it_is_too_old() {
    let Some(mut primary) = Server::start().unwrap() else { return };
    let standby = primary.standby("b", &[]).unwrap();
    let mut settings = settings(&[&primary, &standby]);
    settings.staleness_max = Duration::from_secs(4);
    let store = PostgresStore::open(settings).await.unwrap();
    put(&store, "guard", "").await;
    put(&store, "key", "value").await;
    in_step(&store).await;
    primary.stop(Stop::Immediate).unwrap();
    assert_eq!(stale(&store, "guard", "key").await.unwrap(), "value");
    assert!(store.get(b"key").await.is_err());
    assert_eq!(stale(&store, "guard", "key").await.unwrap(), "value");
    until("the standby is too old", || behind(&store).is_none()).await;
    let snapshot = store.stale_snapshot(&["guard".into()], Reads::One).await.unwrap();
    assert!(snapshot.get(b"key").await.is_err(), "nothing new enough is there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_standby_the_primary_answers() {
    let Some(primary) = Server::start().unwrap() else { return };
    let mut standby = primary.standby("b", &[]).unwrap();
    let both = settings(&[&primary, &standby]);
    let store = PostgresStore::open(both.clone()).await.unwrap();
    put(&store, "guard", "").await;
    in_step(&store).await;
    let unread = PostgresStore::open(Settings { reads_standbys: false, ..both }).await.unwrap();
    assert!(unread.copies().is_none());
    standby.stop(Stop::Immediate).unwrap();
    put(&store, "key", "value").await;
    for store in [&store, &unread] {
        assert_eq!(stale(store, "guard", "key").await.unwrap(), "value");
    }
    until("the standby is known to be away", || behind(&store).is_none()).await;
    assert_eq!(stale(&store, "guard", "key").await.unwrap(), "value");
    standby.begin().unwrap();
    in_step(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_of_a_primary_that_was_replaced_is_not_read() {
    let Some(mut primary) = Server::start().unwrap() else { return };
    let next = primary.standby("b", &[]).unwrap();
    let left_behind = primary.standby("c", &[]).unwrap();
    let store = PostgresStore::open(settings(&[&primary, &next, &left_behind])).await.unwrap();
    put(&store, "guard", "").await;
    put(&store, "key", "old").await;
    in_step(&store).await;
    primary.stop(Stop::Fast).unwrap();
    next.promote().unwrap();
    let begun = Instant::now();
    while store.begin(vec![]).await.is_err() {
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(store.timeline(), 2);
    put(&store, "key", "new").await;
    for _ in 0..20 {
        assert_eq!(stale(&store, "guard", "key").await.unwrap(), "new");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(behind(&store).is_none(), "{:?}", store.copies());
    assert_eq!(left_behind.psql("postgres", "SELECT count(*) FROM lazuli.kv").unwrap(), "2");
}
