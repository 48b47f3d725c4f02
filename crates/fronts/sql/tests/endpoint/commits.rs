//! Transactions over several shards, and COPY.

use std::time::Duration;

use futures_util::SinkExt;

use crate::fixture::{Endpoint, SHARDS, rows};

fn prepared(endpoint: &Endpoint) -> usize {
    endpoint.on_shard("one", "SELECT gid FROM pg_prepared_xacts WHERE database LIKE '%\\_' || substring(current_database() from '_(\\d+)$')").lines().count()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_phase_commit_writes_on_all_shards_or_on_none() {
    let Some(endpoint) = Endpoint::start().await else { return };
    let client = endpoint.connect().await;
    rows(&client, "SET lazuli.transaction = 'two-phase'").await.unwrap();
    let count = client
        .execute("INSERT INTO orders (tenant, id, amount) VALUES (1, 1, 5), (150, 1, 5), (250, 1, 5), (2, 2, 0)", &[])
        .await
        .unwrap();
    assert_eq!(count, 4);
    assert_eq!(client.execute("UPDATE orders SET amount = amount + 1", &[]).await.unwrap(), 4);
    for (shard, expected) in SHARDS.iter().zip(["7", "6", "6"]) {
        assert_eq!(endpoint.on_shard(shard, "SELECT sum(amount) FROM orders"), expected);
    }
    // One row is refused on the last shard: none is written.
    let twice = "INSERT INTO orders (tenant, id) VALUES (1, 9), (150, 9), (250, 1)";
    assert!(rows(&client, twice).await.unwrap_err().starts_with("23505"));
    assert_eq!(rows(&client, "SELECT count(*) FROM orders").await.unwrap(), ["4"]);
    // An explicit transaction.
    rows(&client, "BEGIN; UPDATE orders SET amount = 0 WHERE tenant = 1; UPDATE orders SET amount = 11 WHERE tenant = 250; COMMIT")
        .await
        .unwrap();
    assert_eq!(rows(&client, "SELECT sum(amount) FROM orders").await.unwrap(), ["18"]);
    rows(&client, "BEGIN; DELETE FROM orders WHERE tenant = 1; DELETE FROM orders WHERE tenant = 250; ROLLBACK").await.unwrap();
    assert_eq!(rows(&client, "SELECT count(*) FROM orders").await.unwrap(), ["4"]);
    // Reference tables have the same rows everywhere.
    rows(&client, "INSERT INTO countries VALUES ('de', 'Germany'), ('jp', 'Japan')").await.unwrap();
    for shard in SHARDS {
        assert_eq!(endpoint.on_shard(shard, "SELECT count(*) FROM countries"), "2");
    }
    let volatile =
        rows(&client, "INSERT INTO countries VALUES ('x', random()::text)").await.unwrap_err();
    assert!(volatile.starts_with("0A000 random"), "{volatile}");
    assert_eq!(prepared(&endpoint), 0);
    assert_eq!(endpoint.on_shard("one", "SELECT count(*) FROM lazuli.transaction"), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_coordinator_has_left_is_finished() {
    let Some(endpoint) = Endpoint::start().await else { return };
    // As a process that was killed leaves it: one transaction decided, one not, one without a row.
    for (gid, id) in [("lazuli_dead_1_1", 1), ("lazuli_dead_1_2", 2), ("lazuli_dead_1_3", 3)] {
        for (shard, tenant) in [("two", 150), ("three", 250)] {
            let text = format!("INSERT INTO orders (tenant, id) VALUES ({tenant}, {id})");
            let port = endpoint.server.port();
            let database = endpoint.on_shard(shard, "SELECT current_database()");
            let config = format!("host=127.0.0.1 port={port} user=postgres dbname={database}");
            let (client, connection) =
                tokio_postgres::connect(&config, tokio_postgres::NoTls).await.unwrap();
            tokio::spawn(connection);
            // Names of prepared transactions are the server's, so each shard here has its own.
            client
                .batch_execute(&format!(
                    "BEGIN; {text}; PREPARE TRANSACTION '{gid}_{shard}_{database}'"
                ))
                .await
                .unwrap();
        }
    }
    endpoint.on_shard("one", "INSERT INTO lazuli.coordinator (id, epoch, seen) VALUES ('dead', 1, now() - interval '1 h')");
    for shard in ["two", "three"] {
        let database = endpoint.on_shard(shard, "SELECT current_database()");
        for (number, committed) in [(1, true), (2, false)] {
            endpoint.on_shard("one", &format!(
                "INSERT INTO lazuli.transaction (gid, coordinator, epoch, shards, gids, committed, begun) VALUES \
                 ('lazuli_dead_1_{number}_{shard}', 'dead', 1, ARRAY['{shard}'], ARRAY['lazuli_dead_1_{number}_{shard}_{database}'], {committed}, now() - interval '1 h')"
            ));
        }
    }
    let begun = std::time::Instant::now();
    while prepared(&endpoint) > 0
        || endpoint.on_shard("one", "SELECT count(*) FROM lazuli.transaction") != "0"
    {
        assert!(begun.elapsed() < Duration::from_secs(30), "prepared transactions are left");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for shard in ["two", "three"] {
        assert_eq!(endpoint.on_shard(shard, "SELECT string_agg(id::text, ',') FROM orders"), "1");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_carries_rows_to_their_shards_and_back() {
    let Some(endpoint) = Endpoint::start().await else { return };
    let client = endpoint.connect().await;
    let copy = |text: &'static str, data: &'static str| {
        let client = &client;
        async move {
            let sink = client.copy_in(text).await?;
            let mut sink = std::pin::pin!(sink);
            for piece in data.as_bytes().chunks(3) {
                sink.send(bytes::Bytes::copy_from_slice(piece)).await?;
            }
            sink.finish().await
        }
    };
    let text = "COPY orders (tenant, id, note) FROM STDIN";
    let data = "1\t1\ta\\tb\n150\t1\t\\N\n250\t1\tx\\\ny\n";
    let refused = copy(text, data).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "0A000");
    assert_eq!(rows(&client, "SELECT count(*) FROM orders").await.unwrap(), ["0"]);
    rows(&client, "SET lazuli.transaction = 'two-phase'").await.unwrap();
    assert_eq!(copy(text, data).await.unwrap(), 3);
    let csv = "COPY orders (id, tenant, note) FROM STDIN WITH (FORMAT csv, HEADER true)";
    assert_eq!(copy(csv, "id,tenant,note\n7,1,\"a\nb\"\n7,\"250\",\"q\"\"q\"\n").await.unwrap(), 2);
    assert_eq!(endpoint.on_shard("one", "SELECT count(*) FROM orders"), "2");
    assert_eq!(endpoint.on_shard("three", "SELECT note FROM orders WHERE id = 7"), "q\"q");
    let unmapped = copy(text, "abc\t1\tx\n").await.unwrap_err();
    assert_eq!(unmapped.code().unwrap().code(), "22P04");
    let stream = client.copy_out("COPY orders (tenant, id) TO STDOUT").await.unwrap();
    let pieces: Vec<_> = futures_util::StreamExt::collect(stream).await;
    let all: Vec<u8> = pieces.into_iter().flat_map(|piece| piece.unwrap().to_vec()).collect();
    let mut lines: Vec<_> = std::str::from_utf8(&all).unwrap().lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["1\t1", "1\t7", "150\t1", "250\t1", "250\t7"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_are_unique_over_all_shards() {
    let Some(endpoint) = Endpoint::start().await else { return };
    let client = endpoint.connect().await;
    let mut ids = std::collections::BTreeSet::new();
    for tenant in [1, 150, 250, 1, 150, 250] {
        let text = format!(
            "INSERT INTO orders (tenant, id) VALUES ({tenant}, (lazuli_next_id() % 1000000)::int) RETURNING lazuli_next_id()"
        );
        let id = rows(&client, &text).await.unwrap().pop().unwrap();
        assert!(ids.insert(id.clone()), "{id} came twice");
    }
    assert!(rows(&client, "SELECT lazuli_next_id()").await.is_ok());
}

/// The endpoint of a process that is to be killed: run by the test below in a process of its own.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it is started by another test"]
async fn an_endpoint_that_waits_for_its_end() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let (server, number) = (variable("LAZULI_SQL_SERVER"), variable("LAZULI_SQL_NUMBER"));
    let port = Endpoint::serve_on(server.parse().unwrap(), number.parse().unwrap()).await;
    std::fs::write(variable("LAZULI_SQL_PORT_FILE"), port.to_string()).unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_at_any_step_of_a_commit_leaves_nothing_prepared() {
    let Some(endpoint) = Endpoint::start().await else { return };
    for shard in SHARDS {
        endpoint.on_shard(shard, "INSERT INTO orders (tenant, id, amount) SELECT t, n, 100 FROM generate_series(1, 4) n, (VALUES (1), (150), (250)) x(t) WHERE (t = 1 AND current_database() LIKE 'one%') OR (t = 150 AND current_database() LIKE 'two%') OR (t = 250 AND current_database() LIKE 'three%')");
    }
    // Each place has rows of its own, so that what is prepared does not block the others.
    for (id, place) in [(1, "intent"), (2, "prepared-one"), (3, "prepared"), (4, "decided")] {
        let file =
            std::env::temp_dir().join(format!("lazuli-sql-port-{}-{id}", std::process::id()));
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--ignored", "--exact", "commits::an_endpoint_that_waits_for_its_end"]);
        child.env("LAZULI_SQL_SERVER", endpoint.server.port().to_string());
        child.env("LAZULI_SQL_NUMBER", endpoint.number.to_string());
        child.env("LAZULI_SQL_PORT_FILE", &file).env("LAZULI_SQL_FAULT", place);
        let mut child = child
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let port = loop {
            match std::fs::read_to_string(&file).ok().and_then(|text| text.parse::<u16>().ok()) {
                Some(port) => break port,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        std::fs::remove_file(&file).unwrap();
        let config = format!("host=127.0.0.1 port={port} user=ada password=secret dbname=shop");
        let (client, connection) =
            tokio_postgres::connect(&config, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let text = format!(
            "SET lazuli.transaction = 'two-phase'; BEGIN; \
             UPDATE orders SET amount = amount - 10 WHERE tenant = 1 AND id = {id}; \
             UPDATE orders SET amount = amount + 4 WHERE tenant = 150 AND id = {id}; \
             UPDATE orders SET amount = amount + 6 WHERE tenant = 250 AND id = {id}; COMMIT"
        );
        rows(&client, &text).await.unwrap_err();
        assert!(!child.wait().unwrap().success(), "{place}");
    }
    let begun = std::time::Instant::now();
    while prepared(&endpoint) > 0
        || endpoint.on_shard("one", "SELECT count(*) FROM lazuli.transaction") != "0"
    {
        assert!(begun.elapsed() < Duration::from_secs(40), "prepared transactions are left");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let client = endpoint.connect().await;
    let amounts =
        rows(&client, "SELECT id, sum(amount), min(amount) FROM orders GROUP BY id ORDER BY id")
            .await
            .unwrap();
    // Only the last one was decided.
    assert_eq!(amounts, ["1|300|100", "2|300|100", "3|300|100", "4|300|90"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_was_taken_over_commits_again_under_another_name() {
    let Some(endpoint) = Endpoint::start().await else { return };
    let client = endpoint.connect().await;
    rows(&client, "SET lazuli.transaction = 'two-phase'").await.unwrap();
    let insert = |id: u32| {
        format!("INSERT INTO orders (tenant, id, amount) VALUES (1, {id}, 5), (150, {id}, 5)")
    };
    rows(&client, &insert(1)).await.unwrap();
    endpoint.on_shard("one", "UPDATE lazuli.coordinator SET epoch = epoch + 1");
    // The first one learns of it, unless the process has noticed by itself.
    if let Err(error) = rows(&client, &insert(2)).await {
        assert!(error.starts_with("40001"), "{error}");
        rows(&client, &insert(2)).await.unwrap();
    }
    assert_eq!(rows(&client, "SELECT count(*) FROM orders").await.unwrap(), ["4"]);
    assert_eq!(prepared(&endpoint), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_whose_commit_has_not_ended_is_waited_for() {
    let Some(endpoint) = Endpoint::start().await else { return };
    let port = endpoint.server.port();
    let open = async |shard: &str| {
        let database = endpoint.on_shard(shard, "SELECT current_database()");
        let config = format!("host=127.0.0.1 port={port} user=postgres dbname={database}");
        let (client, connection) =
            tokio_postgres::connect(&config, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        (client, database)
    };
    let (two, database) = open("two").await;
    let gid = format!("lazuli_gone_1_1_{database}");
    let prepare = format!(
        "BEGIN; INSERT INTO orders (tenant, id) VALUES (150, 1); PREPARE TRANSACTION '{gid}'"
    );
    two.batch_execute(&prepare).await.unwrap();
    endpoint.on_shard("one", &format!(
        "INSERT INTO lazuli.coordinator (id, epoch, seen) VALUES ('gone', 2, now() - interval '1 min'); \
         INSERT INTO lazuli.transaction (gid, coordinator, epoch, shards, gids, begun) VALUES \
         ('lazuli_gone_1_1', 'gone', 1, ARRAY['two'], ARRAY['{gid}'], now() - interval '1 h')"
    ));
    // As a backend whose client is gone and whose COMMIT waits for a standby.
    let (deciding, _) = open("one").await;
    let decide =
        "BEGIN; UPDATE lazuli.transaction SET committed = true WHERE gid = 'lazuli_gone_1_1'";
    deciding.batch_execute(decide).await.unwrap();
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(prepared(&endpoint), 1);
    deciding.batch_execute("COMMIT").await.unwrap();
    for _ in 0..100 {
        if prepared(&endpoint) == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(prepared(&endpoint), 0);
    assert_eq!(endpoint.on_shard("two", "SELECT count(*) FROM orders"), "1");
}
