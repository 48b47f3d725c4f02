//! Group c: whoever changes what has changed since is refused; changing nothing changes nothing; many change at once.

use std::sync::Arc;

use crate::world::{Crash, World, code, new_shard, text};
use lazuli_shardmap::manager::{ContainerUpdate, NewPartition, NewShard, ShardUpdate};
use lazuli_shardmap::{Access, Epoch, PartitionId, PartitionState, Policies, ShardId};
use lazuli_store::KeyRange;
use tokio::task::JoinSet;

#[tokio::test]
async fn a_shard_that_has_changed_is_neither_updated_nor_removed() {
    let world = World::new().await;
    let shard = world.add_shard("one").await;
    let update = ShardUpdate {
        id: shard.id,
        version: shard.version,
        name: "uno".into(),
        region: shard.region.clone(),
        labels: shard.labels.clone(),
    };
    let newer = world.manager.update_shard(&update).await.unwrap();
    assert_eq!((newer.name.as_str(), newer.version), ("uno", 2));
    assert_eq!(code(world.manager.update_shard(&update).await), "shard-changed");
    assert_eq!(code(world.manager.remove_shard(shard.id, 1).await), "shard-changed");
    let version = world.catalog().version().await.unwrap();
    let same = ShardUpdate { version: 2, ..update };
    assert_eq!(world.manager.update_shard(&same).await.unwrap(), newer);
    assert_eq!(world.catalog().version().await.unwrap(), version, "nothing was written");
    // The old name is free again.
    let heir = NewShard { location: "elsewhere".into(), ..new_shard("one") };
    world.manager.add_shard(&heir).await.unwrap();
    world.manager.remove_shard(shard.id, 2).await.unwrap();
    assert_eq!(code(world.manager.remove_shard(shard.id, 2).await), "shard-not-found");
    world.add_shard("uno").await;
}

#[tokio::test]
async fn a_shard_that_holds_anything_is_not_removed() {
    let world = World::new().await;
    let one = world.add_shard("one").await;
    let orders = world.range("orders", &["m"]).await;
    assert_eq!(code(world.manager.remove_shard(one.id, 1).await), "shard-not-empty");
    let holdings = world.manager.check_shard(one.id).await.unwrap();
    assert_eq!(holdings.partitions, 2);
    assert_eq!(holdings.first, world.partitions(orders.id).await);
    world.manager.delete_container(orders.id, orders.version).await.unwrap();
    let holdings = world.manager.check_shard(one.id).await.unwrap();
    assert_eq!((holdings.partitions, holdings.garbage.len()), (0, 1));
    world.manager.remove_shard(one.id, 1).await.unwrap();
    assert!(world.catalog().garbage().await.unwrap().is_empty(), "it went with the shard");
}

/// The answer has the version that the container is given when all shards have taken the change, so the next change can be
/// made of it.
#[tokio::test]
async fn new_rules_are_answered_as_the_catalog_has_them() {
    let world = World::new().await;
    world.add_shard("one").await;
    let orders = world.range("orders", &["m"]).await;
    let mut update = ContainerUpdate {
        id: orders.id,
        version: orders.version,
        schema: orders.schema.clone(),
        placement: vec![],
        policies: orders.policies.clone(),
    };
    for throughput in [100, 200, 200] {
        update.policies.throughput = Some(throughput);
        let updated = world.manager.update_rules(&update).await.unwrap();
        assert_eq!(updated, world.catalog().container(orders.id).await.unwrap());
        assert_eq!(updated.policies, update.policies);
        update.version = updated.version;
    }
    for entry in world.catalog().partitions_in(orders.id, &KeyRange::all(), 9).await.unwrap() {
        assert_eq!(entry.partition.epoch, Epoch(3), "the third change changed nothing");
    }
}

#[tokio::test]
async fn a_container_that_has_changed_is_neither_updated_nor_deleted() {
    let world = World::new().await;
    world.add_shard("one").await;
    let orders = world.range("orders", &[]).await;
    let policies = Policies { changes: true, ..Policies::default() };
    let update = ContainerUpdate {
        id: orders.id,
        version: orders.version,
        schema: orders.schema.clone(),
        placement: vec![],
        policies: policies.clone(),
    };
    let newer = world.manager.update_container(&update).await.unwrap();
    assert_eq!(newer.policies, policies);
    assert_eq!(code(world.manager.update_container(&update).await), "container-changed");
    let delete = world.manager.delete_container(orders.id, orders.version).await;
    assert_eq!(code(delete), "container-changed");
    let same = ContainerUpdate { version: newer.version, ..update };
    assert_eq!(world.manager.update_container(&same).await.unwrap(), newer);
    // A change of a partition is a change of the container.
    let whole = world.at("orders", "a").await;
    world.manager.split((&whole).into(), text("m")).await.unwrap();
    let delete = world.manager.delete_container(orders.id, newer.version).await;
    assert_eq!(code(delete), "container-changed");
}

#[tokio::test]
async fn a_partition_that_has_changed_is_left_alone() {
    let world = World::new().await;
    world.add_shard("one").await;
    world.range("orders", &["m"]).await;
    let old = world.at("orders", "a").await;
    let right = world.at("orders", "z").await;
    let manager = &world.manager;
    let new = manager.set_state((&old).into(), PartitionState::ReadOnly).await.unwrap();
    assert!(new.epoch > old.epoch);
    let known = (&old).into();
    let refused = manager.set_state(known, PartitionState::Offline).await;
    assert_eq!(code(refused), "partition-changed");
    assert_eq!(code(manager.split(known, text("c")).await), "partition-changed");
    assert_eq!(code(manager.merge(known, (&right).into()).await), "partition-changed");
    assert_eq!(code(manager.delete_partition(known).await), "partition-changed");
    assert_eq!(code(manager.lock(known, manager.new_token()).await), "partition-changed");
    let version = world.catalog().version().await.unwrap();
    let same = manager.set_state((&new).into(), PartitionState::ReadOnly).await.unwrap();
    assert_eq!((same, world.catalog().version().await.unwrap()), (new.clone(), version));
    manager.split((&new).into(), text("c")).await.unwrap();
    let gone = manager.set_state((&new).into(), PartitionState::Online).await;
    assert_eq!(code(gone), "partition-not-found");
    world.check().await;
}

#[tokio::test]
async fn splits_and_merges_have_rules() {
    let world = World::new().await;
    world.add_shard("one").await;
    world.add_shard("two").await;
    let manager = &world.manager;
    let orders = world.range("orders", &["f", "m"]).await;
    let [low, mid, high] = &world.partitions(orders.id).await[..] else { panic!("three") };
    for at in ["f", "m", "z", "a"] {
        let refused = manager.split(mid.into(), text(at)).await;
        assert_eq!(code(refused), "split-point-outside", "{at}");
    }
    assert_eq!(code(manager.merge(low.into(), high.into()).await), "not-adjacent");
    assert_eq!(code(manager.merge(mid.into(), low.into()).await), "not-adjacent");
    assert_eq!(code(manager.merge(low.into(), mid.into()).await), "different-shards");
    let (left, right) = manager.split(mid.into(), text("h")).await.unwrap();
    assert_eq!((left.shard, right.shard), (mid.shard, mid.shard));
    assert!(left.epoch > mid.epoch && right.epoch > mid.epoch);
    assert!(left.id > mid.id && right.id > left.id);
    let offline = manager.set_state((&left).into(), PartitionState::Offline).await.unwrap();
    let refused = manager.merge((&offline).into(), (&right).into()).await;
    assert_eq!(code(refused), "different-states");
    let right = manager.set_state((&right).into(), PartitionState::Offline).await.unwrap();
    let merged = manager.merge((&offline).into(), (&right).into()).await.unwrap();
    assert_eq!(merged.routes, mid.routes);
    assert_eq!(merged.state, PartitionState::Offline);
    assert!(merged.epoch > offline.epoch.max(right.epoch));
    world.check().await;
}

#[tokio::test]
async fn of_two_who_split_one_partition_one_wins() {
    let first = World::new().await;
    first.add_shard("one").await;
    first.range("orders", &[]).await;
    let second = first.restart(Crash::never()).await;
    let whole = first.at("orders", "a").await;
    let (a, b) = tokio::join!(
        first.manager.split((&whole).into(), text("f")),
        second.manager.split((&whole).into(), text("m")),
    );
    assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
    first.restart(Crash::never()).await.check().await;
}

#[tokio::test]
async fn many_processes_change_the_catalog_at_once_and_none_is_lost() {
    let world = World::new().await;
    world.add_shard("one").await;
    world.add_shard("two").await;
    let tenants = world.list("tenants", &[]).await.id;
    let mut processes = JoinSet::new();
    for nth in 0..4 {
        let process = Arc::new(world.restart(Crash::never()).await);
        for round in 0..8 {
            let process = process.clone();
            processes.spawn(async move {
                let key = text(&format!("tenant-{nth}-{round}"));
                let new = NewPartition::point(key, None);
                let added = process.manager.add_partition(tenants, new).await.unwrap();
                let known = (&added).into();
                process.manager.set_state(known, PartitionState::ReadOnly).await.unwrap();
            });
        }
    }
    processes.join_all().await;
    let later = world.restart(Crash::never()).await;
    later.check().await;
    let partitions = later.partitions(tenants).await;
    assert_eq!(partitions.len(), 32);
    assert!(partitions.iter().all(|it| it.state == PartitionState::ReadOnly));
}

#[tokio::test]
async fn a_shard_that_is_down_holds_up_its_own_routes_and_nothing_else() {
    let world = World::new().await;
    world.add_shard("one").await;
    world.add_shard("two").await;
    let tenants = world.list("tenants", &[]).await;
    let on = |key: &str, shard| NewPartition::point(text(key), Some(shard));
    let points = [on("anna", ShardId(1)), on("berta", ShardId(2))];
    let added = world.manager.add_partitions(tenants.id, &points).await.unwrap();
    let (anna, berta) = (&added[0], &added[1]);

    // The operation is decided, then everything goes down, and shard 1 does not come back.
    let crashing = world.restart(Crash::at(2, lazuli_store::faulty::Fault::Before)).await;
    let halved = crashing.manager.set_state(anna.into(), PartitionState::ReadOnly).await;
    assert_eq!(code(halved), "store-down");
    let later = world.restart(Crash::never()).await;
    later.shards.down.lock().unwrap().insert(ShardId(1));

    let manager = &later.manager;
    manager.set_state(berta.into(), PartitionState::Offline).await.unwrap();
    let carla = NewPartition::point(text("carla"), None);
    let carla = manager.add_partition(tenants.id, carla).await.unwrap();
    assert_eq!(carla.shard, ShardId(2), "a shard that is down is given nothing");
    assert_eq!(code(manager.add_partition(tenants.id, on("dora", ShardId(1))).await), "shard-down");
    assert_eq!(code(manager.set_state(anna.into(), PartitionState::Offline).await), "shard-down");
    assert_eq!(code(manager.settle(tenants.id).await), "shard-down");
    assert_eq!(code(manager.remove_shard(ShardId(1), 1).await), "shard-down");
    let report = manager.reconcile().await.unwrap();
    assert_eq!((report.stuck.len(), report.unreachable.len()), (1, 1));

    later.shards.down.lock().unwrap().clear();
    let report = manager.reconcile().await.unwrap();
    assert!(report.is_clean() && report.finished.len() == 1, "{report:?}");
    let anna = later.at("tenants", "anna").await;
    assert_eq!(anna.state, PartitionState::ReadOnly);
    later.check().await;
}

#[tokio::test]
async fn a_range_comes_back_to_a_shard_only_when_it_is_clean_there() {
    let world = World::new().await;
    world.add_shard("one").await;
    let tenants = world.list("tenants", &["anna"]).await;
    let anna = world.at("tenants", "anna").await;
    let refused = world.manager.delete_partition((&anna).into()).await;
    assert_eq!(code(refused), "partition-not-offline");
    let anna = world.manager.set_state((&anna).into(), PartitionState::Offline).await.unwrap();
    world.manager.delete_partition((&anna).into()).await.unwrap();
    let again = NewPartition::point(text("anna"), Some(ShardId(1)));
    let refused = world.manager.add_partition(tenants.id, again.clone()).await;
    assert_eq!(code(refused), "range-being-cleaned");
    let garbage = world.catalog().garbage().await.unwrap();
    assert_eq!((garbage.len(), &garbage[0].routes), (1, &KeyRange::prefix(text("anna"))));
    world.manager.garbage_done(&garbage[0]).await.unwrap();
    world.manager.garbage_done(&garbage[0]).await.unwrap();
    let new = world.manager.add_partition(tenants.id, again).await.unwrap();
    assert!(new.id > anna.id);
    assert!(world.local(ShardId(1)).check(new.id, new.epoch, Access::Write).is_ok());
    assert_eq!(world.local(ShardId(1)).get(PartitionId(99)).unwrap(), None);
    world.check().await;
}
