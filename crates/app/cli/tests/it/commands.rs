//! Commands on a running server: what they print, what they change, and what they refuse.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::program::{ACCOUNT, PUBLISHED_KEY, Server, ask, lazuli, run, stderr, stdout};
use serde_json::Value;

const TABLES: &str = "/devstoreaccount1/Tables";

fn create_table(server: &Server) {
    let created = server.tables(PUBLISHED_KEY, "POST", TABLES, r#"{"TableName":"things"}"#);
    assert_eq!(created.0, 201, "{}", created.1);
    for row in 0..10 {
        let entity = format!(r#"{{"PartitionKey":"p","RowKey":"{row}"}}"#);
        let path = "/devstoreaccount1/things";
        assert_eq!(server.tables(PUBLISHED_KEY, "POST", path, &entity).0, 201);
    }
}

#[test]
fn shards_are_listed_added_and_removed_while_the_server_runs() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    assert_eq!(
        server.command(&["shard", "list"]),
        "ID  NAME        REGION  LABELS  PARTITIONS  ITEMS  SIZE  READS  WRITES  STATE\n\
         1   shard-0001  local   -       0           0      0 B   0      0       online\n"
    );
    let add = ["shard", "add", "fast", "--region", "berlin", "--label", "disk=ssd"];
    assert_eq!(server.command(&add), "added shard fast with id 2\n");
    let refused = run(folder.path(), &["shard", "add", "fast"]);
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(stderr(&refused), "error: there is a shard named fast (shard-exists)\n");
    let listed = server.json(&["shard", "list"]);
    assert_eq!(listed["shards"][1]["region"], "berlin");
    assert_eq!(listed["shards"][1]["labels"]["disk"], "ssd");

    create_table(&server);
    let refused = run(folder.path(), &["shard", "remove", "shard-0001"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("shard-not-empty"), "{}", stderr(&refused));
    assert_eq!(server.command(&["shard", "remove", "fast"]), "removed shard fast\n");
    // The name is free again, with a new number.
    assert_eq!(server.command(&["shard", "add", "fast"]), "added shard fast with id 3\n");
    assert_eq!(run(folder.path(), &["shard", "add", "../fast"]).status.code(), Some(1));
    assert_eq!(run(folder.path(), &["shard", "add", "x", "--label", "y"]).status.code(), Some(2));
}

/// Killed when the catalog had removed a shard and its folder was still there; and when it had not yet.
#[test]
fn a_removal_that_was_interrupted_is_finished_or_forgotten_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("lazuli-data/shards");
    let mut server = Server::start(folder.path());
    create_table(&server);
    server.command(&["shard", "add", "fast"]);
    server.command(&["shard", "remove", "fast"]);
    server.signal("-KILL");
    server.wait();
    // As if it had been interrupted before the folder was put aside.
    let _ = std::fs::remove_dir_all(shards.join("fast-2.removed"));
    std::fs::create_dir(shards.join("fast")).unwrap();
    std::fs::write(shards.join("fast-2.removing"), "").unwrap();
    std::fs::write(shards.join("shard-0001-1.removing"), "").unwrap();
    let server = Server::start(folder.path());
    let left = std::fs::read_dir(&shards).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["shard-0001"]);
    assert_eq!(server.json(&["fsck"])["findings"], Value::Array(vec![]));
    assert!(server.json(&["fsck"])["items"].as_u64().unwrap() >= 10);
}

#[test]
fn maps_and_partitions_are_shown_with_their_figures() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    create_table(&server);
    let maps = server.json(&["map", "list"]);
    let name = maps["maps"][0]["name"].as_str().unwrap();
    assert_eq!(maps["maps"][0]["partitions"], 1);
    let shown = server.json(&["map", "show", name]);
    assert_eq!(shown["partitions"][0]["items"], 10);
    assert_eq!(shown["partitions"][0]["writes"], 10);
    assert_eq!(shown["partitions"][0]["shard"], "shard-0001");
    let text = server.command(&["map", "show", name]);
    assert!(text.contains("kind        range\n"), "{text}");
    let listed = server.json(&["partition", "list", "--map", name, "--shard", "shard-0001"]);
    assert_eq!(listed["partitions"], shown["partitions"]);
    let refused = run(folder.path(), &["map", "show", "nothing"]);
    assert_eq!(refused.status.code(), Some(1));
    let expected = "error: no container has `nothing` in its name\n\
                    hint: `lazuli map list` lists them\n";
    assert_eq!(stderr(&refused), expected);
}

#[test]
fn the_history_of_everything_a_map_and_a_partition_is_served_in_three_steps() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    create_table(&server);
    let token = std::fs::read_to_string(folder.path().join("lazuli-data/admin-token")).unwrap();
    let authorization = format!("Bearer {}", token.trim());
    let headers = [("authorization", authorization.as_str())];
    let get = |path: &str| ask(&server.endpoint("admin"), "GET", path, &headers, "");
    let listed = server.json(&["partition", "list"]);
    let id = listed["partitions"][0]["id"].as_u64().unwrap();
    let map = listed["partitions"][0]["map"].as_str().unwrap().replace('/', "%2F");
    let own = format!("/v1/partitions/{id}/history");
    // A step is over when its ten seconds are; what was written before it has to be in one.
    let points = loop {
        let (status, body) = get(&own);
        assert_eq!(status, 200, "{body}");
        let series: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((&series["step"], &series["step_ms"]), (&"10s".into(), &10_000.into()));
        match series["points"].as_array().unwrap().clone() {
            points if points.is_empty() => std::thread::sleep(Duration::from_millis(100)),
            points => break points,
        }
    };
    let sum: u64 = points.iter().map(|point| point["writes"].as_u64().unwrap()).sum();
    assert_eq!(sum, 10, "{points:?}");
    assert_eq!(points.last().unwrap()["items"], 10);
    assert!(points.iter().any(|point| point["write_p99_us"].as_u64() > Some(0)), "{points:?}");
    let of_map = serde_json::from_str::<Value>(&get(&format!("/v1/maps/{map}/history")).1).unwrap();
    assert_eq!(of_map["points"].as_array().unwrap().last(), points.last());
    for step in ["10s", "1m", "10m"] {
        let (status, body) = get(&format!("/v1/history?step={step}"));
        assert_eq!(status, 200, "{body}");
        assert!(body.contains(&format!("\"step\":\"{step}\"")), "{body}");
    }
    for (path, status) in [
        (own.clone() + "?step=1h", 400),
        ("/v1/partitions/999999/history".to_owned(), 404),
        ("/v1/maps/nothing/history".to_owned(), 404),
    ] {
        assert_eq!(get(&path).0, status, "{path}");
    }
    let metrics = get("/metrics").1;
    for name in ["lazuli_partition_write_p99_seconds{", "lazuli_history_partitions 1\n"] {
        assert!(metrics.contains(name), "{name} in {metrics}");
    }
}

#[test]
fn a_rotated_key_takes_effect_at_once_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    assert_eq!(server.tables(PUBLISHED_KEY, "GET", TABLES, "").0, 200);
    let rotated = server.json(&["account", "rotate-key", ACCOUNT, "--key", "1"]);
    let key = rotated["key1"].as_str().unwrap().to_owned();
    for restart in [false, true] {
        if restart {
            server.signal("-TERM");
            server.wait();
            server = Server::start(folder.path());
        }
        assert_eq!(server.tables(PUBLISHED_KEY, "GET", TABLES, "").0, 403);
        assert_eq!(server.tables(&key, "GET", TABLES, "").0, 200);
    }
}

#[test]
fn accounts_are_created_with_two_keys_and_listed_without_them() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let created = server.json(&["account", "create", "mine"]);
    let keys: Vec<&str> =
        ["key1", "key2"].into_iter().map(|key| created[key].as_str().unwrap()).collect();
    assert_ne!(keys[0], keys[1]);
    let listed = server.command(&["account", "list"]);
    assert_eq!(
        listed,
        "NAME              FROM\ndevstoreaccount1  published\nmine              catalog\n"
    );
    let with_keys = server.command(&["account", "list", "--keys"]);
    assert!(with_keys.contains(keys[0]) && with_keys.contains(keys[1]));
    for name in ["mine", "Not-Fit"] {
        assert_eq!(run(folder.path(), &["account", "create", name]).status.code(), Some(1));
    }
    let log = std::fs::read_to_string(folder.path().join("stderr.txt")).unwrap();
    assert!(!log.contains(keys[0]) && !log.contains(keys[1]));
}

#[test]
fn fsck_checks_a_running_server_and_a_data_folder_at_rest() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    create_table(&server);
    let online = server.json(&["fsck"]);
    assert_eq!(online["findings"], Value::Array(vec![]));
    assert!(online["items"].as_u64().unwrap() >= 10);
    server.signal("-KILL");
    server.wait();
    let offline = run(folder.path(), &["fsck", "--json"]);
    assert!(offline.status.success(), "{}", stderr(&offline));
    let offline: Value = serde_json::from_str(&stdout(&offline)).unwrap();
    assert_eq!(offline["items"], online["items"]);
    std::fs::create_dir(folder.path().join("lazuli-data/shards/stray")).unwrap();
    let found = run(folder.path(), &["fsck"]);
    assert_eq!(found.status.code(), Some(1));
    assert!(stdout(&found).contains("folder-unknown"), "{}", stdout(&found));
    assert_eq!(stderr(&found), "error: 1 finding\n");
    let none = run(folder.path(), &["fsck", "--data", "nowhere"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(!folder.path().join("nowhere").exists(), "a check makes nothing");
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[test]
fn fsck_finds_damaged_files_and_says_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    create_table(&server);
    server.signal("-TERM");
    assert!(server.wait().success());
    assert!(run(folder.path(), &["fsck"]).status.success());
    let store = folder.path().join("lazuli-data/shards/shard-0001/store");
    let in_tables = |path: &&PathBuf| path.parent().unwrap().ends_with("1/tables");
    let all = files(&store);
    let table = all.iter().find(in_tables).unwrap();
    let mut bytes = std::fs::read(table).unwrap();
    bytes[20] ^= 0x40;
    std::fs::write(table, bytes).unwrap();
    let found = run(folder.path(), &["fsck", "--json"]);
    assert_eq!(found.status.code(), Some(1), "{}", stdout(&found));
    let report: Value = serde_json::from_str(&stdout(&found)).unwrap();
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().all(|finding| finding["shard"] == "shard-0001"), "{report}");
    let names_place = |finding: &Value| {
        finding["message"].as_str().unwrap().contains("lazuli-data/shards/shard-0001")
    };
    assert!(findings.iter().any(names_place), "{report}");
}

#[test]
fn commands_say_what_to_do_when_there_is_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let refused = run(folder.path(), &["shard", "list"]);
    assert_eq!(refused.status.code(), Some(1));
    let text = stderr(&refused);
    assert!(text.contains("no server runs on ./lazuli-data"), "{text}");
    assert!(text.contains("hint: start one with `lazuli serve`"), "{text}");
}

#[test]
fn a_server_is_found_by_address_and_token_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let token = [("LAZULI_ADMIN_TOKEN", "0123456789abcdef")];
    let server = Server::start_with(folder.path(), &[], &token);
    let elsewhere = tempfile::tempdir().unwrap();
    let url = format!("http://{}", server.endpoint("admin"));
    let status = ["status", "--admin", &url];
    assert_eq!(run(elsewhere.path(), &status).status.code(), Some(1));
    let answered = lazuli(elsewhere.path(), &status).envs(token).output().unwrap();
    assert!(answered.status.success(), "{}", stderr(&answered));
    let mut by_variable = lazuli(elsewhere.path(), &["status"]);
    by_variable.envs(token).env("LAZULI_ADMIN", &url);
    assert!(by_variable.output().unwrap().status.success());
    let wrong = [("LAZULI_ADMIN_TOKEN", "fedcba9876543210")];
    let refused = lazuli(elsewhere.path(), &status).envs(wrong).output().unwrap();
    assert!(!refused.status.success());
}

#[test]
fn partitions_are_split_moved_and_merged_while_the_server_runs() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    create_table(&server);
    server.command(&["shard", "add", "other"]);
    let partitions = server.json(&["partition", "list"]);
    let id = partitions["partitions"][0]["id"].to_string();

    let moved = server.json(&["partition", "move", &id, "--to", "other"]);
    assert_eq!((&moved["phase"], &moved["to"]), (&"done".into(), &"other".into()));
    assert!(moved["pause_us"].as_u64().is_some_and(|pause| pause < 500_000), "{moved}");
    let now = server.json(&["partition", "list", "--shard", "other"]);
    assert_eq!(now["partitions"][0]["id"].to_string(), id);
    assert_eq!(now["partitions"][0]["items"], 10);
    let path = "/devstoreaccount1/things(PartitionKey='p',RowKey='3')";
    assert_eq!(server.tables(PUBLISHED_KEY, "GET", path, "").0, 200);
    let jobs = server.json(&["job", "list"]);
    assert_eq!(jobs["jobs"][0]["job"], moved["job"]);

    let split = server.json(&["partition", "split", &id, "--at", "q"]);
    let left = split["partitions"][0]["id"].to_string();
    let right = split["partitions"][1]["id"].to_string();
    let refused = run(folder.path(), &["partition", "split", &left, "--at", "z"]);
    assert!(stderr(&refused).contains("split-point-outside"), "{}", stderr(&refused));
    assert_eq!(
        server.command(&["partition", "readonly", &right]),
        format!("partition {right} is read-only\n")
    );
    let refused = run(folder.path(), &["partition", "merge", &left]);
    assert!(stderr(&refused).contains("different-states"), "{}", stderr(&refused));
    server.command(&["partition", "online", &right]);
    server.command(&["partition", "merge", &left]);

    assert_eq!(
        server.command(&["shard", "drain", "other"]),
        "drained shard other: 1 partitions moved\n"
    );
    assert_eq!(server.command(&["shard", "remove", "other"]), "removed shard other\n");
    assert_eq!(server.tables(PUBLISHED_KEY, "GET", path, "").0, 200);
    let missing = run(folder.path(), &["job", "show", "999999"]);
    assert_eq!(missing.status.code(), Some(1));
    let fsck = run(folder.path(), &["fsck"]);
    assert_eq!(fsck.status.code(), Some(0), "{}", stdout(&fsck));
}

/// The ids of the pieces that a split has made.
fn pieces(split: &Value) -> Vec<String> {
    let pieces = split["partitions"].as_array().unwrap();
    pieces.iter().map(|piece| piece["id"].to_string()).collect()
}

#[test]
fn partitions_are_split_in_the_middle_and_around_one_key_which_then_moves_alone() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--durability", "relaxed"], &[]);
    create_table(&server);
    let id = server.json(&["partition", "list"])["partitions"][0]["id"].to_string();
    let refused = run(folder.path(), &["partition", "split", &id]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("one-shardlet"), "{}", stderr(&refused));

    let path = "/devstoreaccount1/things";
    for n in 0..99 {
        let entity = format!(r#"{{"PartitionKey":"k{n:02}","RowKey":""}}"#);
        assert_eq!(server.tables(PUBLISHED_KEY, "POST", path, &entity).0, 201);
    }
    let halves = pieces(&server.json(&["partition", "split", &id]));
    assert_eq!(halves.len(), 2);
    let listed = server.json(&["partition", "list"]);
    for half in listed["partitions"].as_array().unwrap() {
        let items = half["items"].as_u64().unwrap();
        assert!((45..=64).contains(&items), "{listed}");
    }
    // Nearly all requests are for the last key, so that it comes to be alone.
    let hot = format!("{path}(PartitionKey='p',RowKey='3')");
    for _ in 0..50 {
        assert_eq!(server.tables(PUBLISHED_KEY, "GET", &hot, "").0, 200);
    }
    let by_load = server.json(&["partition", "split", &halves[1], "--by", "load"]);
    assert_eq!(by_load["partitions"][1]["from"], "p");
    assert_eq!(
        run(folder.path(), &["partition", "split", &halves[0], "--at", "k1", "--by", "size"])
            .status
            .code(),
        Some(2)
    );

    let isolated = server.json(&["partition", "split", &halves[0], "--isolate", "k20"]);
    let three = pieces(&isolated);
    assert_eq!(three.len(), 3);
    assert_eq!(isolated["partitions"][1]["from"], "k20");
    assert_eq!(isolated["partitions"][2]["from"], "after k20");
    let exact = isolated["partitions"][2]["from_route"].as_str().unwrap();
    assert_eq!(exact, "6b32300002", "the key with its end, one higher");
    assert_eq!(
        server.command(&["partition", "split", &three[1], "--isolate", "k20"]),
        format!("partition {} has nothing else in it already\n", three[1])
    );
    let outside = run(folder.path(), &["partition", "split", &three[0], "--isolate", "k20"]);
    assert!(stderr(&outside).contains("key-outside"), "{}", stderr(&outside));

    server.command(&["shard", "add", "other"]);
    let moved =
        server.json(&["partition", "move", &three[0], "--shardlet", "k07", "--to", "other"]);
    assert_eq!((&moved["phase"], &moved["to"]), (&"done".into(), &"other".into()));
    let there = server.json(&["partition", "list", "--shard", "other"]);
    assert_eq!(there["partitions"].as_array().unwrap().len(), 1);
    assert_eq!(there["partitions"][0]["items"], 1);
    for n in 0..99 {
        let one = format!("{path}(PartitionKey='k{n:02}',RowKey='')");
        assert_eq!(server.tables(PUBLISHED_KEY, "GET", &one, "").0, 200, "{n}");
    }
    let fsck = run(folder.path(), &["fsck"]);
    assert_eq!(fsck.status.code(), Some(0), "{}", stdout(&fsck));
}

#[test]
fn a_wrong_token_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let _server = Server::start(folder.path());
    let mut command = lazuli(folder.path(), &["status"]);
    command.env("LAZULI_ADMIN_TOKEN", "0123456789abcdef0123456789abcdef");
    let refused = command.output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let text = stderr(&refused);
    assert!(text.contains("does not take this admin token (token-wrong)"), "{text}");
    assert!(text.contains("the token comes from the setting admin-token"), "{text}");
    // The token in the data folder can be that of another server too.
    std::fs::write(folder.path().join("lazuli-data/admin-token"), "f".repeat(64)).unwrap();
    let text = stderr(&run(folder.path(), &["status"]));
    assert!(text.contains("lazuli-data/admin-token"), "{text}");
}

#[test]
fn a_removed_shard_frees_its_disk_while_the_server_runs() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    server.command(&["shard", "add", "two"]);
    let shards = folder.path().join("lazuli-data/shards");
    assert!(shards.join("two").is_dir());
    server.command(&["shard", "remove", "two"]);
    let began = std::time::Instant::now();
    let left = || {
        let entries = std::fs::read_dir(&shards).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("two")).collect::<Vec<_>>()
    };
    while !left().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", left());
        std::thread::sleep(Duration::from_millis(20));
    }
    // The name is free again.
    server.command(&["shard", "add", "two"]);
}

#[test]
fn the_bytes_of_blobs_count_and_cut_where_people_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    for (name, bytes) in [("a", 1_000_000), ("b", 1_000_000), ("c", 2_000_000)] {
        let tree = folder.path().join("tree");
        std::fs::create_dir_all(&tree).unwrap();
        std::fs::write(tree.join(name), vec![b'x'; bytes]).unwrap();
    }
    server.command(&["blob", "sync", "tree", "az://album", "--create"]);
    let listed = || {
        let list = server.json(&["partition", "list", "--map", "blobs/devstoreaccount1"]);
        list["partitions"].as_array().unwrap().clone()
    };
    let [whole] = &listed()[..] else { panic!("{:?}", listed()) };
    let bytes = whole["bytes"].as_u64().unwrap();
    assert!((4_000_000..4_010_000).contains(&bytes), "{bytes}");
    server.command(&["partition", "split", &whole["id"].to_string()]);
    let halves = listed();
    assert_eq!(halves.len(), 2);
    for half in &halves {
        let bytes = half["bytes"].as_u64().unwrap();
        assert!((2_000_000..2_010_000).contains(&bytes), "{half}");
    }
    let bound = halves[1]["from"].as_str().unwrap();
    assert!(bound.starts_with("album,") && bound.ends_with(",c"), "{bound}");
    assert_eq!(halves[0]["to_route"], halves[1]["from_route"]);
    let token = std::fs::read_to_string(folder.path().join("lazuli-data/admin-token")).unwrap();
    let bearer = format!("Bearer {}", token.trim());
    let headers = [("authorization", &bearer[..])];
    let (status, body) = ask(&server.endpoint("admin"), "GET", "/v1/overview", &headers, "");
    assert_eq!(status, 200);
    let overview: Value = serde_json::from_str(&body).unwrap();
    assert!(overview["shards"][0]["bytes"].as_u64().unwrap() > 4_000_000, "{overview}");
}

#[test]
fn the_hottest_keys_are_shown_with_bounds_that_hold() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let created = server.tables(PUBLISHED_KEY, "POST", TABLES, r#"{"TableName":"heat"}"#);
    assert_eq!(created.0, 201, "{}", created.1);
    let insert = |key: &str, row: u64| {
        let entity = format!(r#"{{"PartitionKey":"{key}","RowKey":"{row}"}}"#);
        let path = "/devstoreaccount1/heat";
        assert_eq!(server.tables(PUBLISHED_KEY, "POST", path, &entity).0, 201);
    };
    // More keys than are watched, so that some take the places of others, and with it their counts.
    for n in 0..40 {
        insert(&format!("cold-{n:02}"), 0);
        insert("hot", n);
    }
    let listed = server.json(&["partition", "list"]);
    let hottest = listed["partitions"][0]["hottest"].as_array().unwrap();
    assert_eq!(hottest[0]["key"], "hot");
    for one in hottest {
        let asked = if one["key"] == "hot" { 40 } else { 1 };
        let (least, most) = (one["at_least"].as_u64().unwrap(), one["at_most"].as_u64().unwrap());
        assert!(least <= asked && asked <= most, "{one}");
        assert!(one.get("requests").is_none(), "a bound is no count: {one}");
    }
    assert!(hottest.iter().any(|one| one["at_least"] != one["at_most"]), "{hottest:?}");
}
