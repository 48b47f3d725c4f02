//! Two nodes on one catalog: what one writes the other reads, and what one leaves the other takes.

use crate::fleet::{Fleet, Node, until};
use crate::program::{PUBLISHED_KEY, Server, run, stderr};
use crate::traffic::{Writers, create_table, delete_table, entities, get, insert, partition_of};

#[test]
fn each_node_sees_what_the_other_has_written() {
    let Some(fleet) = Fleet::start() else { return };
    let [one, other] = fleet.nodes();
    // The name of a table that was deleted and made again elsewhere leads to the new one at once.
    for round in 0..3 {
        let (here, there) = if round % 2 == 0 { (one, other) } else { (other, one) };
        assert_eq!(create_table(here, "things"), 201);
        assert_eq!(create_table(there, "things"), 409);
        for n in 0..10 {
            let row = format!("{round}-{n}");
            let (status, body) = insert(there, "things", "key", &row);
            assert_eq!(status, 201, "round {round}, {n}: {body}");
            let (status, body) = get(here, "things", "key", &row);
            assert_eq!(status, 200, "round {round}, {n}: {body}");
        }
        assert_eq!(entities(here, "things").len(), 10);
        assert_eq!(delete_table(there, "things"), 204);
        assert_eq!(get(here, "things", "key", "0").0, 404);
    }
    messages_pass(one, other);
    blobs_pass(one, other);
    one.command(&["fsck"]);
}

fn messages_pass(one: &Server, other: &Server) {
    let queue = "/devstoreaccount1/orders";
    assert_eq!(one.storage("queues", "PUT", queue, &[], "").0, 201);
    let message = "<QueueMessage><MessageText>hello</MessageText></QueueMessage>";
    let messages = format!("{queue}/messages");
    for n in 0..10 {
        let (to, from) = if n % 2 == 0 { (one, other) } else { (other, one) };
        assert_eq!(to.storage("queues", "POST", &messages, &[], message).0, 201);
        let (status, body) = from.storage("queues", "GET", &messages, &[], "");
        assert!(status == 200 && body.contains("hello"), "{n}: {status} {body}");
        let (_, empty) = to.storage("queues", "GET", &messages, &[], "");
        assert!(!empty.contains("hello"), "it is hidden from the other one too");
        let part = |name: &str| {
            let after = body.split_once(&format!("<{name}>")).unwrap().1;
            after.split_once('<').unwrap().0.to_owned()
        };
        let receipt = part("PopReceipt").replace('+', "%2B").replace('=', "%3D");
        let path = format!("{messages}/{}?popreceipt={receipt}", part("MessageId"));
        assert_eq!(to.storage("queues", "DELETE", &path, &[], "").0, 204);
    }
}

fn blobs_pass(one: &Server, other: &Server) {
    let container = "/devstoreaccount1/pictures";
    let path = format!("{container}?restype=container");
    assert_eq!(one.blobs("PUT", &path, &[], "").0, 201);
    // A row, and a block of its own.
    for (name, length) in [("small", 100), ("large", 3_000_000)] {
        let body = name.repeat(length / name.len());
        let path = format!("{container}/{name}");
        let kind = [("x-ms-blob-type", "BlockBlob")];
        for (to, from) in [(one, other), (other, one)] {
            let (status, answer) = to.blobs("PUT", &path, &kind, &body);
            assert_eq!(status, 201, "{answer}");
            let (status, read) = from.blobs("GET", &path, &[], "");
            assert!(status == 200 && read == body, "{name}: {status}, {} bytes", read.len());
        }
        assert_eq!(other.blobs("DELETE", &path, &[], "").0, 202);
        assert_eq!(one.blobs("GET", &path, &[], "").0, 404);
    }
}

#[test]
fn accounts_and_the_audit_log_are_those_of_the_fleet() {
    let Some(fleet) = Fleet::start() else { return };
    let [one, other] = fleet.nodes();
    assert_eq!(create_table(one, "things"), 201);
    let shown = one.json(&["account", "rotate-key", "devstoreaccount1", "--key", "1"]);
    let new = shown["key1"].as_str().unwrap();
    let asks = |key: &str| other.tables(key, "GET", "/devstoreaccount1/Tables", "").0;
    let took = until("the other node takes the new key", || asks(new) == 200);
    assert!(took.as_secs_f64() < 2.0, "a second, and what a busy machine adds: {took:?}");
    assert_eq!(asks(PUBLISHED_KEY), 403, "and the old one not any more");
    let log = other.json(&["audit"]);
    let seen: Vec<_> = log["changes"].as_array().unwrap().iter().collect();
    assert_eq!(seen[0]["operation"], "rotate-key");
    assert!(seen[0]["node"].as_str().unwrap().starts_with("one "), "{log}");
    assert_eq!(seen[0]["outcome"], "done");
}

#[test]
fn the_work_of_a_killed_node_passes_to_the_other_which_goes_on() {
    let Some(fleet) = Fleet::start() else { return };
    let Fleet { one, other, .. } = &fleet;
    assert_eq!(create_table(&one.server, "things"), 201);
    let is_busy = |node: &Node, name: &str| {
        let nodes = node.nodes();
        let found = nodes.iter().find(|(found, ..)| found == name);
        found.is_some_and(|(_, state, work)| state == "alive" && work.contains(&"moves".to_owned()))
    };
    assert!(is_busy(other, "one"), "{:?}", other.nodes());
    one.server.signal("-KILL");
    assert_eq!(insert(&other.server, "things", "key", "right after").0, 201);
    let took = until("the other one has its work", || is_busy(other, "other"));
    assert!(took.as_secs() < 30, "{took:?}");
    let names = |nodes: Vec<(String, String, Vec<String>)>| -> Vec<String> {
        nodes.into_iter().map(|(name, state, _)| format!("{name} {state}")).collect()
    };
    assert_eq!(names(other.nodes()), ["one silent", "other alive"]);
    // A third one comes, and the second one leaves in good order.
    let third = Node::join(&fleet.catalog, "third");
    other.server.command(&["node", "drain"]);
    assert_eq!(other.page("/readyz").0, 503);
    assert_eq!(third.page("/readyz").0, 200);
    until("the third one has the work", || is_busy(&third, "third"));
    assert_eq!(insert(&other.server, "things", "key", "while it drains").0, 201);
    assert_eq!(insert(&third.server, "things", "key", "on the third").0, 201);
    assert!(names(third.nodes()).contains(&"other draining".to_owned()));
    let Fleet { mut other, .. } = fleet;
    other.server.signal("-TERM");
    assert!(other.server.wait().success(), "{}", other.server.log());
    until("the second one is gone", || !third.nodes().iter().any(|(name, ..)| name == "other"));
}

#[test]
fn a_partition_moves_while_both_nodes_write_to_it() {
    let Some(fleet) = Fleet::start() else { return };
    fleet.add_shard("second");
    let [one, other] = fleet.nodes();
    assert_eq!(create_table(one, "things"), 201);
    let written = Writers::during(&[one, other, other], "things", |writers| {
        writers.pass(60);
        let (id, home) = partition_of(other, "things");
        let away = if home == "first" { "second" } else { "first" };
        for shard in [away, &home] {
            other.command(&["partition", "move", &id, "--to", shard]);
            assert_eq!(partition_of(one, "things").1, shard);
            writers.pass(40);
        }
        let split = one.json(&["partition", "split", &id]);
        assert!(split.to_string().contains("partition"), "{split}");
        writers.pass(40);
    });
    for node in [one, other] {
        assert_eq!(entities(node, "things"), written);
    }
    other.command(&["fsck"]);
}

#[test]
fn a_node_refuses_what_a_fleet_cannot_have() {
    let Some(fleet) = Fleet::start() else { return };
    let node = &fleet.one;
    let refused = run(node.folder(), &["shard", "add", "folder"]);
    assert!(stderr(&refused).contains("--at postgres://"), "{}", stderr(&refused));
    // The folder of a node is not taken for that of a server that is alone.
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("lazuli-data")).unwrap();
    std::fs::write(folder.path().join("lazuli-data/format"), "lazuli node 1\n").unwrap();
    let refused = run(folder.path(), &["serve"]);
    assert!(stderr(&refused).contains("a node of a fleet"), "{}", stderr(&refused));
    let catalog = &fleet.catalog;
    let refused = run(folder.path(), &["serve", "--catalog", catalog, "--tls", "beside"]);
    assert!(stderr(&refused).contains("one certificate"), "{}", stderr(&refused));
}
