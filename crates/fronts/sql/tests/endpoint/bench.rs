//! pgbench's TPC-B through the endpoint: on one shard each, and over shards with two-phase commit. All sums must agree.

use std::process::Command;
use std::sync::Arc;

use lazuli_sharded_sql::{ColumnType, Table, TableKind, TableName};

use crate::fixture::{Endpoint, SHARDS, int_map};

const TABLES: &str = "
CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88));
CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84));
CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84));
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
";

/// Everything of one branch, so that a transaction is on one shard.
const BY_BRANCH: &str = r"\set bid random(1, 6)
\set tid (:bid - 1) * 10 + random(1, 10)
\set aid (:bid - 1) * 100 + random(1, 100)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
";

/// Branches 1 and 2 on the first shard, 3 and 4 on the second, 5 and 6 on the third.
fn prepare(endpoint: &Endpoint) {
    for shard in SHARDS {
        endpoint.on_shard(shard, TABLES);
    }
    endpoint.change(|snapshot| {
        let maps = [("branches", [3, 5]), ("tellers", [21, 41]), ("accounts", [201, 401])];
        for (name, bounds) in maps {
            let mut map = int_map(&bounds);
            name.clone_into(&mut map.name);
            snapshot.maps.push(Arc::new(map));
        }
        let first = snapshot.maps.len() - 3;
        for (table, map, column) in [
            ("branches", 0, "bid"),
            ("tellers", 1, "tid"),
            ("accounts", 2, "aid"),
            ("history", 0, "bid"),
        ] {
            let key = vec![(column.to_owned(), ColumnType::Int4)];
            let kind = TableKind::Sharded { map: first + map, key };
            let name = TableName::new("public", &format!("pgbench_{table}"));
            snapshot.tables.insert(name, Table { kind });
        }
    });
    for (index, shard) in SHARDS.iter().enumerate() {
        let (low, high) = (index * 2 + 1, index * 2 + 2);
        endpoint.on_shard(
            shard,
            &format!(
                "INSERT INTO pgbench_branches SELECT n, 0 FROM generate_series({low}, {high}) n; \
                 INSERT INTO pgbench_tellers SELECT n, (n - 1) / 10 + 1, 0 FROM generate_series({} + 1, {}) n; \
                 INSERT INTO pgbench_accounts SELECT n, (n - 1) / 100 + 1, 0 FROM generate_series({} + 1, {}) n",
                (low - 1) * 10,
                high * 10,
                (low - 1) * 100,
                high * 100
            ),
        );
    }
}

fn pgbench(endpoint: &Endpoint, options: &[&str]) {
    let mut pgbench: Command = endpoint.server.program("pgbench");
    pgbench.env("PGPASSWORD", "secret").args([
        "-n",
        "-h",
        "127.0.0.1",
        "-p",
        &endpoint.port.to_string(),
    ]);
    pgbench.args(["-U", "ada"]).args(options).arg("shop");
    pgbench.env("PGOPTIONS", "-c lazuli.transaction=two-phase");
    let output = pgbench.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}{complained}");
    assert!(said.contains("number of failed transactions: 0"), "{said}{complained}");
}

fn sums(endpoint: &Endpoint) -> [i64; 4] {
    let sum = |table: &str, column: &str| {
        let text = format!("SELECT coalesce(sum({column}), 0) FROM pgbench_{table}");
        SHARDS.iter().map(|shard| endpoint.on_shard(shard, &text).parse::<i64>().unwrap()).sum()
    };
    [
        sum("branches", "bbalance"),
        sum("tellers", "tbalance"),
        sum("accounts", "abalance"),
        sum("history", "delta"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sums_of_tpc_b_agree_on_one_shard_and_over_shards() {
    let Some(endpoint) = Endpoint::start().await else { return };
    tokio::task::spawn_blocking(move || {
        prepare(&endpoint);
        let script = endpoint.server.write_file("by-branch.sql", BY_BRANCH).unwrap();
        let script = script.to_str().unwrap();
        for mode in ["simple", "extended", "prepared"] {
            pgbench(&endpoint, &["-M", mode, "-c", "4", "-t", "40", "-f", script]);
        }
        let [branches, tellers, accounts, history] = sums(&endpoint);
        assert!(
            branches == tellers && tellers == accounts && accounts == history,
            "{:?}",
            sums(&endpoint)
        );
        // As the stock script does, branch, teller and account are picked each for itself: most transactions are over shards.
        // A deadlock over shards is found by nobody but a time-out, so there is one client.
        let apart = BY_BRANCH.replace("(:bid - 1) * 10 + random(1, 10)", "random(1, 60)");
        let apart = apart.replace("(:bid - 1) * 100 + random(1, 100)", "random(1, 600)");
        let script = endpoint.server.write_file("apart.sql", &apart).unwrap();
        pgbench(
            &endpoint,
            &["-M", "prepared", "-c", "1", "-t", "30", "-f", script.to_str().unwrap()],
        );
        let [branches, tellers, accounts, history] = sums(&endpoint);
        assert!(
            branches == tellers && tellers == accounts && accounts == history,
            "{:?}",
            sums(&endpoint)
        );
    })
    .await
    .unwrap();
}
