//! Routers follow the catalog by its change log, and read everything again only when they are too far behind.

use std::collections::BTreeMap;

use crate::world::{Crash, World, code, text};
use lazuli_shardmap::catalog::{LOG_PARTITIONS_MAX, LOG_VERSIONS_MAX};
use lazuli_shardmap::manager::NewPartition;
use lazuli_shardmap::{ContainerId, MapDelta, MapSource, Partition, PartitionId, PartitionState};
use lazuli_store::faulty::Fault;

/// A map that only ever follows.
struct Follower {
    container: ContainerId,
    version: u64,
    rows: BTreeMap<PartitionId, Partition>,
}

impl Follower {
    async fn load(world: &World, container: ContainerId) -> Self {
        let source: &dyn MapSource = world.catalog();
        let (version, partitions) = source.partitions(container).await.unwrap();
        let rows = partitions.into_iter().map(|it| (it.id, it)).collect();
        Self { container, version, rows }
    }

    async fn follow(&mut self, world: &World) {
        let source: &dyn MapSource = world.catalog();
        let delta = source.changes_since(self.container, self.version).await.unwrap();
        let MapDelta::Changes { version, removed, put } = delta else { panic!("a delta") };
        self.version = version;
        for id in removed {
            self.rows.remove(&id);
        }
        self.rows.extend(put.into_iter().map(|it| (it.id, it)));
    }

    async fn check(&self, world: &World) {
        let truth = Self::load(world, self.container).await;
        assert_eq!((self.version, &self.rows), (truth.version, &truth.rows));
    }
}

#[tokio::test]
async fn whoever_follows_knows_what_whoever_reads_all_knows() {
    let world = World::new().await;
    world.add_shard("one").await;
    let orders = world.range("orders", &[]).await.id;
    world.range("others", &["k"]).await;
    let mut often = Follower::load(&world, orders).await;
    let mut seldom = Follower::load(&world, orders).await;
    for round in 0..20 {
        let name = if round % 3 == 0 { "others" } else { "orders" };
        let last = world.at(name, "zzz").await;
        let at = text(&format!("m{round:02}"));
        let (left, right) = world.manager.split((&last).into(), at).await.unwrap();
        if round % 4 == 0 {
            world.manager.merge((&left).into(), (&right).into()).await.unwrap();
        }
        often.follow(&world).await;
        often.check(&world).await;
    }
    seldom.follow(&world).await;
    seldom.check(&world).await;
    assert!(seldom.rows.len() > 5);
}

#[tokio::test]
async fn whoever_is_too_far_behind_or_ahead_reads_all_of_it() {
    let world = World::new().await;
    world.add_shard("one").await;
    let orders = world.range("orders", &[]).await.id;
    let before = world.catalog().version().await.unwrap();
    let whole = world.at("orders", "a").await;
    for _ in 0..LOG_VERSIONS_MAX / 2 {
        let token = world.manager.new_token();
        world.manager.lock((&whole).into(), token).await.unwrap();
        world.manager.unlock(whole.id, token).await.unwrap();
    }
    let source: &dyn MapSource = world.catalog();
    let since = async |version| source.changes_since(orders, version).await.unwrap();
    assert!(
        matches!(since(before).await, MapDelta::Changes { removed, put, .. }
        if removed.is_empty() && put.is_empty()),
        "locks are nobody's business"
    );
    assert_eq!(since(before - 1).await, MapDelta::Reload);
    let newest = world.catalog().version().await.unwrap();
    assert_eq!(since(newest + 1).await, MapDelta::Reload, "from before a restore");
    assert!(matches!(since(newest).await, MapDelta::Changes { version, .. } if version == newest));
}

#[tokio::test]
async fn a_change_of_very_much_is_not_listed() {
    let world = World::new().await;
    world.add_shard("one").await;
    let tenants = world.list("tenants", &[]).await.id;
    let others = world.list("others", &["a"]).await.id;
    let before = world.catalog().version().await.unwrap();
    let points: Vec<_> = (0..=LOG_PARTITIONS_MAX)
        .map(|nth| NewPartition::point(text(&format!("{nth}")), None))
        .collect();
    world.manager.add_partitions(tenants, &points).await.unwrap();
    let source: &dyn MapSource = world.catalog();
    assert_eq!(source.changes_since(tenants, before).await.unwrap(), MapDelta::Reload);
    let delta = source.changes_since(others, before).await.unwrap();
    assert!(matches!(delta, MapDelta::Changes { .. }), "the other map is followed as ever");
}

#[tokio::test]
async fn a_router_that_asks_for_news_helps_to_finish_what_is_under_way() {
    let world = World::new().await;
    world.add_shard("one").await;
    let orders = world.range("orders", &[]).await.id;
    let whole = world.at("orders", "a").await;
    // The shard has taken the change and the coordinator is gone before the catalog knows.
    let crashing = world.restart(Crash::at(2, Fault::After)).await;
    assert!(crashing.manager.split((&whole).into(), text("m")).await.is_err());
    let later = world.restart(Crash::never()).await;
    let version = later.catalog().version().await.unwrap();
    let source: &dyn MapSource = &*later.manager;
    let delta = source.changes_since(orders, version).await.unwrap();
    let MapDelta::Changes { removed, put, .. } = delta else { panic!("a delta") };
    assert_eq!((removed, put.len()), (vec![whole.id], 2));
    later.check().await;
}

#[tokio::test]
async fn a_deleted_container_is_gone_for_those_who_follow_it() {
    let world = World::new().await;
    world.add_shard("one").await;
    let orders = world.range("orders", &[]).await;
    let version = world.catalog().version().await.unwrap();
    world.manager.delete_container(orders.id, orders.version).await.unwrap();
    let source: &dyn MapSource = &*world.manager;
    assert_eq!(code(source.changes_since(orders.id, version).await), "container-not-found");
    assert_eq!(code(source.partitions(orders.id).await), "container-not-found");
    let heir = world.range("orders", &[]).await;
    assert!(heir.id > orders.id, "the name is free, the id is not");
    let whole = world.at("orders", "a").await;
    world.manager.set_state((&whole).into(), PartitionState::Offline).await.unwrap();
}
