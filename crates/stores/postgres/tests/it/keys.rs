//! Keys longer than an index row, and pages of all sizes, compared with the store in memory.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_env::SplitMix64;
use lazuli_store::limits::KEY_BYTES_MAX;
use lazuli_store::mem::MemStore;
use lazuli_store::{Direction, KeyRange, PageLimit, Reads, Store, Write, after_key};
use lazuli_store_postgres::PostgresStore;

use crate::place;

/// Keys around the length at which the index ends, many with the same beginning.
fn key(noise: &mut SplitMix64) -> Bytes {
    let lengths = [1, 7, 1_999, 2_000, 2_001, 2_002, 2_500, 9_000, KEY_BYTES_MAX];
    let length = lengths[(noise.next_u64() % lengths.len() as u64) as usize];
    let mut key = vec![[b'a', b'b', 0xff][(noise.next_u64() % 3) as usize]; length];
    for _ in 0..noise.next_u64() % 3 {
        let at = [0, length / 2, length - 1][(noise.next_u64() % 3) as usize];
        key[at] = (noise.next_u64() % 256) as u8;
    }
    key.into()
}

async fn commit(store: &dyn Store, writes: Vec<Write>) {
    store.begin(vec![]).await.unwrap().commit(writes).await.unwrap();
}

/// Reads a range page by page and compares every page.
async fn compare(ours: &dyn Store, model: &dyn Store, range: &KeyRange, direction: Direction) {
    for limit in [PageLimit::MAX, PageLimit::items(3), PageLimit { items: 50, bytes: 9_000 }] {
        for reads in [Reads::One, Reads::Several] {
            let mut rest = range.clone();
            loop {
                let snapshot = ours.snapshot(&[], reads).await.unwrap();
                let page = snapshot.scan(&rest, direction, limit).await.unwrap();
                let expected = model.scan(&rest, direction, limit).await.unwrap();
                assert!(page.items == expected.items && page.more == expected.more);
                let Some((last, _)) = page.items.last().filter(|_| page.more) else { break };
                match direction {
                    Direction::Forward => rest.start = after_key(last),
                    Direction::Backward => rest.end = Some(last.clone()),
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_all_lengths_are_kept_in_order() {
    let Some(settings) = place::settings() else { return };
    let ours = PostgresStore::open(settings).await.unwrap();
    let model = MemStore::new();
    let mut noise = SplitMix64::new(42);
    for round in 0..4 {
        let writes: Vec<Write> = (0..60)
            .map(|n| match n % 5 {
                4 => Write::Delete(key(&mut noise)),
                _ => Write::Put(key(&mut noise), format!("{round} {n}").into()),
            })
            .collect();
        commit(&ours, writes.clone()).await;
        commit(&model, writes).await;
        for _ in 0..4 {
            let (a, b) = (key(&mut noise), key(&mut noise));
            let range = KeyRange::new(a.clone().min(b.clone()), Some(a.max(b)));
            for direction in [Direction::Forward, Direction::Backward] {
                compare(&ours, &model, &range, direction).await;
                compare(&ours, &model, &KeyRange::all(), direction).await;
            }
        }
        let range = KeyRange::new(key(&mut noise), None);
        let deleted = ours.delete_range(&range, 5).await.unwrap();
        assert_eq!(deleted, model.delete_range(&range, 5).await.unwrap());
    }
    // Guards may be long too.
    let long = Bytes::from(vec![b'g'; KEY_BYTES_MAX]);
    let guards = vec![long.clone(), "short".into()];
    assert!(ours.begin(guards.clone()).await.err().unwrap().is_moved());
    let puts = guards.iter().map(|guard| Write::Put(guard.clone(), Bytes::new())).collect();
    commit(&ours, puts).await;
    ours.begin(guards.clone()).await.unwrap().commit(vec![]).await.unwrap();
    assert!(ours.snapshot(&guards, Reads::Several).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loads_of_long_keys_and_over_existing_rows_are_kept() {
    let Some(settings) = place::settings() else { return };
    let ours = PostgresStore::open(settings).await.unwrap();
    let key = |n: usize| {
        let mut key = vec![b'x'; if n.is_multiple_of(3) { 3_000 } else { 40 }];
        key.extend_from_slice(format!("{n:05}").as_bytes());
        Bytes::from(key)
    };
    for mark in [1_u8, 2] {
        let mut items: Vec<_> =
            (0..3_000).map(|n| (key(n), Bytes::from(vec![mark; 4_000]))).collect();
        items.sort_unstable();
        ours.ingest(vec![], items.clone()).await.unwrap();
        let mut rest = KeyRange::all();
        let mut seen = Vec::new();
        loop {
            let page = ours.scan(&rest, Direction::Forward, PageLimit::MAX).await.unwrap();
            seen.extend(page.items);
            if !page.more {
                break;
            }
            rest.start = after_key(&seen.last().unwrap().0);
        }
        assert!(seen == items, "all of them, as they were loaded the last time");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_large_rows_behind_small_ones_ends_by_its_bytes() {
    let Some(settings) = place::settings() else { return };
    let ours = Arc::new(PostgresStore::open(settings).await.unwrap());
    let row = |n: usize| {
        let value = vec![7; if n < 2_000 { 10 } else { 300_000 }];
        (Bytes::from(format!("{n:06}")), Bytes::from(value))
    };
    ours.ingest(vec![], (0..2_060).map(row).collect()).await.unwrap();
    for reads in [Reads::One, Reads::Several] {
        let snapshot = ours.snapshot(&[], reads).await.unwrap();
        let all = KeyRange::all();
        let page = snapshot.scan(&all, Direction::Forward, PageLimit::MAX).await.unwrap();
        let bytes: usize = page.items.iter().map(|(key, value)| key.len() + value.len()).sum();
        assert!(page.more && bytes <= PageLimit::MAX.bytes);
        assert_eq!(page.items.len(), 2_000 + (PageLimit::MAX.bytes - 32_000) / 300_006);
    }
}
