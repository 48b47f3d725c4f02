//! Where inserts land: growing keys are found in range maps, over all partitions and shards, and nowhere else.

use std::time::Duration;

use crate::world::{Delete, World, item_key};
use lazuli_engine::{Container, End, INSERTS_LEAST, LATE_MAX};

const ENOUGH: u64 = INSERTS_LEAST + 2 * LATE_MAX;

async fn insert(world: &World, container: &Container, keys: impl Iterator<Item = u64>) {
    for key in keys {
        world.put(container, &format!("{key:08}"), "row", "value").await.unwrap();
    }
}

#[tokio::test]
async fn growing_keys_are_found_over_partitions_and_shards() {
    let world = World::new(2).await;
    let container = world.range("c", &["00000500", "00001000"]).await;
    insert(&world, &container, 0..ENOUGH).await;
    let found = world.engine.hot_ends();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].container, found[0].end), (container.id, End::High));
    assert_eq!((found[0].inserts, found[0].at_end), (INSERTS_LEAST, INSERTS_LEAST));
    assert_eq!(found[0].in_partition, INSERTS_LEAST, "whichever was the last one at the time");
    assert_eq!(found[0].partition, world.partition_of(&container, "00002000").await.id);
    world.engine.delete_container("c").await.unwrap();
    assert_eq!(world.engine.hot_ends(), []);
}

#[tokio::test]
async fn shrinking_keys_are_found_and_a_restart_forgets_them() {
    let mut world = World::new(1).await;
    let container = world.range("c", &[]).await;
    world.pass(Duration::from_secs(60));
    insert(&world, &container, (0..ENOUGH).rev()).await;
    let found = world.engine.hot_ends();
    assert_eq!(found[0].end, End::Low);
    assert!(found[0].since >= Duration::from_secs(60));
    world.restart().await;
    assert_eq!(world.engine.hot_ends(), []);
}

#[tokio::test]
async fn hashed_keys_have_no_end_to_land_at() {
    let world = World::new(1).await;
    let container = world.hash("c", 4).await;
    insert(&world, &container, 0..ENOUGH).await;
    assert_eq!(world.engine.hot_ends(), []);
}

#[tokio::test]
async fn replacements_and_deletions_are_no_inserts() {
    let mut world = World::new(1).await;
    let container = world.range("c", &[]).await;
    insert(&world, &container, 0..ENOUGH).await;
    // After it nothing is known of the inserts, and what comes in order is there already.
    world.restart().await;
    insert(&world, &container, 0..ENOUGH).await;
    for key in 0..ENOUGH {
        let key = item_key(&container, &format!("{key:08}"), "row");
        world.engine.write(container.id, key.route(), Delete(key.clone())).await.unwrap();
    }
    assert_eq!(world.engine.hot_ends(), []);
}
