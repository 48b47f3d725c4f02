//! All operations, each as a function on a world that `prepared` made.

use std::sync::Arc;

use lazuli_env::{BoxFuture, Id};
use lazuli_shardmap::manager::{
    ContainerUpdate, Cuts, Known, NewContainer, NewMove, NewPartition, ShardUpdate,
};
use lazuli_shardmap::{MapKind, Move, PartitionState, ShardId};
use lazuli_store::{Error, Result};

use super::{Disks, World, new_container, new_shard, text};

pub const ONE: ShardId = ShardId(1);
pub const TWO: ShardId = ShardId(2);
pub const SPARE: ShardId = ShardId(3);
pub const LOST: ShardId = ShardId(4);
pub const TOKEN: Id = Id::from_bytes([9; 16]);

pub type Run = for<'a> fn(&'a World) -> BoxFuture<'a, Result<()>>;

macro_rules! case {
    ($name:literal, $world:ident => $run:expr) => {
        ($name, (|$world| Box::pin(async move { $run.map(|_| ()) })) as Run)
    };
}

pub fn cases() -> Vec<(&'static str, Run)> {
    let mut cases = map_cases();
    cases.extend(move_cases());
    cases
}

fn move_cases() -> Vec<(&'static str, Run)> {
    vec![
        case!("begin a move", w => begin(w, "tenants", "lotte", TWO).await),
        case!("begin the move of what is offline", w => begin(w, "tenants", "anna", TWO).await),
        case!("take a move", w => w.manager.take_move(moving(w, "copied").await?.number, None).await),
        case!("fence a move", w => w.manager.fence_move(&moving(w, "copied").await?).await),
        case!("reopen a move", w => w.manager.reopen_move(moving(w, "fenced").await?.number).await),
        case!("commit a move", w => w.manager.commit_move(&moving(w, "fenced").await?).await),
        case!("cancel a move", w => w.manager.cancel_move(moving(w, "copied").await?.number).await),
        case!("cancel a fenced move", w => {
            w.manager.cancel_move(moving(w, "fenced").await?.number).await
        }),
        case!("clear a move", w => w.manager.clear_move(moving(w, "off").await?.number).await),
        case!("let a move rest", w => {
            w.manager.pause_move(moving(w, "copied").await?.number, true).await
        }),
        case!("end a move", w => w.manager.end_move(moving(w, "moved").await?.number).await),
        case!("delete a container with moves", w => delete(w, "movers").await),
    ]
}

fn map_cases() -> Vec<(&'static str, Run)> {
    vec![
        case!("add a shard", w => w.manager.add_shard(&new_shard("new")).await),
        case!("update a shard", w => w.manager.update_shard(&rename(w).await).await),
        case!("remove a shard", w => w.manager.remove_shard(SPARE, 1).await),
        case!("detach a shard", w => w.manager.detach_shard(LOST).await),
        case!("create a list", w => create(w, MapKind::List, Cuts::Empty).await),
        case!("create a range", w => create(w, MapKind::Range, Cuts::At(vec![text("m")])).await),
        case!("create a hash", w => create(w, MapKind::Hash, Cuts::Even(5)).await),
        case!("update a container", w => w.manager.update_container(&tag(w).await).await),
        case!("delete a container", w => delete(w, "carts").await),
        case!("delete an empty container", w => delete(w, "empty").await),
        case!("add a point", w => add(w, &["carla"]).await),
        case!("add points on several shards", w => add(w, &["carla", "dora", "emma", "fritz"]).await),
        case!("delete a partition", w => {
            let anna = w.find("tenants", "anna").await?;
            w.manager.delete_partition((&anna).into()).await
        }),
        case!("take a partition offline", w => state(w, "a", PartitionState::Offline).await),
        case!("let a partition only be read", w => state(w, "g", PartitionState::ReadOnly).await),
        case!("take a partition online", w => state(w, "z", PartitionState::Online).await),
        case!("split", w => {
            let first = w.find("orders", "a").await?;
            w.manager.split((&first).into(), text("c")).await
        }),
        case!("split a hash map", w => {
            let carts = w.catalog().container_named("carts").await?;
            let first = w.partitions(carts.id).await[0].clone();
            w.manager.split((&first).into(), vec![0x08, 0x00].into()).await
        }),
        case!("merge", w => {
            let (left, right) = (w.find("orders", "a").await?, w.find("orders", "g").await?);
            w.manager.merge((&left).into(), (&right).into()).await
        }),
        case!("lock", w => {
            let anna = w.find("tenants", "anna").await?;
            w.manager.lock((&anna).into(), TOKEN).await
        }),
        case!("unlock", w => w.manager.unlock(w.find("tenants", "berta").await?.id, TOKEN).await),
        case!("unlock by force", w => {
            w.manager.force_unlock(w.find("tenants", "berta").await?.id).await
        }),
        case!("unlock all", w => {
            let tenants = w.catalog().container_named("tenants").await?;
            w.manager.unlock_all(tenants.id, TOKEN).await
        }),
        case!("take a locked partition offline", w => {
            let berta = Known::from(&w.find("tenants", "berta").await?).locked(TOKEN);
            w.manager.set_state(berta, PartitionState::Offline).await
        }),
        case!("clean garbage", w => {
            let garbage = w.catalog().garbage().await?;
            let none = Error::not_found("clean", "there is no garbage");
            w.manager.garbage_done(garbage.first().ok_or(none)?).await
        }),
    ]
}

async fn rename(w: &World) -> ShardUpdate {
    let shard = w.catalog().shard(ONE).await.unwrap();
    let (name, region, labels) = ("other".into(), shard.region, shard.labels);
    ShardUpdate { id: ONE, version: shard.version, name, region, labels }
}

async fn tag(w: &World) -> ContainerUpdate {
    let orders = w.catalog().container_named("orders").await.unwrap();
    let (placement, policies) = (orders.placement, orders.policies);
    let schema = "orders-2".into();
    ContainerUpdate { id: orders.id, version: orders.version, schema, placement, policies }
}

async fn create(w: &World, kind: MapKind, cuts: Cuts) -> Result<()> {
    w.manager.create_container(&new_container("new", kind, cuts)).await.map(|_| ())
}

async fn delete(w: &World, name: &str) -> Result<()> {
    let container = w.catalog().container_named(name).await?;
    w.manager.delete_container(container.id, container.version).await
}

async fn add(w: &World, keys: &[&str]) -> Result<()> {
    let tenants = w.catalog().container_named("tenants").await?;
    let new: Vec<_> = keys.iter().map(|key| NewPartition::point(text(key), None)).collect();
    w.manager.add_partitions(tenants.id, &new).await.map(|_| ())
}

async fn state(w: &World, key: &str, state: PartitionState) -> Result<()> {
    let partition = w.find("orders", key).await?;
    w.manager.set_state((&partition).into(), state).await.map(|_| ())
}

async fn begin(w: &World, container: &str, key: &str, target: ShardId) -> Result<Move> {
    let partition = Known::from(&w.find(container, key).await?);
    let new = NewMove { partition, target, pause_limit_ms: 500, bytes_per_second: 0 };
    w.manager.begin_move(new).await
}

/// The move of the partition of this key.
async fn moving(w: &World, key: &str) -> Result<Move> {
    let id = w.find("movers", key).await?.id;
    let found = w.catalog().moves().await?.into_iter().find(|moving| moving.partition == id);
    found.ok_or_else(|| Error::not_found("move-not-found", "no move of this partition"))
}

/// Partitions at every stage of a move.
async fn begin_moves(world: &World) {
    let movers = new_container("movers", MapKind::List, Cuts::Empty);
    let movers = world.manager.create_container(&movers).await.unwrap();
    let points =
        ["copied", "fenced", "moved", "off"].map(|key| NewPartition::point(text(key), Some(ONE)));
    world.manager.add_partitions(movers.id, &points).await.unwrap();
    begin(world, "movers", "copied", TWO).await.unwrap();
    for key in ["fenced", "moved"] {
        let begun = begin(world, "movers", key, TWO).await.unwrap();
        world.manager.fence_move(&begun).await.unwrap();
    }
    let off = begin(world, "movers", "off", TWO).await.unwrap();
    world.manager.cancel_move(off.number).await.unwrap();
    let moved = moving(world, "moved").await.unwrap();
    world.manager.commit_move(&moved).await.unwrap();
}

/// Shards with four maps, a lock, a state, moves and some garbage; a shard that holds nothing and one that is to be lost.
pub async fn prepared() -> Arc<Disks> {
    let world = World::new().await;
    for name in ["one", "two", "spare", "lost"] {
        world.add_shard(name).await;
    }
    let on = |shards: &[ShardId], new: NewContainer| NewContainer { shards: shards.into(), ..new };
    let cuts = Cuts::At(vec![text("f"), text("m")]);
    let orders = on(&[ONE], new_container("orders", MapKind::Range, cuts));
    let carts = on(&[ONE, TWO], new_container("carts", MapKind::Hash, Cuts::Even(4)));
    for new in [orders, carts, new_container("empty", MapKind::List, Cuts::Empty)] {
        world.manager.create_container(&new).await.unwrap();
    }
    let tenants = new_container("tenants", MapKind::List, Cuts::Empty);
    let tenants = world.manager.create_container(&tenants).await.unwrap();
    let point = |key: &str, shard| NewPartition::point(text(key), Some(shard));
    let points =
        [point("anna", ONE), point("berta", TWO), point("zora", TWO), point("lotte", LOST)];
    world.manager.add_partitions(tenants.id, &points).await.unwrap();
    let berta = world.at("tenants", "berta").await;
    world.manager.lock((&berta).into(), TOKEN).await.unwrap();
    for key in ["anna", "zora"] {
        let partition = world.at("tenants", key).await;
        world.manager.set_state((&partition).into(), PartitionState::Offline).await.unwrap();
    }
    let zora = world.at("tenants", "zora").await;
    world.manager.delete_partition((&zora).into()).await.unwrap();
    state(&world, "z", PartitionState::Offline).await.unwrap();
    begin_moves(&world).await;
    world.check().await;
    world.disks
}
