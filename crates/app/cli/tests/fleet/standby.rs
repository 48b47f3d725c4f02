//! The secondary endpoints and backups read from standbys, and say how old what they show may be.

use std::time::{Duration, Instant};

use lazuli_postgres_server::{Server as Postgres, Stop};
use serde_json::Value;

use crate::fleet::{Node, database, until};
use crate::program::{PUBLISHED_KEY, Server};
use crate::traffic::{create_table, get, insert, partition_of};

fn get_secondary(server: &Server, table: &str, row: &str) -> u16 {
    let path = format!("/devstoreaccount1-secondary/{table}(PartitionKey='key',RowKey='{row}')");
    server.tables(PUBLISHED_KEY, "GET", &path, "").0
}

/// All rows that the secondary endpoint shows.
fn rows_secondary(server: &Server, table: &str) -> usize {
    let path = format!("/devstoreaccount1-secondary/{table}()");
    let (status, body) = server.tables(PUBLISHED_KEY, "GET", &path, "");
    assert_eq!(status, 200, "{body}");
    let page: Value = serde_json::from_str(&body).unwrap();
    page["value"].as_array().unwrap().len()
}

/// What `shard list` says of the standby of a shard: what is done with it, and how many seconds it is behind.
fn standby(server: &Server, name: &str) -> (String, Option<f64>) {
    let list = server.json(&["shard", "list"]);
    let shards = list["shards"].as_array().unwrap();
    let shard = shards.iter().find(|shard| shard["name"] == name).unwrap();
    (shard["standby"].as_str().unwrap().to_owned(), shard["standby_behind_s"].as_f64())
}

/// Waits until the standby shows everything up to now.
fn in_step(server: &Server, name: &str) {
    let now = Instant::now();
    until("the standby shows what was written", || {
        standby(server, name).1.is_some_and(|behind| behind < now.elapsed().as_secs_f64())
    });
}

/// The time in the statistics of a service, in seconds of the day.
fn last_sync(server: &Server, front: &str) -> u32 {
    let path = "/devstoreaccount1-secondary/?restype=service&comp=stats";
    let (status, body) = match front {
        "tables" => server.tables(PUBLISHED_KEY, "GET", path, ""),
        _ => server.storage(front, "GET", path, &[], ""),
    };
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("<Status>live</Status>"), "{body}");
    let time = body.split("<LastSyncTime>").nth(1).unwrap().split(" GMT").next().unwrap();
    let clock: Vec<u32> = time[time.len() - 8..].split(':').map(|it| it.parse().unwrap()).collect();
    clock[0] * 3600 + clock[1] * 60 + clock[2]
}

fn now_of_day() -> u32 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u32::try_from(now.as_secs() % 86_400).unwrap()
}

/// How many seconds the statistics say that the secondary endpoint is behind.
fn lag(server: &Server, front: &str) -> u32 {
    let synced = last_sync(server, front);
    (now_of_day() + 86_400 - synced) % 86_400
}

#[test]
fn the_secondary_endpoints_and_backups_read_from_a_standby_and_say_how_old_it_is() {
    let Some(catalogs) = Postgres::start().unwrap() else { return };
    let Some(mut primary) = Postgres::start().unwrap() else { return };
    let replica = primary.standby("b", &[]).unwrap();
    primary.psql("postgres", "CREATE DATABASE shard").unwrap();
    let (first, second) = (primary.host(), replica.host());
    let shard = format!("postgres://postgres@{first},{second}/shard?sslmode=disable");
    let node = Node::join(&database(&catalogs, "catalog"), "one");
    let server = &node.server;
    server.command(&["shard", "add", "first", "--at", &shard]);
    assert_eq!(create_table(server, "things"), 201);
    assert_eq!(server.blobs("PUT", "/devstoreaccount1/con?restype=container", &[], "").0, 201);
    let block = [("x-ms-blob-type", "BlockBlob")];
    assert_eq!(server.blobs("PUT", "/devstoreaccount1/con/blob", &block, "old").0, 201);
    assert_eq!(insert(server, "things", "key", "early").0, 201);
    in_step(server, "first");
    assert_eq!(get_secondary(server, "things", "early"), 200);

    replica.psql("postgres", "SELECT pg_wal_replay_pause()").unwrap();
    until("replay is paused", || {
        replica.psql("postgres", "SELECT pg_get_wal_replay_pause_state()").unwrap() == "paused"
    });
    let since = Instant::now();
    assert_eq!(insert(server, "things", "key", "late").0, 201);
    assert_eq!(server.blobs("PUT", "/devstoreaccount1/con/blob", &block, "new").0, 201);
    assert_eq!(get(server, "things", "key", "late").0, 200);
    assert_eq!(get_secondary(server, "things", "late"), 404, "the standby does not have it yet");
    assert_eq!(rows_secondary(server, "things"), 1);
    assert_eq!(server.blobs("GET", "/devstoreaccount1/con/blob", &[], "").1, "new");
    assert_eq!(server.blobs("GET", "/devstoreaccount1-secondary/con/blob", &[], "").1, "old");
    // The standby does not know the partition of a table that is newer than its state, so the primary is asked.
    assert_eq!(create_table(server, "newer"), 201);
    assert_eq!(insert(server, "newer", "key", "row").0, 201);
    assert_eq!(get_secondary(server, "newer", "row"), 200);
    assert_eq!(rows_secondary(server, "newer"), 1);

    std::thread::sleep(Duration::from_secs(2));
    let seconds = since.elapsed().as_secs() as u32;
    for front in ["tables", "blobs", "queues"] {
        let lag = lag(server, front);
        assert!(lag >= seconds, "{front}: {lag} s shown after {seconds} s without a change");
    }
    let (state, behind) = standby(server, "first");
    assert!(state == "read" && behind.unwrap() >= f64::from(seconds), "{state} {behind:?}");
    let metrics = node.page("/metrics").1;
    assert!(metrics.contains("lazuli_shard_standby_read{shard=\"1\"} 1"), "{metrics}");
    assert!(metrics.contains("lazuli_shard_standby_behind_seconds{shard=\"1\"}"));
    let id = partition_of(server, "things").0;
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().to_str().unwrap();
    let rows = |more: &[&str]| {
        let taken = server.json(&[&["partition", "backup", &id, "--to", to], more].concat());
        taken["backups"][0]["rows"].as_u64().unwrap()
    };
    assert_eq!(rows(&["--from-standby"]) + 1, rows(&[]));

    // Also while nothing can be written.
    primary.stop(Stop::Immediate).unwrap();
    until("the primary is away", || get(server, "things", "key", "early").0 == 503);
    assert_eq!(get_secondary(server, "things", "early"), 200);
}

#[test]
fn on_one_node_without_standbys_the_secondary_endpoint_shows_what_was_just_written() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &[], &[]);
    assert_eq!(create_table(&server, "things"), 201);
    assert_eq!(insert(&server, "things", "key", "row").0, 201);
    assert_eq!(get_secondary(&server, "things", "row"), 200);
    assert!(lag(&server, "tables") <= 1);
}
