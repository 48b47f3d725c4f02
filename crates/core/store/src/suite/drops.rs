//! Cases about ranges that are dropped.

use std::sync::Arc;

use bytes::Bytes;

use super::{commit, key, newest, put};
use crate::{
    Direction, Dropped, Handover, Item, KeyRange, Kind, PageLimit, Reader, Reads, Store, Write,
};

pub(super) const ITEMS: usize = 16_000;
/// How often a store may say that it has no time.
const REFUSALS_MAX: usize = 10_000;

/// Enough of them for tables of their own.
pub(super) fn items() -> Vec<Item> {
    (0..ITEMS).map(|n| (key(n), Bytes::from(vec![n as u8; 1_000]))).collect()
}

/// From a quarter to three quarters.
pub(super) fn middle() -> KeyRange {
    KeyRange::new(key(ITEMS / 4), Some(key(ITEMS * 3 / 4)))
}

async fn drop_all(
    store: &Arc<dyn Store>,
    handover: &dyn Handover,
    guard: &Bytes,
    range: &KeyRange,
) {
    for _ in 0..REFUSALS_MAX {
        match handover.drop_range(vec![guard.clone()], range).await.expect("the guard stands") {
            Dropped::All => return,
            Dropped::Part => {}
            // It takes a moment, as long as this.
            Dropped::NotNow => commit(store, vec![put("other", "")]).await,
        }
    }
    panic!("the store has no time for it");
}

pub(super) async fn read(reader: &dyn Reader, range: &KeyRange) -> Vec<Item> {
    let mut range = range.clone();
    let mut items = Vec::new();
    loop {
        let page = reader.scan(&range, Direction::Forward, PageLimit::MAX).await.expect("scan");
        items.extend(page.items);
        match items.last() {
            Some((last, _)) if page.more => range.start = crate::after_key(last),
            _ => return items,
        }
    }
}

pub(super) async fn a_dropped_range_is_gone_once_the_rest_is_deleted(store: Arc<dyn Store>) {
    let Some(handover) = store.handover() else { return };
    let guard = Bytes::from("guard");
    commit(&store, vec![put(guard.clone(), "")]).await;
    let items = items();
    for part in items.chunks(ITEMS / 8) {
        store.ingest(vec![], part.to_vec()).await.expect("load");
    }
    // Some of them once more, which are not where the others are.
    let again = items.iter().step_by(7).map(|(key, value)| put(key.clone(), value.clone()));
    commit(&store, again.collect()).await;
    let deleted = items.iter().skip(3).step_by(7).map(|(key, _)| Write::Delete(key.clone()));
    commit(&store, deleted.collect()).await;
    let range = middle();
    drop_all(&store, handover, &guard, &range).await;
    while store.delete_range(&range, 1_000).await.expect("delete") == 1_000 {}
    let left = items.iter().enumerate().filter(|(n, (key, _))| n % 7 != 3 && !range.contains(key));
    let expected: Vec<Item> = left.map(|(_, item)| item.clone()).collect();
    let keys = KeyRange::new(key(0), Some(key(ITEMS)));
    assert!(
        read(&*newest(&store).await, &keys).await == expected,
        "others than those of the range"
    );
    // The place can be used again.
    commit(&store, vec![put(key(ITEMS / 2), "new")]).await;
    assert_eq!(read(&*newest(&store).await, &range).await, [(key(ITEMS / 2), "new".into())]);
}

pub(super) async fn dropping_is_guarded(store: Arc<dyn Store>) {
    let Some(handover) = store.handover() else { return };
    store.ingest(vec![], items()).await.expect("load");
    let refused = handover.drop_range(vec!["guard".into()], &KeyRange::all()).await;
    assert_eq!(refused.expect_err("there is no guard").kind(), Kind::Moved);
    assert!(read(&*newest(&store).await, &KeyRange::all()).await == items());
    // A range that ends before it begins holds nothing.
    let none = KeyRange::new(key(9), Some(key(2)));
    handover.drop_range(vec![], &none).await.expect("no guards");
    assert!(read(&*newest(&store).await, &KeyRange::all()).await == items());
}

pub(super) async fn a_snapshot_keeps_what_is_dropped(store: Arc<dyn Store>) {
    let Some(handover) = store.handover() else { return };
    let guard = Bytes::from("guard");
    store.ingest(vec![], items()).await.expect("load");
    let before = store.snapshot(&[], Reads::Long).await.expect("a long snapshot");
    commit(&store, vec![put(guard.clone(), "")]).await;
    drop_all(&store, handover, &guard, &KeyRange::new(key(0), Some(key(ITEMS)))).await;
    // Whatever the store does behind it has the time for it.
    for n in 0..400 {
        commit(&store, vec![put(format!("other-{n}"), vec![0; 10_000])]).await;
    }
    assert!(read(&*before, &KeyRange::all()).await == items());
}
