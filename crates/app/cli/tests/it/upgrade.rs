//! Data that a release has written is opened by this program: `tests/upgrade` has an archive of each release.
//!
//! `LAZULI_MAKE_UPGRADE_DATA=1 cargo test -p lazuli --test it upgrade` writes the archive of the version of this program. It
//! is made once, when the version is released, and never changed after that.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::program::{Server, run, stderr, stdout};

const ENTITIES: u32 = 200;
const ITEMS: u32 = 50;
const MESSAGES: usize = 3;
/// Large enough to lie in a block file.
const BLOB_BYTES: usize = 300_000;
/// What a server makes anew, and what nobody should find in an archive.
const LEFT_OUT: [&str; 3] = ["reserve", "tls", "admin-token"];

fn archives() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/upgrade")
}

fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) {
    std::fs::write(folder.join(name), text).unwrap();
}

fn lines(count: u32, line: impl Fn(u32) -> Value) -> String {
    (0..count).map(|number| format!("{}\n", line(number))).collect()
}

fn entity(number: u32) -> Value {
    json!({ "PartitionKey": format!("p{}", number % 7), "RowKey": format!("{number:04}"), "N": number })
}

fn item(number: u32) -> Value {
    json!({ "id": number.to_string(), "kind": format!("k{}", number % 5), "n": number })
}

fn blob() -> Vec<u8> {
    (0..BLOB_BYTES).map(|at| (at % 251) as u8).collect()
}

/// Fills a server through its commands.
fn fill(server: &Server, folder: &Path) {
    write(folder, "entities.jsonl", lines(ENTITIES, entity));
    server.command(&["table", "import", "kept", "entities.jsonl", "--create"]);
    write(folder, "blob.bin", blob());
    server.command(&["blob", "create", "kept"]);
    server.command(&["blob", "cp", "blob.bin", "az://kept/blob.bin"]);
    server.command(&["queue", "create", "kept"]);
    for number in 0..MESSAGES {
        server.command(&["queue", "put", "kept", &number.to_string(), "--forever"]);
    }
    server.command(&["documents", "create", "kept/items", "--key", "/kind"]);
    write(folder, "items.jsonl", lines(ITEMS, item));
    server.command(&["documents", "import", "kept/items", "items.jsonl"]);
    server.command(&["account", "create", "kept"]);
    server.command(&["shard", "add", "shard-0002"]);
    let partitions = server.json(&["partition", "list"]);
    let table = partitions["partitions"].as_array().unwrap().iter();
    let table = table.clone().find(|one| one["map"].as_str().unwrap().ends_with("/kept")).unwrap();
    let id = table["id"].to_string();
    server.command(&["partition", "move", &id, "--to", "shard-0002"]);
}

/// Finds everything that [`fill`] has written.
fn check(server: &Server, folder: &Path) {
    let exported = server.command(&["table", "export", "kept"]);
    let found: Vec<Value> =
        exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.len(), ENTITIES as usize);
    for entity_found in &found {
        let number = u32::try_from(entity_found["N"].as_u64().unwrap()).unwrap();
        let expected = entity(number);
        for name in ["PartitionKey", "RowKey", "N"] {
            assert_eq!(entity_found[name], expected[name]);
        }
    }
    server.command(&["blob", "cp", "az://kept/blob.bin", "back.bin"]);
    assert_eq!(std::fs::read(folder.join("back.bin")).unwrap(), blob());
    let messages = server.json(&["queue", "peek", "kept"]);
    let texts: Vec<&str> = messages["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["0", "1", "2"]);
    let query = "SELECT VALUE COUNT(1) FROM c WHERE c.n >= 0";
    let counted = server.command(&["documents", "query", "kept/items", query]);
    assert_eq!(counted.trim(), ITEMS.to_string());
    let accounts = server.json(&["account", "list"]);
    assert!(accounts["accounts"].as_array().unwrap().iter().any(|one| one["name"] == "kept"));
    let checked = run(folder, &["fsck"]);
    assert!(checked.status.success(), "{}{}", stdout(&checked), stderr(&checked));
}

fn tar(arguments: &[&str], folder: &Path) {
    let status = Command::new("tar").args(arguments).current_dir(folder).status().unwrap();
    assert!(status.success(), "tar {arguments:?}: {status}");
}

fn stop(mut server: Server) {
    server.signal("-TERM");
    assert!(server.wait().success());
}

#[test]
fn data_of_every_release_is_opened() {
    let version = format!("v{}.tar.gz", env!("CARGO_PKG_VERSION"));
    if std::env::var_os("LAZULI_MAKE_UPGRADE_DATA").is_some() {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(folder.path());
        fill(&server, folder.path());
        check(&server, folder.path());
        stop(server);
        let archive = archives().join(&version);
        let mut words = vec!["czf".to_owned(), archive.display().to_string()];
        words.extend(LEFT_OUT.map(|name| format!("--exclude={name}")));
        words.push("lazuli-data".to_owned());
        tar(&words.iter().map(String::as_str).collect::<Vec<_>>(), folder.path());
    }
    let mut seen = Vec::new();
    for entry in std::fs::read_dir(archives()).unwrap() {
        let archive = entry.unwrap().path();
        if archive.extension().is_none_or(|ending| ending != "gz") {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        tar(&["xzf", archive.to_str().unwrap()], folder.path());
        for _ in 0..2 {
            // The second start finds what the first one has made of it.
            let server = Server::start(folder.path());
            check(&server, folder.path());
            stop(server);
        }
        seen.push(archive.file_name().unwrap().to_str().unwrap().to_owned());
    }
    assert!(seen.contains(&version), "there is no archive of this version: {seen:?}");
}
