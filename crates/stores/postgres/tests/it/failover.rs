//! A primary that fails, and its standby that takes over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lazuli_postgres_server::{Server, Stop};
use lazuli_store::{Store, Write};
use lazuli_store_postgres::{Host, PostgresBlocks, PostgresStore, Settings};

fn settings(servers: [&Server; 2]) -> Settings {
    let mut settings = Settings::parse(&servers[0].address("postgres")).unwrap();
    let host = |server: &&Server| Host { name: "127.0.0.1".to_owned(), port: server.port() };
    settings.hosts = servers.iter().map(host).collect();
    settings
}

async fn put(store: &PostgresStore, n: u64) -> lazuli_store::Result<()> {
    let txn = store.begin(vec!["guard".into()]).await?;
    let key = Bytes::from(format!("key-{n:06}"));
    txn.commit(vec![Write::Put(key, Bytes::new())]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_standby_is_followed_and_the_old_primary_refused() {
    let Some(mut primary) = Server::start().unwrap() else { return };
    let standby = primary.standby("b", &[]).unwrap();
    primary.wait_for_standbys("FIRST 1 (b)").unwrap();
    // The standby is named first: it answers, but takes no writes.
    let settings = settings([&standby, &primary]);
    let store = Arc::new(PostgresStore::open(settings.clone()).await.unwrap());
    assert_eq!(store.timeline(), 1);
    let blocks = PostgresBlocks::open(settings.clone(), "node").await.unwrap();
    let generation = blocks.generation();
    let guard = vec![Write::Put("guard".into(), Bytes::new())];
    store.begin(vec![]).await.unwrap().commit(guard).await.unwrap();
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            let (mut answered, mut gap, mut last) = (Vec::new(), Duration::ZERO, Instant::now());
            for n in 0.. {
                match put(&store, n).await {
                    Ok(()) => {
                        answered.push(n);
                        gap = gap.max(last.elapsed());
                        last = Instant::now();
                    }
                    Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
                }
                if store.timeline() == 2 && n % 200 == 0 && last.elapsed() < gap {
                    break;
                }
            }
            (answered, gap)
        }
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let failed_over = tokio::task::spawn_blocking(move || {
        primary.stop(Stop::Immediate).unwrap();
        standby.promote().unwrap();
        (primary, standby)
    });
    let (mut primary, standby) = failed_over.await.unwrap();
    let writing = tokio::time::timeout(Duration::from_secs(60), writer);
    let (answered, gap) = writing.await.expect("the writer comes to its end").unwrap();
    println!("{} answered, gap {} ms", answered.len(), gap.as_millis());
    assert!(answered.len() > 20);
    for n in answered {
        let key = format!("key-{n:06}");
        assert!(store.get(key.as_bytes()).await.unwrap().is_some(), "{key} was answered");
    }
    let owner = lazuli_store::blocks::Owner { container: 1, route: Bytes::new() };
    let writer = lazuli_store::blocks::Blocks::create(&blocks, &owner).await.unwrap();
    let file = writer.finish().await.unwrap();
    assert_ne!(file.id.generation, generation, "the new primary may not know the old one");

    // The old primary comes back as one: it takes writes, on its own timeline.
    primary.begin().unwrap();
    drop(standby);
    assert_eq!(primary.psql("postgres", "SELECT pg_is_in_recovery()").unwrap(), "f");
    let begun = Instant::now();
    let refused = loop {
        match put(&store, 0).await {
            Err(error) if error.code() == "database-timeline-old" => break error,
            outcome => assert!(begun.elapsed() < Duration::from_secs(20), "{outcome:?}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert!(refused.message().contains("timeline 1, but timeline 2"), "{refused}");
    // A process that starts knows it by what others have seen.
    let new = Settings { timeline_least: store.timeline(), ..settings };
    let refused = PostgresStore::open(new).await.err().unwrap();
    assert_eq!(refused.code(), "database-timeline-old");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_hosts_that_take_writes_the_one_on_the_higher_timeline_is_the_primary() {
    let Some(primary) = Server::start().unwrap() else { return };
    let standby = primary.standby("b", &[]).unwrap();
    let settings = settings([&primary, &standby]);
    let early = PostgresStore::open(settings.clone()).await.unwrap();
    let guard = vec![Write::Put("guard".into(), Bytes::new())];
    early.begin(vec![]).await.unwrap().commit(guard).await.unwrap();
    let caught_up = "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn >= \
                     pg_current_wal_lsn()";
    while primary.psql("postgres", caught_up).unwrap() != "1" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Cut off, the old primary does not know that it was replaced.
    standby.promote().unwrap();
    let late = PostgresStore::open(settings).await.unwrap();
    assert_eq!(late.timeline(), 2);
    put(&late, 7).await.unwrap();
    assert_eq!(standby.psql("postgres", "SELECT count(*) FROM lazuli.kv").unwrap(), "2");
    assert_eq!(primary.psql("postgres", "SELECT count(*) FROM lazuli.kv").unwrap(), "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_waits_for_a_standby_for_ever_is_answered_as_unknown() {
    let Some(server) = Server::start().unwrap() else { return };
    let store = PostgresStore::open(Settings::parse(&server.address("postgres")).unwrap());
    let store = store.await.unwrap();
    let guard = vec![Write::Put("guard".into(), Bytes::new())];
    store.begin(vec![]).await.unwrap().commit(guard).await.unwrap();
    server.wait_for_standbys("FIRST 1 (nobody)").unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let begun = Instant::now();
    let unknown = put(&store, 1).await.unwrap_err();
    assert_eq!(unknown.code(), "commit-outcome-unknown");
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    // Nobody sees it, and nobody else gets the guard, until it is decided.
    assert_eq!(store.get(b"key-000001").await.unwrap(), None);
    assert!(store.begin(vec!["guard".into()]).await.is_err());
    server.wait_for_standbys("").unwrap();
    let decided = Instant::now();
    while store.begin(vec!["guard".into()]).await.is_err() {
        assert!(decided.elapsed() < Duration::from_secs(20));
    }
    assert!(store.get(b"key-000001").await.unwrap().is_some());
}
