//! What goes wrong around a fleet: databases that go away and come back, primaries that are replaced.

use std::time::Instant;

use lazuli_postgres_server::{Server as Postgres, Stop};

use crate::fleet::{Node, database, until};
use crate::traffic::{create_table, entities, insert, partition_of};

#[test]
fn a_shard_whose_database_is_away_is_answered_with_503_and_nothing_else_is() {
    let Some(postgres) = Postgres::start().unwrap() else { return };
    let Some(mut second) = Postgres::start().unwrap() else { return };
    let catalog = database(&postgres, "catalog");
    let node = Node::join(&catalog, "one");
    for (name, server) in [("near", &postgres), ("far", &second)] {
        node.server.command(&["shard", "add", name, "--at", &database(server, name)]);
    }
    for (table, shard) in [("here", "near"), ("there", "far")] {
        assert_eq!(create_table(&node.server, table), 201);
        let (id, home) = partition_of(&node.server, table);
        if home != shard {
            node.server.command(&["partition", "move", &id, "--to", shard]);
        }
        assert_eq!(insert(&node.server, table, "key", "1").0, 201);
    }
    second.stop(Stop::Immediate).unwrap();
    for n in 2..10 {
        let began = Instant::now();
        let (status, body) = insert(&node.server, "there", "key", &n.to_string());
        assert_eq!(status, 503, "{body}");
        assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
        assert_eq!(insert(&node.server, "here", "key", &n.to_string()).0, 201);
    }
    assert_eq!(node.page("/healthz").0, 503);
    assert_eq!(node.page("/readyz").0, 200, "it is away for all nodes");
    // A node that starts meanwhile serves the rest.
    let late = Node::join(&catalog, "late");
    assert_eq!(insert(&late.server, "here", "key", "late").0, 201);
    assert_eq!(insert(&late.server, "there", "key", "late").0, 503);
    second.begin().unwrap();
    for node in [&node, &late] {
        let row = if std::ptr::eq(node, &late) { "late" } else { "back" };
        until("the shard answers again", || {
            let status = insert(&node.server, "there", "key", row).0;
            status == 201 || status == 409
        });
    }
}

#[test]
fn a_promoted_standby_takes_over_and_nothing_that_was_answered_is_lost() {
    let Some(mut primary) = Postgres::start().unwrap() else { return };
    let standby = primary.standby("b", &[]).unwrap();
    primary.wait_for_standbys("FIRST 1 (b)").unwrap();
    let both = |name: &str| {
        primary.psql("postgres", &format!("CREATE DATABASE {name}")).unwrap();
        let (first, second) = (primary.host(), standby.host());
        format!("postgres://postgres@{first},{second}/{name}?sslmode=disable")
    };
    let (catalog, shard) = (both("catalog"), both("shard"));
    let nodes = [Node::join(&catalog, "one"), Node::join(&catalog, "other")];
    nodes[0].server.command(&["shard", "add", "first", "--at", &shard]);
    assert_eq!(create_table(&nodes[0].server, "things"), 201);
    let mut answered = Vec::new();
    for n in 0..20 {
        let row = format!("before-{n}");
        assert_eq!(insert(&nodes[n % 2].server, "things", "key", &row).0, 201);
        answered.push(("key".to_owned(), row));
    }
    primary.stop(Stop::Immediate).unwrap();
    standby.promote().unwrap();
    let began = Instant::now();
    for node in &nodes {
        until("the node writes on the new primary", || {
            let status = insert(&node.server, "things", "key", "after").0;
            status == 201 || status == 409
        });
    }
    println!("writes were answered again {:?} after the promotion", began.elapsed());
    for node in &nodes {
        let found = entities(&node.server, "things");
        assert!(answered.iter().all(|one| found.contains(one)), "{found:?}");
    }
    nodes[1].server.command(&["fsck"]);
}
