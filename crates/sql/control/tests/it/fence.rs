//! Direct connections that go around the endpoint cannot write where they must not.

use lazuli_sql_control::{Cut, Kind, MoveOptions, State, StateOptions};

use crate::fixture::{NAME, World, fill};
use crate::moves::at;

#[test]
fn a_direct_connection_cannot_write_a_row_that_belongs_elsewhere() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    fill(&world, "s1", 4, 5);
    let insert = "INSERT INTO customer (tenant, id, region, name) VALUES (1, 99, 1, 'x')";
    assert!(world.refused("s2", insert).contains("LZ002"));
    process.run(async {
        process.control.split(NAME, &at("1"), &Cut::At("3".into()), None).await.unwrap();
        let options = MoveOptions::default();
        let job = process.control.begin_move(NAME, &at("3"), "s2", &options, None).await.unwrap();
        process.control.wait_for(NAME, job).await.unwrap();
    });
    for statement in [
        "INSERT INTO customer (tenant, id, region, name) VALUES (3, 99, 1, 'x')",
        "INSERT INTO customer (tenant, id, region, name) SELECT 4, i, 1, 'x' FROM generate_series(100, 200) i",
        "UPDATE customer SET tenant = 4 WHERE tenant = 1 AND id = 5",
    ] {
        assert!(world.refused("s1", statement).contains("LZ002"), "{statement}");
    }
    assert!(world.refused("s1", "TRUNCATE customer CASCADE").contains("LZ005"));
    assert!(world.refused("s1", "INSERT INTO region VALUES (3, 'east')").contains("LZ005"));
    assert!(world.refused("s1", "DELETE FROM region").contains("LZ005"));
    let null = "INSERT INTO customer (tenant, id, region, name) VALUES (NULL, 1, 1, 'x')";
    assert!(world.refused("s1", null).contains("23502"));
    // Its own rows are no trouble, also when the key changes to another of its own.
    world.sql("s1", "UPDATE customer SET counter = 1 WHERE tenant = 1");
    world.sql("s2", "INSERT INTO customer (tenant, id, region, name) VALUES (3, 99, 1, 'x')");
    world.sql(
        "s1",
        "BEGIN; SET LOCAL lazuli.reference = 'on'; INSERT INTO region VALUES (3, 'east'); ROLLBACK",
    );
}

#[test]
fn offline_refuses_writes_and_online_takes_them_again() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    fill(&world, "s1", 2, 2);
    let update = "UPDATE customer SET counter = 1 WHERE tenant = 1";
    for (state, code) in [(State::Offline, "LZ003"), (State::ReadOnly, "LZ003")] {
        let set = |state| {
            let options = StateOptions::default();
            process.run(async { process.control.set_state(NAME, &at("1"), state, options).await })
        };
        set(state).unwrap();
        assert!(world.refused("s1", update).contains(code));
        set(State::Online).unwrap();
        world.sql("s1", update);
    }
}

#[test]
fn a_session_of_an_old_epoch_is_refused_by_the_shard_itself() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    fill(&world, "s1", 4, 2);
    let mapping = process.run(process.control.show(NAME)).unwrap();
    let mapping = &mapping["maps"][0]["mappings"][0];
    let session = format!("SET lazuli.mapping = '{}/{}'", mapping["id"], mapping["epoch"]);
    let update = "UPDATE customer SET counter = counter + 1 WHERE tenant = 1";
    world.sql("s1", &format!("{session}; {update}"));
    process.run(process.control.split(NAME, &at("1"), &Cut::At("3".into()), None)).unwrap();
    assert!(world.refused("s1", &format!("{session};\n{update};")).contains("LZ004"));
    world.sql("s1", update);
}

#[test]
fn transactions_at_every_isolation_level_end_before_the_fence_or_are_refused() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    fill(&world, "s1", 2, 2);
    process.run(async {
        for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
            let client = world.connect("s1").await;
            // The snapshot is taken before the mapping goes, the write comes after.
            client
                .batch_execute(&format!(
                    "BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM region"
                ))
                .await
                .unwrap();
            let options = StateOptions::default();
            process.control.set_state(NAME, &at("1"), State::Offline, options).await.unwrap();
            let late =
                client.execute("UPDATE customer SET counter = 9 WHERE tenant = 1", &[]).await;
            let code = late.unwrap_err().code().map(|it| it.code().to_owned()).unwrap_or_default();
            assert!(matches!(&*code, "LZ001" | "LZ003" | "40001"), "{level}: {code}");
            client.batch_execute("ROLLBACK").await.unwrap();
            process.control.set_state(NAME, &at("1"), State::Online, options).await.unwrap();
        }
        assert_eq!(world.sql("s1", "SELECT max(counter) FROM customer"), "0");
    });
}

#[test]
fn plain_roles_write_through_the_fence_without_rights_on_the_schema() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    world.sql("s1", "CREATE ROLE plain; GRANT ALL ON ALL TABLES IN SCHEMA public TO plain");
    let insert =
        "SET ROLE plain; INSERT INTO customer (tenant, id, region, name) VALUES (1, 1, 1, 'x')";
    world.sql("s1", insert);
    let steal = "SET ROLE plain;\nDELETE FROM lazuli.fence;";
    assert!(world.refused("s1", steal).contains("42501"));
}

#[test]
fn a_map_of_slots_and_a_map_of_ranges_live_on_the_same_shards() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    for shard in ["s1", "s2"] {
        world.sql(shard, "CREATE TABLE event (device uuid PRIMARY KEY, at timestamptz)");
    }
    process.run(async {
        process.map("devices", Kind::Hash, &["uuid"], None).await;
        process.sharded("event", "devices", &["device"]).await;
    });
    let mut counts = [0; 2];
    for nth in 0..64 {
        let insert = format!(
            "INSERT INTO event VALUES (('00000000-0000-0000-0000-' || lpad('{nth}', 12, '0'))::uuid, now())"
        );
        let shard =
            ["s1", "s2"].into_iter().position(|shard| world.try_sql(shard, &insert).is_ok());
        counts[shard.expect("one shard holds it")] += 1;
    }
    assert!(counts.iter().all(|count| *count > 10), "{counts:?}");
}
