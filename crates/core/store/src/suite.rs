//! The contract of a store as cases that can fail. Each store runs all of them on a fresh, empty store each.

mod drops;
mod loads;
mod parcels;
mod shared;

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_env::BoxFuture;

use crate::limits::{KEY_BYTES_MAX, PAGE_BYTES_MAX, VALUE_BYTES_MAX};
use crate::{Direction, Error, KeyRange, Kind, PageLimit, Reader, Reads, Store, Write};

pub use shared::{SHARED_CASES, SharedCase};

/// A case gets a fresh store and panics if the store breaks the contract.
pub type Case = fn(Arc<dyn Store>) -> BoxFuture<'static, ()>;

/// Every case with its name.
pub const CASES: &[(&str, Case)] = &[
    ("a_commit_is_read_back", |s| Box::pin(a_commit_is_read_back(s))),
    ("the_later_write_to_a_key_counts", |s| Box::pin(the_later_write_to_a_key_counts(s))),
    ("a_snapshot_does_not_change", |s| Box::pin(a_snapshot_does_not_change(s))),
    ("a_transaction_reads_the_newest_state", |s| Box::pin(a_transaction_reads_the_newest_state(s))),
    ("scans_go_both_ways_and_in_pages", |s| Box::pin(scans_go_both_ways_and_in_pages(s))),
    ("walks_show_what_scans_give", |s| Box::pin(walks_show_what_scans_give(s))),
    ("pages_end_by_bytes", |s| Box::pin(pages_end_by_bytes(s))),
    ("empty_and_inverted_ranges_hold_nothing", |s| {
        Box::pin(empty_and_inverted_ranges_hold_nothing(s))
    }),
    ("a_missing_guard_refuses_to_begin", |s| Box::pin(a_missing_guard_refuses_to_begin(s))),
    ("a_missing_guard_refuses_a_snapshot", |s| Box::pin(a_missing_guard_refuses_a_snapshot(s))),
    ("commits_at_once_all_arrive", |s| Box::pin(commits_at_once_all_arrive(s))),
    ("keys_are_any_bytes", |s| Box::pin(keys_are_any_bytes(s))),
    ("sizes_over_the_limit_are_refused", |s| Box::pin(sizes_over_the_limit_are_refused(s))),
    ("ingested_items_are_read_back", |s| Box::pin(loads::ingested_items_are_read_back(s))),
    ("a_large_load_appears_all_at_once_and_is_guarded", |s| {
        Box::pin(loads::a_large_load_appears_all_at_once_and_is_guarded(s))
    }),
    ("a_load_in_parts_is_one_load", |s| Box::pin(loads::a_load_in_parts_is_one_load(s))),
    ("ingest_refuses_unsorted_items", |s| Box::pin(loads::ingest_refuses_unsorted_items(s))),
    ("a_range_is_deleted_in_slices", |s| Box::pin(a_range_is_deleted_in_slices(s))),
    ("deleting_a_range_counts_more_than_a_page", |s| {
        Box::pin(deleting_a_range_counts_more_than_a_page(s))
    }),
    ("a_dropped_range_is_gone_once_the_rest_is_deleted", |s| {
        Box::pin(drops::a_dropped_range_is_gone_once_the_rest_is_deleted(s))
    }),
    ("dropping_is_guarded", |s| Box::pin(drops::dropping_is_guarded(s))),
    ("a_snapshot_keeps_what_is_dropped", |s| Box::pin(drops::a_snapshot_keeps_what_is_dropped(s))),
    ("a_parcel_is_taken_whole_or_refused", |s| {
        Box::pin(parcels::a_parcel_is_taken_whole_or_refused(s))
    }),
    ("size_grows_with_the_data", |s| Box::pin(size_grows_with_the_data(s))),
];

/// Cases for stores that one process at a time has open: two transactions of it share a guard, which a store for several
/// processes does not let happen.
pub const ONE_PROCESS_CASES: &[(&str, Case)] = &[
    ("a_guard_lost_meanwhile_writes_nothing", |s| {
        Box::pin(a_guard_lost_meanwhile_writes_nothing(s))
    }),
    ("a_guard_lost_in_the_same_group_is_seen", |s| {
        Box::pin(a_guard_lost_in_the_same_group_is_seen(s))
    }),
];

fn key(n: usize) -> Bytes {
    format!("key-{n:06}").into()
}

fn put(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Write {
    Write::Put(key.into(), value.into())
}

async fn commit(store: &Arc<dyn Store>, writes: Vec<Write>) {
    let txn = store.begin(vec![]).await.expect("begin without guards");
    txn.commit(writes).await.expect("commit");
}

async fn get(store: &Arc<dyn Store>, key: &[u8]) -> Option<Bytes> {
    store.get(key).await.expect("get")
}

async fn newest(store: &Arc<dyn Store>) -> Box<dyn Reader> {
    store.snapshot(&[], Reads::Several).await.expect("a snapshot without guards")
}

async fn keys_of(reader: &dyn Reader, range: &KeyRange, direction: Direction) -> Vec<Bytes> {
    let page = reader.scan(range, direction, PageLimit::MAX).await.expect("scan");
    assert!(!page.more);
    page.items.into_iter().map(|(key, _)| key).collect()
}

async fn a_commit_is_read_back(store: Arc<dyn Store>) {
    assert_eq!(get(&store, b"a").await, None);
    commit(&store, vec![put("a", "1"), put("b", ""), put("c", "3")]).await;
    assert_eq!(get(&store, b"a").await.as_deref(), Some(&b"1"[..]));
    assert_eq!(get(&store, b"b").await.as_deref(), Some(&b""[..]));
    commit(&store, vec![Write::Delete("a".into()), put("c", "33")]).await;
    assert_eq!(get(&store, b"a").await, None);
    assert_eq!(get(&store, b"c").await.as_deref(), Some(&b"33"[..]));
}

async fn the_later_write_to_a_key_counts(store: Arc<dyn Store>) {
    commit(&store, vec![put("a", "1"), put("a", "2"), put("b", "1"), Write::Delete("b".into())])
        .await;
    assert_eq!(get(&store, b"a").await.as_deref(), Some(&b"2"[..]));
    assert_eq!(get(&store, b"b").await, None);
    commit(&store, vec![Write::Delete("a".into()), put("a", "3")]).await;
    assert_eq!(get(&store, b"a").await.as_deref(), Some(&b"3"[..]));
}

async fn a_snapshot_does_not_change(store: Arc<dyn Store>) {
    commit(&store, vec![put("a", "old"), put("gone", "x")]).await;
    let snapshot = newest(&store).await;
    commit(&store, vec![put("a", "new"), put("b", "new"), Write::Delete("gone".into())]).await;
    assert_eq!(snapshot.get(b"a").await.unwrap_or(None).as_deref(), Some(&b"old"[..]));
    let seen = keys_of(&*snapshot, &KeyRange::all(), Direction::Forward).await;
    assert_eq!(seen, ["a", "gone"]);
    let seen = keys_of(&*newest(&store).await, &KeyRange::all(), Direction::Forward).await;
    assert_eq!(seen, ["a", "b"]);
}

async fn a_transaction_reads_the_newest_state(store: Arc<dyn Store>) {
    for round in 0..20u8 {
        let txn = store.begin(vec![]).await.expect("begin");
        let before = txn.get(b"counter").await.expect("get").map_or(0, |value| value[0]);
        assert_eq!(before, round);
        txn.commit(vec![put("counter", vec![before + 1])]).await.expect("commit");
    }
}

async fn scans_go_both_ways_and_in_pages(store: Arc<dyn Store>) {
    commit(&store, (0..100).map(|n| put(key(n), format!("value {n}"))).collect()).await;
    let snapshot = newest(&store).await;
    let range = KeyRange::new(key(10), Some(key(90)));
    for direction in [Direction::Forward, Direction::Backward] {
        let mut rest = range.clone();
        let mut seen = Vec::new();
        loop {
            let page = snapshot.scan(&rest, direction, PageLimit::items(7)).await.expect("scan");
            assert!(page.items.len() <= 7);
            let Some((last, _)) = page.items.last().cloned() else { break };
            seen.extend(page.items.into_iter().map(|(key, _)| key));
            match direction {
                Direction::Forward => rest.start = crate::after_key(&last),
                Direction::Backward => rest.end = Some(last),
            }
            assert_eq!(page.more, seen.len() < 80);
            if !page.more {
                break;
            }
        }
        let mut expected: Vec<Bytes> = (10..90).map(key).collect();
        if direction == Direction::Backward {
            expected.reverse();
        }
        assert_eq!(seen, expected);
    }
}

async fn walks_show_what_scans_give(store: Arc<dyn Store>) {
    commit(&store, (0..30).map(|n| put(key(n), format!("value {n}"))).collect()).await;
    let snapshot = newest(&store).await;
    let txn = store.begin(vec![]).await.expect("begin without guards");
    for range in [KeyRange::all(), KeyRange::new(key(5), Some(key(20)))] {
        for limit in [PageLimit::MAX, PageLimit::items(7), PageLimit { items: 100, bytes: 60 }] {
            for direction in [Direction::Forward, Direction::Backward] {
                walk_shows_what_a_scan_gives(&*snapshot, &range, direction, limit).await;
                walk_shows_what_a_scan_gives(&*txn, &range, direction, limit).await;
            }
        }
    }
}

async fn walk_shows_what_a_scan_gives(
    reader: &dyn Reader,
    range: &KeyRange,
    direction: Direction,
    limit: PageLimit,
) {
    let page = reader.scan(range, direction, limit).await.expect("scan");
    let mut seen = Vec::new();
    let mut visit = |key, value| {
        seen.push((key, value));
        Ok(ControlFlow::Continue(()))
    };
    let more = reader.walk(range, direction, limit, &mut visit).await.expect("walk");
    assert_eq!((&seen, more), (&page.items, page.more));
    seen.clear();
    let mut visit = |key, value| {
        seen.push((key, value));
        Ok(ControlFlow::Break(()))
    };
    assert!(reader.walk(range, direction, limit, &mut visit).await.expect("walk"));
    assert_eq!(seen, page.items[..1], "the first item has ended the walk");
    let mut fail = |_, _| Err(Error::invalid("enough", "the visitor fails"));
    let failed = reader.walk(range, direction, limit, &mut fail).await;
    assert_eq!(failed.expect_err("what the visitor says").code(), "enough");
}

async fn pages_end_by_bytes(store: Arc<dyn Store>) {
    commit(&store, (0..10).map(|n| put(key(n), vec![n as u8; 1000])).collect()).await;
    let snapshot = newest(&store).await;
    let limit = PageLimit { items: 100, bytes: 3500 };
    let page = snapshot.scan(&KeyRange::all(), Direction::Forward, limit).await.expect("scan");
    assert_eq!((page.items.len(), page.more), (3, true));
    let limit = PageLimit { items: 100, bytes: 1 };
    let page = snapshot.scan(&KeyRange::all(), Direction::Forward, limit).await.expect("scan");
    assert_eq!((page.items.len(), page.more), (1, true), "a page holds at least one item");
}

async fn empty_and_inverted_ranges_hold_nothing(store: Arc<dyn Store>) {
    commit(&store, vec![put("a", "1"), put("b", "2")]).await;
    for (start, end) in [("a", "a"), ("b", "a"), ("c", "d")] {
        let range = KeyRange::new(start, Some(end.into()));
        for direction in [Direction::Forward, Direction::Backward] {
            assert!(keys_of(&*newest(&store).await, &range, direction).await.is_empty());
        }
        assert_eq!(store.delete_range(&range, 10).await.expect("delete"), 0);
    }
}

async fn a_missing_guard_refuses_to_begin(store: Arc<dyn Store>) {
    let refused = store.begin(vec!["guard".into()]).await.err().expect("no such guard");
    assert_eq!(refused.kind(), Kind::Moved);
    commit(&store, vec![put("guard", "")]).await;
    let txn = store.begin(vec!["guard".into()]).await.expect("the guard exists");
    txn.commit(vec![put("a", "1")]).await.expect("commit");
    assert!(get(&store, b"a").await.is_some());
}

async fn a_missing_guard_refuses_a_snapshot(store: Arc<dyn Store>) {
    commit(&store, vec![put("here", ""), put("a", "1")]).await;
    let read = async |guards: &[Bytes], reads| match store.snapshot(guards, reads).await {
        Ok(snapshot) => snapshot.get(b"a").await,
        Err(error) => Err(error),
    };
    for reads in [Reads::One, Reads::Several] {
        assert!(read(&["here".into()], reads).await.expect("the guard exists").is_some());
        let refused = read(&["here".into(), "gone".into()], reads).await.expect_err("no guard");
        assert_eq!(refused.kind(), Kind::Moved);
    }
    commit(&store, vec![Write::Delete("here".into())]).await;
    for reads in [Reads::One, Reads::Several] {
        let refused = read(&["here".into()], reads).await.expect_err("the guard is gone");
        assert_eq!(refused.kind(), Kind::Moved);
    }
}

async fn a_guard_lost_meanwhile_writes_nothing(store: Arc<dyn Store>) {
    commit(&store, vec![put("guard-1", ""), put("guard-2", "")]).await;
    let txn = store.begin(vec!["guard-1".into(), "guard-2".into()]).await.expect("begin");
    commit(&store, vec![Write::Delete("guard-2".into())]).await;
    let refused = txn.commit(vec![put("a", "1")]).await.expect_err("the guard is gone");
    assert_eq!(refused.kind(), Kind::Moved);
    assert_eq!(get(&store, b"a").await, None);
}

async fn commits_at_once_all_arrive(store: Arc<dyn Store>) {
    commit(&store, (0..200).map(|n| put(format!("guard-{n}"), "")).collect()).await;
    let mut pending = Vec::new();
    for n in 0..200 {
        let txn = store.begin(vec![format!("guard-{n}").into()]).await.expect("begin");
        pending.push(txn.commit(vec![put(key(n), "x")]));
    }
    for commit in pending {
        commit.await.expect("commit");
    }
    let seen = keys_of(&*newest(&store).await, &KeyRange::prefix("key"), Direction::Forward).await;
    assert_eq!(seen.len(), 200);
}

async fn a_guard_lost_in_the_same_group_is_seen(store: Arc<dyn Store>) {
    for round in 0..20 {
        commit(&store, vec![put("guard", "")]).await;
        let fence = store.begin(vec!["guard".into()]).await.expect("begin");
        let late = store.begin(vec!["guard".into()]).await.expect("begin");
        let fence = fence.commit(vec![Write::Delete("guard".into())]);
        let late = late.commit(vec![put("late", format!("{round}"))]);
        fence.await.expect("the fence commits");
        assert_eq!(late.await.expect_err("after the fence").kind(), Kind::Moved);
        assert_eq!(get(&store, b"late").await, None);
    }
}

async fn keys_are_any_bytes(store: Arc<dyn Store>) {
    let mut keys: Vec<Bytes> = vec![
        Bytes::from_static(b"\x00"),
        Bytes::from_static(b"\x00\x00"),
        Bytes::from_static(b"\x7f\x80"),
        Bytes::from_static(b"\xff\xff\xff\xff"),
        Bytes::from(vec![0xab; KEY_BYTES_MAX]),
    ];
    commit(&store, keys.iter().rev().map(|key| put(key.clone(), key.clone())).collect()).await;
    keys.sort();
    assert_eq!(keys_of(&*newest(&store).await, &KeyRange::all(), Direction::Forward).await, keys);
    for key in &keys {
        assert_eq!(get(&store, key).await.as_ref(), Some(key));
    }
}

async fn sizes_over_the_limit_are_refused(store: Arc<dyn Store>) {
    let largest = vec![1; VALUE_BYTES_MAX];
    commit(&store, vec![put("largest", largest.clone())]).await;
    let over = [
        vec![put(vec![b'k'; KEY_BYTES_MAX + 1], "x")],
        vec![put("k", vec![0; VALUE_BYTES_MAX + 1])],
        (0..5).map(|n| put(key(n), largest.clone())).collect(),
    ];
    for writes in over {
        let txn = store.begin(vec![]).await.expect("begin");
        let refused = txn.commit(writes).await.expect_err("over the limit");
        assert_eq!(refused.kind(), Kind::TooLarge);
    }
    let seen = keys_of(&*newest(&store).await, &KeyRange::prefix("k"), Direction::Forward).await;
    assert!(seen.is_empty());
}

async fn a_range_is_deleted_in_slices(store: Arc<dyn Store>) {
    commit(&store, (0..100).map(|n| put(key(n), "x")).collect()).await;
    let range = KeyRange::new(key(10), Some(key(60)));
    let mut deleted = 0;
    loop {
        let slice = store.delete_range(&range, 20).await.expect("delete");
        deleted += slice;
        if slice < 20 {
            break;
        }
    }
    assert_eq!(deleted, 50);
    let seen = keys_of(&*newest(&store).await, &KeyRange::all(), Direction::Forward).await;
    assert_eq!(seen, (0..10).chain(60..100).map(key).collect::<Vec<_>>());
}

async fn deleting_a_range_counts_more_than_a_page(store: Arc<dyn Store>) {
    let large = vec![1; PAGE_BYTES_MAX / 2];
    for n in 0..5 {
        commit(&store, vec![put(key(n), large.clone())]).await;
    }
    assert_eq!(store.delete_range(&KeyRange::all(), 4).await.expect("delete"), 4);
    assert_eq!(store.delete_range(&KeyRange::all(), 4).await.expect("delete"), 1);
}

async fn size_grows_with_the_data(store: Arc<dyn Store>) {
    let range = KeyRange::prefix("key-");
    let empty = store.size(&range).await.expect("size");
    // Incompressible, and more than any buffer a store may leave uncounted.
    let mut noise = lazuli_env::SplitMix64::new(1);
    for batch in 0..8 {
        let writes = (0..100).map(|n| put(key(batch * 100 + n), noise.bytes(1000))).collect();
        commit(&store, writes).await;
    }
    let full = store.size(&range).await.expect("size");
    assert!(full >= empty + 400_000, "800 kB were written, {empty} grew to {full}");
}
