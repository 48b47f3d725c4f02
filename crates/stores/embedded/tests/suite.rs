//! The contract of a store, on this one, in both durabilities; and what is this store's own to promise.

use std::sync::Arc;

use lazuli_store::{Kind, Store, Write};
use lazuli_store_embedded::{Durability, EmbeddedStore, Settings};

fn settings(durability: Durability) -> Settings {
    Settings { durability, ..Settings::default() }
}

#[tokio::test]
async fn the_suite() {
    for durability in [Durability::Synced, Durability::Relaxed] {
        for (name, case) in lazuli_store::suite::CASES {
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
                let found = store.snapshot().get(&[b'k', earlier]).await.unwrap();
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
            let found = store.snapshot().get(key.as_bytes()).await.unwrap();
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
