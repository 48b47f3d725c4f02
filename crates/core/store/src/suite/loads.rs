//! What every store promises of bulk loads.

use std::sync::Arc;

use bytes::Bytes;

use super::{commit, get, key, keys_of, newest, put};
use crate::limits::VALUE_BYTES_MAX;
use crate::{Direction, Item, KeyRange, Kind, Store, Write};

pub(super) async fn ingested_items_are_read_back(store: Arc<dyn Store>) {
    commit(&store, vec![put(key(5), "before"), put(key(5000), "stays")]).await;
    let items = (0..3000).map(|n| (key(n), Bytes::from(format!("v{n}")))).collect();
    store.ingest(vec![], items).await.expect("ingest");
    assert_eq!(get(&store, &key(5)).await.as_deref(), Some(&b"v5"[..]));
    assert_eq!(get(&store, &key(2999)).await.as_deref(), Some(&b"v2999"[..]));
    commit(&store, vec![put(key(7), "after"), Write::Delete(key(8))]).await;
    assert_eq!(get(&store, &key(7)).await.as_deref(), Some(&b"after"[..]));
    let seen = keys_of(&*newest(&store).await, &KeyRange::all(), Direction::Forward).await;
    assert_eq!(seen.len(), 3000);
}

/// Small loads and large ones, which stores may keep in other ways.
pub(super) async fn a_large_load_appears_all_at_once_and_is_guarded(store: Arc<dyn Store>) {
    for (round, value_bytes) in [10, 2_000].into_iter().enumerate() {
        let load = |mark: u8| -> Vec<Item> {
            let value = Bytes::from(vec![mark; value_bytes]);
            (0..3_000).map(|n| (key(n), value.clone())).collect()
        };
        let guard = Bytes::from(format!("a-guard-{round}"));
        let refused = store.ingest(vec![guard.clone()], load(1)).await.expect_err("no guard yet");
        assert_eq!(refused.kind(), Kind::Moved);
        commit(&store, vec![put(guard.clone(), "")]).await;
        let before = newest(&store).await;
        commit(&store, vec![put("other", "beside")]).await;
        store.ingest(vec![guard.clone()], load(2)).await.expect("the guard is there");
        let seen = before.get(&key(7)).await.expect("get");
        assert!(seen.is_none_or(|value| value[0] != 2), "a snapshot does not change");
        for n in [0, 7, 2_999] {
            assert_eq!(get(&store, &key(n)).await.expect("loaded"), load(2)[n].1);
        }
        // Commits and loads overwrite each other in the order in which they come.
        commit(&store, vec![put(key(7), "new"), Write::Delete(key(8))]).await;
        assert_eq!(get(&store, &key(7)).await.as_deref(), Some(&b"new"[..]));
        assert_eq!(get(&store, &key(8)).await, None);
        store.ingest(vec![guard.clone()], load(3)).await.expect("again");
        assert_eq!(get(&store, &key(8)).await.expect("loaded")[0], 3);
        commit(&store, vec![Write::Delete(guard.clone())]).await;
        let refused = store.ingest(vec![guard], load(4)).await.expect_err("the guard is gone");
        assert_eq!(refused.kind(), Kind::Moved);
        assert_eq!(get(&store, &key(0)).await.expect("loaded")[0], 3);
        assert_eq!(get(&store, b"other").await.as_deref(), Some(&b"beside"[..]));
        let too_large = vec![(key(0), Bytes::from(vec![0; VALUE_BYTES_MAX + 1]))];
        let refused = store.ingest(vec![], too_large).await.expect_err("over the limit");
        assert_eq!(refused.kind(), Kind::TooLarge);
    }
}

/// Parts of a few bytes, and of more than what stores keep in their common way.
pub(super) async fn a_load_in_parts_is_one_load(store: Arc<dyn Store>) {
    const PARTS: usize = 6;
    for value_bytes in [10, 2_000] {
        let part = |number: usize, mark: u8| -> Vec<Item> {
            let value = Bytes::from(vec![mark; value_bytes]);
            (number * 500..(number + 1) * 500).map(|n| (key(n), value.clone())).collect()
        };
        let first = async || get(&store, &key(0)).await.map(|value| value[0]);
        let guard = Bytes::from("a-guard");
        commit(&store, vec![put(guard.clone(), "")]).await;
        let known = first().await;
        let mut loading = store.load(vec![guard.clone()]);
        for number in 0..PARTS {
            loading.add(part(number, 1)).await.expect("a part");
        }
        assert_eq!(first().await, known, "nothing is there before the end");
        drop(loading);
        assert_eq!(first().await, known, "nor without one");
        let mut loading = store.load(vec![guard.clone()]);
        for number in 0..PARTS {
            loading.add(part(number, 2)).await.expect("a part");
            loading.add(vec![]).await.expect("nothing is a part too");
        }
        loading.finish().await.expect("all of it");
        let range = KeyRange::new(key(0), None);
        let seen = keys_of(&*newest(&store).await, &range, Direction::Forward).await;
        assert_eq!(seen.len(), PARTS * 500);
        assert_eq!(first().await, Some(2));
        let mut loading = store.load(vec![]);
        loading.add(part(1, 3)).await.expect("a part");
        let refused = match loading.add(part(0, 3)).await {
            Ok(()) => loading.finish().await,
            refused => refused,
        };
        assert_eq!(refused.expect_err("not ascending").kind(), Kind::Invalid);
        let mut loading = store.load(vec![guard.clone()]);
        loading.add(part(0, 4)).await.expect("a part");
        commit(&store, vec![Write::Delete(guard.clone())]).await;
        let refused = match loading.add(part(1, 4)).await {
            Ok(()) => loading.finish().await,
            refused => refused,
        };
        assert_eq!(refused.expect_err("the guard is gone").kind(), Kind::Moved);
        assert_eq!(first().await, Some(2));
    }
}

pub(super) async fn ingest_refuses_unsorted_items(store: Arc<dyn Store>) {
    for items in [
        vec![(key(2), Bytes::new()), (key(1), Bytes::new())],
        vec![(key(1), Bytes::new()), (key(1), Bytes::new())],
    ] {
        let refused = store.ingest(vec![], items).await.expect_err("not ascending");
        assert_eq!(refused.kind(), Kind::Invalid);
    }
    assert_eq!(get(&store, &key(1)).await, None);
}
