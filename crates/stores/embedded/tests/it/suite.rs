//! The contract of a store, on this one, in both durabilities; and what is this store's own to promise.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_store::{Direction, KeyRange, Kind, PageLimit, Reader, Reads, Store, Write};
use lazuli_store_embedded::{Durability, EmbeddedStore, Settings};

fn settings(durability: Durability) -> Settings {
    Settings { durability, ..Settings::default() }
}

#[tokio::test]
async fn the_suite() {
    for durability in [Durability::Synced, Durability::Relaxed] {
        for (name, case) in
            lazuli_store::suite::CASES.iter().chain(lazuli_store::suite::ONE_PROCESS_CASES)
        {
            println!("case {name}, {durability:?}");
            let folder = tempfile::tempdir().unwrap();
            let store = EmbeddedStore::open(folder.path(), &settings(durability)).unwrap();
            case(Arc::new(store)).await;
        }
    }
}

#[tokio::test]
async fn a_store_that_is_open_is_locked_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), &Settings::default()).unwrap();
    let refused = EmbeddedStore::open(folder.path(), &Settings::default()).err().unwrap();
    assert_eq!(refused.code(), "store-locked");
    let me = format!("process {}", std::process::id());
    assert!(refused.message().contains(&me), "{refused}");
    assert!(refused.message().contains(folder.path().to_str().unwrap()), "{refused}");
    drop(store);
    EmbeddedStore::open(folder.path(), &Settings::default()).unwrap();
}

#[tokio::test]
async fn what_is_written_is_there_after_the_next_start() {
    for close in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..5u8 {
            let store = EmbeddedStore::open(folder.path(), &Settings::default()).unwrap();
            for earlier in 0..round {
                let found = store.get(&[b'k', earlier]).await.unwrap();
                assert_eq!(found.as_deref(), Some(&[earlier][..]));
            }
            let txn = store.begin(vec![]).await.unwrap();
            txn.commit(vec![Write::Put(vec![b'k', round].into(), vec![round].into())])
                .await
                .unwrap();
            if close {
                store.close().await.unwrap();
                let late = store.begin(vec![]).await.unwrap().commit(vec![]).await.unwrap_err();
                assert_eq!(late.code(), "store-closed");
            }
        }
    }
}

/// Commits that reach the committer together with the one that takes their guard away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_among_many_commits_divides_them() {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), &Settings::default()).unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    let mut refused = 0;
    for round in 0..40 {
        let open = store.begin(vec![]).await.unwrap();
        open.commit(vec![Write::Put("guard".into(), "".into())]).await.unwrap();
        let mut begun = Vec::new();
        for _ in 0..20 {
            begun.push(store.begin(vec!["guard".into()]).await.unwrap());
        }
        let mut commits = Vec::new();
        for (n, txn) in begun.into_iter().enumerate() {
            let write = match n {
                10 => Write::Delete("guard".into()),
                _ => Write::Put(format!("{round}-{n}").into(), "x".into()),
            };
            commits.push((n, tokio::spawn(txn.commit(vec![write]))));
        }
        for (n, commit) in commits {
            let result = commit.await.unwrap();
            let key = format!("{round}-{n}");
            let found = store.get(key.as_bytes()).await.unwrap();
            match result {
                Ok(()) => assert!(found.is_some() || n == 10),
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Moved);
                    assert!(found.is_none(), "{key} was refused and written");
                    refused += 1;
                }
            }
        }
        assert!(store.begin(vec!["guard".into()]).await.err().unwrap().is_moved());
    }
    assert!(refused > 0, "no commit came behind the fence");
}

#[tokio::test]
async fn keys_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), &Settings::default()).unwrap();
    let txn = store.begin(vec![]).await.unwrap();
    let refused = txn.commit(vec![Write::Put("".into(), "x".into())]).await.unwrap_err();
    assert_eq!((refused.kind(), refused.code()), (Kind::Invalid, "key-empty"));
}

/// Keys on both sides of the one at which the store divides them, which no caller may notice.
#[tokio::test]
async fn rows_of_the_shard_and_of_its_users_are_one_row_of_keys() {
    let keys: [&[u8]; 12] = [
        b"\0",
        b"\0\0",
        b"\0\0\0",
        b"\0\0\0\0",
        b"\0\0\0\0\x04a",
        b"\0\0\0\0\xff\xff",
        b"\0\0\0\x01",
        b"\0\0\0\x01\0",
        b"\0\x01",
        b"a",
        b"\xff\xff\xff\xfflazuli-commit\0",
        b"\xff\xff\xff\xff\xff",
    ];
    let folder = tempfile::tempdir().unwrap();
    for round in 0..3u8 {
        let store = EmbeddedStore::open(folder.path(), &Settings::default()).unwrap();
        if round == 0 {
            let puts = keys.iter().map(|key| Write::Put(Bytes::from_static(key), "x".into()));
            store.begin(vec![]).await.unwrap().commit(puts.collect()).await.unwrap();
        }
        let snapshot = store.snapshot(&[], Reads::Long).await.unwrap();
        for (n, start) in keys.iter().enumerate() {
            assert!(snapshot.get(start).await.unwrap().is_some());
            assert!(store.begin(vec![Bytes::from_static(start)]).await.is_ok());
            for (m, end) in keys.iter().enumerate().skip(n) {
                let range = KeyRange::new(*start, Some(Bytes::from_static(end)));
                assert_range(&*snapshot, &range, &keys[n..m]).await;
                let bytes: usize = keys[n..m].iter().map(|key| key.len() + 1).sum();
                assert_eq!(store.size(&range).await.unwrap(), bytes as u64);
            }
            assert_range(&*snapshot, &KeyRange::new(*start, None), &keys[n..]).await;
        }
        assert_range(&*snapshot, &KeyRange::all(), &keys).await;
        assert_eq!(store.verify().unwrap().items, keys.len() as u64);
        // The last look is at tables, those before at memtables.
        if round == 1 {
            store.close().await.unwrap();
        }
    }
    let store = EmbeddedStore::open(folder.path(), &Settings::default()).unwrap();
    assert_eq!(store.delete_range(&KeyRange::all(), 5).await.unwrap(), 5);
    assert_range(&*store.snapshot(&[], Reads::Long).await.unwrap(), &KeyRange::all(), &keys[5..])
        .await;
    assert_eq!(store.delete_range(&KeyRange::all(), 100).await.unwrap(), keys.len() - 5);
    assert_range(&*store.snapshot(&[], Reads::Long).await.unwrap(), &KeyRange::all(), &[]).await;
}

/// In both directions, in one page and in pages of one.
async fn assert_range(reader: &dyn Reader, range: &KeyRange, expected: &[&[u8]]) {
    let mut backward: Vec<&[u8]> = expected.to_vec();
    backward.reverse();
    for (direction, expected) in
        [(Direction::Forward, expected), (Direction::Backward, &backward[..])]
    {
        let page = reader.scan(range, direction, PageLimit::MAX).await.unwrap();
        let found: Vec<&[u8]> = page.items.iter().map(|(key, _)| &key[..]).collect();
        assert_eq!((&found[..], page.more), (expected, false), "{range:?}, {direction:?}");
        let page = reader.scan(range, direction, PageLimit::items(1)).await.unwrap();
        let first: Vec<&[u8]> = page.items.iter().map(|(key, _)| &key[..]).collect();
        let taken = expected.len().min(1);
        assert_eq!((&first[..], page.more), (&expected[..taken], expected.len() > 1));
    }
}

/// However the sizes of values are spread over a table: names tell nothing about it.
#[tokio::test]
async fn the_size_of_a_part_of_a_table_follows_its_bytes_and_not_its_names() {
    const ITEMS: usize = 60_000;
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), &Settings::default()).unwrap();
    let key = |n: usize| bytes::Bytes::from(format!("key-{n:06}"));
    let value = |n: usize| if n < ITEMS * 3 / 4 { 50 } else { 1_000 };
    let items = (0..ITEMS).map(|n| {
        // What is written twice would be compressed to nothing.
        (key(n), lazuli_env::SplitMix64::new(n as u64).bytes(value(n)).into())
    });
    store.ingest(vec![], items.collect()).await.unwrap();
    let bytes = |to: usize| (0..to).map(|n| 10 + value(n)).sum::<usize>() as f64;
    let all = store.size(&KeyRange::new("key-", Some("key.".into()))).await.unwrap() as f64;
    for at in [ITEMS / 4, ITEMS / 2, ITEMS * 3 / 4, ITEMS * 7 / 8] {
        let (before, behind) =
            (KeyRange::new("key-", Some(key(at))), KeyRange::new(key(at), Some("key.".into())));
        let real = bytes(at) / bytes(ITEMS);
        let part = store.size(&before).await.unwrap() as f64 / all;
        assert!((part - real).abs() < 0.05, "{at}: {part} is not {real}");
        let part = store.size(&behind).await.unwrap() as f64 / all;
        assert!((part - (1.0 - real)).abs() < 0.05, "{at}: {part} is not 1 - {real}");
    }
}
