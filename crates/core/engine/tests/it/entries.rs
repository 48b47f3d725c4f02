//! Entries of indexes: read from all partitions of a shard at once, found missing or left over, deleted with their items.

use std::ops::ControlFlow;

use crate::world::{Delete, World, item_key};
use bytes::Bytes;
use lazuli_engine::{Container, Direction, KeyRange, PageLimit, ShardId};
use lazuli_shardmap::layout::{self, Space};
use lazuli_store::{Store, Write};

async fn found(world: &World, container: &Container, entry: &str) -> Vec<String> {
    let views = world.engine.shard_views(container.id, &KeyRange::all()).await.unwrap();
    let range = KeyRange::prefix(Bytes::copy_from_slice(entry.as_bytes()));
    let mut rows = Vec::new();
    for view in &views {
        let visit = |_: Bytes, key: lazuli_engine::ItemKey| {
            rows.push(String::from_utf8_lossy(key.row()).into_owned());
            Ok(ControlFlow::Continue(()))
        };
        view.entries(&range, Direction::Forward, PageLimit::MAX, visit).await.unwrap();
    }
    rows.sort_unstable();
    rows
}

async fn codes(world: &World) -> Vec<&'static str> {
    let live = world.engine.shards().get(ShardId(1)).unwrap();
    let report = live.check(world.engine.manager().catalog()).await.unwrap();
    report.findings.iter().map(|finding| finding.code).collect()
}

#[tokio::test]
async fn entries_of_all_partitions_are_found_and_go_with_their_items() {
    let world = World::new(1).await;
    let container = world.range("c", &["f", "m"]).await;
    for (key, row, value) in [("a", "1", "x"), ("g", "2", "x"), ("z", "3", "xy"), ("z", "4", "x")] {
        world.put(&container, key, row, value).await.unwrap();
    }
    assert_eq!(found(&world, &container, "value x").await, ["1", "2", "3", "4"]);
    assert_eq!(found(&world, &container, "length 2").await, ["3"]);
    world.put(&container, "z", "3", "other").await.unwrap();
    let gone = item_key(&container, "a", "1");
    world.engine.write(container.id, gone.route(), Delete(gone.clone())).await.unwrap();
    assert_eq!(found(&world, &container, "value x").await, ["2", "4"]);
    world.split_at(&container, "z").await;
    assert_eq!(found(&world, &container, "value x").await, ["2", "4"]);
    assert_eq!(codes(&world).await, [] as [&str; 0]);
}

#[tokio::test]
async fn an_entry_too_many_or_too_few_is_found() {
    let world = World::new(1).await;
    let container = world.range("c", &[]).await;
    world.put(&container, "a", "row", "x").await.unwrap();
    let store = &world.shard_stores[&ShardId(1)];
    let keys = KeyRange::prefix(layout::prefix(container.id, Space::INDEX));
    let page = store.scan(&keys, Direction::Forward, PageLimit::MAX).await.unwrap();
    let (key, value) = page.items[0].clone();
    let write = |write: Write| async {
        store.begin(vec![]).await.unwrap().commit(vec![write]).await.unwrap();
    };
    write(Write::Delete(key.clone())).await;
    assert_eq!(codes(&world).await, ["index-differs"]);
    write(Write::Put(key.clone(), value.clone())).await;
    assert_eq!(codes(&world).await, [] as [&str; 0]);
    let mut other = key.to_vec();
    other[6] ^= 1;
    write(Write::Put(other.into(), value)).await;
    assert_eq!(codes(&world).await, ["index-differs"]);
    write(Write::Put(key, Bytes::from_static(b"?"))).await;
    assert!(codes(&world).await.contains(&"bad-entry"));
}
