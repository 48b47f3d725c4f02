//! Catalog and shard differ after a restore: nothing is decided by itself, and either side can win.

use lazuli_sql_control::{Cut, Keep};

use crate::fixture::{NAME, World, fill};
use crate::moves::at;

#[test]
fn a_restored_shard_is_compared_and_either_side_wins() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    fill(&world, "s1", 4, 2);
    process.run(async {
        let control = &process.control;
        let update = "UPDATE customer SET counter = 1 WHERE tenant = 4";
        // The shard is as it was before a split.
        world.sql("s1", "CREATE SCHEMA old; CREATE TABLE old.m AS TABLE lazuli.local_map; CREATE TABLE old.f AS TABLE lazuli.fence");
        control.split(NAME, &at("1"), &Cut::At("3".into()), None).await.unwrap();
        let restore = "DELETE FROM lazuli.local_map; DELETE FROM lazuli.fence; \
                       INSERT INTO lazuli.local_map TABLE old.m; INSERT INTO lazuli.fence TABLE old.f";
        world.sql("s1", restore);
        let found = control.differences(NAME, Some("s1")).await.unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(control.resolve(NAME, "s1", Keep::Catalog).await.unwrap(), 2);
        assert_eq!(control.differences(NAME, None).await.unwrap(), []);
        world.sql("s1", update);
        world.sql("s1", restore);
        assert_eq!(control.resolve(NAME, "s1", Keep::Shard).await.unwrap(), 2);
        assert_eq!(control.differences(NAME, None).await.unwrap(), []);
        let shown = control.show(NAME).await.unwrap();
        assert_eq!(shown["maps"][0]["mappings"].as_array().unwrap().len(), 1, "{shown}");
        world.sql("s1", update);
    });
}

#[test]
fn a_shard_that_moved_to_another_database_is_attached_there() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    fill(&world, "s1", 4, 2);
    let (copy, old) = (world.database("copy"), world.database("s1"));
    world.sql("postgres", &format!("CREATE DATABASE {copy} TEMPLATE {old}"));
    process.run(async {
        let control = &process.control;
        control.detach(NAME, "s1").await.unwrap();
        let mut new = world.shard("s1");
        new.address = world.address("copy");
        let differences = control.attach(NAME, &new).await.unwrap();
        assert_eq!(differences.len(), 1, "detaching took the mapping offline: {differences:?}");
        assert_eq!(control.resolve(NAME, "s1", Keep::Shard).await.unwrap(), 1);
        world.sql("copy", "UPDATE customer SET counter = 1");
        assert_eq!(control.show(NAME).await.unwrap()["maps"][0]["mappings"][0]["state"], "online");
    });
}
