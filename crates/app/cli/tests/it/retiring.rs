//! What a move leaves behind on a running server, when it is enough for tables of its own: the disk is freed, and the
//! partition can come back.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::program::{PUBLISHED_KEY, Server};

const TABLE: &str = "/devstoreaccount1/things";
const ENTITIES: usize = 300;
const TEXT_BYTES: usize = 30_000;
const MIB: u64 = 1024 * 1024;
/// How long anything here may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// What lies in folders of these names, however deep.
fn bytes_in(folder: &Path, names: &[&str], is_in: bool) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = |path: &Path| {
        if path.is_dir() {
            let name = path.file_name().unwrap().to_str().unwrap();
            bytes_in(path, names, is_in || names.contains(&name))
        } else if is_in {
            std::fs::metadata(path).map_or(0, |it| it.len())
        } else {
            0
        }
    };
    entries.map(|entry| bytes(&entry.path())).sum()
}

fn wait_until(what: &str, is: impl Fn() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn move_to(server: &Server, shard: &str) {
    let list = server.json(&["partition", "list"]);
    let id = list["partitions"][0]["id"].to_string();
    server.command(&["partition", "move", id.trim_matches('"'), "--to", shard]);
}

#[test]
fn a_partition_goes_and_comes_back_and_the_disk_it_leaves_is_freed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--durability", "relaxed"], &[]);
    let (path, body) = ("/devstoreaccount1/Tables", r#"{"TableName":"things"}"#);
    assert_eq!(server.tables(PUBLISHED_KEY, "POST", path, body).0, 201);
    let text = "x".repeat(TEXT_BYTES);
    for n in 0..ENTITIES {
        let entity = format!(r#"{{"PartitionKey":"key{n:03}","RowKey":"row","Text":"{text}"}}"#);
        assert_eq!(server.tables(PUBLISHED_KEY, "POST", TABLE, &entity).0, 201);
    }
    server.command(&["shard", "add", "two"]);
    let first = server.json(&["shard", "list"])["shards"][0]["name"].as_str().unwrap().to_owned();
    let on_disk = || {
        bytes_in(
            &folder.path().join("lazuli-data/shards/two"),
            &["tables", "lazuli.dropped"],
            false,
        )
    };
    for round in 0..2 {
        move_to(&server, "two");
        assert!(on_disk() > 8 * MIB, "round {round}: {} bytes", on_disk());
        move_to(&server, &first);
        wait_until("the disk is not freed", || on_disk() < MIB);
    }
    let (status, body) =
        server.tables(PUBLISHED_KEY, "GET", &format!("{TABLE}()?$select=RowKey"), "");
    assert_eq!(status, 200);
    let page: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(page["value"].as_array().unwrap().len(), ENTITIES);
    server.command(&["fsck"]);
}
