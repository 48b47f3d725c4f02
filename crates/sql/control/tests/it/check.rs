//! What does not fit is found, and repaired where nothing is lost by it.

use lazuli_sql_control::{CheckOptions, Cut, MoveOptions};

use crate::fixture::{NAME, World, fill};
use crate::moves::at;

#[test]
fn rows_on_the_wrong_shard_orphans_and_differing_reference_tables_are_found_and_repaired() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    fill(&world, "s1", 4, 5);
    process.run(async {
        let control = &process.control;
        control.split(NAME, &at("1"), &Cut::At("3".into()), None).await.unwrap();
        let job = control.begin_move(NAME, &at("3"), "s2", &MoveOptions::default(), None).await.unwrap();
        control.wait_for(NAME, job).await.unwrap();
        assert_eq!(control.check(NAME, &CheckOptions::default()).await.unwrap(), []);
        // Somebody with the rights of a superuser goes around every trigger.
        let around = "SET session_replication_role = replica;";
        world.sql("s1", &format!("{around} INSERT INTO customer (tenant, id, region, name) VALUES (3, 50, 1, 'stray'), (3, 1, 1, 'twin')"));
        world.sql("s1", &format!("{around} INSERT INTO invoice (tenant, customer, cents) VALUES (1, 999, 1)"));
        world.sql("s2", &format!("{around} DELETE FROM region WHERE id = 2; UPDATE region SET name = 'other' WHERE id = 1"));
        world.sql("s2", "DROP TRIGGER zz_lazuli_fence ON invoice");
        let kinds = |findings: &[lazuli_sql_control::Finding]| {
            findings.iter().map(|it| (it.kind, it.shard.clone(), it.rows, it.repaired)).collect::<Vec<_>>()
        };
        let found = control.check(NAME, &CheckOptions::default()).await.unwrap();
        let s = |name: &str| name.to_owned();
        let all = kinds(&found);
        for wanted in [
            ("reference-differs", s("s2"), 0, false),
            ("wrong-shard", s("s1"), 2, false),
            ("fence-missing", s("s2"), 0, false),
            ("orphan", s("s1"), 1, false),
        ] {
            assert!(all.contains(&wanted), "{wanted:?} in {all:?}");
        }
        let options = CheckOptions { repair: true, remove_orphans: true, ..CheckOptions::default() };
        assert!(kinds(&control.check(NAME, &options).await.unwrap()).iter().all(|it| it.3));
        assert_eq!(control.check(NAME, &CheckOptions::default()).await.unwrap(), []);
        assert_eq!(world.sql("s2", "SELECT name FROM customer WHERE tenant = 3 AND id IN (1, 50) ORDER BY id"), "name 1\nstray");
        assert_eq!(world.sql("s2", "SELECT string_agg(name, ',' ORDER BY id) FROM region"), "north,south");
    });
}

#[test]
fn references_between_shards_that_lead_nowhere_are_found() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    fill(&world, "s1", 4, 3);
    process.run(async {
        let control = &process.control;
        control.split(NAME, &at("1"), &Cut::At("3".into()), None).await.unwrap();
        let job =
            control.begin_move(NAME, &at("3"), "s2", &MoveOptions::default(), None).await.unwrap();
        control.wait_for(NAME, job).await.unwrap();
        world.sql("s1", "UPDATE customer SET email = 'friend of 77' WHERE tenant = 1 AND id = 1");
        let options = CheckOptions {
            references: vec!["customer.id=invoice.customer".into()],
            ..CheckOptions::default()
        };
        assert_eq!(control.check(NAME, &options).await.unwrap(), []);
        world.sql(
            "s1",
            "INSERT INTO customer (tenant, id, region, name) VALUES (1, 77, 1, 'alone')",
        );
        let found = control.check(NAME, &options).await.unwrap();
        assert_eq!((found[0].kind, &*found[0].shard, found[0].rows), ("dangling", "s1", 1));
        let wrong = CheckOptions { references: vec!["nonsense".into()], ..CheckOptions::default() };
        assert_eq!(control.check(NAME, &wrong).await.unwrap_err().code(), "bad-sql-reference");
    });
}
