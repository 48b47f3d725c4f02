//! Ranges that are dropped: tables go as a whole, the disk under them is freed, and no start brings anything back.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::fixture::{files, open_again, write_files};
use bytes::Bytes;
use lazuli_store::{Direction, Dropped, Handover, Item, KeyRange, PageLimit, Store, Write};
use lazuli_store_embedded::{EmbeddedStore, Settings};

const ITEMS: usize = 8_000;
const CHUNK: usize = 2_000;
const WAIT_MAX: Duration = Duration::from_secs(30);
const DATA_TABLES: &str = "store/keyspaces/1/tables";
const DROPPED: &str = "store/lazuli.dropped";

fn settings() -> Settings {
    // Small memtables, so that flushes come in between.
    Settings { memtable_bytes: 256 * 1024, ..Settings::default() }
}

fn key(n: usize) -> Bytes {
    format!("key-{n:06}").into()
}

fn range() -> KeyRange {
    KeyRange::new("key-", Some("key.".into()))
}

async fn commit(store: &EmbeddedStore, writes: Vec<Write>) {
    store.begin(vec![]).await.unwrap().commit(writes).await.unwrap();
}

/// Eight megabytes in tables of two each.
async fn fill(store: &EmbeddedStore) {
    let item = |n| -> Item { (key(n), Bytes::from(vec![n as u8; 1_000])) };
    for start in (0..ITEMS).step_by(CHUNK) {
        store.ingest(vec![], (start..start + CHUNK).map(item).collect()).await.unwrap();
    }
}

async fn drop_range(store: &EmbeddedStore) {
    let began = Instant::now();
    while store.drop_range(vec![], &range()).await.unwrap() != Dropped::All {
        assert!(began.elapsed() < WAIT_MAX);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn count(store: &EmbeddedStore, range: &KeyRange) -> usize {
    let page = store.scan(range, Direction::Forward, PageLimit::MAX).await.unwrap();
    page.items.len()
}

async fn wait_for(is: impl Fn() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < WAIT_MAX, "it does not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn bytes_in(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten();
    files.map(|file| file.unwrap().metadata().map_or(0, |it| it.len())).sum()
}

#[tokio::test]
async fn what_lies_in_tables_goes_at_once_and_the_disk_is_freed() {
    let folder = tempfile::tempdir().unwrap();
    let disk =
        || bytes_in(&folder.path().join(DATA_TABLES)) + bytes_in(&folder.path().join(DROPPED));
    let store = EmbeddedStore::open(folder.path(), &settings()).unwrap();
    commit(&store, vec![Write::Put("other".into(), "stays".into())]).await;
    fill(&store).await;
    assert!(disk() > 7_000_000);
    drop_range(&store).await;
    // Nothing was written to it beside the loads, so nothing is left.
    assert_eq!(count(&store, &range()).await, 0);
    assert_eq!(count(&store, &KeyRange::all()).await, 1);
    wait_for(|| disk() < 1_000_000).await;
    drop(store);
    let store = open_again(folder.path(), &settings()).await;
    assert_eq!(count(&store, &KeyRange::all()).await, 1);
    assert!(store.verify().unwrap().damages.is_empty());
}

/// After each round the machine might stop.
#[tokio::test]
async fn no_start_misses_or_brings_back_what_was_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), &settings()).unwrap();
    fill(&store).await;
    let others = |round: usize| {
        let puts = (0..20).map(move |n| format!("other-{round}-{n}"));
        puts.map(|key| Write::Put(key.into(), vec![1; 10_000].into())).collect::<Vec<_>>()
    };
    for round in 0..6 {
        // Rows of the range that are in journals, memtables and tables of their own.
        for n in (0..ITEMS).step_by(40) {
            commit(&store, vec![Write::Put(key(n), vec![9; 3_000].into())]).await;
        }
        drop_range(&store).await;
        let mut left = count(&store, &range()).await;
        while left > 0 {
            left -= store.delete_range(&range(), 1_000).await.unwrap();
        }
        wait_for(|| bytes_in(&folder.path().join(DROPPED)) == 0).await;
        let stopped = tempfile::tempdir().unwrap();
        write_files(stopped.path(), &files(folder.path()));
        let again = EmbeddedStore::open(stopped.path(), &settings()).unwrap();
        assert_eq!(count(&again, &range()).await, 0, "round {round}");
        assert_eq!(count(&again, &KeyRange::all()).await, 20 * round);
        drop(again);
        commit(&store, others(round)).await;
    }
}

#[tokio::test]
async fn a_start_frees_what_the_last_one_did_not_come_to() {
    let folder = tempfile::tempdir().unwrap();
    drop(EmbeddedStore::open(folder.path(), &settings()).unwrap());
    let dropped = folder.path().join(DROPPED);
    std::fs::create_dir_all(&dropped).unwrap();
    for name in ["7", "8"] {
        std::fs::write(dropped.join(name), vec![0; 3_000_000]).unwrap();
    }
    // One of them is in somebody's backup.
    let backup = folder.path().join("backup");
    std::fs::hard_link(dropped.join("8"), &backup).unwrap();
    let _store = open_again(folder.path(), &settings()).await;
    wait_for(|| !dropped.join("7").exists()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(std::fs::metadata(&backup).unwrap().len(), 3_000_000);
}

/// A machine that stops between the second name and the drop leaves such names.
#[tokio::test]
async fn a_table_that_is_in_use_is_never_touched_whatever_other_names_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), &settings()).unwrap();
    fill(&store).await;
    store.close().await.unwrap();
    drop(store);
    let (tables, dropped) = (folder.path().join(DATA_TABLES), folder.path().join(DROPPED));
    std::fs::create_dir_all(&dropped).unwrap();
    let names = || std::fs::read_dir(&tables).unwrap().map(|table| table.unwrap().file_name());
    for name in names() {
        std::fs::hard_link(tables.join(&name), dropped.join(&name)).unwrap();
    }
    let store = open_again(folder.path(), &settings()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    for name in names() {
        std::fs::remove_file(dropped.join(&name)).unwrap();
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(store.verify().unwrap().damages.is_empty());
    assert!(bytes_in(&tables) > 7_000_000);
    // What was meant to be dropped then is dropped now.
    drop_range(&store).await;
    assert_eq!(count(&store, &range()).await, 0);
    wait_for(|| bytes_in(&tables) + bytes_in(&dropped) < 1_000_000).await;
}
