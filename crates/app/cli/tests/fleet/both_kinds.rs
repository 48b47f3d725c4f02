//! One server with shards in folders and in databases: growing out of a machine is a move.

use lazuli_postgres_server::{Server as Postgres, Stop};

use crate::fleet::{Node, database, shard_state, until};
use crate::program::{Server, run, stderr};
use crate::traffic::{Writers, create_table, entities, insert, partition_of};

#[test]
fn a_partition_moves_to_a_database_and_back_under_writes_and_loses_nothing() {
    let Some(postgres) = Postgres::start().unwrap() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let address = database(&postgres, "grown");
    let labels = ["--region", "east", "--label", "disk=fast"];
    server.command(&[&["shard", "add", "grown", "--at", &address][..], &labels].concat());
    let list = server.json(&["shard", "list"]);
    assert_eq!(list["shards"][1]["location"].as_str().unwrap(), address);
    assert_eq!(list["shards"][1]["labels"]["disk"], "fast");
    assert_eq!(create_table(&server, "things"), 201);
    let written = Writers::during(&[&server, &server], "things", |writers| {
        writers.pass(100);
        let (id, home) = partition_of(&server, "things");
        let away = if home == "grown" { "shard-0001" } else { "grown" };
        for shard in [away, &home, away] {
            server.command(&["partition", "move", &id, "--to", shard]);
            assert_eq!(partition_of(&server, "things").1, shard);
            writers.pass(50);
        }
    });
    assert_eq!(entities(&server, "things"), written);
    server.command(&["fsck"]);
    drop(server);
    // Killed, and started again: what is in the database is found there.
    let server = Server::start(folder.path());
    assert_eq!(entities(&server, "things"), written);
    server.command(&[
        "partition",
        "move",
        &partition_of(&server, "things").0,
        "--to",
        "shard-0001",
    ]);
    server.command(&["shard", "remove", "grown"]);
    server.command(&["shard", "add", "again", "--at", &address]);
    server.command(&["fsck"]);
    assert_eq!(entities(&server, "things"), written);
}

#[test]
fn a_server_grows_into_a_fleet_by_moving_its_partitions_and_then_its_catalog() {
    let Some(postgres) = Postgres::start().unwrap() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    assert_eq!(create_table(&server, "things"), 201);
    (0..50).for_each(|n| assert_eq!(insert(&server, "things", "key", &n.to_string()).0, 201));
    let (shard, catalog) = (database(&postgres, "grown"), database(&postgres, "catalog"));
    server.command(&["shard", "add", "grown", "--at", &shard]);
    let to_database = |arguments: &[&str]| run(folder.path(), arguments);
    let move_catalog = ["catalog", "move", "--to", &catalog];
    let refused = to_database(&move_catalog);
    assert!(stderr(&refused).contains("in use by"), "{}", stderr(&refused));
    server.command(&["shard", "drain", "shard-0001"]);
    let stop = |server: &mut Server| {
        server.signal("-TERM");
        assert!(server.wait().success(), "{}", server.log());
    };
    stop(&mut server);
    let refused = to_database(&move_catalog);
    assert!(stderr(&refused).contains("shard-0001"), "{}", stderr(&refused));
    let mut server = Server::start(folder.path());
    until("the shard can be removed", || {
        run(folder.path(), &["shard", "remove", "shard-0001"]).status.success()
    });
    stop(&mut server);
    let moved = to_database(&move_catalog);
    assert!(moved.status.success(), "{}", stderr(&moved));
    let refused = to_database(&["serve"]);
    assert!(stderr(&refused).contains("a node of a fleet"), "{}", stderr(&refused));
    let nodes = [Node::join(&catalog, "one"), Node::join(&catalog, "other")];
    for (n, node) in nodes.iter().enumerate() {
        assert_eq!(entities(&node.server, "things").len(), 50 + n);
        assert_eq!(insert(&node.server, "things", "later", &n.to_string()).0, 201);
    }
    nodes[1].server.command(&["fsck"]);
}

#[test]
fn a_database_that_is_away_leaves_the_rest_of_the_server_alone_and_comes_back() {
    let Some(mut postgres) = Postgres::start().unwrap() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let address = database(&postgres, "away");
    server.command(&["shard", "add", "away", "--at", &address]);
    for table in ["here", "there"] {
        assert_eq!(create_table(&server, table), 201);
        let to = if table == "here" { "shard-0001" } else { "away" };
        let (id, shard) = partition_of(&server, table);
        if shard != to {
            server.command(&["partition", "move", &id, "--to", to]);
        }
        assert_eq!(insert(&server, table, "key", "1").0, 201);
    }
    postgres.stop(Stop::Immediate).unwrap();
    drop(server);
    // It starts without the database.
    let server = Server::start(folder.path());
    assert_eq!(shard_state(&server, "away"), "down");
    assert_eq!(insert(&server, "here", "key", "2").0, 201);
    assert_eq!(insert(&server, "there", "key", "2").0, 503);
    postgres.begin().unwrap();
    until("the shard is in use again", || insert(&server, "there", "key", "3").0 == 201);
    assert!(entities(&server, "there").contains(&("key".to_owned(), "1".to_owned())));
}

#[test]
fn a_database_of_another_installation_and_a_password_in_an_address_are_refused() {
    let Some(postgres) = Postgres::start().unwrap() else { return };
    let address = database(&postgres, "taken");
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let one = Server::start(first.path());
    one.command(&["shard", "add", "mine", "--at", &address]);
    let _other = Server::start(second.path());
    let refused = run(second.path(), &["shard", "add", "mine", "--at", &address]);
    assert!(stderr(&refused).contains("a shard of another catalog"), "{}", stderr(&refused));
    let secret = address.replace("postgres@", "postgres:hunter2@");
    let refused = run(first.path(), &["shard", "add", "secret", "--at", &secret]);
    assert!(stderr(&refused).contains("password_file"), "{}", stderr(&refused));
    assert!(!stderr(&refused).contains("hunter2"));
    assert!(!one.log().contains("hunter2"));
    assert!(!one.command(&["audit"]).contains("hunter2"));
}
