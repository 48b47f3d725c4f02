//! What goes wrong around a fleet: databases that go away and come back, primaries that are replaced.

use std::time::{Duration, Instant};

use lazuli_postgres_server::{Server as Postgres, Stop};

use crate::fleet::{Node, database, until};
use crate::traffic::{create_table, entities, get, insert, partition_of};

/// A commit that is not answered counts as unknown after 10 s, and is asked for during 5 s more. A busy machine adds to it.
const COMMIT_WAIT_MAX: Duration = Duration::from_secs(30);

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

/// Commits wait for a synchronous standby for ever. Clients must not: a write is refused in bounded time, and whether it was
/// made shows when the standby is back. Reads and everything on other servers go on meanwhile.
#[test]
fn a_standby_that_is_cut_off_lets_writes_be_refused_in_time_and_loses_none_that_was_answered() {
    let Some(primary) = Postgres::start().unwrap() else { return };
    let Some(other) = Postgres::start().unwrap() else { return };
    let mut standby = primary.standby("b", &[]).unwrap();
    let catalog = database(&other, "catalog");
    let nodes = [Node::join(&catalog, "one"), Node::join(&catalog, "other")];
    for (name, server) in [("near", &other), ("far", &primary)] {
        nodes[0].server.command(&["shard", "add", name, "--at", &database(server, name)]);
    }
    for (table, shard) in [("here", "near"), ("there", "far")] {
        assert_eq!(create_table(&nodes[0].server, table), 201);
        let (id, home) = partition_of(&nodes[0].server, table);
        if home != shard {
            nodes[0].server.command(&["partition", "move", &id, "--to", shard]);
        }
    }
    primary.wait_for_standbys("FIRST 1 (b)").unwrap();
    primary.is_followed_by(1).unwrap();
    assert_eq!(insert(&nodes[0].server, "there", "key", "before").0, 201);
    standby.stop(Stop::Fast).unwrap();
    let mut refused = Vec::new();
    for (n, node) in nodes.iter().enumerate() {
        let row = format!("during-{n}");
        let began = Instant::now();
        let (status, body) = insert(&node.server, "there", "key", &row);
        assert_eq!(status, 503, "{body}");
        assert!(began.elapsed() < COMMIT_WAIT_MAX, "{:?}", began.elapsed());
        println!("a commit that waits for a standby was refused after {:?}", began.elapsed());
        refused.push(row);
        assert_eq!(get(&node.server, "there", "key", "before").0, 200, "reads go on");
        assert_eq!(insert(&node.server, "here", "key", &n.to_string()).0, 201);
    }
    standby.begin().unwrap();
    primary.is_followed_by(1).unwrap();
    until("writes are answered again", || {
        nodes
            .iter()
            .all(|node| [201, 409].contains(&insert(&node.server, "there", "key", "after").0))
    });
    // Each of those in doubt was made once, or not at all: both nodes agree, and it can be made now if it is not there.
    for row in &refused {
        let seen = nodes.each_ref().map(|node| get(&node.server, "there", "key", row).0);
        assert_eq!(seen[0], seen[1]);
        let again = insert(&nodes[1].server, "there", "key", row).0;
        assert_eq!(again, if seen[0] == 200 { 409 } else { 201 });
    }
    let rows: Vec<String> =
        ["before", "after"].map(str::to_owned).into_iter().chain(refused).collect();
    for node in &nodes {
        let found = entities(&node.server, "there");
        assert_eq!(found.len(), rows.len(), "{found:?}");
        assert!(rows.iter().all(|row| found.contains(&("key".to_owned(), row.clone()))));
    }
    nodes[1].server.command(&["fsck"]);
}
