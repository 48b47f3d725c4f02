//! What people see while the disk takes no writes, and that all is well by itself once it takes them again.
//!
//! The limit of the system on the size of files stands in for the disk: it is set for the running server and lifted again.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::program::{PUBLISHED_KEY, Server, ask};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;

/// Says to a process that it is the one that the test runs in.
const INSIDE: &str = "LAZULI_FAILING_DISK_INSIDE";
/// Less than what is in the shard's journal by then, and less than what is written to try the disk.
const BROKEN_BYTES: u64 = 32 * 1024;
const ENTITIES: usize = 40;
/// For how long the server may stay away after the disk takes writes again.
const BACK_MAX: Duration = Duration::from_secs(20);
const TABLES: &str = "/devstoreaccount1/Tables";
const THINGS: &str = "/devstoreaccount1/things";

fn limit_files(server: &Server, bytes: Option<u64>) {
    let pid = Pid::from_raw(i32::try_from(server.pid()).unwrap());
    prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
}

fn insert(server: &Server, number: usize) -> u16 {
    let text = "x".repeat(5_000);
    let entity = format!(r#"{{"PartitionKey":"p","RowKey":"{number:03}","Text":"{text}"}}"#);
    server.tables(PUBLISHED_KEY, "POST", THINGS, &entity).0
}

fn count(server: &Server) -> usize {
    let (status, body) = server.tables(PUBLISHED_KEY, "GET", &format!("{THINGS}()"), "");
    assert_eq!(status, 200, "{body}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    answer["value"].as_array().unwrap().len()
}

fn health(server: &Server) -> (u16, String) {
    ask(&server.endpoint("admin"), "GET", "/healthz", &[], "")
}

/// What is logged comes a moment after what clients are told.
fn wait_for_log(server: &Server, words: &str) {
    let began = Instant::now();
    while !server.log().contains(words) {
        assert!(began.elapsed() < BACK_MAX, "{}", server.log());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_disk_that_takes_no_writes_stops_writes_alone_and_everybody_is_told_why() {
    if std::env::var_os(INSIDE).is_none() {
        // Whoever writes beyond the limit is killed, unless the signal is ignored, which is handed down.
        let test = "failing_disk::a_disk_that_takes_no_writes_stops_writes_alone_and_everybody_is_told_why";
        let exe = std::env::current_exe().unwrap();
        let ignoring = "trap '' XFSZ; exec \"$0\" \"$@\"";
        let mut inside = Command::new("sh");
        inside.args(["-c", ignoring, exe.to_str().unwrap(), "--exact", test, "--nocapture"]);
        let output = inside.env(INSIDE, "1").output().unwrap();
        let (said, cried) = (crate::program::stdout(&output), crate::program::stderr(&output));
        return assert!(output.status.success() && said.contains("1 passed"), "{said}\n{cried}");
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let made = server.tables(PUBLISHED_KEY, "POST", TABLES, r#"{"TableName":"things"}"#);
    assert_eq!(made.0, 201, "{}", made.1);
    (0..ENTITIES).for_each(|number| assert_eq!(insert(&server, number), 201));
    assert_eq!(health(&server), (200, "ok\n".to_owned()));

    limit_files(&server, Some(BROKEN_BYTES));
    for number in ENTITIES..ENTITIES + 5 {
        let began = Instant::now();
        assert_eq!(insert(&server, number), 503);
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert_eq!(count(&server), ENTITIES);
    }
    let (status, text) = health(&server);
    assert_eq!(status, 503);
    assert!(text.starts_with("shard-0001 failed: a write to disk failed"), "{text}");
    let unhealthy = &server.json(&["status"])["unhealthy"][0];
    assert_eq!(
        (&unhealthy["store"], &unhealthy["state"]),
        (&"shard-0001".into(), &"failed".into())
    );
    let shard = &server.json(&["shard", "list"])["shards"][0];
    assert_eq!(shard["state"], "failed");
    assert!(shard["error"].as_str().unwrap().contains("a write to disk failed"), "{shard}");
    let metrics = ask(&server.endpoint("admin"), "GET", "/metrics", &[], "").1;
    let sample = r#"lazuli_store_health{store="shard-0001",state="failed"} 1"#;
    assert!(metrics.contains(sample), "{metrics}");
    wait_for_log(&server, "a store takes no writes");

    limit_files(&server, None);
    let began = Instant::now();
    while insert(&server, ENTITIES) != 201 {
        assert!(began.elapsed() < BACK_MAX, "it does not come back: {}", health(&server).1);
        assert_eq!(count(&server), ENTITIES);
    }
    assert_eq!(count(&server), ENTITIES + 1);
    assert_eq!(health(&server), (200, "ok\n".to_owned()));
    wait_for_log(&server, "a store takes everything again");
}
