//! Backups with the real program: tables, queues and blobs to a folder or to blobs, and back.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::program::{ACCOUNT, PUBLISHED_KEY, Server, ask, lazuli, run, stderr};
use serde_json::Value;

const TABLES: &str = "/devstoreaccount1/Tables";
const ORDERS: &str = "tables/devstoreaccount1/orders";

fn create_orders(server: &Server) {
    let created = server.tables(PUBLISHED_KEY, "POST", TABLES, r#"{"TableName":"Orders"}"#);
    assert_eq!(created.0, 201, "{}", created.1);
    for n in 0..40 {
        put(server, "Orders", &format!("p{}", n % 4), &n.to_string(), "before");
    }
}

fn put(server: &Server, table: &str, partition: &str, row: &str, value: &str) {
    let path = format!("/{ACCOUNT}/{table}(PartitionKey=%27{partition}%27,RowKey=%27{row}%27)");
    let entity = format!(r#"{{"PartitionKey":"{partition}","RowKey":"{row}","Value":"{value}"}}"#);
    let answer = server.tables(PUBLISHED_KEY, "PUT", &path, &entity);
    assert_eq!(answer.0, 204, "{}", answer.1);
}

/// All entities of a table as the front lists them, with the times of their last writes, which their ETags are.
fn entities(server: &Server, table: &str) -> Vec<[String; 4]> {
    let path = format!("/{ACCOUNT}/{table}()");
    let (status, body) = server.tables(PUBLISHED_KEY, "GET", &path, "");
    assert_eq!(status, 200, "{body}");
    let listed: Value = serde_json::from_str(&body).unwrap();
    let facts = ["PartitionKey", "RowKey", "Value", "Timestamp"];
    let rows = listed["value"].as_array().unwrap().iter();
    rows.map(|row| facts.map(|name| row[name].as_str().unwrap().to_owned())).collect()
}

/// Backs something up to a folder and says where the backups are.
fn backup(server: &Server, what: &[&str], to: &Path) -> Vec<String> {
    let to = to.to_str().unwrap();
    let taken = server.json(&[&["partition", "backup"], what, &["--to", to]].concat());
    let backups = taken["backups"].as_array().unwrap().iter();
    backups.map(|one| one["backup"].as_str().unwrap().to_owned()).collect()
}

fn partition(server: &Server, map: &str) -> (String, String) {
    let listed = server.json(&["partition", "list", "--map", map]);
    let one = &listed["partitions"][0];
    (one["id"].to_string(), one["state"].as_str().unwrap().to_owned())
}

fn check(server: &Server) {
    let report = server.json(&["fsck"]);
    assert_eq!(report["findings"], serde_json::json!([]), "{report:#}");
}

fn bytes(size: usize, seed: u8) -> Vec<u8> {
    (0..size).map(|at| (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0] ^ seed).collect()
}

fn folder_of(folder: &Path) -> PathBuf {
    folder.join("backups")
}

#[test]
fn a_table_is_restored_into_a_new_table_and_over_itself() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    create_orders(&server);
    let before = entities(&server, "Orders");
    assert_eq!(before.len(), 40);
    let (id, _) = partition(&server, ORDERS);
    let backups = backup(&server, &[&id], &folder_of(folder.path()));
    let [file] = &backups[..] else { panic!("{backups:?}") };
    let shown = server.json(&["backup", "show", file]);
    assert_eq!((&shown["map"], &shown["partition"].to_string()), (&ORDERS.into(), &id));
    let verified = server.command(&["backup", "verify", file]);
    assert!(verified.contains("is whole") && verified.contains("40 rows"), "{verified}");
    put(&server, "Orders", "p0", "0", "after");
    put(&server, "Orders", "p9", "new", "after");
    let changed = entities(&server, "Orders");

    let restored =
        server.command(&["partition", "restore", file, "--into", "OrdersRestored", "--quiet"]);
    assert!(
        restored.contains("into tables/devstoreaccount1/ordersrestored: 40 rows"),
        "{restored}"
    );
    assert_eq!(entities(&server, "OrdersRestored"), before, "times too");
    let (_, tables) = server.tables(PUBLISHED_KEY, "GET", TABLES, "");
    assert!(tables.contains(r#""TableName":"OrdersRestored""#), "{tables}");
    assert_eq!(entities(&server, "Orders"), changed);
    put(&server, "OrdersRestored", "p0", "0", "its own");
    assert_eq!(entities(&server, "Orders"), changed, "they have nothing in common");

    let refused = run(folder.path(), &["partition", "restore", file]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("(routes-not-empty)"), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("--replace"), "{}", stderr(&refused));
    assert_eq!(entities(&server, "Orders"), changed, "what is refused changes nothing");
    let time = |rows: &[[String; 4]]| rows[0][3].clone();
    server.command(&["partition", "restore", file, "--replace"]);
    assert_eq!(entities(&server, "Orders"), before);
    put(&server, "Orders", "p0", "0", "newer");
    assert!(time(&entities(&server, "Orders")) > time(&changed), "no version comes twice");
    assert_eq!(partition(&server, ORDERS).1, "online");
    for (into, code) in
        [("queues/devstoreaccount1", "name-unfit"), ("tables/nobody/orders", "account-not-found")]
    {
        let refused = run(folder.path(), &["partition", "restore", file, "--into", into]);
        assert!(stderr(&refused).contains(code), "{}", stderr(&refused));
    }
    check(&server);
}

#[test]
fn what_is_damaged_or_cut_short_is_refused_and_nothing_changes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    create_orders(&server);
    let before = entities(&server, "Orders");
    let (id, _) = partition(&server, ORDERS);
    let file = backup(&server, &[&id], &folder_of(folder.path())).remove(0);
    let whole = std::fs::read(&file).unwrap();
    let bad = folder.path().join("bad");
    let bad_text = bad.to_str().unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let longer = [&whole[..], b"x"].concat();
    for (content, code) in [
        (&whole[..whole.len() - 1], "backup-truncated"),
        (&whole[..whole.len() / 2], "backup-truncated"),
        (&whole[..0], "backup-truncated"),
        (&flipped[..], "backup-damaged"),
        (&longer[..], "backup-damaged"),
        (b"something else entirely", "not-a-backup"),
    ] {
        std::fs::write(&bad, content).unwrap();
        for command in [
            &["backup", "verify", bad_text][..],
            &["partition", "restore", bad_text, "--replace"],
            &["partition", "restore", bad_text, "--into", "fresh"],
        ] {
            let refused = run(folder.path(), command);
            assert_eq!(refused.status.code(), Some(1), "{command:?}");
            assert!(stderr(&refused).contains(code), "{command:?}: {}", stderr(&refused));
        }
    }
    assert_eq!(entities(&server, "Orders"), before);
    let (_, tables) = server.tables(PUBLISHED_KEY, "GET", TABLES, "");
    assert!(!tables.contains("fresh"), "{tables}");
    assert_eq!(partition(&server, ORDERS).1, "online");
    let staged = folder.path().join("lazuli-data/restoring");
    assert_eq!(std::fs::read_dir(staged).unwrap().count(), 0, "what was taken in is gone");
    check(&server);
}

#[test]
fn blobs_come_back_with_their_block_files() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let files = folder.path().join("files");
    std::fs::create_dir(&files).unwrap();
    // In rows, in one file, and in the files of several blocks.
    let sizes = [("empty", 0), ("small", 1_000), ("file", 300_000), ("blocks", 20_000_000)];
    for (name, size) in sizes {
        std::fs::write(files.join(name), bytes(size, 1)).unwrap();
    }
    server.command(&["blob", "create", "things"]);
    let copy = |from: &str, to: &str| server.command(&["blob", "cp", "-r", from, to, "--quiet"]);
    copy("files", "az://things/");
    let shelf = folder_of(folder.path());
    let contents = backup(&server, &["--map", "blobs/devstoreaccount1"], &shelf);
    let containers = backup(&server, &["--map", "blob-containers/devstoreaccount1"], &shelf);
    let verified = server.json(&["backup", "verify", &contents[0]]);
    assert_eq!(verified["backups"][0]["file_bytes"], 20_300_000);

    // One is overwritten, one is removed, and the container goes with all that is in it.
    std::fs::write(files.join("file"), bytes(400_000, 2)).unwrap();
    copy("files/file", "az://things/file");
    server.command(&["blob", "rm", "az://things/blocks"]);
    server.command(&["blob", "delete", "things"]);
    for file in containers.iter().chain(&contents) {
        server.command(&["partition", "restore", file, "--replace"]);
    }
    let same = |account: &str, to: &str| {
        server.command(&["blob", "cp", "-r", "az://things", to, "--quiet", "--account", account]);
        for (name, size) in sizes {
            let found = std::fs::read(folder.path().join(to).join(name)).unwrap();
            assert!(found == bytes(size, 1), "{name} of {account}");
        }
    };
    same(ACCOUNT, "back");
    check(&server);

    server.command(&["account", "create", "other"]);
    for file in containers.iter().chain(&contents) {
        server.command(&["partition", "restore", file, "--into", "other"]);
    }
    same("other", "others");
    // What the one deletes the other still has.
    server.command(&["blob", "delete", "things"]);
    same("other", "again");
    check(&server);
}

#[test]
fn a_backup_can_be_a_blob_of_the_same_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    create_orders(&server);
    let before = entities(&server, "Orders");
    let (id, _) = partition(&server, ORDERS);
    let to = ["--to", "az://backups/today", "--create"];
    let taken = server.json(&[&["partition", "backup", &id], &to[..]].concat());
    let blob = taken["backups"][0]["backup"].as_str().unwrap();
    assert!(blob.starts_with("az://backups/today/tables.devstoreaccount1.orders-"), "{blob}");
    server.command(&["backup", "verify", blob]);
    server.command(&["partition", "restore", blob, "--into", "copy"]);
    assert_eq!(entities(&server, "copy"), before);
    check(&server);
}

/// A signed request to the Queue service.
fn queues(server: &Server, method: &str, path: &str, body: &str) -> (u16, String) {
    let headers = [("content-type", "application/xml")];
    server.storage("queues", method, path, &headers, body)
}

#[test]
fn queues_come_back_with_their_messages_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let queue = format!("/{ACCOUNT}/jobs");
    assert_eq!(queues(&server, "PUT", &queue, "").0, 201);
    let messages = format!("{queue}/messages");
    let say = |text: &str| {
        let message = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
        assert_eq!(queues(&server, "POST", &messages, &message).0, 201);
    };
    for n in 0..5 {
        say(&format!("message {n}"));
    }
    // Longer than what stands in the message's own row.
    say(&"x".repeat(10_000));
    let shelf = folder_of(folder.path());
    let backups = backup(&server, &["--map", "queues/devstoreaccount1"], &shelf);
    assert!(backups.len() > 1, "queues are spread over partitions");
    assert_eq!(queues(&server, "DELETE", &messages, "").0, 204);
    say("after");
    for file in &backups {
        server.command(&["partition", "restore", file, "--replace"]);
    }
    let (status, received) = queues(&server, "GET", &format!("{messages}?numofmessages=32"), "");
    assert_eq!(status, 200, "{received}");
    let texts: Vec<&str> = received
        .split("<MessageText>")
        .skip(1)
        .map(|rest| rest.split("</MessageText>").next().unwrap())
        .collect();
    let mut expected: Vec<String> = (0..5).map(|n| format!("message {n}")).collect();
    expected.push("x".repeat(10_000));
    assert_eq!(texts, expected);
    check(&server);
}

/// What the admin API says of the restores.
fn restores(server: &Server) -> Value {
    let token = std::fs::read_to_string(server.ready["admin_token_file"].as_str().unwrap());
    let authorization = format!("Bearer {}", token.unwrap().trim());
    let headers = [("authorization", authorization.as_str())];
    let (status, body) = ask(&server.endpoint("admin"), "GET", "/v1/restores", &headers, "");
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

#[test]
fn a_restore_that_is_killed_stays_offline_and_can_be_made_again() {
    const BYTES: usize = 300_000_000;
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    std::fs::write(folder.path().join("large"), bytes(BYTES, 3)).unwrap();
    server.command(&["blob", "create", "things"]);
    server.command(&["blob", "cp", "large", "az://things/large", "--quiet"]);
    let map = "blobs/devstoreaccount1";
    let file = backup(&server, &["--map", map], &folder_of(folder.path())).remove(0);

    let again = ["partition", "restore", &file, "--replace"];
    let mut command = lazuli(folder.path(), &again).spawn().unwrap();
    let began = Instant::now();
    loop {
        let now = restores(&server);
        let phase = now["restores"][0]["phase"].as_str().unwrap_or_default();
        let bytes = now["restores"][0]["bytes"].as_u64().unwrap_or_default();
        assert!(phase != "done" && began.elapsed() < Duration::from_secs(60), "{now}");
        if phase == "loading" && bytes > 0 {
            break;
        }
    }
    server.signal("-KILL");
    server.wait();
    assert!(!command.wait().unwrap().success());

    let server = Server::start(folder.path());
    let (id, state) = partition(&server, map);
    assert_eq!(state, "offline");
    let opened = run(folder.path(), &["partition", "online", &id]);
    assert!(stderr(&opened).contains("(partition-restoring)"), "{}", stderr(&opened));
    let read = run(folder.path(), &["blob", "cp", "az://things/large", "back", "--quiet"]);
    assert!(!read.status.success(), "nobody sees the half of it");
    assert!(!folder.path().join("lazuli-data/restoring").exists(), "nothing is left lying about");
    // It need not be said again that what is there may go.
    server.command(&["partition", "restore", &file]);
    assert_eq!(partition(&server, map).1, "online");
    server.command(&["blob", "cp", "az://things/large", "back", "--quiet"]);
    assert!(std::fs::read(folder.path().join("back")).unwrap() == bytes(BYTES, 3));
    check(&server);
}
