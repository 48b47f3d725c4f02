//! Middles are where they should be, and never inside a shardlet.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

use bytes::Bytes;
use lazuli_env::BoxFuture;
use lazuli_shardmap::key::{KeyPart, KeySchema, KeyType};
use lazuli_shardmap::layout::Space;
use lazuli_shardmap::route::virtual_shards;
use lazuli_shardmap::{Container, ContainerId, MapKind, Policies};
use lazuli_store::mem::MemStore;
use lazuli_store::{Direction, KeyRange, PageLimit, Reader, Reads, Result, Store, Txn};

use super::middle::{Ground, WALK_MAX};
use super::unit;
use crate::hot::HotKey;
use crate::item::{Item, ItemKey, keys_of};
use crate::lsn::Lsn;
use crate::outside::Outside;

const NOTHING: Outside = Outside { spaces: &[], bytes: |_, _, _| 0 };
/// Too little to walk through anything: everything is bisected.
const NO_WALK: PageLimit = PageLimit { items: 0, bytes: 0 };

fn container(kind: MapKind) -> Container {
    Container {
        id: ContainerId(7),
        name: "c".into(),
        kind,
        key: KeySchema::one(KeyType::Text),
        schema: "test/1".into(),
        placement: vec![],
        policies: Policies::default(),
        version: 1,
    }
}

fn route(container: &Container, key: &str) -> Bytes {
    container.kind.route(&container.key, &[KeyPart::Text(key.into())]).unwrap()
}

/// A store with so many rows of a hundred bytes for each key.
async fn filled(container: &Container, keys: &[(String, usize)]) -> MemStore {
    let store = MemStore::new();
    let mut items = Vec::new();
    for (key, rows) in keys {
        for row in 0..*rows {
            let row = format!("{row:05}");
            let key =
                ItemKey::new(container.id, Space::ITEMS, &route(container, key), row.as_bytes());
            items.push((key.bytes().clone(), Bytes::from(vec![b'v'; 100])));
        }
    }
    items.sort();
    store.ingest(vec![], items).await.unwrap();
    store
}

async fn middle(
    store: &MemStore,
    container: &Container,
    hot: &[HotKey],
    requests: u64,
    walk: PageLimit,
) -> Option<Bytes> {
    let routes = KeyRange::all();
    let ground = Ground::new(store, container, &routes, &NOTHING);
    ground.middle(hot, requests, walk).await.unwrap()
}

/// The part of the bytes before a route.
async fn share(store: &MemStore, container: &Container, at: &Bytes) -> f64 {
    let size = async |routes: &KeyRange| {
        store.size(&keys_of(container.id, Space::ITEMS, routes)).await.unwrap() as f64
    };
    let before = size(&KeyRange::new(Bytes::new(), Some(at.clone()))).await;
    before / size(&KeyRange::all()).await
}

fn even_keys(count: usize) -> Vec<(String, usize)> {
    (0..count).map(|n| (format!("customer-{n:04}"), 1 + n % 3)).collect()
}

#[tokio::test]
async fn the_middle_by_size_is_found_by_walking_and_by_bisecting() {
    for kind in [MapKind::Range, MapKind::Hash] {
        let container = container(kind);
        let store = filled(&container, &even_keys(600)).await;
        for walk in [WALK_MAX, NO_WALK] {
            let at = middle(&store, &container, &[], 0, walk).await.unwrap();
            let share = share(&store, &container, &at).await;
            assert!((0.45..0.55).contains(&share), "{kind:?} {walk:?}: {share}");
        }
    }
}

#[tokio::test]
async fn skewed_keys_are_cut_by_what_they_hold_and_not_by_their_names() {
    let container = container(MapKind::Range);
    // Nearly all keys begin alike; a few lie far away on both sides.
    let mut keys: Vec<_> =
        (0..500).map(|n| (format!("mmmmmmmmmmmmmmmm-{n:04}"), 1 + n / 100)).collect();
    keys.extend(["a", "b", "y", "z"].map(|key| (key.to_owned(), 1)));
    let store = filled(&container, &keys).await;
    for walk in [WALK_MAX, NO_WALK] {
        let at = middle(&store, &container, &[], 0, walk).await.unwrap();
        let share = share(&store, &container, &at).await;
        assert!((0.45..0.55).contains(&share), "{walk:?}: {share}");
    }
}

#[tokio::test]
async fn a_large_shardlet_is_not_torn_apart_but_cut_off() {
    let container = container(MapKind::Range);
    for large in ["a", "customer-0050", "zz"] {
        let mut keys = even_keys(100);
        keys.retain(|(key, _)| key != large);
        keys.push((large.to_owned(), 5_000));
        let store = filled(&container, &keys).await;
        for walk in [WALK_MAX, NO_WALK] {
            let at = middle(&store, &container, &[], 0, walk).await.unwrap();
            let unit = unit(&container, &route(&container, large)).unwrap();
            assert!(at <= unit.start || Some(&at) >= unit.end.as_ref(), "{large} {walk:?}");
            let share = share(&store, &container, &at).await;
            assert!((0.0..1.0).contains(&share) && share > 0.0, "{large} {walk:?}: {share}");
        }
    }
}

#[tokio::test]
async fn one_shardlet_has_no_middle() {
    let container = container(MapKind::Range);
    for keys in [vec![], vec![("only".to_owned(), 1)], vec![("only".to_owned(), 300)]] {
        let store = filled(&container, &keys).await;
        for walk in [WALK_MAX, NO_WALK] {
            assert_eq!(middle(&store, &container, &[], 0, walk).await, None);
        }
        let routes = KeyRange::all();
        assert!(Ground::new(&store, &container, &routes, &NOTHING).is_one_unit().await.unwrap());
    }
    let two = filled(&container, &[("a".to_owned(), 300), ("b".to_owned(), 1)]).await;
    for walk in [WALK_MAX, NO_WALK] {
        let at = middle(&two, &container, &[], 0, walk).await.unwrap();
        assert!(at > route(&container, "a") && at <= route(&container, "b"), "{at:?}");
    }
}

#[tokio::test]
async fn the_middle_by_load_follows_the_hot_keys() {
    let container = container(MapKind::Range);
    let store = filled(&container, &even_keys(400)).await;
    let hot = |key: &str, requests| HotKey { route: route(&container, key), requests, error: 0 };
    // Most of the requests are at the upper end, on two keys side by side.
    let hot = [hot("customer-0390", 400), hot("customer-0391", 400)];
    for walk in [WALK_MAX, NO_WALK] {
        let at = middle(&store, &container, &hot, 1_000, walk).await.unwrap();
        let between = route(&container, "customer-0390")..=route(&container, "customer-0391");
        assert!(between.contains(&at), "{walk:?}: {at:?}");
        // Whoever is not sure of its requests does not count.
        let unsure: Vec<_> =
            hot.iter().map(|key| HotKey { error: key.requests, ..key.clone() }).collect();
        let at = middle(&store, &container, &unsure, 1_000, walk).await.unwrap();
        let share = share(&store, &container, &at).await;
        assert!((0.45..0.55).contains(&share), "{walk:?}: {share}");
    }
}

#[tokio::test]
async fn hash_maps_are_cut_between_virtual_shards() {
    let container = container(MapKind::Hash);
    let store = filled(&container, &even_keys(50)).await;
    for walk in [WALK_MAX, NO_WALK] {
        let at = middle(&store, &container, &[], 0, walk).await.unwrap();
        assert!(virtual_shards(&KeyRange::new(at, None)).is_some());
    }
}

/// A space whose rows stand for a thousand bytes for each byte that they have.
const HEAVY: Outside =
    Outside { spaces: &[Space::MARKS], bytes: |_, _, payload| payload.len() as i64 * 1_000 };

#[tokio::test]
async fn the_middle_of_very_many_shardlets_counts_what_lies_outside_of_the_store() {
    const KEYS: usize = 150_000;
    let container = container(MapKind::Range);
    let key = |n: usize| format!("customer-{n:06}");
    let store = filled(&container, &(0..KEYS).map(|n| (key(n), 1)).collect::<Vec<_>>()).await;
    // Of the last tenth every tenth key stands for more than all rows together.
    let mut heavy = Vec::new();
    for n in (KEYS / 10 * 9..KEYS).step_by(10) {
        let row = ItemKey::new(container.id, Space::MARKS, &route(&container, &key(n)), b"");
        let payload = vec![0; 100].into();
        let item = Item { version: Lsn(1), expires_ms: None, written_ms: None, payload };
        heavy.push((row.bytes().clone(), item.encode()));
    }
    store.ingest(vec![], heavy).await.unwrap();
    let routes = KeyRange::all();
    let ground = Ground::new(&store, &container, &routes, &HEAVY);
    let at = ground.middle(&[], 0, WALK_MAX).await.unwrap().unwrap();
    // Rows have about 20 MB, which all lie before; the heavy ones have 150 MB.
    let place = KEYS / 10 * 9 + KEYS / 10 * 65 / 150;
    let near =
        route(&container, &key(place - KEYS / 100))..route(&container, &key(place + KEYS / 100));
    assert!(near.contains(&at), "{at:?} is not in {near:?}");
}

/// A store that takes all items to be of one size, as one that looks at its tables from outside does.
struct Guessing(MemStore);

impl Store for Guessing {
    fn snapshot<'a>(
        &'a self,
        guards: &'a [Bytes],
        reads: Reads,
    ) -> BoxFuture<'a, Result<Box<dyn Reader>>> {
        self.0.snapshot(guards, reads)
    }

    fn begin(&self, guards: Vec<Bytes>) -> BoxFuture<'_, Result<Box<dyn Txn>>> {
        self.0.begin(guards)
    }

    fn delete_range<'a>(
        &'a self,
        range: &'a KeyRange,
        most: usize,
    ) -> BoxFuture<'a, Result<usize>> {
        self.0.delete_range(range, most)
    }

    fn size<'a>(&'a self, range: &'a KeyRange) -> BoxFuture<'a, Result<u64>> {
        Box::pin(async move {
            let mut items = 0;
            let mut count = |_, _| {
                items += 100;
                Ok(std::ops::ControlFlow::Continue(()))
            };
            let all = PageLimit { items: usize::MAX, bytes: usize::MAX };
            self.walk(range, Direction::Forward, all, &mut count).await?;
            Ok(items)
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        self.0.close()
    }
}

#[tokio::test]
async fn many_items_are_cut_by_their_bytes_whatever_the_store_guesses() {
    let container = container(MapKind::Range);
    // More than the store was once asked about, and most bytes at one end.
    let keys: Vec<_> = (0..120_000).map(|n| (format!("k{n:06}"), 1)).collect();
    let store = filled(&container, &keys).await;
    let mut large = Vec::new();
    for n in 110_000..120_000 {
        let route = route(&container, &format!("k{n:06}"));
        let key = ItemKey::new(container.id, Space::ITEMS, &route, b"large");
        large.push((key.bytes().clone(), Bytes::from(vec![b'v'; 2_000])));
    }
    store.ingest(vec![], large).await.unwrap();
    let guessing = Guessing(store.clone());
    let routes = KeyRange::all();
    let ground = Ground::new(&guessing, &container, &routes, &NOTHING);
    let at = ground.middle(&[], 0, WALK_MAX).await.unwrap().unwrap();
    let share = share(&store, &container, &at).await;
    assert!((0.45..0.55).contains(&share), "{share}");
}
