//! A catalog that is lost with all it knew is made again from what the shards hold and remember.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::world::{Crash, Disks, World, new_container, text};
use lazuli_shardmap::catalog::{Catalog, Expected, kinds};
use lazuli_shardmap::manager::{ContainerUpdate, Cuts, NewPartition, NewShard};
use lazuli_shardmap::mirror::{self, Copies};
use lazuli_shardmap::{Container, ContainerId, MapKind, Partition, Policies, ShardId};
use lazuli_store::Store;
use lazuli_store::mem::MemStore;

const ONE: ShardId = ShardId(1);
const TWO: ShardId = ShardId(2);

/// Maps of several kinds on two shards, cut, joined and changed after they were made.
async fn lived() -> World {
    let world = World::new().await;
    world.add_shard("one").await;
    world.add_shard("two").await;
    let cuts = Cuts::At(vec![text("f"), text("m")]);
    let mut orders = new_container("orders", MapKind::Range, cuts);
    orders.shards = vec![ONE];
    let orders = world.manager.create_container(&orders).await.unwrap();
    world.hash("events", 8).await;
    let tenants = world.list("tenants", &[]).await;
    let point = |key: &str, shard| NewPartition::point(text(key), Some(shard));
    let points = [point("anna", ONE), point("berta", TWO)];
    world.manager.add_partitions(tenants.id, &points).await.unwrap();
    let low = world.at("orders", "a").await;
    world.manager.split((&low).into(), text("c")).await.unwrap();
    let update = ContainerUpdate {
        id: orders.id,
        version: world.catalog().container(orders.id).await.unwrap().version,
        schema: "orders-2".into(),
        placement: vec![],
        policies: Policies { throughput: Some(400), ..Policies::default() },
    };
    let updated = world.manager.update_container(&update).await.unwrap();
    world.manager.mirror_container(&updated).await.unwrap();
    let gone = world.range("gone", &[]).await;
    world.manager.delete_container(gone.id, gone.version).await.unwrap();
    world.catalog().put_record(kinds::ACCOUNT, "name", "keys", Expected::Anything).await.unwrap();
    for shard in [ONE, TWO] {
        world.manager.mirror_records(shard).await.unwrap();
    }
    world
}

async fn copies(world: &World, shard: ShardId) -> Copies {
    let store: Arc<dyn Store> = Arc::new(world.disks.shard(shard));
    let mut copies = mirror::read(&store).await.unwrap();
    // Maps grow in version with every change of their partitions, which no copy follows.
    copies.containers.values_mut().for_each(|it| it.version = 0);
    copies
}

/// What clients need to know of every partition.
async fn partitions(world: &World) -> BTreeMap<(String, Vec<u8>), Partition> {
    let mut all = BTreeMap::new();
    for container in world.catalog().containers().await.unwrap() {
        for one in world.partitions(container.id).await {
            all.insert((container.name.clone(), one.routes.start.to_vec()), one);
        }
    }
    all
}

#[tokio::test]
async fn a_lost_catalog_is_made_again() {
    let world = lived().await;
    let (before, containers) =
        (partitions(&world).await, world.catalog().containers().await.unwrap());
    let shards = world.disks.shards.lock().unwrap().clone();
    let catalog = MemStore::new();
    let id = world.catalog().id();
    Catalog::init_as(Arc::new(catalog.clone()), world.env.clone(), id).await.unwrap();
    let disks = Disks { catalog, shards: std::sync::Mutex::new(shards) };
    let again = World::open(Arc::new(disks), Crash::never()).await;

    let mut known: BTreeMap<ContainerId, Container> = BTreeMap::new();
    for shard in [ONE, TWO] {
        let copies = copies(&again, shard).await;
        let described = copies.shard.unwrap();
        assert_eq!(copies.records.len(), 1);
        assert_eq!(&copies.records[0].value[..], b"keys");
        let place = NewShard {
            name: described.name,
            location: described.location,
            region: described.region,
            labels: described.labels,
        };
        let identity = again.local(shard).identity();
        again.manager.attach_shard(&place, identity).await.unwrap();
        known.extend(copies.containers.into_values().map(|it| (it.id, it)));
    }
    for container in known.values() {
        again.manager.adopt_container(container).await.unwrap();
        again.manager.adopt_container(container).await.unwrap();
    }
    for shard in [ONE, TWO] {
        assert_eq!(again.manager.rebuild_catalog(shard).await.unwrap(), []);
    }
    assert!(again.manager.reconcile().await.unwrap().is_clean());
    again.check().await;

    let after = partitions(&again).await;
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    for (place, one) in &before {
        let now = &after[place];
        let same = |it: &Partition| (it.id, it.container, it.routes.clone(), it.shard, it.state);
        assert_eq!(same(now), same(one));
        assert!(now.epoch > one.epoch, "routers with the old map must notice");
    }
    for container in containers {
        let now = again.catalog().container(container.id).await.unwrap();
        let without_version = |it: Container| Container { version: 0, ..it };
        assert_eq!(without_version(now), without_version(container));
    }
    // Nothing is numbered twice.
    let new = again.range("new", &[]).await;
    assert!(known.keys().all(|id| *id < new.id));
}

#[tokio::test]
async fn copies_come_and_go_with_partitions_and_can_be_made_up_for() {
    let world = lived().await;
    for shard in [ONE, TWO] {
        let held = world.local(shard).partitions().unwrap();
        let copied = copies(&world, shard).await.containers;
        assert!(held.iter().map(|it| it.id).eq(copied.keys().copied()), "{held:?}");
    }
    // A shard of an earlier version has none, and one that was down has old ones.
    let store = world.disks.shard(ONE);
    let before = copies(&world, ONE).await;
    let prefix = lazuli_shardmap::layout::prefix(
        ContainerId::SYSTEM,
        lazuli_shardmap::layout::Space::COPIES,
    );
    store.delete_range(&lazuli_store::KeyRange::prefix(prefix), usize::MAX).await.unwrap();
    assert_eq!(copies(&world, ONE).await, Copies::default());
    world.manager.mirror_containers(ONE).await.unwrap();
    world.manager.mirror_records(ONE).await.unwrap();
    assert_eq!(copies(&world, ONE).await, before);
}
