//! Group g: who may change a locked partition.

use crate::world::{World, code, text};
use lazuli_env::Id;
use lazuli_shardmap::manager::Known;
use lazuli_shardmap::{Access, PartitionState, ShardId};
use lazuli_store::Result;

const MINE: Id = Id::from_bytes([1; 16]);
const THEIRS: Id = Id::from_bytes([2; 16]);

async fn orders() -> World {
    let world = World::new().await;
    world.add_shard("one").await;
    world.range("orders", &["m"]).await;
    world
}

async fn known(world: &World, key: &str) -> Known {
    (&world.at("orders", key).await).into()
}

#[tokio::test]
async fn a_locked_partition_is_not_locked_again_not_even_by_its_owner() {
    let world = orders().await;
    let left = known(&world, "a").await;
    world.manager.lock(left, MINE).await.unwrap();
    for token in [MINE, THEIRS] {
        assert_eq!(code(world.manager.lock(left, token).await), "partition-locked");
        assert_eq!(code(world.manager.lock(left.locked(MINE), token).await), "partition-locked");
    }
}

#[tokio::test]
async fn only_the_owner_changes_a_locked_partition() {
    let world = orders().await;
    let manager = &world.manager;
    let right = known(&world, "z").await;
    manager.lock(known(&world, "a").await, MINE).await.unwrap();
    for (lock, expected) in [(None, "partition-locked"), (Some(THEIRS), "lock-not-held")] {
        let left = Known { lock, ..known(&world, "a").await };
        let state = PartitionState::Offline;
        assert_eq!(code(manager.set_state(left, state).await), expected);
        assert_eq!(code(manager.split(left, text("c")).await), expected);
        assert_eq!(code(manager.merge(left, right).await), expected);
        assert_eq!(code(manager.delete_partition(left).await), expected);
    }
    assert_eq!(code(manager.unlock(known(&world, "a").await.id, THEIRS).await), "lock-not-held");
    let orders = world.catalog().container_named("orders").await.unwrap();
    let refused = manager.delete_container(orders.id, orders.version).await;
    assert_eq!(code(refused), "partition-locked");
    let left = known(&world, "a").await.locked(MINE);
    manager.set_state(left, PartitionState::Offline).await.unwrap();
    world.check().await;
}

#[tokio::test]
async fn a_token_opens_nothing_that_is_not_locked() {
    let world = orders().await;
    let left = known(&world, "a").await;
    let state = PartitionState::Offline;
    assert_eq!(code(world.manager.set_state(left.locked(MINE), state).await), "lock-not-held");
    assert_eq!(code(world.manager.unlock(left.id, MINE).await), "lock-not-held");
    world.manager.force_unlock(left.id).await.unwrap();
}

#[tokio::test]
async fn both_halves_keep_the_lock_and_a_merger_keeps_the_left_one() {
    let world = orders().await;
    let manager = &world.manager;
    manager.lock(known(&world, "a").await, MINE).await.unwrap();
    let left = known(&world, "a").await.locked(MINE);
    let (low, high) = manager.split(left, text("c")).await.unwrap();
    for half in [&low, &high] {
        assert_eq!(world.catalog().partition(half.id).await.unwrap().lock, Some(MINE));
    }
    manager.lock(known(&world, "z").await, THEIRS).await.unwrap();
    let right = known(&world, "z").await;
    let high = Known::from(&high).locked(MINE);
    assert_eq!(code(manager.merge(high, right.locked(MINE)).await), "lock-not-held");
    let merged = manager.merge(high, right.locked(THEIRS)).await.unwrap();
    assert_eq!(world.catalog().partition(merged.id).await.unwrap().lock, Some(MINE));
    assert_eq!(manager.unlock_all(merged.container, THEIRS).await.unwrap(), 0);
    assert_eq!(manager.unlock_all(merged.container, MINE).await.unwrap(), 2);
    world.check().await;
}

#[tokio::test]
async fn unlocking_all_of_a_token_frees_those_and_no_others() {
    let world = orders().await;
    let manager = &world.manager;
    let other = world.range("other", &["m"]).await;
    let orders = world.catalog().container_named("orders").await.unwrap();
    let elsewhere = world.partitions(other.id).await[0].clone();
    manager.lock((&elsewhere).into(), MINE).await.unwrap();
    manager.lock(known(&world, "a").await, MINE).await.unwrap();
    manager.lock(known(&world, "z").await, THEIRS).await.unwrap();
    assert_eq!(manager.unlock_all(orders.id, MINE).await.unwrap(), 1);
    let lock = async |id| -> Result<Option<Id>> { Ok(world.catalog().partition(id).await?.lock) };
    assert_eq!(lock(known(&world, "a").await.id).await.unwrap(), None);
    assert_eq!(lock(known(&world, "z").await.id).await.unwrap(), Some(THEIRS));
    assert_eq!(lock(elsewhere.id).await.unwrap(), Some(MINE), "another map's");
    manager.force_unlock(known(&world, "z").await.id).await.unwrap();
    assert_eq!(lock(known(&world, "z").await.id).await.unwrap(), None);
}

#[tokio::test]
async fn data_is_read_and_written_whoever_holds_the_lock() {
    let world = orders().await;
    let left = world.at("orders", "a").await;
    world.manager.lock((&left).into(), MINE).await.unwrap();
    let local = world.local(ShardId(1));
    for access in [Access::Read, Access::Write] {
        assert!(local.check(left.id, left.epoch, access).is_ok());
    }
}
