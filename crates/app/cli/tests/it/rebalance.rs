//! `lazuli rebalance` on a running server with real shards: what it prints, what it does, and what writers see of it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::program::{PUBLISHED_KEY, Server, run, stderr, stdout};
use serde_json::Value;

const TABLE: &str = "/devstoreaccount1/things";
/// How long anything here may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Only bytes count, and few of them are worth a move.
const FLAGS: &[&str] = &[
    "--balance-goals",
    "bytes=1",
    "--balance-floor-bytes",
    "4KiB",
    "--balance-merge-bytes",
    "0",
    "--balance-rest",
    "1s",
    "--durability",
    "relaxed",
];

fn create_table(server: &Server) {
    let (path, body) = ("/devstoreaccount1/Tables", r#"{"TableName":"things"}"#);
    assert_eq!(server.tables(PUBLISHED_KEY, "POST", path, body).0, 201);
}

fn insert(server: &Server, key: usize, row: &str) -> u16 {
    let text = "x".repeat(4_000);
    let entity = format!(r#"{{"PartitionKey":"key{key:03}","RowKey":"{row}","Text":"{text}"}}"#);
    server.tables(PUBLISHED_KEY, "POST", TABLE, &entity).0
}

/// Many keys with as many bytes each, all in one partition.
fn fill(server: &Server, keys: usize) {
    create_table(server);
    for key in 0..keys {
        assert_eq!(insert(server, key, "first"), 201);
    }
}

fn rows_of(server: &Server, key: usize) -> Vec<String> {
    let path = format!("{TABLE}()?$filter=PartitionKey%20eq%20'key{key:03}'&$select=RowKey");
    let (status, body) = server.tables(PUBLISHED_KEY, "GET", &path, "");
    assert_eq!(status, 200, "{body}");
    let page: Value = serde_json::from_str(&body).unwrap();
    let rows = page["value"].as_array().unwrap().iter();
    rows.map(|row| row["RowKey"].as_str().unwrap().to_owned()).collect()
}

fn bytes_of(plan: &Value, when: &str) -> Vec<u64> {
    let shards = plan["shards"].as_array().unwrap().iter();
    shards.map(|shard| shard[when]["bytes"].as_u64().unwrap()).collect()
}

fn peak(plan: &Value) -> f64 {
    plan["evenness"]["before"]["bytes"].as_f64().unwrap()
}

fn restart(folder: &Path, server: Server) -> Server {
    drop(server);
    Server::start_with(folder, FLAGS, &[])
}

#[test]
fn a_plan_shows_what_is_uneven_and_applied_it_is_even() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), FLAGS, &[]);
    let nothing = server.command(&["rebalance"]);
    assert!(nothing.contains("\nnothing to do\n"), "{nothing}");
    fill(&server, 64);
    for name in ["two", "three", "four"] {
        server.command(&["shard", "add", name]);
    }
    let plan = server.json(&["rebalance", "--plan"]);
    let before = bytes_of(&plan, "before");
    assert!(before[0] > 64 * 4_000 && before[1..] == [0, 0, 0], "{before:?}");
    assert_eq!(plan["actions"][0]["kind"], "split", "{plan}");
    // The plan goes on with the pieces, to where everything is even.
    let moves = plan["actions"].as_array().unwrap().iter().filter(|it| it["kind"] == "move");
    assert!(moves.clone().count() >= 3, "{plan}");
    assert!(moves.clone().all(|it| it["made"] == true && it["round"].as_u64() > Some(1)), "{plan}");
    assert!(plan["evenness"]["after"]["bytes"].as_f64().unwrap() < 1.3, "{plan}");
    let text = server.command(&["rebalance", "--plan"]);
    assert!(
        text.contains("split partition") && text.contains("in the middle of its bytes"),
        "{text}"
    );
    assert!(text.contains("\nafter that:\n") && text.contains("move a piece of"), "{text}");
    assert_eq!(server.json(&["partition", "list"])["partitions"].as_array().unwrap().len(), 1);

    let done = server.command(&["rebalance"]);
    assert!(done.contains("\ndone: "), "{done}");
    let after = server.json(&["rebalance", "--plan"]);
    assert_eq!(after["actions_count"], 0, "{after}");
    assert!(peak(&after) < 1.15, "{after}");
    assert!(bytes_of(&after, "before").iter().all(|bytes| *bytes > 0), "{after}");
    let state = server.json(&["rebalance", "--state"]);
    assert!(state["counts"]["move"]["done"].as_u64() >= Some(3), "{state}");
    assert_eq!(state["counts"]["move"]["failed"], 0, "{state}");
    for key in 0..64 {
        assert_eq!(rows_of(&server, key), ["first"], "{key}");
    }

    // What is drained gives everything and gets nothing, until somebody takes that back.
    server.command(&["shard", "drain", "two"]);
    assert_eq!(server.json(&["shard", "list"])["shards"][1]["state"], "draining");
    server.command(&["rebalance"]);
    assert_eq!(bytes_of(&server.json(&["rebalance", "--plan"]), "before")[1], 0);
    server.command(&["shard", "drain", "two", "--stop"]);
    std::thread::sleep(Duration::from_secs(1));
    server.command(&["rebalance"]);
    let filled = bytes_of(&server.json(&["rebalance", "--plan"]), "before");
    assert!(filled[1] > 0, "{filled:?}");
}

#[test]
fn writers_see_no_error_while_everything_is_rebalanced_and_the_server_killed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), FLAGS, &[]);
    fill(&server, 48);
    for name in ["two", "three"] {
        server.command(&["shard", "add", name]);
    }
    // The first attempt is cut off in the middle of it.
    server.command(&["rebalance", "--detach"]);
    let began = Instant::now();
    while server.json(&["rebalance", "--state"])["counts"]["move"]["begun"] == 0 {
        assert!(began.elapsed() < PATIENCE);
    }
    let server = Arc::new(restart(folder.path(), server));

    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..2)
        .map(|writer| {
            let (server, stop) = (server.clone(), stop.clone());
            std::thread::spawn(move || {
                let mut written = Vec::new();
                for n in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let (key, row) = ((n * 7 + writer * 5) % 48, format!("w{writer}-{n}"));
                    assert_eq!(insert(&server, key, &row), 201, "{row}");
                    written.push((key, row));
                }
                written
            })
        })
        .collect();
    server.command(&["rebalance"]);
    stop.store(true, Ordering::Relaxed);
    let written: Vec<_> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
    assert!(!written.is_empty());
    server.command(&["rebalance"]);
    let plan = server.json(&["rebalance", "--plan"]);
    assert!(peak(&plan) < 1.3, "{plan}");
    for key in 0..48 {
        let mut expected: Vec<String> = vec!["first".to_owned()];
        let mine = written.iter().filter(|(at, _)| *at == key);
        expected.extend(mine.map(|(_, row)| row.clone()));
        expected.sort();
        let mut rows = rows_of(&server, key);
        rows.sort();
        assert_eq!(rows, expected, "{key}");
    }
    let fsck = run(folder.path(), &["fsck"]);
    assert!(fsck.status.success(), "{}{}", stdout(&fsck), stderr(&fsck));
}

#[test]
fn left_to_itself_the_balancer_splits_what_is_large_and_spreads_it() {
    let folder = tempfile::tempdir().unwrap();
    let flags = [FLAGS, &["--balance", "on", "--balance-interval", "100ms"]].concat();
    let server = Server::start_with(folder.path(), &flags, &[]);
    server.command(&["shard", "add", "two"]);
    fill(&server, 32);
    let began = Instant::now();
    loop {
        let plan = server.json(&["rebalance", "--plan"]);
        let bytes = bytes_of(&plan, "before");
        if bytes.iter().all(|bytes| *bytes > 32 * 1_000) {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{plan}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let ask = || crate::program::ask(&server.endpoint("admin"), "GET", "/metrics", &[], "").1;
    let figure = |metrics: &str, name: &str| -> f64 {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse().unwrap()
    };
    // A move is done when its source has cleaned up, a moment after the target has the partition.
    let mut metrics = ask();
    while figure(&metrics, "lazuli_balance_actions_done_total{kind=\"move\"} ") == 0.0 {
        assert!(began.elapsed() < PATIENCE, "{metrics}");
        std::thread::sleep(Duration::from_millis(10));
        metrics = ask();
    }
    let done = "lazuli_balance_actions_done_total{kind=\"split\"} ";
    assert!(figure(&metrics, done) > 0.0, "{metrics}");
    assert!(figure(&metrics, "lazuli_balance_plans_total ") > 0.0, "{metrics}");
    assert!(figure(&metrics, "lazuli_balance_evenness{goal=\"bytes\"} ") >= 1.0, "{metrics}");
    for key in 0..32 {
        assert_eq!(rows_of(&server, key), ["first"], "{key}");
    }
}
