//! Placement rules (S16), wherever a partition could come to a shard or a shard could change under it.

use std::collections::BTreeMap;

use crate::world::{World, between, code, new_container, new_shard, text};
use lazuli_shardmap::manager::{ContainerUpdate, Cuts, NewPartition, NewShard, ShardUpdate};
use lazuli_shardmap::placement::Rule;
use lazuli_shardmap::{MapKind, Shard, ShardId};
use lazuli_store::KeyRange;

async fn shard(world: &World, name: &str, region: &str) -> Shard {
    let new = NewShard { region: region.into(), ..new_shard(name) };
    let shard = world.manager.add_shard(&new).await.unwrap();
    world.start_shard(&shard).await;
    shard
}

fn only(routes: KeyRange, region: &str) -> Rule {
    Rule { routes, region: Some(region.into()), labels: BTreeMap::new() }
}

/// A shard in each of two regions, and a list map whose keys from m on must stay in the EU.
async fn tenants() -> (World, lazuli_shardmap::Container) {
    let world = World::new().await;
    shard(&world, "america", "us").await;
    shard(&world, "europe", "eu").await;
    let mut new = new_container("tenants", MapKind::List, Cuts::Empty);
    new.placement = vec![only(between(Some("m"), None), "eu")];
    let tenants = world.manager.create_container(&new).await.unwrap();
    (world, tenants)
}

#[tokio::test]
async fn a_partition_goes_where_the_rules_allow_it_and_nowhere_else() {
    let (world, tenants) = tenants().await;
    let point = |key: &str, shard| NewPartition::point(text(key), shard);
    let refused = world.manager.add_partition(tenants.id, point("maria", Some(ShardId(1)))).await;
    assert_eq!(code(refused), "placement-refused");
    for key in ["maria", "nina", "olga"] {
        let added = world.manager.add_partition(tenants.id, point(key, None)).await.unwrap();
        assert_eq!(added.shard, ShardId(2));
    }
    for key in ["anna", "berta", "carla"] {
        let added = world.manager.add_partition(tenants.id, point(key, None)).await.unwrap();
        assert_eq!(added.shard, ShardId(1), "it holds fewer");
    }
    world.check().await;
}

#[tokio::test]
async fn the_first_partitions_of_a_container_keep_to_its_rules() {
    let world = World::new().await;
    shard(&world, "america", "us").await;
    shard(&world, "europe", "eu").await;
    let mut new = new_container("carts", MapKind::Hash, Cuts::Even(8));
    new.placement = vec![only(KeyRange::all(), "eu")];
    let carts = world.manager.create_container(&new).await.unwrap();
    assert!(world.partitions(carts.id).await.iter().all(|it| it.shard == ShardId(2)));
    new.name = "more carts".into();
    new.shards = vec![ShardId(1)];
    assert_eq!(code(world.manager.create_container(&new).await), "no-shard-allowed");
    new.shards = vec![ShardId(9)];
    assert_eq!(code(world.manager.create_container(&new).await), "shard-not-found");
}

#[tokio::test]
async fn neither_rules_nor_shards_change_under_what_they_would_forbid() {
    let (world, tenants) = tenants().await;
    for key in ["anna", "maria"] {
        let new = NewPartition::point(text(key), None);
        world.manager.add_partition(tenants.id, new).await.unwrap();
    }
    let tenants = world.catalog().container(tenants.id).await.unwrap();
    let mut rules = ContainerUpdate {
        id: tenants.id,
        version: tenants.version,
        schema: tenants.schema,
        placement: vec![only(KeyRange::all(), "eu")],
        policies: tenants.policies,
    };
    assert_eq!(code(world.manager.update_container(&rules).await), "placement-refused");
    let europe = world.catalog().shard(ShardId(2)).await.unwrap();
    let mut move_away = ShardUpdate {
        id: europe.id,
        version: europe.version,
        name: europe.name,
        region: "us".into(),
        labels: europe.labels,
    };
    assert_eq!(code(world.manager.update_shard(&move_away).await), "placement-refused");
    // Without the rule the shard may go anywhere.
    rules.placement = vec![];
    world.manager.update_container(&rules).await.unwrap();
    world.manager.update_shard(&move_away).await.unwrap();
    move_away.version += 1;
    move_away.region = "eu".into();
    world.manager.update_shard(&move_away).await.unwrap();
}
