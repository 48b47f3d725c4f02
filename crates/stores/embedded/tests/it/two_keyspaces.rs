//! The shard's own rows and its data are in two keyspaces, each of which becomes tables when it has enough. What that
//! must not change: a start that misses what is in neither, and journals that go.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::fixture::{answered, files, journal, open_again, write_files};
use bytes::Bytes;
use lazuli_store::{Kind, Result, Store, Write};
use lazuli_store_embedded::{Durability, EmbeddedStore, JOURNAL_BYTES_LEAST, Settings};

const MIB: u64 = 1024 * 1024;
/// How the names of a shard's own rows begin.
const OWN: &str = "\0\0\0\0";
/// Where the engine keeps the tables of each.
const DATA_TABLES: &str = "store/keyspaces/1/tables";
const OWN_TABLES: &str = "store/keyspaces/2/tables";

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn settings() -> Settings {
    Settings { memtable_bytes: 256 * 1024, ..Settings::default() }
}

async fn commit(store: &EmbeddedStore, write: Write) {
    store.begin(vec![]).await.unwrap().commit(vec![write]).await.unwrap();
}

async fn put(store: &EmbeddedStore, key: String, bytes: usize) {
    commit(store, Write::Put(key.into(), vec![7; bytes].into())).await;
}

fn count_files(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// A store whose first commit writes `first`, and which then goes on with `more` until those, and nothing else, are
/// in tables. Its files, and where in the journal the first commit ends.
async fn written_out_by_half(first: &str, more: &str, tables: &str, none: &str) -> (Files, usize) {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), &settings()).unwrap();
    put(&store, format!("{first}first"), 10).await;
    let end = std::fs::metadata(folder.path().join(journal(0))).unwrap().len() as usize;
    for n in 0.. {
        put(&store, format!("{more}{n:06}"), 5_000).await;
        if count_files(&folder.path().join(tables)) > 0 {
            break;
        }
    }
    // This waits for the table to be part of the store.
    drop(store);
    assert_eq!(count_files(&folder.path().join(none)), 0, "both are in tables");
    (files(folder.path()), end)
}

fn open(files: &Files) -> (Result<EmbeddedStore>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path(), files);
    (EmbeddedStore::open(folder.path(), &settings()), folder)
}

#[tokio::test]
async fn a_journal_is_missed_unless_both_keyspaces_have_what_it_holds() {
    // What the first commit writes, what the others do, and whether the first is in tables by then.
    let cases = [
        ("", OWN, OWN_TABLES, DATA_TABLES, false),
        (OWN, OWN, OWN_TABLES, DATA_TABLES, true),
        (OWN, "", DATA_TABLES, OWN_TABLES, false),
        ("", "", DATA_TABLES, OWN_TABLES, false),
    ];
    for (first, more, tables, none, first_in_tables) in cases {
        let case = format!("{first:?}, {more:?}");
        let (whole, end) = written_out_by_half(first, more, tables, none).await;
        let (head, tail) = whole[&journal(0)].split_at(end);
        let mut split = whole.clone();
        split.insert(journal(0), head.to_vec());
        split.insert(journal(1), tail.to_vec());
        let (store, _folder) = open(&split);
        let found = store.unwrap().get(format!("{first}first").as_bytes()).await;
        assert!(found.unwrap().is_some(), "{case}");

        split.remove(&journal(0));
        match open(&split).0 {
            Ok(_) => assert!(first_in_tables, "{case}: nobody misses the first commit"),
            Err(error) => {
                assert!(!first_in_tables, "{case}: {error}");
                assert_eq!((error.kind(), error.code()), (Kind::Corrupt, "store-lost-commits"));
            }
        }

        // The other way round: the journal ends before what is in tables, and nothing else tells.
        let mut short = whole.clone();
        short.insert(journal(0), head.to_vec());
        short.remove(&answered());
        let error = open(&short).0.err().unwrap_or_else(|| panic!("{case}: tables are ahead"));
        assert_eq!((error.kind(), error.code()), (Kind::Corrupt, "store-lost-commits"), "{case}");
    }
}

/// A load is in tables at once, and newer than every commit.
#[tokio::test]
async fn a_load_may_be_newer_than_the_last_commit() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..3u8 {
        let store = open_again(folder.path(), &settings()).await;
        let value = Bytes::from(vec![round; 1_000]);
        let item = |n: usize| (Bytes::from(format!("{round}-{n:06}")), value.clone());
        store.ingest(vec![], (0..3_000).map(item).collect()).await.unwrap();
        drop(store);
        let store = open_again(folder.path(), &settings()).await;
        for earlier in 0..=round {
            let last = format!("{earlier}-{:06}", 2_999);
            assert!(store.get(last.as_bytes()).await.unwrap().is_some(), "{last}");
        }
    }
}

/// Merges drop deletions. That these were written out must be known without them.
#[tokio::test]
async fn what_was_deleted_and_merged_away_is_not_missed() {
    const ROWS: usize = 50;
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), &settings()).unwrap();
    for n in 0..ROWS {
        put(&store, format!("{n:06}"), 100).await;
    }
    store.close().await.unwrap();
    drop(store);
    let tables = folder.path().join(DATA_TABLES);
    let mut deleted = 0;
    // Each close makes a table of one deletion. When the engine has merged all of them, the last one is gone too.
    while count_files(&tables) != 1 || deleted == 0 {
        assert!(deleted < ROWS, "deletions are not merged with what they delete");
        let store = EmbeddedStore::open(folder.path(), &settings()).unwrap();
        commit(&store, Write::Delete(format!("{deleted:06}").into())).await;
        deleted += 1;
        store.close().await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let store = EmbeddedStore::open(folder.path(), &settings()).unwrap();
    let end = std::fs::metadata(folder.path().join(journal(0))).unwrap().len() as usize;
    put(&store, format!("{OWN}last"), 10).await;
    drop(store);

    // As it is when the journal with the deletions has gone, because all of it is in tables.
    let mut files = files(folder.path());
    let tail = files.remove(&journal(0)).unwrap().split_off(end);
    files.insert(journal(1), tail);
    let (store, _folder) = open(&files);
    let store = store.unwrap();
    for n in 0..ROWS {
        let row = store.get(format!("{n:06}").as_bytes()).await.unwrap();
        assert_eq!(row.is_some(), n >= deleted, "row {n} of which {deleted} are deleted");
    }
    assert!(store.get(format!("{OWN}last").as_bytes()).await.unwrap().is_some());
}

fn journal_bytes(root: &Path) -> u64 {
    let entries = std::fs::read_dir(root.join("store")).unwrap().map(|entry| entry.unwrap().path());
    let journals = entries.filter(|path| path.extension().is_some_and(|ext| ext == "jnl"));
    journals.map(|path| path.metadata().map_or(0, |metadata| metadata.len())).sum()
}

/// The engine's issue 288: a keyspace that is rarely written keeps journals. It is made to write its rows out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn journals_stay_bounded_while_only_the_shards_own_rows_are_written() {
    const WRITTEN_BYTES: u64 = 300 * MIB;
    const VALUE_BYTES: usize = 64 * 1024;
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { durability: Durability::Relaxed, ..Settings::default() };
    let mut most = 0;
    for round in 0..2 {
        let store = EmbeddedStore::open(folder.path(), &settings).unwrap();
        // Rows of data that stay in memory, and the deletion of those before.
        put(&store, format!("row-{round}"), 100).await;
        commit(&store, Write::Delete("row-0".into())).await;
        for n in 0..WRITTEN_BYTES / 2 / VALUE_BYTES as u64 {
            put(&store, format!("{OWN}{:03}", n * 7919 % 100), VALUE_BYTES).await;
            most = most.max(journal_bytes(folder.path()));
        }
    }
    let bound = 2 * JOURNAL_BYTES_LEAST + 6 * settings.memtable_bytes;
    assert!(most <= bound, "journals grew to {} MiB", most / MIB);
    let store = EmbeddedStore::open(folder.path(), &settings).unwrap();
    assert!(store.get(b"row-0").await.unwrap().is_none());
    assert!(store.get(b"row-1").await.unwrap().is_some());
}
