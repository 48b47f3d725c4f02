//! `lazuli queue` and `lazuli account delete` with the real program.

use std::io::Write;
use std::process::Stdio;

use crate::program::{Server, lazuli, run, stderr, stdout};

#[test]
fn messages_are_put_looked_at_taken_and_cleared() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    assert_eq!(server.command(&["queue", "create", "work"]), "created queue work\n");
    let put = server.command(&["queue", "put", "work", "a<b", "second", "--base64"]);
    assert_eq!(put, "put 2 messages into work\n");
    let counted = server.json(&["queue", "list", "--counts"]);
    assert_eq!(counted["queues"], serde_json::json!([{ "queue": "work", "messages": 2 }]));

    let peeked = server.json(&["queue", "peek", "work", "--base64"]);
    let texts = |answer: &serde_json::Value| -> Vec<String> {
        let messages = answer["messages"].as_array().unwrap();
        messages.iter().map(|one| one["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts(&peeked), ["a<b", "second"]);
    assert_eq!(peeked["messages"][0].get("receipt"), None);
    let got = server.json(&["queue", "get", "work", "--count", "1", "--base64", "--delete"]);
    assert_eq!(texts(&got), ["a<b"]);
    let hidden = server.json(&["queue", "get", "work", "--visibility", "600"]);
    assert_eq!(texts(&hidden).len(), 1);
    assert_eq!(texts(&server.json(&["queue", "peek", "work"])).len(), 0);
    assert_eq!(server.command(&["queue", "clear", "work"]), "cleared queue work\n");
    assert_eq!(server.json(&["queue", "list", "--counts"])["queues"][0]["messages"], 0);
    assert_eq!(server.command(&["queue", "delete", "work"]), "deleted queue work\n");
}

#[test]
fn lines_of_standard_input_are_messages_and_a_failure_says_how_many_were_put() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    server.command(&["queue", "create", "lines"]);
    let mut child = lazuli(folder.path(), &["queue", "put", "lines", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"one\ntwo\n\x01\nfour\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let told = stderr(&output);
    assert!(told.contains("XML cannot carry") && told.contains("2 messages before it"), "{told}");
    assert_eq!(server.json(&["queue", "list", "--counts"])["queues"][0]["messages"], 2);
    let missing = run(folder.path(), &["queue", "put", "missing", "text"]);
    assert!(stderr(&missing).contains("QueueNotFound"), "{}", stderr(&missing));
    for bad in ["Upper", "a/b", "ab"] {
        let output = run(folder.path(), &["queue", "create", bad]);
        assert_eq!(output.status.code(), Some(2), "{bad}");
    }
}

#[test]
fn an_account_is_deleted_once_it_holds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    server.command(&["account", "create", "shop"]);
    server.command(&["queue", "create", "orders", "--account", "shop"]);
    server.command(&["queue", "put", "orders", "text", "--account", "shop"]);
    let refused = run(folder.path(), &["account", "delete", "shop"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("of account shop holds items"), "{}", stderr(&refused));
    server.command(&["queue", "delete", "orders", "--account", "shop"]);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !run(folder.path(), &["account", "delete", "shop"]).status.success() {
        // The messages of a deleted queue are removed in the background.
        assert!(std::time::Instant::now() < deadline, "the account must become empty");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let refused = run(folder.path(), &["queue", "list", "--account", "shop"]);
    assert!(stderr(&refused).contains("no such account"), "{}", stderr(&refused));
}
