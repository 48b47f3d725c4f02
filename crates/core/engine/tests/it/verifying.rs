//! A move finds out when the target does not hold what the source does.

use std::sync::{Arc, Mutex};

use crate::world::{World, item_key};
use bytes::Bytes;
use lazuli_engine::{MoveOptions, Outcome};
use lazuli_env::{BoxFuture, Points};
use lazuli_shardmap::layout::{self, Space};
use lazuli_shardmap::manager::{Cuts, NewShard};
use lazuli_shardmap::{Container, MapKind, Policies, ShardId};
use lazuli_store::mem::{Content, MemStore};
use lazuli_store::{
    Direction, Dropped, Handover, Item, KeyRange, Loading, Packed, PageLimit, Parcel, Reader,
    Reads, Result, Store, Txn, Write,
};

const ITEMS: usize = 200;

async fn filled(world: &World) -> Container {
    let policies = Policies::default();
    let container = world.create("c", MapKind::Range, Cuts::At(vec![]), policies).await;
    for n in 0..ITEMS {
        world.put(&container, &format!("k{:02}", n % 20), &format!("r{n}"), "value").await.unwrap();
    }
    container
}

/// A store that does something to what is loaded into it, or handed over to it.
struct Spoiling {
    store: MemStore,
    spoil: fn(&mut Vec<Item>),
}

impl Store for Spoiling {
    fn snapshot<'a>(
        &'a self,
        guards: &'a [Bytes],
        reads: Reads,
    ) -> BoxFuture<'a, Result<Box<dyn Reader>>> {
        self.store.snapshot(guards, reads)
    }

    fn begin(&self, guards: Vec<Bytes>) -> BoxFuture<'_, Result<Box<dyn Txn>>> {
        self.store.begin(guards)
    }

    fn load(&self, guards: Vec<Bytes>) -> Box<dyn Loading + '_> {
        Box::new(SpoilingLoad { to: self, guards, items: Vec::new() })
    }

    fn delete_range<'a>(
        &'a self,
        range: &'a KeyRange,
        keys_max: usize,
    ) -> BoxFuture<'a, Result<usize>> {
        self.store.delete_range(range, keys_max)
    }

    fn size<'a>(&'a self, range: &'a KeyRange) -> BoxFuture<'a, Result<u64>> {
        self.store.size(range)
    }

    fn handover(&self) -> Option<&dyn Handover> {
        Some(self)
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        self.store.close()
    }
}

struct SpoilingLoad<'s> {
    to: &'s Spoiling,
    guards: Vec<Bytes>,
    items: Vec<Item>,
}

impl Loading for SpoilingLoad<'_> {
    fn add(&mut self, mut items: Vec<Item>) -> BoxFuture<'_, Result<()>> {
        self.items.append(&mut items);
        Box::pin(std::future::ready(Ok(())))
    }

    fn finish<'a>(self: Box<Self>) -> BoxFuture<'a, Result<()>>
    where
        Self: 'a,
    {
        let Self { to, guards, mut items } = *self;
        (to.spoil)(&mut items);
        to.store.ingest(guards, items)
    }
}

impl Handover for Spoiling {
    fn pack<'a>(&'a self, _: &'a [KeyRange]) -> BoxFuture<'a, Result<Packed>> {
        Box::pin(std::future::ready(Ok(Packed::Nothing)))
    }

    fn unpack(&self, guards: Vec<Bytes>, parcel: Parcel) -> BoxFuture<'_, Result<bool>> {
        let mut content: Content = parcel.open().unwrap();
        (self.spoil)(&mut content.items);
        self.store.unpack(guards, Parcel::new(content))
    }

    fn drop_range<'a>(
        &'a self,
        guards: Vec<Bytes>,
        range: &'a KeyRange,
    ) -> BoxFuture<'a, Result<Dropped>> {
        self.store.drop_range(guards, range)
    }
}

/// Moves everything to a shard with a store that spoils loads, and answers the error.
async fn move_to(spoil: fn(&mut Vec<Item>)) -> Option<&'static str> {
    move_from(World::new(1).await, spoil).await
}

async fn move_from(world: World, spoil: fn(&mut Vec<Item>)) -> Option<&'static str> {
    let container = filled(&world).await;
    let new = NewShard {
        name: "spoiling".into(),
        location: "spoiling".into(),
        region: "here".into(),
        labels: Default::default(),
    };
    let store = Arc::new(Spoiling { store: MemStore::new(), spoil });
    let target = world.engine.add_shard(&new, store).await.unwrap().id;
    let partition = world.partitions(&container).await[0].clone();
    world.engine.move_partition(partition.id, target, MoveOptions::default()).await.unwrap();
    let moved = world.engine.run_moves().await;
    let now = world.partitions(&container).await[0].shard;
    assert_eq!(now, if moved.is_ok() { target } else { partition.shard });
    assert_eq!(world.get(&container, "k03", "r3").await.unwrap().as_deref(), Some("value"));
    moved.err().map(|error| error.code())
}

#[tokio::test]
async fn a_row_that_the_target_has_lost_changed_or_made_up_stops_a_move() {
    assert_eq!(move_to(|_| {}).await, None);
    let lost = |items: &mut Vec<Item>| drop(items.remove(7));
    assert_eq!(move_to(lost).await, Some("move-differs"));
    let changed = |items: &mut Vec<Item>| {
        let mut value = items[7].1.to_vec();
        *value.last_mut().unwrap() ^= 1;
        items[7].1 = value.into();
    };
    assert_eq!(move_to(changed).await, Some("move-differs"));
    let swapped = |items: &mut Vec<Item>| {
        let (left, right) = items.split_at_mut(8);
        std::mem::swap(&mut left[7].1, &mut right[0].1);
    };
    assert_eq!(move_to(swapped).await, Some("move-differs"));
    let made_up = |items: &mut Vec<Item>| {
        let key = lazuli_store::after_key(&items[7].0);
        items.insert(8, (key, items[7].1.clone()));
    };
    assert_eq!(move_to(made_up).await, Some("move-differs"));
}

/// What goes as it is kept is compared by the stores, who alone know how. That all of it has come is found out here.
#[tokio::test]
async fn a_row_that_was_lost_or_made_up_on_the_way_stops_a_move_that_hands_over() {
    let world = async || World::with(1, true).await;
    assert_eq!(move_from(world().await, |_| {}).await, None);
    let lost = |items: &mut Vec<Item>| drop(items.remove(7));
    assert_eq!(move_from(world().await, lost).await, Some("move-differs"));
    let made_up = |items: &mut Vec<Item>| {
        let key = lazuli_store::after_key(&items[7].0);
        items.insert(8, (key, items[7].1.clone()));
    };
    assert_eq!(move_from(world().await, made_up).await, Some("move-differs"));
}

type Hook = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

/// Calls a function the first time that a move has come to a step.
#[derive(Default)]
struct Hooks(Mutex<Option<(&'static str, Hook)>>);

impl Hooks {
    fn set(
        &self,
        step: &'static str,
        hook: impl FnOnce() -> BoxFuture<'static, ()> + Send + 'static,
    ) {
        *self.0.lock().unwrap() = Some((step, Box::new(hook)));
    }
}

impl Points for Hooks {
    fn reach<'a>(&'a self, work: &'a str, step: &'static str) -> BoxFuture<'a, ()> {
        let hook = self.0.lock().unwrap().take_if(|it| (work, step) == ("move", it.0));
        Box::pin(async move {
            if let Some((_, hook)) = hook {
                hook().await;
            }
        })
    }
}

async fn watched(packing: bool) -> (World, Container, Arc<Hooks>, ShardId) {
    let mut world = World::with(2, packing).await;
    let hooks = Arc::new(Hooks::default());
    world.env = world.env.clone().watched(hooks.clone());
    world.restart().await;
    let container = filled(&world).await;
    let here = world.partitions(&container).await[0].shard;
    let target = *world.shard_stores.keys().find(|id| **id != here).unwrap();
    (world, container, hooks, target)
}

#[tokio::test]
async fn a_write_that_was_not_written_down_for_the_move_stops_it() {
    for (packing, step) in
        [(false, "copied a part"), (true, "handed over"), (true, "copied a part")]
    {
        write_without_a_trace(packing, step).await;
    }
}

/// At this step of the move.
async fn write_without_a_trace(packing: bool, step: &'static str) {
    let (world, container, hooks, target) = watched(packing).await;
    let partition = world.partitions(&container).await[0].clone();
    world.engine.partition_stats(partition.id, partition.shard).await.unwrap();
    let (engine, store) = (world.engine.clone(), world.shard_stores[&partition.shard].clone());
    let key = item_key(&container, "k07", "late");
    let put = crate::world::Put { key: key.clone(), value: "late".into(), expires_ms: None };
    let id = container.id;
    hooks.set(step, move || {
        Box::pin(async move {
            engine.write(id, key.route(), put).await.unwrap();
            let rows = KeyRange::prefix(layout::prefix(id, Space::MOVING));
            assert_eq!(store.delete_range(&rows, 10).await.unwrap(), 1);
        })
    });
    world.engine.move_partition(partition.id, target, MoveOptions::default()).await.unwrap();
    assert_eq!(world.engine.run_moves().await.unwrap_err().code(), "move-differs");
    assert_eq!(world.partitions(&container).await[0].shard, partition.shard);
    assert_eq!(world.get(&container, "k07", "late").await.unwrap().as_deref(), Some("late"));
}

/// The figures of the source are wrong, the data is not: both sides are read whole, and the target counts rightly.
#[tokio::test]
async fn figures_that_are_wrong_do_not_stop_a_move_and_are_right_after_it() {
    let (world, container, _, target) = watched(false).await;
    let partition = world.partitions(&container).await[0].clone();
    let before = world.engine.partition_stats(partition.id, partition.shard).await.unwrap();
    let store = &world.shard_stores[&partition.shard];
    let rows = KeyRange::prefix(layout::prefix(container.id, Space::ITEMS));
    let page = store.scan(&rows, Direction::Forward, PageLimit::items(1)).await.unwrap();
    let txn = store.begin(vec![]).await.unwrap();
    txn.commit(vec![Write::Delete(page.items[0].0.clone())]).await.unwrap();
    let number = world.engine.move_partition(partition.id, target, MoveOptions::default()).await;
    world.engine.run_moves().await.unwrap();
    let finished = world.engine.move_finished(number.unwrap().number).await.unwrap();
    assert_eq!(finished.outcome, Outcome::Arrived);
    let after = world.engine.partition_stats(partition.id, target).await.unwrap();
    assert_eq!(before.counts.items, ITEMS as u64);
    assert_eq!(after.counts.items, ITEMS as u64 - 1);
    assert!(after.counts.exact);
}

#[tokio::test]
async fn what_an_earlier_leader_left_beyond_what_it_wrote_down_is_cleared() {
    for packing in [false, true] {
        clear_what_was_left(packing).await;
    }
}

async fn clear_what_was_left(packing: bool) {
    let (world, container, _, target) = watched(packing).await;
    let partition = world.partitions(&container).await[0].clone();
    world.engine.move_partition(partition.id, target, MoveOptions::default()).await.unwrap();
    let stray = item_key(&container, "k05", "deleted on the source meanwhile").bytes().clone();
    let value = world.item(&container, "k05", "r5").await.unwrap().encode();
    let txn = world.shard_stores[&target].begin(vec![]).await.unwrap();
    txn.commit(vec![Write::Put(stray.clone(), value)]).await.unwrap();
    world.engine.run_moves().await.unwrap();
    assert_eq!(world.partitions(&container).await[0].shard, target);
    assert_eq!(world.shard_stores[&target].get(&stray).await.unwrap(), None);
}
