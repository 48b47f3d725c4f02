//! Statements of one shard, sessions, transactions, settings.

use crate::fixture::{Endpoint, rows};

#[tokio::test(flavor = "multi_thread")]
async fn statements_go_to_the_shard_of_their_key() {
    let Some(endpoint) = Endpoint::start().await else { return };
    let client = endpoint.connect().await;
    for (tenant, id) in [(1, 1), (1, 2), (150, 1), (250, 1)] {
        let text = format!("INSERT INTO orders (tenant, id, amount) VALUES ({tenant}, {id}, 10)");
        assert_eq!(client.execute(&text, &[]).await.unwrap(), 1);
    }
    for (shard, expected) in [("one", "2"), ("two", "1"), ("three", "1")] {
        assert_eq!(endpoint.on_shard(shard, "SELECT count(*) FROM orders"), expected);
    }
    // Parameters in binary form, a prepared statement used for several shards.
    let select = client
        .prepare("SELECT id, amount FROM orders WHERE tenant = $1 ORDER BY id")
        .await
        .unwrap();
    for (tenant, count) in [(1, 2), (150, 1), (250, 1), (99, 0)] {
        assert_eq!(client.query(&select, &[&tenant]).await.unwrap().len(), count, "{tenant}");
    }
    let updated = client
        .execute(
            "UPDATE orders SET amount = amount + $2 WHERE tenant = $1 AND id = $3",
            &[&150, &5, &1],
        )
        .await
        .unwrap();
    assert_eq!(updated, 1);
    assert_eq!(endpoint.on_shard("two", "SELECT amount FROM orders"), "15");
    // Several keys on one shard are one statement.
    let both =
        rows(&client, "SELECT id FROM orders WHERE tenant IN (1, 2) ORDER BY id").await.unwrap();
    assert_eq!(both, ["1", "2"]);
    assert_eq!(rows(&client, "SELECT 1 + 1").await.unwrap(), ["2"]);
    assert_eq!(rows(&client, "").await.unwrap(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_reads_piece_by_piece_on_the_shard_of_its_transaction() {
    let Some(endpoint) = Endpoint::start().await else { return };
    let client = endpoint.connect().await;
    for id in 0..7 {
        let text = format!("INSERT INTO orders (tenant, id, amount) VALUES (150, {id}, 0)");
        client.execute(&text, &[]).await.unwrap();
    }
    let ask = async |text: &str| rows(&client, text).await;
    let declare = "DECLARE c NO SCROLL CURSOR WITHOUT HOLD FOR SELECT id FROM orders WHERE tenant = 150 ORDER BY id";
    assert!(ask(declare).await.unwrap_err().starts_with("25P01"));
    ask("BEGIN").await.unwrap();
    ask(declare).await.unwrap();
    assert_eq!(ask("FETCH 3 FROM c").await.unwrap(), ["0", "1", "2"]);
    ask("MOVE 2 IN c").await.unwrap();
    assert_eq!(client.query("FETCH ALL FROM c", &[]).await.unwrap().len(), 2);
    ask("CLOSE c").await.unwrap();
    assert!(ask("FETCH 1 FROM c").await.unwrap_err().starts_with("34000"));
    ask("ROLLBACK").await.unwrap();
    for (text, code) in [
        ("FETCH 1 FROM c", "34000"),
        ("DECLARE c CURSOR WITH HOLD FOR SELECT id FROM orders WHERE tenant = 150", "0A000"),
        ("DECLARE c CURSOR FOR SELECT id FROM orders", "0A000"),
        ("DECLARE c CURSOR FOR DELETE FROM orders WHERE tenant = 150", "0A000"),
        ("DECLARE c CURSOR FOR SELECT 1", "0A000"),
    ] {
        ask("BEGIN").await.unwrap();
        let error = ask(text).await.unwrap_err();
        assert!(error.starts_with(code), "{text}: {error}");
        ask("ROLLBACK").await.unwrap();
    }
    assert_eq!(ask("CLOSE ALL").await.unwrap(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_routed_is_refused_by_name() {
    let Some(endpoint) = Endpoint::start().await else { return };
    let client = endpoint.connect().await;
    for (text, expected) in [
        ("CREATE TABLE x (a int)", "0A000 CREATE is not run through the router"),
        ("TRUNCATE orders", "0A000 TRUNCATE"),
        ("SELECT * FROM nothing", "42P01 relation \"nothing\" is not part"),
        ("INSERT INTO orders (id) VALUES (1)", "23502 INSERT into public.orders does not name"),
        ("INSERT INTO orders (tenant, id) VALUES (NULL, 1)", "23502"),
        (
            "INSERT INTO orders (tenant, id) VALUES (1 + 1, 1)",
            "0A000 the sharding key of a row must be a constant",
        ),
        (
            "UPDATE orders SET tenant = 5 WHERE tenant = 1",
            "0A000 the sharding key of a row cannot be changed",
        ),
        (
            "INSERT INTO orders (tenant, id) VALUES (1, 1) ON CONFLICT (tenant, id) DO UPDATE SET tenant = 2",
            "0A000 the sharding key of a row cannot be changed",
        ),
        (
            "INSERT INTO orders (tenant, id) VALUES (1, 1), (150, 1)",
            "0A000 this statement would write on more than one shard",
        ),
        (
            "DELETE FROM orders WHERE true OR tenant = 1",
            "0A000 this statement would write on more than one shard",
        ),
        (
            "INSERT INTO countries VALUES ('de', 'Germany')",
            "0A000 a write to a reference table would write",
        ),
        (
            "SELECT * FROM orders o JOIN items i ON i.order_id = o.id",
            "0A000 the rows of i are not on the shards",
        ),
        ("LISTEN x", "0A000 LISTEN"),
        ("SELECT 1 FROM orders FOR UPDATE", "0A000 FOR UPDATE"),
        ("SET lazuli.transaction = 'three-phase'", "22023"),
        ("this is no SQL", "42601"),
    ] {
        let said = rows(&client, text).await.unwrap_err();
        assert!(said.starts_with(expected), "{text}: {said}");
    }
    // The session goes on.
    assert_eq!(rows(&client, "SELECT 1").await.unwrap(), ["1"]);
    endpoint.change(|snapshot| {
        let map = std::sync::Arc::make_mut(&mut snapshot.maps[0]);
        map.mappings.pop();
    });
    let said = rows(&client, "SELECT * FROM orders WHERE tenant = 250").await.unwrap_err();
    assert!(said.starts_with("23514 no mapping"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_stays_on_one_shard_and_rolls_back() {
    let Some(endpoint) = Endpoint::start().await else { return };
    let mut client = endpoint.connect().await;
    let transaction = client.transaction().await.unwrap();
    transaction
        .execute("INSERT INTO orders (tenant, id, amount) VALUES (1, 1, 1)", &[])
        .await
        .unwrap();
    let refused = transaction.execute("INSERT INTO orders (tenant, id) VALUES (150, 1)", &[]).await;
    assert!(refused.unwrap_err().to_string().contains("db error"));
    // As on PostgreSQL, nothing else is taken now.
    let failed = transaction.query("SELECT 1", &[]).await.unwrap_err();
    assert_eq!(failed.code().unwrap().code(), "25P02");
    transaction.rollback().await.unwrap();
    assert_eq!(endpoint.on_shard("one", "SELECT count(*) FROM orders"), "0");
    let transaction = client.transaction().await.unwrap();
    // What names no table does not choose the shard.
    transaction.query("SELECT version()", &[]).await.unwrap();
    transaction.execute("INSERT INTO orders (tenant, id) VALUES (150, 1)", &[]).await.unwrap();
    transaction.batch_execute("SAVEPOINT a").await.unwrap();
    transaction.execute("INSERT INTO orders (tenant, id) VALUES (150, 2)", &[]).await.unwrap();
    transaction.batch_execute("ROLLBACK TO SAVEPOINT a").await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(endpoint.on_shard("two", "SELECT count(*) FROM orders"), "1");
    // Several statements in one query are one transaction.
    let text = "INSERT INTO orders (tenant, id) VALUES (1, 5); INSERT INTO orders (tenant, id) VALUES (1, 5)";
    assert!(rows(&client, text).await.unwrap_err().starts_with("23505"));
    assert_eq!(endpoint.on_shard("one", "SELECT count(*) FROM orders"), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_follow_a_session_to_every_shard() {
    let Some(endpoint) = Endpoint::start().await else { return };
    let client =
        endpoint.connect_with("application_name=judge options='-c statement_timeout=7s'").await;
    assert_eq!(rows(&client, "SHOW application_name").await.unwrap(), ["judge"]);
    assert_eq!(rows(&client, "SHOW statement_timeout").await.unwrap(), ["7s"]);
    rows(&client, "SET timezone TO 'Asia/Tokyo'").await.unwrap();
    for tenant in [1, 150, 250] {
        let text = format!(
            "SELECT current_setting('timezone') FROM (SELECT 1) x LEFT JOIN orders ON tenant = {tenant}"
        );
        let _ = rows(&client, &text).await;
        let text = format!(
            "INSERT INTO orders (tenant, id, note) VALUES ({tenant}, 1, current_setting('TimeZone'))"
        );
        rows(&client, &text).await.unwrap();
    }
    for shard in ["one", "two", "three"] {
        assert_eq!(endpoint.on_shard(shard, "SELECT note FROM orders"), "Asia/Tokyo");
    }
    // Another session has none of it.
    let other = endpoint.connect().await;
    assert_ne!(rows(&other, "SHOW timezone").await.unwrap(), ["Asia/Tokyo"]);
    assert!(rows(&client, "SET nonsense TO 1").await.unwrap_err().starts_with("42704"));
    rows(&client, "BEGIN; SET timezone TO 'UTC'; ROLLBACK").await.unwrap();
    assert_eq!(rows(&client, "SHOW timezone").await.unwrap(), ["Asia/Tokyo"]);
    rows(&client, "RESET ALL").await.unwrap();
    assert_ne!(rows(&client, "SHOW timezone").await.unwrap(), ["Asia/Tokyo"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_not_let_in() {
    let Some(endpoint) = Endpoint::start().await else { return };
    for (user, password, database) in
        [("ada", "wrong", "shop"), ("eve", "secret", "shop"), ("ada", "secret", "other")]
    {
        let config = format!(
            "host=127.0.0.1 port={} user={user} password={password} dbname={database}",
            endpoint.port
        );
        let refused = tokio_postgres::connect(&config, tokio_postgres::NoTls).await.err().unwrap();
        assert_eq!(refused.code().unwrap().code(), "28P01", "{user} {database}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_statement_can_be_cancelled() {
    let Some(endpoint) = Endpoint::start().await else { return };
    let client = endpoint.connect().await;
    let token = client.cancel_token();
    let sleeping = tokio::spawn(async move { rows(&client, "SELECT pg_sleep(30)").await });
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    token.cancel_query(tokio_postgres::NoTls).await.unwrap();
    let said =
        tokio::time::timeout(std::time::Duration::from_secs(5), sleeping).await.unwrap().unwrap();
    assert!(said.unwrap_err().starts_with("57014"));
}

#[tokio::test(flavor = "multi_thread")]
async fn types_of_users_have_one_number_for_clients() {
    let Some(endpoint) = Endpoint::start().await else { return };
    for shard in crate::fixture::SHARDS {
        endpoint.on_shard(
            shard,
            "ALTER TABLE orders ADD COLUMN mood mood; ALTER TABLE orders ADD COLUMN moods mood[]",
        );
    }
    endpoint.change(|_| {});
    let client = endpoint.connect().await;
    for tenant in [1, 150, 250] {
        let insert = format!(
            "INSERT INTO orders (tenant, id, mood, moods) VALUES ({tenant}, 1, 'happy', '{{ok,sad}}')"
        );
        rows(&client, &insert).await.unwrap();
        // The driver asks for the type by the number that it was told, in binary form.
        let select = format!("SELECT mood FROM orders WHERE tenant = {tenant}");
        let row = client.query_one(&select, &[]).await.unwrap();
        assert_eq!(row.columns()[0].type_().name(), "mood");
        let array = rows(&client, &format!("SELECT moods FROM orders WHERE tenant = {tenant}"))
            .await
            .unwrap();
        assert_eq!(array, ["{ok,sad}"]);
    }
    let all = rows(&client, "SELECT mood, count(*) FROM orders GROUP BY mood ORDER BY mood")
        .await
        .unwrap();
    assert_eq!(all, ["happy|3"]);
    let binary = client.query("SELECT moods FROM orders WHERE tenant = 250", &[]).await;
    assert_eq!(binary.unwrap_err().code().unwrap().code(), "0A000");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_a_shard_has_ended_are_not_used_again() {
    let Some(endpoint) = Endpoint::start().await else { return };
    let client = endpoint.connect().await;
    rows(&client, "INSERT INTO orders (tenant, id) VALUES (1, 1)").await.unwrap();
    endpoint.on_shard(
        "two",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lazuli' \
         AND datname LIKE '%' || substring(current_database() from '_\\d+$')",
    );
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert_eq!(rows(&client, "SELECT id FROM orders WHERE tenant = 1").await.unwrap(), ["1"]);
    assert_eq!(rows(&client, "SELECT count(*) FROM orders").await.unwrap(), ["1"]);
}
