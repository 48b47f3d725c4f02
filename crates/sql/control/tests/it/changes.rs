//! Mappings, shards and maps: what is allowed, what is refused, and with which code.

use lazuli_sql_control::{Cut, Kind, MoveOptions, NewMap, State, StateOptions, Which};

use crate::fixture::{NAME, World, fill};
use crate::moves::at;

fn code<T: std::fmt::Debug>(outcome: lazuli_store::Result<T>) -> &'static str {
    outcome.unwrap_err().code()
}

#[test]
fn duplicates_of_maps_shards_points_and_ranges_are_refused_with_codes_of_their_own() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    process.run(async {
        let control = &process.control;
        let again = NewMap {
            name: "tenants".into(),
            kind: Kind::Range,
            key: vec!["bigint".into()],
            on: None,
        };
        assert_eq!(code(control.add_map(NAME, &again).await), "sql-map-exists");
        assert_eq!(code(control.add_shard(NAME, &world.shard("s1")).await), "sql-shard-exists");
        assert_eq!(code(control.init(NAME, &[world.shard("s3")]).await), "sql-database-exists");
        assert_eq!(
            code(control.add_mapping(NAME, "tenants", ("5", "9"), "s2").await),
            "sql-mapping-exists"
        );
        process.map("points", Kind::List, &["text"], None).await;
        control.add_mapping(NAME, "points", ("acme", ""), "s1").await.unwrap();
        assert_eq!(
            code(control.add_mapping(NAME, "points", ("acme", ""), "s2").await),
            "sql-mapping-exists"
        );
        assert_eq!(
            code(control.add_mapping(NAME, "points", ("zeta", ""), "s9").await),
            "no-sql-shard"
        );
        assert_eq!(
            code(control.add_mapping(NAME, "nothing", ("1", "2"), "s1").await),
            "no-sql-map"
        );
        assert_eq!(code(control.init("other", &[world.shard("s1")]).await), "sql-shard-taken");
    });
}

#[test]
fn ranges_at_the_ends_of_the_domain_are_mappings_like_others() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    process.run(async {
        let control = &process.control;
        process.map("edges", Kind::Range, &["bigint"], None).await;
        let (least, most) = (i64::MIN.to_string(), i64::MAX.to_string());
        control
            .add_mapping(NAME, "edges", ("min", &(i64::MIN + 1).to_string()), "s1")
            .await
            .unwrap();
        control
            .add_mapping(NAME, "edges", (&(i64::MAX - 1).to_string(), &most), "s1")
            .await
            .unwrap();
        control.add_mapping(NAME, "edges", (&most, "max"), "s2").await.unwrap();
        assert_eq!(
            code(control.add_mapping(NAME, "edges", ("9", "9"), "s1").await),
            "sql-range-empty"
        );
        let which = |key: &str| Which::Key { map: "edges".into(), key: key.into() };
        let none =
            control.set_state(NAME, &which("0"), State::Offline, StateOptions::default()).await;
        assert_eq!(code(none), "sql-key-unmapped");
        for key in [&least, &most] {
            control
                .set_state(NAME, &which(key), State::Offline, StateOptions::default())
                .await
                .unwrap();
        }
    });
}

#[test]
fn a_change_by_an_old_epoch_is_refused_and_no_change_answers_the_same_mapping() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    process.run(async {
        let control = &process.control;
        let set = |state, expected| {
            let options = StateOptions { expected, ..StateOptions::default() };
            async move { control.set_state(NAME, &at("1"), state, options).await }
        };
        let first = set(State::Online, None).await.unwrap();
        assert_eq!(first, set(State::Online, Some(first.epoch)).await.unwrap());
        let second = set(State::Offline, Some(first.epoch)).await.unwrap();
        assert_eq!(second.epoch, first.epoch + 1);
        assert_eq!(code(set(State::Online, Some(first.epoch)).await), "sql-mapping-changed");
    });
}

#[test]
fn locks_keep_others_from_changing_a_mapping_and_not_from_using_it() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    process.run(async {
        let control = &process.control;
        control.set_lock(NAME, &at("1"), Some("me"), None, false).await.unwrap();
        let again = control.set_lock(NAME, &at("1"), Some("me"), Some("me"), false).await;
        assert_eq!(code(again), "sql-mapping-locked");
        let cut = Cut::At("5".into());
        assert_eq!(
            code(control.split(NAME, &at("1"), &cut, Some("you")).await),
            "sql-mapping-locked"
        );
        assert_eq!(code(control.split(NAME, &at("1"), &cut, None).await), "sql-mapping-locked");
        world.sql("s1", "INSERT INTO customer (tenant, id, region, name) VALUES (1, 1, 1, 'x')");
        control.split(NAME, &at("1"), &cut, Some("me")).await.unwrap();
        let wrong = control.set_lock(NAME, &at("7"), None, Some("you"), false).await;
        assert_eq!(code(wrong), "sql-mapping-locked");
        // Both halves have the lock; the owner's locks go, and only his.
        process.map("points", Kind::List, &["text"], None).await;
        control.add_mapping(NAME, "points", ("acme", ""), "s1").await.unwrap();
        let acme = Which::Key { map: "points".into(), key: "acme".into() };
        control.set_lock(NAME, &acme, Some("you"), None, false).await.unwrap();
        assert_eq!(control.unlock_all(NAME, "me").await.unwrap(), 2);
        assert_eq!(
            code(control.set_lock(NAME, &acme, None, Some("me"), false).await),
            "sql-mapping-locked"
        );
        control.set_lock(NAME, &acme, None, None, true).await.unwrap();
    });
}

#[test]
fn splits_and_merges_are_metadata_with_the_rules_of_both() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    fill(&world, "s1", 10, 3);
    process.run(async {
        let control = &process.control;
        let ids = control.split(NAME, &at("1"), &Cut::Isolate("7".into()), None).await.unwrap();
        assert_eq!(ids.len(), 3);
        assert_eq!(
            code(control.split(NAME, &at("7"), &Cut::At("9".into()), None).await),
            "sql-cut-outside"
        );
        world.sql("s1", "UPDATE customer SET counter = counter + 1");
        let options = StateOptions::default();
        control.set_state(NAME, &at("7"), State::Offline, options).await.unwrap();
        assert_eq!(code(control.merge(NAME, &at("1"), None).await), "sql-merge-states");
        control.set_state(NAME, &at("7"), State::Online, options).await.unwrap();
        let job =
            control.begin_move(NAME, &at("7"), "s2", &MoveOptions::default(), None).await.unwrap();
        control.wait_for(NAME, job).await.unwrap();
        assert_eq!(
            world.sql("s2", "SELECT count(*), min(tenant), max(tenant) FROM customer"),
            "3|7|7"
        );
        assert_eq!(code(control.merge(NAME, &at("1"), None).await), "sql-merge-apart");
        let job =
            control.begin_move(NAME, &at("7"), "s1", &MoveOptions::default(), None).await.unwrap();
        control.wait_for(NAME, job).await.unwrap();
        control.merge(NAME, &at("1"), None).await.unwrap();
        control.merge(NAME, &at("1"), None).await.unwrap();
        assert_eq!(code(control.merge(NAME, &at("1"), None).await), "no-sql-neighbour");
        world.sql("s1", "UPDATE customer SET counter = counter + 1");
        assert_eq!(world.sql("s1", "SELECT sum(counter) FROM customer"), "60");
    });
}

#[test]
fn a_shard_joins_with_reference_rows_and_leaves_when_it_is_drained() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    fill(&world, "s1", 6, 3);
    process.run(async {
        let control = &process.control;
        let new = world.shard("s3");
        assert_eq!(code(control.add_shard(NAME, &new).await), "no-sql-table");
        world.sql("s3", crate::fixture::SCHEMA);
        control.add_shard(NAME, &new).await.unwrap();
        assert_eq!(world.sql("s3", "SELECT count(*) FROM region"), "2");
        for key in ["3", "5"] {
            control.split(NAME, &at("1"), &Cut::At("3".into()), None).await.ok();
            control.split(NAME, &at("3"), &Cut::At("5".into()), None).await.ok();
            let job = control
                .begin_move(NAME, &at(key), "s3", &MoveOptions::default(), None)
                .await
                .unwrap();
            control.wait_for(NAME, job).await.unwrap();
        }
        assert_eq!(world.sql("s3", "SELECT count(*) FROM customer"), "12");
        assert_eq!(code(control.remove_shard(NAME, "s3").await), "sql-shard-not-empty");
        for job in control.drain(NAME, "s3", &MoveOptions::default()).await.unwrap() {
            assert_eq!(control.wait_for(NAME, job).await.unwrap().outcome.as_deref(), Some("done"));
        }
        assert_eq!(world.sql("s3", "SELECT count(*) FROM customer"), "0");
        let to = control.begin_move(NAME, &at("1"), "s3", &MoveOptions::default(), None).await;
        assert_eq!(code(to), "sql-shard-draining");
        control.remove_shard(NAME, "s3").await.unwrap();
        assert_eq!(
            world.sql("s3", "SELECT count(*) FROM pg_namespace WHERE nspname = 'lazuli'"),
            "0"
        );
    });
}

#[test]
fn a_mapping_is_removed_only_offline_and_a_map_only_empty() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    process.run(async {
        let control = &process.control;
        process.map("points", Kind::List, &["text"], None).await;
        control.add_mapping(NAME, "points", ("acme", ""), "s1").await.unwrap();
        let acme = Which::Key { map: "points".into(), key: "acme".into() };
        assert_eq!(code(control.remove_mapping(NAME, &acme, None).await), "sql-mapping-online");
        assert_eq!(code(control.remove_map(NAME, "points").await), "sql-map-not-empty");
        control.set_state(NAME, &acme, State::Offline, StateOptions::default()).await.unwrap();
        control.remove_mapping(NAME, &acme, None).await.unwrap();
        control.remove_map(NAME, "points").await.unwrap();
        assert_eq!(code(control.remove_map(NAME, "points").await), "no-sql-map");
    });
}

#[test]
fn a_table_is_refused_that_cannot_be_sharded() {
    use lazuli_sql_control::{NewPlace, NewTable};
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    let schema = "CREATE TABLE keyless (tenant bigint); CREATE TABLE apart (tenant bigint PRIMARY KEY, c bigint, \
        FOREIGN KEY (c, tenant) REFERENCES customer (tenant, id)); CREATE TABLE odd (tenant numeric PRIMARY KEY); \
        CREATE TABLE full_already (tenant bigint PRIMARY KEY)";
    world.sql("s1", schema);
    world.sql("s2", schema);
    world.sql("s2", "INSERT INTO full_already VALUES (1)");
    world.sql("s1", "CREATE TABLE lonely (tenant bigint PRIMARY KEY)");
    process.run(async {
        let add = |name: &str, column: &str| {
            let columns = vec![column.to_owned()];
            let place = NewPlace::Sharded { map: "tenants".into(), columns };
            let new = NewTable { name: name.to_owned(), place };
            let control = process.control.clone();
            async move { code(control.add_table(NAME, &new).await) }
        };
        assert_eq!(add("keyless", "tenant").await, "sql-table-without-key");
        assert_eq!(add("apart", "tenant").await, "sql-foreign-key-apart");
        assert_eq!(add("odd", "tenant").await, "bad-sql-key-type");
        assert_eq!(add("lonely", "tenant").await, "no-sql-table");
        assert_eq!(add("customer", "tenant").await, "sql-table-exists");
        assert_eq!(add("full_already", "nothing").await, "no-sql-column");
        assert_eq!(add("full_already", "tenant").await, "sql-rows-elsewhere");
        // What was refused has left no trigger behind.
        world.sql("s2", "INSERT INTO full_already VALUES (2)");
    });
}
