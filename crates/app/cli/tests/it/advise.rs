//! `lazuli advise` on a running server: tables whose inserts land at one end are named, others are not.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::program::{PUBLISHED_KEY, Server, run};

/// More inserts than the advice needs.
const INSERTS: u32 = 1_300;
/// Inserts in flight at a time, so that they come a little out of order.
const WRITERS: u32 = 8;

/// Makes a table and inserts an entity for each key, in order but for the writers' race.
fn fill(server: &Server, table: &str, map: &[(&str, &str)], key: impl Fn(u32) -> String + Sync) {
    let (tables, name) = ("/devstoreaccount1/Tables", format!(r#"{{"TableName":"{table}"}}"#));
    let created = server.tables_with(PUBLISHED_KEY, "POST", tables, map, &name);
    assert_eq!(created.0, 201, "{}", created.1);
    let path = format!("/devstoreaccount1/{table}");
    // All take the next number from here, so that a slow writer does not fall behind the others.
    let next = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < INSERTS);
                while let Some(n) = take() {
                    let entity = format!(r#"{{"PartitionKey":"{}","RowKey":""}}"#, key(n));
                    assert_eq!(server.tables(PUBLISHED_KEY, "POST", &path, &entity).0, 201);
                }
            });
        }
    });
}

/// Numbers without order, none twice.
fn scattered(n: u32) -> String {
    format!("{:010}", n.wrapping_mul(2_654_435_761))
}

#[test]
fn tables_whose_inserts_land_at_one_end_are_named_with_the_evidence() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--durability", "relaxed"], &[]);
    let none = server.command(&["advise"]);
    assert!(none.starts_with("nothing to advise; traffic is watched since the server started, 20"));
    assert_eq!(none.lines().count(), 1);

    let counted = |n: u32| format!("{n:010}");
    fill(&server, "events", &[], counted);
    fill(&server, "latest", &[], |n| format!("{:010}", u32::MAX - n));
    fill(&server, "random", &[], scattered);
    fill(&server, "hashed", &[("x-lazuli-map", "hash")], counted);

    let advice = server.json(&["advise"]);
    let named: Vec<(&str, &str)> = advice["advice"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["map"].as_str().unwrap(), one["figures"]["end"].as_str().unwrap()))
        .collect();
    let expected =
        [("tables/devstoreaccount1/events", "high"), ("tables/devstoreaccount1/latest", "low")];
    assert_eq!(named, expected, "{advice:#}");
    let figures = &advice["advice"][0]["figures"];
    let number = |name: &str| figures[name].as_u64().unwrap();
    assert!(number("inserts") >= 1_000 && number("inserts") <= u64::from(INSERTS), "{figures}");
    assert!(number("at_end") * 100 >= number("inserts") * 90, "{figures}");
    assert_eq!(number("in_partition"), number("inserts"), "there is one partition");

    let text = server.command(&["advise"]);
    let first = "tables/devstoreaccount1/events: inserts land at the high end of the partition keys \
                 (monotonic-keys)";
    assert_eq!(text.lines().next(), Some(first));
    assert!(text.contains("x-lazuli-map: hash"), "{text}");
    let (_, metrics) = crate::program::ask(&server.endpoint("admin"), "GET", "/metrics", &[], "");
    assert!(metrics.contains("\nlazuli_maps_with_hot_end 2\n"), "{metrics}");
}

#[test]
fn advice_needs_a_server_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), &["advise"]).status.code(), Some(1));
}
