//! Loads that are large enough for tables of their own: beside commits, across restarts, and when their guard goes.

use std::collections::BTreeSet;

use crate::fixture::open_again;
use bytes::Bytes;
use lazuli_store::{Item, KeyRange, Kind, Reads, Store, Write};
use lazuli_store_embedded::{Durability, EmbeddedStore, Settings};

const ITEMS: usize = 3_000;

fn settings(durability: Durability) -> Settings {
    // Small memtables, so that flushes come in between.
    Settings { durability, memtable_bytes: 256 * 1024, ..Settings::default() }
}

fn key(n: usize) -> Bytes {
    format!("key-{n:06}").into()
}

/// Three megabytes, each value of which says which load it is of.
fn load(mark: u8) -> Vec<Item> {
    (0..ITEMS).map(|n| (key(n), Bytes::from(vec![mark; 1_000]))).collect()
}

async fn commit(store: &EmbeddedStore, writes: Vec<Write>) {
    store.begin(vec![]).await.unwrap().commit(writes).await.unwrap();
}

async fn mark_of(store: &EmbeddedStore, n: usize) -> Option<u8> {
    store.get(&key(n)).await.unwrap().map(|value| value[0])
}

#[tokio::test]
async fn loads_and_commits_at_once_are_all_there_after_a_restart() {
    for durability in [Durability::Synced, Durability::Relaxed] {
        let folder = tempfile::tempdir().unwrap();
        for round in 1..=4u8 {
            let store = EmbeddedStore::open(folder.path(), &settings(durability)).unwrap();
            if round > 1 {
                assert_eq!(mark_of(&store, 0).await, Some(round - 1));
                assert_eq!(mark_of(&store, ITEMS - 1).await, Some(round - 1));
                assert_eq!(mark_of(&store, 5).await, Some(100 + round - 1), "written after it");
                let other = store.get(b"other-299").await.unwrap();
                assert_eq!(other.as_deref(), Some(&[round - 1][..]));
                assert!(store.verify().unwrap().damages.is_empty());
            }
            let others = async {
                for n in 0..300 {
                    let put = Write::Put(format!("other-{n}").into(), vec![round; 1].into());
                    commit(&store, vec![put]).await;
                }
            };
            let (loaded, ()) = tokio::join!(store.ingest(vec![], load(round)), others);
            loaded.unwrap();
            commit(&store, vec![Write::Put(key(5), vec![100 + round].into())]).await;
            // Every other store is stopped without being closed.
            if round % 2 == 0 {
                store.close().await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn a_load_is_refused_whole_if_its_guard_goes_while_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let guard = Bytes::from("a guard");
    {
        let store = EmbeddedStore::open(folder.path(), &settings(Durability::Synced)).unwrap();
        commit(&store, vec![Write::Put(guard.clone(), Bytes::new())]).await;
        // So much that its tables are not written before the other commit is in the line.
        let much = (0..20 * ITEMS).map(|n| (key(n), Bytes::from(vec![1; 1_000]))).collect();
        let (loaded, ()) = tokio::join!(
            biased;
            store.ingest(vec![guard.clone()], much),
            commit(&store, vec![Write::Delete(guard.clone())]),
        );
        assert_eq!(loaded.unwrap_err().kind(), Kind::Moved);
        assert_eq!(mark_of(&store, 7).await, None);
    }
    let store = open_again(folder.path(), &settings(Durability::Synced)).await;
    assert_eq!(mark_of(&store, 7).await, None);
    assert!(store.verify().unwrap().damages.is_empty());
    // A guard that comes with a load is one.
    let mut items = load(2);
    items.insert(0, (guard.clone(), Bytes::new()));
    store.ingest(vec![], items).await.unwrap();
    store.ingest(vec![guard], load(3)).await.unwrap();
    assert_eq!(mark_of(&store, 7).await, Some(3));
}

/// What a mover does: a chunk in the order of keys, then a row that says how far it has come.
#[tokio::test]
async fn rows_of_the_shard_between_loads_make_the_engine_rewrite_nothing() {
    const CHUNKS: usize = 24;
    const CHUNK_ITEMS: usize = 2_000;
    let folder = tempfile::tempdir().unwrap();
    let tables = || {
        let entries = std::fs::read_dir(folder.path().join("store/keyspaces/1/tables")).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<BTreeSet<_>>()
    };
    let progress = |n: usize| Write::Put("\0\0\0\0progress".into(), vec![n as u8; 20_000].into());
    let mut written = BTreeSet::new();
    let store = EmbeddedStore::open(folder.path(), &settings(Durability::Synced)).unwrap();
    for n in 0..CHUNKS {
        let keys = n * CHUNK_ITEMS..(n + 1) * CHUNK_ITEMS;
        let items = keys.map(|n| (key(n), Bytes::from(vec![n as u8; 1_000]))).collect();
        store.ingest(vec![], items).await.unwrap();
        written.append(&mut tables());
        commit(&store, vec![progress(n)]).await;
    }
    // Closing flushes what is left, and the next start looks for something to merge.
    store.close().await.unwrap();
    drop(store);
    let store = open_again(folder.path(), &settings(Durability::Synced)).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(written.len(), CHUNKS, "one table of each chunk, and none of anything else");
    assert_eq!(tables(), written, "what was loaded was written anew");
    for n in 0..CHUNKS * CHUNK_ITEMS {
        assert_eq!(mark_of(&store, n).await, Some(n as u8));
    }
    assert!(store.verify().unwrap().damages.is_empty());
}

/// Such rows cannot be loaded, but whoever loads need not know.
#[tokio::test]
async fn a_load_with_rows_of_the_shard_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let row = Bytes::from("\0\0\0\0row");
    for round in 1..=3u8 {
        let store = EmbeddedStore::open(folder.path(), &settings(Durability::Synced)).unwrap();
        let mut items = load(round);
        items.insert(0, (row.clone(), vec![round].into()));
        store.ingest(vec![], items).await.unwrap();
        drop(store);
        let store = EmbeddedStore::open(folder.path(), &settings(Durability::Synced)).unwrap();
        assert_eq!(store.get(&row).await.unwrap().as_deref(), Some(&[round][..]));
        assert_eq!(mark_of(&store, 0).await, Some(round));
        assert_eq!(mark_of(&store, ITEMS - 1).await, Some(round));
    }
}

#[tokio::test]
async fn what_nobody_waits_for_any_more_is_whole_or_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), &settings(Durability::Synced)).unwrap();
    for mark in 1..=10u8 {
        tokio::select! {
            biased;
            loaded = store.ingest(vec![], load(mark)) => loaded.unwrap(),
            () = tokio::time::sleep(std::time::Duration::from_millis(u64::from(mark) * 3)) => {}
        }
        // It may still come while this looks, so all is seen at one moment.
        let snapshot = store.snapshot(&[], Reads::Long).await.unwrap();
        let first = snapshot.get(&key(0)).await.unwrap();
        for n in [1, ITEMS / 2, ITEMS - 1] {
            assert_eq!(snapshot.get(&key(n)).await.unwrap(), first);
        }
    }
    store.ingest(vec![], load(99)).await.unwrap();
    assert_eq!(mark_of(&store, 0).await, Some(99));
    assert!(store.size(&KeyRange::all()).await.unwrap() >= 3_000_000);
}
