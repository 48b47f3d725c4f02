//! What a store must keep while it grows: bounded journals, whole commits, unchanging snapshots.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use lazuli_store::{KeyRange, Reader, Reads, Store, Write};
use lazuli_store_embedded::{Durability, EmbeddedStore, JOURNAL_BYTES_LEAST, Settings};

const MIB: u64 = 1024 * 1024;

fn journal_bytes(root: &Path) -> u64 {
    let entries = std::fs::read_dir(root.join("store")).unwrap().map(|entry| entry.unwrap().path());
    let journals = entries.filter(|path| path.extension().is_some_and(|ext| ext == "jnl"));
    journals.map(|path| path.metadata().map_or(0, |metadata| metadata.len())).sum()
}

async fn put(store: &EmbeddedStore, items: Vec<(Bytes, Bytes)>) {
    let txn = store.begin(vec![]).await.unwrap();
    let puts = items.into_iter().map(|(key, value)| Write::Put(key, value));
    txn.commit(puts.collect()).await.unwrap();
}

/// The engine's issue 288: journals that are never deleted. Here one keyspace gets large rows, the other only markers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn journals_stay_bounded_however_much_is_written() {
    const WRITTEN_BYTES: u64 = 400 * MIB;
    const VALUE_BYTES: usize = 64 * 1024;
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { durability: Durability::Relaxed, ..Settings::default() };
    let mut most = 0;
    let mut number = 0u64;
    for _ in 0..2 {
        let store = EmbeddedStore::open(folder.path(), &settings).unwrap();
        for _ in 0..WRITTEN_BYTES / 2 / VALUE_BYTES as u64 / 8 {
            let item = |n: u64| {
                let key = format!("key-{:05}", n * 7919 % 4_000);
                (key.into(), vec![(n % 251) as u8; VALUE_BYTES].into())
            };
            put(&store, (number..number + 8).map(item).collect()).await;
            number += 8;
            most = most.max(journal_bytes(folder.path()));
        }
        store.close().await.unwrap();
    }
    // The active one, the sealed ones up to the limit, and what the memtables that wait hold of the next.
    let bound = 2 * JOURNAL_BYTES_LEAST + 6 * settings.memtable_bytes;
    assert!(most <= bound, "journals grew to {} MiB", most / MIB);
    let left = journal_bytes(folder.path());
    assert!(left <= bound, "{} MiB of journals were left", left / MIB);
}

/// A reader may see a commit or not, but never half of it, while memtables become tables under it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_reader_sees_half_a_commit() {
    const KEYS: u64 = 200;
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        durability: Durability::Relaxed,
        memtable_bytes: 64 * 1024,
        ..Settings::default()
    };
    let store = Arc::new(EmbeddedStore::open(folder.path(), &settings).unwrap());
    let key = |n: u64| Bytes::from(format!("key-{n:04}"));
    let value = |round: u64| Bytes::from(round.to_be_bytes().repeat(20));
    put(&store, (0..KEYS).map(|n| (key(n), value(0))).collect()).await;
    let done = Arc::new(AtomicBool::new(false));
    let reader = {
        let (store, done) = (store.clone(), done.clone());
        tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let mut looks = 0;
                while !done.load(Ordering::Relaxed) {
                    let snapshot = store.snapshot(&[], Reads::Long).await.unwrap();
                    // The first key is written first, the last one last: half a commit shows between them.
                    let last = snapshot.get(&key(KEYS - 1)).await.unwrap();
                    let first = snapshot.get(&key(0)).await.unwrap();
                    assert_eq!(first, last, "half a commit");
                    looks += 1;
                }
                looks
            })
        })
    };
    let held = store.snapshot(&[], Reads::Long).await.unwrap();
    for round in 1..1_500 {
        put(&store, (0..KEYS).map(|n| (key(n), value(round))).collect()).await;
    }
    done.store(true, Ordering::Relaxed);
    assert!(reader.await.unwrap() > 100);
    assert_all(&*held, KEYS, key, &value(0)).await;
    assert_all(&*store.snapshot(&[], Reads::Long).await.unwrap(), KEYS, key, &value(1_499)).await;
}

async fn assert_all(reader: &dyn Reader, keys: u64, key: impl Fn(u64) -> Bytes, value: &Bytes) {
    for n in 0..keys {
        assert_eq!(reader.get(&key(n)).await.unwrap().as_ref(), Some(value));
    }
}

#[tokio::test]
async fn a_large_range_has_a_size_and_is_deleted_whole() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { memtable_bytes: MIB, ..Settings::default() };
    let store = EmbeddedStore::open(folder.path(), &settings).unwrap();
    let mut noise = lazuli_env::SplitMix64::new(1);
    let item = |n: u64| (format!("key-{n:06}").into(), noise.bytes(100).into());
    let items: Vec<(Bytes, Bytes)> = (0..60_000).map(item).collect();
    store.ingest(vec![], items).await.unwrap();
    let half = KeyRange::new("key-", Some("key-030000".into()));
    let all = store.size(&KeyRange::all()).await.unwrap();
    let part = store.size(&half).await.unwrap();
    assert!((4_000_000..16_000_000).contains(&all), "60,000 items of 110 bytes are {all}");
    // How much of it is in tables by now is the engine's affair, so this is rough.
    assert!((all / 8..=all * 2).contains(&part), "half of {all} are {part}");
    // More than a page: fewer than asked for means that nothing is left.
    assert_eq!(store.delete_range(&half, 25_000).await.unwrap(), 25_000);
    assert_eq!(store.delete_range(&half, 25_000).await.unwrap(), 5_000);
    assert_eq!(store.size(&half).await.unwrap(), 0);
}
