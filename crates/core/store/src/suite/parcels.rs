//! Cases about parcels. There is one store here, so a parcel returns to the store that it comes from; each store's own tests
//! show what two stores do for each other.

use std::sync::Arc;

use bytes::Bytes;

use super::drops::{ITEMS, items, middle, read};
use super::{commit, key, newest, put};
use crate::{Item, KeyRange, Kind, Packed, Parcel, Store};

/// How often a store may say that it has no time.
const REFUSALS_MAX: usize = 10_000;

/// None if the store would rather be read.
async fn pack(store: &Arc<dyn Store>, ranges: &[KeyRange]) -> Option<Parcel> {
    for _ in 0..REFUSALS_MAX {
        match store.handover()?.pack(ranges).await.expect("pack") {
            Packed::Parcel(parcel) => return Some(parcel),
            Packed::Nothing => return None,
            // It takes a moment, as long as this.
            Packed::NotNow => commit(store, vec![put("other", "")]).await,
        }
    }
    panic!("the store has no time for it");
}

pub(super) async fn a_parcel_is_taken_whole_or_refused(store: Arc<dyn Store>) {
    let guard = Bytes::from("guard");
    let items = items();
    for part in items.chunks(ITEMS / 8) {
        store.ingest(vec![], part.to_vec()).await.expect("load");
    }
    let ranges = [middle(), KeyRange::new(key(ITEMS * 7 / 8), None)];
    let is_in = |item: &&Item| ranges.iter().any(|range| range.contains(&item.0));
    let all = KeyRange::new(key(0), Some(key(ITEMS)));
    let (Some(guarded), Some(first), Some(second)) =
        (pack(&store, &ranges).await, pack(&store, &ranges).await, pack(&store, &ranges).await)
    else {
        return;
    };
    let handover = store.handover().expect("it has packed");
    let refused = handover.unpack(vec![guard.clone()], guarded).await.expect_err("no guard");
    assert_eq!(refused.kind(), Kind::Moved);
    commit(&store, vec![put(guard.clone(), "")]).await;
    let taken = handover.unpack(vec![guard.clone()], first).await.expect("it is all there");
    assert!(!taken, "what is there is in the way");
    assert!(read(&*newest(&store).await, &all).await == items, "nothing has changed");
    for range in &ranges {
        while store.delete_range(range, 1_000).await.expect("delete") == 1_000 {}
    }
    let taken = handover.unpack(vec![guard], second).await.expect("the guard stands");
    // That something was there may be in the way too.
    let expected: Vec<Item> = items.iter().filter(|item| taken || !is_in(item)).cloned().collect();
    assert!(read(&*newest(&store).await, &all).await == expected, "taken: {taken}");
    assert!(!handover.unpack(vec![], Parcel::new("of another kind")).await.expect("no guards"));
}
