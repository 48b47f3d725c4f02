//! The audit log: every change that is asked for is there, with what became of it, and no secret is.

use crate::program::{Server, run, stderr};
use serde_json::Value;

fn operations(audit: &Value) -> Vec<String> {
    let one = |change: &Value| {
        let text = |name: &str| change[name].as_str().unwrap().to_owned();
        format!("{} {}", text("operation"), text("outcome"))
    };
    audit["changes"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn changes_are_written_down_with_their_outcome_and_outlive_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    server.command(&["shard", "list"]);
    assert_eq!(operations(&server.json(&["audit"])), [""; 0], "looking is no change");
    server.command(&["shard", "add", "fast", "--region", "berlin", "--label", "disk=ssd"]);
    assert_eq!(run(folder.path(), &["shard", "add", "fast"]).status.code(), Some(1));
    let created = server.json(&["account", "create", "mine"]);
    let rotated = server.json(&["account", "rotate-key", "mine", "--key", "2"]);
    server.command(&["shard", "remove", "fast"]);
    let expected = [
        "remove-shard done",
        "rotate-key done",
        "create-account done",
        "add-shard refused",
        "add-shard done",
    ];
    assert_eq!(operations(&server.json(&["audit"])), expected);
    server.signal("-KILL");
    server.wait();
    server = Server::start(folder.path());
    let audit = server.json(&["audit"]);
    assert_eq!(operations(&audit), expected);
    let first = &audit["changes"][4];
    assert_eq!((&first["via"], &first["path"]), (&"api".into(), &"/v1/shards".into()));
    assert_eq!(first["parameters"]["region"], "berlin");
    assert_eq!(first["parameters"]["labels"]["disk"], "ssd");
    assert_eq!(audit["changes"][3]["code"], "shard-exists");
    assert_eq!(audit["changes"][1]["parameters"]["key"], 2);
    let kept = std::fs::read_to_string(folder.path().join("lazuli-data/audit/current.jsonl"));
    let kept = kept.unwrap();
    let token = std::fs::read_to_string(folder.path().join("lazuli-data/admin-token")).unwrap();
    for secret in [&created["key1"], &created["key2"], &rotated["key2"]] {
        assert!(!kept.contains(secret.as_str().unwrap()));
    }
    assert!(!kept.contains(token.trim()));

    let page = server.json(&["audit", "--limit", "2"]);
    let next = page["next"].to_string();
    let text = server.command(&["audit", "--limit", "2", "--before", &next]);
    assert!(text.contains("create-account") && text.contains("shard-exists"), "{text}");
    assert!(text.ends_with("older ones: lazuli audit --before 2\n"), "{text}");
}

#[test]
fn what_cannot_be_written_down_is_not_done() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    // A file that has to make room, and folders in the way of the older ones.
    let audit = folder.path().join("lazuli-data/audit");
    server.command(&["shard", "add", "first"]);
    drop(server);
    let current = audit.join("current.jsonl");
    let line = std::fs::read_to_string(&current).unwrap();
    std::fs::write(&current, line.repeat(4 * 1024 * 1024 / line.len() + 1)).unwrap();
    let server = Server::start(folder.path());
    std::fs::create_dir_all(audit.join("older-3.jsonl/in-the-way")).unwrap();
    std::fs::create_dir_all(audit.join("older-2.jsonl/in-the-way")).unwrap();
    let refused = run(folder.path(), &["shard", "add", "second"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("audit-failed"), "{}", stderr(&refused));
    let shards = server.json(&["shard", "list"]);
    assert_eq!(shards["shards"].as_array().unwrap().len(), 2, "{shards}");
}
