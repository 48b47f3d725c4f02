//! Questions to many partitions: order, pages, splits in between, failures (S11).

use std::sync::atomic::Ordering;

use crate::world::{World, route};
use bytes::Bytes;
use lazuli_engine::{
    Continuation, FanOut, Item, ItemScan, OnFailure, Order, PartitionScan, RowPage, View,
};
use lazuli_shardmap::Container;
use lazuli_shardmap::layout::Space;
use lazuli_store::{Direction, KeyRange, PageLimit, Result};

fn all_items() -> ItemScan {
    ItemScan { space: Space::ITEMS, range: KeyRange::all() }
}

fn ask(items: usize, on_failure: OnFailure) -> FanOut {
    FanOut { routes: KeyRange::all(), limit: PageLimit::items(items), on_failure }
}

fn value(item: &Item) -> u32 {
    std::str::from_utf8(&item.payload).unwrap().parse().unwrap()
}

async fn fill(world: &World, container: &Container, count: u32) {
    for n in 0..count {
        world.put(container, &format!("key-{n:03}"), "r", &n.to_string()).await.unwrap();
    }
}

#[tokio::test]
async fn pages_come_in_order_and_each_item_once() {
    let world = World::new(3).await;
    let container = world.range("c", &["key-010", "key-011", "key-050"]).await;
    fill(&world, &container, 100).await;
    for size in [1, 7, 100, 1000] {
        let (mut seen, mut from) = (Vec::new(), None::<Continuation>);
        loop {
            let request = ask(size, OnFailure::Fail);
            let page = world
                .engine
                .fan_out(container.id, &all_items(), &request, from.as_ref())
                .await
                .unwrap();
            assert!(page.rows.len() <= size);
            seen.extend(page.rows.iter().map(|(_, item)| value(item)));
            match page.next {
                Some(next) => from = Some(next),
                None => break,
            }
        }
        assert_eq!(seen, (0..100).collect::<Vec<_>>(), "in pages of {size}");
    }
}

#[tokio::test]
async fn only_the_partitions_of_the_range_are_asked() {
    let world = World::new(2).await;
    let container = world.range("c", &["key-010", "key-020", "key-030", "key-040"]).await;
    fill(&world, &container, 50).await;
    let routes = KeyRange::new(route(&container, "key-020"), Some(route(&container, "key-025")));
    let scan = ItemScan { space: Space::ITEMS, range: routes.clone() };
    let request = FanOut { routes, limit: PageLimit::items(100), on_failure: OnFailure::Fail };
    let page = world.engine.fan_out(container.id, &scan, &request, None).await.unwrap();
    assert_eq!(page.partitions, 1);
    let seen: Vec<u32> = page.rows.iter().map(|(_, item)| value(item)).collect();
    assert_eq!(seen, [20, 21, 22, 23, 24]);
    // A small page of everything asks no more partitions than it needs, but for those asked in advance.
    let request = ask(5, OnFailure::Fail);
    let page = world.engine.fan_out(container.id, &all_items(), &request, None).await.unwrap();
    assert_eq!(page.partitions, 1);
}

#[tokio::test]
async fn a_continuation_survives_a_restart_and_a_split() {
    let mut world = World::new(2).await;
    let container = world.range("c", &["key-050"]).await;
    fill(&world, &container, 100).await;
    let (mut seen, mut token) = (Vec::new(), None::<Bytes>);
    loop {
        let from = token.as_ref().map(|token| Continuation::decode(container.id, token).unwrap());
        let page = world
            .engine
            .fan_out(container.id, &all_items(), &ask(9, OnFailure::Fail), from.as_ref())
            .await
            .unwrap();
        seen.extend(page.rows.iter().map(|(_, item)| value(item)));
        let Some(next) = page.next else { break };
        token = Some(next.encode());
        // Split in front of what comes next, on it, and behind it; then forget everything in memory.
        let at = seen.len();
        for split in [at - 3, at, at + 4] {
            if (1..100).contains(&split) {
                let key = format!("key-{split:03}");
                let partition = world.partition_of(&container, &key).await;
                if partition.routes.start != route(&container, &key) {
                    world.split_at(&container, &key).await;
                }
            }
        }
        world.restart().await;
    }
    assert_eq!(seen, (0..100).collect::<Vec<_>>());
    assert!(world.partitions(&container).await.len() > 20);
}

#[tokio::test]
async fn a_continuation_of_something_else_is_refused() {
    let world = World::new(1).await;
    let container = world.range("c", &[]).await;
    let good = Continuation::new(container.id, "x".into()).encode();
    let other = lazuli_shardmap::ContainerId(container.id.0 + 1);
    for (container, bytes) in
        [(other, &good[..]), (container.id, &good[..3]), (container.id, b"\x02abcdef")]
    {
        let error = Continuation::decode(container, bytes).unwrap_err();
        assert_eq!(error.code(), "bad-continuation");
    }
}

#[tokio::test]
async fn a_failed_partition_fails_the_page_or_is_named() {
    let world = World::new(3).await;
    let container = world.range("c", &["key-010", "key-020"]).await;
    fill(&world, &container, 30).await;
    let failed = world.partition_of(&container, "key-015").await;
    world.down[&failed.shard].0.store(true, Ordering::SeqCst);
    let whole = ask(100, OnFailure::Fail);
    let error = world.engine.fan_out(container.id, &all_items(), &whole, None).await.unwrap_err();
    assert_eq!(error.code(), "store-down");
    assert!(error.message().contains(&format!("partition {}", failed.id)), "{error}");
    let partial = ask(100, OnFailure::Partial);
    let page = world.engine.fan_out(container.id, &all_items(), &partial, None).await.unwrap();
    let seen: Vec<u32> = page.rows.iter().map(|(_, item)| value(item)).collect();
    assert_eq!(seen, (0..10).chain(20..30).collect::<Vec<_>>());
    assert_eq!(page.missing.len(), 1);
    assert_eq!(page.missing[0].partition, failed.id);
    assert_eq!(page.missing[0].routes, failed.routes);
    for down in world.down.values() {
        down.0.store(true, Ordering::SeqCst);
    }
    let page = world.engine.fan_out(container.id, &all_items(), &partial, None).await.unwrap();
    assert_eq!((page.rows.len(), page.missing.len()), (0, 3));
}

/// All items of a partition ordered by value, highest first: an order that has nothing to do with routes.
struct HighestFirst;

impl PartitionScan for HighestFirst {
    type Row = u32;

    fn order(&self) -> Order {
        Order::Merged
    }

    async fn page(
        &self,
        view: &View,
        after: Option<&Bytes>,
        limit: PageLimit,
    ) -> Result<RowPage<u32>> {
        let all = KeyRange::all();
        let items = view.scan(Space::ITEMS, &all, Direction::Forward, PageLimit::MAX).await?.items;
        let mut rows: Vec<u32> = items.iter().map(|(_, item)| value(item)).collect();
        rows.retain(|row| after.is_none_or(|after| highest_first(*row) > after));
        rows.sort_by_key(|row| highest_first(*row));
        let more = rows.len() > limit.items;
        rows.truncate(limit.items);
        let next = rows.last().filter(|_| more).map(|row| highest_first(*row));
        Ok(RowPage { bytes: rows.len() * 8, rows, next })
    }

    fn sort_key(&self, row: &u32) -> Result<Bytes> {
        Ok(highest_first(*row))
    }
}

fn highest_first(value: u32) -> Bytes {
    Bytes::copy_from_slice(&(u32::MAX - value).to_be_bytes())
}

#[tokio::test]
async fn answers_in_another_order_than_routes_are_merged() {
    let world = World::new(3).await;
    let container = world.hash("c", 7).await;
    fill(&world, &container, 100).await;
    for size in [1, 3, 40, 1000] {
        let (mut seen, mut from) = (Vec::new(), None);
        loop {
            let request = ask(size, OnFailure::Fail);
            let scan = HighestFirst;
            let page =
                world.engine.fan_out(container.id, &scan, &request, from.as_ref()).await.unwrap();
            assert_eq!(page.partitions, 7);
            seen.extend(page.rows);
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        assert_eq!(seen, (0..100).rev().collect::<Vec<_>>(), "in pages of {size}");
    }
}
