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

#[tokio::test]
async fn keys_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), &Settings::default()).unwrap();
    let txn = store.begin(vec![]).await.unwrap();
    let refused = txn.commit(vec![Write::Put("".into(), "x".into())]).await.unwrap_err();
    assert_eq!((refused.kind(), refused.code()), (Kind::Invalid, "key-empty"));
}
