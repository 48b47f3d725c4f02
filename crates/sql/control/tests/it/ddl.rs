//! Changes of the schema: the canary first, each shard once, never during a move.

use std::time::Duration;

use lazuli_sql_control::MoveOptions;

use crate::fixture::{NAME, World, fill};
use crate::moves::at;

#[test]
fn a_schema_change_runs_on_every_shard_once_and_a_bad_one_stops_at_the_canary() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    process.run(async {
        let control = &process.control;
        let bad = control.begin_ddl(NAME, "ALTER TABLE customer ADD COLUMN counter int", Some("s2"), false).await;
        let bad = control.wait_for(NAME, bad.unwrap()).await.unwrap();
        assert_eq!(bad.outcome.as_deref(), Some("failed"));
        assert!(bad.trouble.unwrap().contains("42701"));
        let ddl = control.begin_ddl(NAME, "ALTER TABLE customer ADD COLUMN note text;", Some("s2"), true).await.unwrap();
        loop {
            let job = control.show_job(NAME, ddl).await.unwrap();
            if job["done"] == serde_json::json!(["s2"]) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let columns = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'customer'::regclass AND attname = 'note'";
        assert_eq!((world.sql("s1", columns), world.sql("s2", columns)), ("0".into(), "1".into()));
        let to = control.begin_move(NAME, &at("1"), "s2", &MoveOptions::default(), None).await;
        assert_eq!(to.unwrap_err().code(), "sql-ddl-running");
        control.resume_ddl(NAME, ddl).await.unwrap();
        assert_eq!(control.wait_for(NAME, ddl).await.unwrap().outcome.as_deref(), Some("done"));
        assert_eq!(world.sql("s1", columns), "1");
    });
}

#[test]
fn a_move_is_refused_between_shards_whose_schemas_differ_and_holds_schema_changes_off() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.shop(&world);
    fill(&world, "s1", 4, 200);
    process.run(async {
        let control = &process.control;
        world.sql("s2", "ALTER TABLE customer ALTER COLUMN name DROP NOT NULL");
        let to = control.begin_move(NAME, &at("1"), "s2", &MoveOptions::default(), None).await;
        let error = to.unwrap_err();
        assert_eq!(error.code(), "sql-schemas-differ");
        assert!(error.message().contains("column name text"), "{error}");
        world.sql("s2", "ALTER TABLE customer ALTER COLUMN name SET NOT NULL");
        let slow = MoveOptions { rows_per_second: Some(800), ..MoveOptions::default() };
        let job = control.begin_move(NAME, &at("1"), "s2", &slow, None).await.unwrap();
        let ddl =
            control.begin_ddl(NAME, "ALTER TABLE customer ADD COLUMN note text", None, false).await;
        assert_eq!(ddl.unwrap_err().code(), "sql-jobs-running");
        control.wait_for(NAME, job).await.unwrap();
    });
}
