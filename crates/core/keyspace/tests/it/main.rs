//! A durable keyspace on an engine whose store is in memory.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]
#![allow(clippy::disallowed_methods, reason = "these tests run on the real runtime")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{Direction, Engine, KeyRange, PageLimit, Settings, Space};
use lazuli_keyspace::types::Hash;
use lazuli_keyspace::{CONTAINER, Expiry, Journal, Keyspace, Persistence, Shelf};
use lazuli_shardmap::manager::NewShard;
use lazuli_store::mem::MemStore;

async fn keyspace() -> (Arc<Keyspace>, Arc<Engine>) {
    let env = lazuli_env::real::env();
    let catalog = Arc::new(MemStore::new());
    let engine = Engine::on(env.clone(), Settings::default(), catalog).await.unwrap();
    let new = NewShard {
        name: "one".into(),
        location: "one".into(),
        region: "here".into(),
        labels: Default::default(),
    };
    engine.add_shard(&new, Arc::new(MemStore::new())).await.unwrap();
    let shelf = Arc::new(Shelf::open(engine.clone()).await.unwrap());
    let journal = Arc::new(Journal::new(shelf, Persistence::Always));
    (Arc::new(Keyspace::new(env, 16, Some(journal))), engine)
}

/// How many rows the store has of all keys.
async fn rows(engine: &Arc<Engine>) -> usize {
    let container = engine.open(CONTAINER, "cache/1").await.unwrap().id;
    let (mut count, mut start) = (0, Bytes::new());
    loop {
        let view = engine.read(container, &start, 0).await.unwrap();
        let end = view.routes().end.clone();
        let limit = PageLimit::items(100_000);
        let all = KeyRange::new(start, end.clone());
        let page = view.scan(Space::ITEMS, &all, Direction::Forward, limit).await.unwrap();
        assert!(page.next.is_none());
        count += page.items.len();
        let Some(end) = end else { return count };
        start = end;
    }
}

async fn until(engine: &Arc<Engine>, expected: usize) {
    for _ in 0..200 {
        if rows(engine).await == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(rows(engine).await, expected);
}

fn fill(keyspace: &Keyspace, key: &[u8], fields: u32) {
    let mut space = keyspace.space_of(0, keyspace.now_ms(), key);
    let change = |hash: &mut Hash, log: &mut lazuli_keyspace::Log<'_>| {
        for field in 0..fields {
            hash.set(&field.to_be_bytes(), b"value", log);
        }
    };
    space.with(key, true, change).unwrap();
    space.finish();
}

fn set(keyspace: &Keyspace, key: &[u8]) {
    let mut space = keyspace.space_of(0, keyspace.now_ms(), key);
    space.set(key, b"1", Expiry::Never);
    space.finish();
}

/// Writes never cease under load: garbage must go beside them, or the store grows without end.
#[tokio::test]
async fn elements_of_deleted_keys_go_from_the_store_while_others_are_written() {
    let (keyspace, engine) = keyspace().await;
    drop(tokio::spawn(keyspace.clone().keep()));
    let writer = tokio::spawn({
        let keyspace = keyspace.clone();
        async move {
            loop {
                set(&keyspace, b"busy");
                keyspace.settled().await;
            }
        }
    });
    for number in 0..20_u32 {
        fill(&keyspace, &number.to_be_bytes(), 300);
    }
    keyspace.flush().await;
    assert_eq!(rows(&engine).await, 1 + 20 * 301);
    for number in 0..20_u32 {
        let mut space = keyspace.space_of(0, keyspace.now_ms(), &number.to_be_bytes());
        assert!(space.delete(&number.to_be_bytes()).is_some());
        space.finish();
    }
    until(&engine, 1).await;
    assert!(!writer.is_finished());
    writer.abort();
}

#[tokio::test]
async fn the_rows_of_a_cleared_database_go_from_the_store() {
    let (keyspace, engine) = keyspace().await;
    drop(tokio::spawn(keyspace.clone().keep()));
    for number in 0..20_u32 {
        fill(&keyspace, &number.to_be_bytes(), 30);
    }
    let mut space = keyspace.space_of_all(0, keyspace.now_ms());
    drop(space.clear(0));
    space.finish();
    fill(&keyspace, b"new", 5);
    // The new key with its fields, and which number each database has.
    until(&engine, 7).await;
}
