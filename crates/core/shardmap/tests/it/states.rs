//! Group d: offline and read-only partitions, for those who come and for those who are already there.

use crate::world::{World, code};
use lazuli_shardmap::{Access, ShardId};
use lazuli_shardmap::{Partition, PartitionState};
use lazuli_store::Store;

async fn orders() -> (World, Partition) {
    let world = World::new().await;
    world.add_shard("one").await;
    world.range("orders", &[]).await;
    let whole = world.at("orders", "a").await;
    (world, whole)
}

#[tokio::test]
async fn each_state_lets_in_what_it_says() {
    use PartitionState::{Offline, Online, ReadOnly};
    let (world, mut partition) = orders().await;
    let local = world.local(ShardId(1));
    for (state, read, write) in [
        (ReadOnly, None, Some("partition-read-only")),
        (Offline, Some("partition-offline"), Some("partition-offline")),
        (Online, None, None),
        (Offline, Some("partition-offline"), Some("partition-offline")),
        (ReadOnly, None, Some("partition-read-only")),
        (Online, None, None),
    ] {
        partition = world.manager.set_state((&partition).into(), state).await.unwrap();
        let check = |access| local.check(partition.id, partition.epoch, access);
        assert_eq!(check(Access::Read).err().map(|error| error.code()), read, "{state:?}");
        assert_eq!(check(Access::Write).err().map(|error| error.code()), write, "{state:?}");
    }
    world.check().await;
}

#[tokio::test]
async fn a_change_of_state_ends_the_writes_that_are_under_way() {
    let (world, partition) = orders().await;
    let local = world.local(ShardId(1));
    let store = world.disks.shard(ShardId(1));
    let held = local.check(partition.id, partition.epoch, Access::Write).unwrap();
    let under_way = store.begin(vec![held.guard.clone()]).await.unwrap();
    world.manager.set_state((&partition).into(), PartitionState::Offline).await.unwrap();
    assert!(under_way.commit(vec![]).await.unwrap_err().is_moved());
    assert!(store.begin(vec![held.guard]).await.err().unwrap().is_moved());
    let old = local.check(partition.id, partition.epoch, Access::Read);
    assert_eq!(code(old), "moved");
}

#[tokio::test]
async fn a_split_ends_the_writes_that_are_under_way() {
    let (world, partition) = orders().await;
    let local = world.local(ShardId(1));
    let store = world.disks.shard(ShardId(1));
    let held = local.check(partition.id, partition.epoch, Access::Write).unwrap();
    let under_way = store.begin(vec![held.guard]).await.unwrap();
    let halves = world.manager.split((&partition).into(), crate::world::text("m")).await.unwrap();
    assert!(under_way.commit(vec![]).await.unwrap_err().is_moved());
    for half in [halves.0, halves.1] {
        let held = local.check(half.id, half.epoch, Access::Write).unwrap();
        assert_eq!(held.routes, half.routes);
        store.begin(vec![held.guard]).await.unwrap().commit(vec![]).await.unwrap();
    }
}
