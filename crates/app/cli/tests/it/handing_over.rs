//! A partition with tables of its own goes from shard to shard of a server that is killed meanwhile, at any moment: nothing
//! of it is lost, and it always arrives.

use std::time::{Duration, Instant};

use crate::program::{PUBLISHED_KEY, Server};
use serde_json::Value;

const TABLE: &str = "/devstoreaccount1/things";
/// More than a memtable holds.
const ENTITIES: usize = 700;
const ROUNDS: usize = 8;
/// How long anything here may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Text that tells which entity it is of, and which writing of it, and takes up as much space when it is compressed.
fn text(n: usize, round: usize) -> String {
    let mut random = lazuli_env::SplitMix64::new((n * 1_000 + round) as u64);
    let next = || char::from(b'0' + random.below(64) as u8);
    std::iter::repeat_with(next).filter(char::is_ascii_alphanumeric).take(30_000).collect()
}

fn put(server: &Server, n: usize, round: usize) {
    let path = format!("{TABLE}(PartitionKey='key{n:03}',RowKey='row')");
    let body = format!(r#"{{"Text":"{}"}}"#, text(n, round));
    assert_eq!(server.tables(PUBLISHED_KEY, "PUT", &path, &body).0, 204);
}

fn assert_holds(server: &Server, n: usize, round: usize) {
    let path = format!("{TABLE}(PartitionKey='key{n:03}',RowKey='row')");
    let (status, body) = server.tables(PUBLISHED_KEY, "GET", &path, "");
    assert_eq!(status, 200, "{n}: {body}");
    let entity: Value = serde_json::from_str(&body).unwrap();
    assert!(entity["Text"] == text(n, round), "{n} is not what was written in round {round}");
}

/// Waits until no move is under way.
fn wait_for_jobs(server: &Server) {
    let is_over = |job: &Value| ["done", "cancelled"].contains(&job["phase"].as_str().unwrap());
    let began = Instant::now();
    while !server.json(&["job", "list"])["jobs"].as_array().unwrap().iter().all(is_over) {
        assert!(began.elapsed() < PATIENCE, "a move does not come to its end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// How many moves of this server have handed over tables.
fn handed_over(server: &Server) -> u64 {
    let (_, page) = crate::program::ask(&server.endpoint("admin"), "GET", "/metrics", &[], "");
    let line = page.lines().find_map(|line| line.strip_prefix("lazuli_moves_handed_over_total "));
    line.unwrap().parse::<f64>().unwrap() as u64
}

#[test]
fn a_server_that_is_killed_while_tables_change_hands_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    let (path, body) = ("/devstoreaccount1/Tables", r#"{"TableName":"things"}"#);
    assert_eq!(server.tables(PUBLISHED_KEY, "POST", path, body).0, 201);
    (0..ENTITIES).for_each(|n| put(&server, n, 0));
    let mut written = vec![0; ENTITIES];
    let mut handed_over_ever = 0;
    for round in 1..=ROUNDS {
        let shard = format!("shard-of-round-{round}");
        server.command(&["shard", "add", &shard]);
        let list = server.json(&["partition", "list"]);
        let id = list["partitions"][0]["id"].to_string();
        server.command(&["partition", "move", &id, "--to", &shard, "--detach"]);
        // Whatever the move does meanwhile, from its first step to its last.
        for n in (round..ENTITIES).step_by(40).take(round) {
            put(&server, n, round);
            written[n] = round;
        }
        std::thread::sleep(Duration::from_millis(12 * (round as u64 - 1)));
        handed_over_ever = handed_over_ever.max(handed_over(&server));
        // Killed by being dropped.
        drop(server);
        server = Server::start(folder.path());
        wait_for_jobs(&server);
        handed_over_ever = handed_over_ever.max(handed_over(&server));
        let list = server.json(&["partition", "list"]);
        assert_eq!(list["partitions"][0]["shard"].as_str().unwrap_or("?"), shard, "{list}");
        (0..ENTITIES).step_by(13).for_each(|n| assert_holds(&server, n, written[n]));
        (0..ENTITIES)
            .filter(|n| written[*n] > 0)
            .for_each(|n| assert_holds(&server, n, written[n]));
    }
    (0..ENTITIES).for_each(|n| assert_holds(&server, n, written[n]));
    server.command(&["fsck"]);
    assert!(handed_over_ever > 0, "no move ever handed over tables");
}
