//! Loads that are large enough for tables of their own: beside commits, across restarts, and when their guard goes.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use bytes::Bytes;
use lazuli_store::{Item, KeyRange, Kind, Store, Write};
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
    store.snapshot().get(&key(n)).await.unwrap().map(|value| value[0])
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
                let other = store.snapshot().get(b"other-299").await.unwrap();
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

/// Opens a store that was just let go: a thread that wrote tables for it may end a moment later.
async fn open_again(folder: &std::path::Path) -> EmbeddedStore {
    for _ in 0..500 {
        match EmbeddedStore::open(folder, &settings(Durability::Synced)) {
            Err(error) if error.code() == "store-locked" => {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            opened => return opened.unwrap(),
        }
    }
    panic!("somebody keeps the store locked");
}

#[tokio::test]
async fn a_load_is_refused_whole_if_its_guard_goes_while_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let guard = Bytes::from("a guard");
    {
        let store = EmbeddedStore::open(folder.path(), &settings(Durability::Synced)).unwrap();
        commit(&store, vec![Write::Put(guard.clone(), Bytes::new())]).await;
        let (loaded, ()) = tokio::join!(
            biased;
            store.ingest(vec![guard.clone()], load(1)),
            commit(&store, vec![Write::Delete(guard.clone())]),
        );
        assert_eq!(loaded.unwrap_err().kind(), Kind::Moved);
        assert_eq!(mark_of(&store, 7).await, None);
    }
    let store = open_again(folder.path()).await;
    assert_eq!(mark_of(&store, 7).await, None);
    assert!(store.verify().unwrap().damages.is_empty());
    // A guard that comes with a load is one.
    let mut items = load(2);
    items.insert(0, (guard.clone(), Bytes::new()));
    store.ingest(vec![], items).await.unwrap();
    store.ingest(vec![guard], load(3)).await.unwrap();
    assert_eq!(mark_of(&store, 7).await, Some(3));
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
        let snapshot = store.snapshot();
        let first = snapshot.get(&key(0)).await.unwrap();
        for n in [1, ITEMS / 2, ITEMS - 1] {
            assert_eq!(snapshot.get(&key(n)).await.unwrap(), first);
        }
    }
    store.ingest(vec![], load(99)).await.unwrap();
    assert_eq!(mark_of(&store, 0).await, Some(99));
    assert!(store.size(&KeyRange::all()).await.unwrap() >= 3_000_000);
}
