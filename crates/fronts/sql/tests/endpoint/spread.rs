//! Statements over several shards: named cases that other routers get wrong, and random ones, all compared with one plain
//! PostgreSQL database that holds the same rows.

use tokio_postgres::Client;

use crate::fixture::{Endpoint, rows};
use crate::random::{Chance, random_query};

/// The same rows on the plain database and through the endpoint.
async fn fill(endpoint: &Endpoint, seed: u64) -> (Client, Client) {
    let (plain, routed) = (endpoint.plain().await, endpoint.connect().await);
    rows(&routed, "SET lazuli.transaction = 'two-phase'").await.unwrap();
    let mut chance = Chance(seed);
    let mut statements = Vec::new();
    for number in 0..60 {
        let tenant = chance.pick(&[1, 2, 99, 100, 150, 199, 200, 250, 1000]);
        let amount = chance.pick(&["NULL", "0", "1", "-5", "7", "7", "100", "2147483647"]);
        let note = chance.pick(&["NULL", "'a'", "'B'", "'ä'", "''", "'z z'", "'a'"]);
        statements.push(format!(
            "INSERT INTO orders (tenant, id, amount, note, at) VALUES ({tenant}, {number}, {amount}, {note}, \
             timestamptz '2024-01-01 00:00:00+00' + interval '{} hours')",
            chance.below(50)
        ));
        for _ in 0..chance.below(3) {
            let sku = chance.below(5);
            statements.push(format!(
                "INSERT INTO items (tenant, order_id, sku, qty, price) VALUES ({tenant}, {number}, 's{sku}', {}, {}.{}) \
                 ON CONFLICT DO NOTHING",
                chance.below(10),
                chance.below(100),
                chance.below(100)
            ));
        }
    }
    for code in ["de", "fr", "jp"] {
        statements.push(format!("INSERT INTO countries (code, name) VALUES ('{code}', '{code}!')"));
    }
    for statement in statements {
        rows(&plain, &statement).await.unwrap();
        rows(&routed, &statement).await.unwrap();
    }
    (plain, routed)
}

/// Equal rows, in order if the statement says one; or a refusal of ours. Whether it was refused.
async fn agree(plain: &Client, routed: &Client, text: &str, is_ordered: bool) -> bool {
    let expected = rows(plain, text).await;
    match (expected, rows(routed, text).await) {
        (Ok(mut expected), Ok(mut got)) => {
            if !is_ordered {
                expected.sort();
                got.sort();
            }
            assert_eq!(expected, got, "{text}");
            false
        }
        (_, Err(said)) if said.starts_with("0A000") => true,
        (Err(expected), Err(got)) => {
            assert_eq!(expected[..5], got[..5], "{text}: {expected} / {got}");
            false
        }
        (Ok(_), Err(said)) => panic!("{text}: only the endpoint says {said}"),
        (Err(said), Ok(_)) => panic!("{text}: only PostgreSQL says {said}"),
    }
}

/// Statements, and whether they must be answered: others may be refused, but never wrong.
const CASES: &[(&str, bool)] = &[
    // IN lists over several shards (PgDog 639).
    ("SELECT id FROM orders WHERE tenant IN (1, 150, 250) ORDER BY id", true),
    ("SELECT id FROM orders WHERE tenant = ANY ('{1,150}') ORDER BY id", false),
    // ORDER BY a column that is not selected (PgDog 1135).
    ("SELECT id FROM orders ORDER BY amount, note, id", true),
    ("SELECT id FROM orders ORDER BY amount DESC NULLS FIRST, id DESC", true),
    ("SELECT id, amount FROM orders ORDER BY 2 NULLS FIRST, 1", true),
    ("SELECT note FROM orders ORDER BY lower(note), note, id LIMIT 7 OFFSET 3", true),
    ("SELECT id + 1 AS id FROM orders ORDER BY id LIMIT 1 + 2", true),
    ("SELECT amount % 7, count(*) FROM orders GROUP BY amount % 7 ORDER BY 1", true),
    ("SELECT note, count(*) FROM orders GROUP BY note HAVING count(*) > 5 ORDER BY note", true),
    (
        "SELECT note FROM orders GROUP BY note HAVING sum(amount) > 10 OR min(id) < 3 ORDER BY 1",
        true,
    ),
    // min and max of time stamps (PgDog 1616).
    ("SELECT min(at), max(at), min(note) FROM orders", true),
    // Aggregates that do not follow from those of the shards (PgDog 1020).
    ("SELECT stddev(amount), variance(id) FROM orders WHERE amount < 1000", true),
    ("SELECT array_agg(id ORDER BY id) FROM orders", true),
    ("SELECT string_agg(note, ',' ORDER BY note, id) FROM orders", true),
    ("SELECT count(DISTINCT note), sum(DISTINCT amount) FROM orders WHERE amount < 200", true),
    ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM orders", true),
    // An aggregate beside columns (PgDog 1172), avg without its group (Vitess 15625).
    ("SELECT note, avg(id) FROM orders GROUP BY note ORDER BY note", true),
    ("SELECT avg(id) FROM orders GROUP BY note ORDER BY 1", true),
    ("SELECT avg(price), avg(qty), sum(price) FROM items", true),
    // sum minus sum (ShardingSphere 38363), count twice (Vitess 13179).
    ("SELECT sum(id) - sum(tenant), count(*), count(*) FROM orders", true),
    ("SELECT count(*) FROM orders WHERE false", true),
    (
        "SELECT sum(amount), avg(amount), max(note), count(*) FILTER (WHERE id > 5) FROM orders WHERE id < 0",
        true,
    ),
    // DISTINCT and DISTINCT ON (Citus 7684, 2017).
    ("SELECT DISTINCT note FROM orders ORDER BY note", true),
    ("SELECT DISTINCT ON (note) note, id FROM orders ORDER BY note, id", false),
    ("SELECT DISTINCT count(*) FROM orders GROUP BY note ORDER BY 1", true),
    ("SELECT DISTINCT tenant, note FROM orders", true),
    // Nested outer joins (Citus 6636, 6872).
    (
        "SELECT o.id, i.sku FROM orders o LEFT JOIN items i ON i.tenant = o.tenant AND i.order_id = o.id ORDER BY 1, 2",
        true,
    ),
    ("SELECT c.code, o.id FROM countries c LEFT JOIN orders o ON o.note = c.code", false),
    ("SELECT o.id, c.name FROM orders o LEFT JOIN countries c ON c.code = o.note ORDER BY 1", true),
    (
        "SELECT count(*) FROM orders o FULL JOIN items i ON i.tenant = o.tenant AND i.order_id = o.id",
        false,
    ),
    (
        "SELECT o.id FROM items i RIGHT JOIN orders o ON i.tenant = o.tenant AND i.order_id = o.id ORDER BY 1",
        true,
    ),
    // LIMIT in a subquery (Citus 8312), a subquery in a derived table (Vitess 20961).
    ("SELECT count(*) FROM (SELECT * FROM orders ORDER BY id LIMIT 5) x", true),
    ("SELECT x.note FROM (SELECT note FROM orders WHERE tenant = 1) x ORDER BY 1", true),
    ("SELECT id FROM orders WHERE id IN (SELECT order_id FROM items)", false),
    (
        "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.tenant = o.tenant AND i.order_id = o.id) ORDER BY id",
        true,
    ),
    (
        "SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.tenant = o.tenant AND i.order_id = o.id) ORDER BY id",
        true,
    ),
    (
        "SELECT id, (SELECT count(*) FROM items i WHERE i.tenant = o.tenant AND i.order_id = o.id) FROM orders o ORDER BY id",
        true,
    ),
    // The first key that is found anywhere is not the key (PgDog).
    ("SELECT id FROM orders WHERE note = 'a' OR tenant = 1 ORDER BY id", true),
    ("SELECT id FROM orders WHERE NOT tenant = 1 ORDER BY id", true),
    ("SELECT (tenant = 1), id FROM orders ORDER BY 2", true),
    ("SELECT id FROM orders WHERE tenant = 1 UNION SELECT id FROM orders WHERE tenant = 250", true),
    (
        "SELECT id FROM orders WHERE tenant = 1 UNION SELECT id FROM orders WHERE tenant = 2 ORDER BY 1",
        true,
    ),
    (
        "SELECT tenant, count(*), max(amount) FROM orders GROUP BY tenant HAVING count(*) > 3 ORDER BY tenant",
        true,
    ),
    ("SELECT tenant, row_number() OVER (ORDER BY id) FROM orders", false),
    (
        "SELECT id, row_number() OVER (PARTITION BY tenant ORDER BY id) FROM orders ORDER BY id",
        true,
    ),
    ("SELECT id, rank() OVER w FROM orders WINDOW w AS (PARTITION BY tenant)", false),
    (
        "SELECT x.id, row_number() OVER (ORDER BY x.id) FROM (SELECT id FROM orders) x ORDER BY 1",
        true,
    ),
    // Parts that are no queries by themselves.
    (
        "WITH x AS (SELECT tenant FROM orders LIMIT 0) SELECT id FROM orders WHERE tenant IN (SELECT tenant FROM x) ORDER BY 1",
        false,
    ),
    (
        "SELECT c.code, y.id FROM countries c, LATERAL (SELECT id FROM orders o WHERE o.note = c.code) y",
        false,
    ),
    ("WITH orders AS (SELECT * FROM orders WHERE id > 5) SELECT count(*) FROM orders", true),
    (
        "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x WHERE n < 3) SELECT count(*) FROM x, orders",
        false,
    ),
    ("SELECT 1 AS n, 'a' AS x FROM orders UNION SELECT id, note FROM orders", false),
    ("SELECT id FROM orders UNION SELECT 7 ORDER BY 1", true),
    ("SELECT note FROM orders UNION ALL SELECT code FROM countries ORDER BY 1", true),
    (
        "SELECT DISTINCT ON (x.note) x.note, x.id FROM (SELECT note, id FROM orders) x ORDER BY 1, 2",
        true,
    ),
    (
        "SELECT * FROM (SELECT tenant, count(*) FROM orders GROUP BY tenant) x WHERE count > 3 ORDER BY 1",
        true,
    ),
    (
        "SELECT count(*) FROM orders o JOIN (SELECT max(id) AS id FROM orders) x ON x.id = o.id",
        false,
    ),
    // Views are the queries that they are.
    ("SELECT id FROM large WHERE tenant = 1 ORDER BY id", true),
    ("SELECT count(*), max(note) FROM large", true),
    ("SELECT l.id FROM large l ORDER BY 1 LIMIT 3", true),
    (
        "SELECT o.tenant, sum(i.qty) FROM orders o JOIN items i USING (tenant) GROUP BY o.tenant ORDER BY 1",
        true,
    ),
    ("SELECT * FROM orders ORDER BY id LIMIT 3", true),
    ("SELECT o.*, id AS again FROM orders o ORDER BY amount NULLS LAST, id LIMIT 4", true),
    ("WITH x AS (SELECT * FROM orders) SELECT count(*) FROM x", true),
    ("SELECT random() FROM orders", false),
    ("SELECT 1 FROM orders TABLESAMPLE SYSTEM (50)", false),
    ("SELECT code FROM countries ORDER BY code", true),
    ("SELECT json_agg(note ORDER BY id) FROM orders WHERE tenant IN (1, 200)", true),
];

#[tokio::test(flavor = "multi_thread")]
async fn what_other_routers_get_wrong_is_right_or_refused() {
    let Some(endpoint) = Endpoint::start().await else { return };
    let (plain, routed) = fill(&endpoint, 1).await;
    for (text, must) in CASES {
        let is_ordered = text.contains("ORDER BY");
        let is_refused = agree(&plain, &routed, text, is_ordered).await;
        assert!(!(*must && is_refused), "{text}: {:?}", rows(&routed, text).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_formats_and_portals_work_over_several_shards() {
    let Some(endpoint) = Endpoint::start().await else { return };
    let (plain, mut routed) = fill(&endpoint, 2).await;
    let text =
        "SELECT id, note, at FROM orders WHERE id > $1 ORDER BY amount DESC, id LIMIT $2 OFFSET $3";
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 3] = [&5_i32, &10_i64, &2_i64];
    let ids = |rows: Vec<tokio_postgres::Row>| {
        rows.iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<_>>()
    };
    let expected = ids(plain.query(text, &parameters).await.unwrap());
    assert_eq!(ids(routed.query(text, &parameters).await.unwrap()), expected);
    let keys = vec![1, 150, 250];
    let text = "SELECT id FROM orders WHERE tenant = ANY ($1) AND id < $2";
    let mut expected = ids(plain.query(text, &[&keys, &40]).await.unwrap());
    let mut got = ids(routed.query(text, &[&keys, &40]).await.unwrap());
    expected.sort_unstable();
    got.sort_unstable();
    assert_eq!(got, expected);
    let having = "SELECT note, count(*) FROM orders GROUP BY note HAVING count(*) > $1 ORDER BY 1";
    let count = plain.query(having, &[&3_i64]).await.unwrap().len();
    assert_eq!(routed.query(having, &[&3_i64]).await.unwrap().len(), count);
    let parts = "WITH x AS (SELECT note, id FROM orders WHERE id > $1) \
         SELECT note, count(*) FROM x WHERE id < $2 GROUP BY note UNION ALL SELECT 'sum', count(*) FROM x ORDER BY 1";
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&5_i32, &40_i32];
    let pairs = |rows: Vec<tokio_postgres::Row>| {
        let pair = |row: &tokio_postgres::Row| (row.get::<_, Option<String>>(0), row.get(1));
        rows.iter().map(pair).collect::<Vec<(Option<String>, i64)>>()
    };
    let expected = pairs(plain.query(parts, &parameters).await.unwrap());
    assert_eq!(pairs(routed.query(parts, &parameters).await.unwrap()), expected);
    // A portal gives rows piece by piece.
    let transaction = routed.transaction().await.unwrap();
    let portal = transaction.bind("SELECT id FROM orders ORDER BY id", &[]).await.unwrap();
    let mut all = Vec::new();
    loop {
        let piece = transaction.query_portal(&portal, 7).await.unwrap();
        if piece.is_empty() {
            break;
        }
        assert!(piece.len() <= 7);
        all.extend(ids(piece));
    }
    assert_eq!(all, (0..60).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_of_a_query_writes_what_postgresql_writes() {
    use futures_util::TryStreamExt;
    let Some(endpoint) = Endpoint::start().await else { return };
    let (plain, routed) = fill(&endpoint, 5).await;
    let odd = r#"E'a\tb\\c"d,e|\nf\r' || note"#;
    for text in [
        format!("COPY (SELECT id, note, {odd} FROM orders ORDER BY id) TO STDOUT"),
        format!(
            "COPY (SELECT id, note, {odd} AS \"o,dd\" FROM orders ORDER BY id) TO STDOUT (FORMAT csv, HEADER)"
        ),
        format!(
            "COPY (SELECT note, {odd} FROM orders ORDER BY id) TO STDOUT (FORMAT csv, NULL 'a', QUOTE '|', ESCAPE '#')"
        ),
        format!(
            "COPY (SELECT {odd} FROM orders WHERE tenant = 1 ORDER BY id) TO STDOUT (DELIMITER '|', NULL '-')"
        ),
        "COPY (SELECT '\\.') TO STDOUT (FORMAT csv)".to_owned(),
        "COPY (SELECT note FROM orders UNION SELECT code FROM countries ORDER BY 1) TO STDOUT"
            .to_owned(),
    ] {
        let mut answers = Vec::new();
        for client in [&plain, &routed] {
            let stream =
                client.copy_out(&text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
            let pieces: Vec<_> = stream.try_collect().await.unwrap();
            answers.push(String::from_utf8(pieces.concat()).unwrap());
        }
        assert_eq!(answers[0], answers[1], "{text}");
    }
    for refused in [
        "COPY (SELECT note FROM orders) TO STDOUT (FORMAT csv, FORCE_QUOTE (note))",
        "COPY (SELECT random() FROM orders) TO STDOUT",
    ] {
        assert!(rows(&routed, refused).await.unwrap_err().starts_with("0A000"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_queries_are_answered_as_by_one_database_or_refused() {
    let Some(endpoint) = Endpoint::start().await else { return };
    let count: u64 =
        std::env::var("LAZULI_SQL_QUERIES").ok().and_then(|it| it.parse().ok()).unwrap_or(400);
    let seed: u64 =
        std::env::var("LAZULI_SQL_SEED").ok().and_then(|it| it.parse().ok()).unwrap_or(7);
    let (plain, routed) = fill(&endpoint, seed).await;
    let (mut chance, mut refused) = (Chance(seed), 0);
    for number in 0..count {
        let (text, is_ordered) = random_query(&mut chance);
        if std::env::var_os("LAZULI_SQL_SHOW").is_some() {
            eprintln!("{number}: {text}");
        }
        refused += u64::from(agree(&plain, &routed, &text, is_ordered).await);
    }
    println!("{count} queries of seed {seed}: {refused} refused, {} %", refused * 100 / count);
    assert!(refused * 2 < count, "{refused} of {count} were refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_that_fails_fails_the_query_or_is_left_out_by_name() {
    let Some(endpoint) = Endpoint::start().await else { return };
    let (_, routed) = fill(&endpoint, 3).await;
    endpoint.on_shard("three", "ALTER TABLE orders RENAME COLUMN note TO other");
    let all = "SELECT count(note) FROM orders";
    assert!(rows(&routed, all).await.unwrap_err().starts_with("42703"));
    rows(&routed, "SET lazuli.fanout = 'partial'").await.unwrap();
    let some =
        rows(&routed, "SELECT count(*) FROM orders WHERE note IS NULL OR true").await.unwrap();
    let expected: i32 = ["one", "two"]
        .iter()
        .map(|it| endpoint.on_shard(it, "SELECT count(*) FROM orders").parse::<i32>().unwrap())
        .sum();
    assert_eq!(some, [expected.to_string()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_rows_move_every_row_is_counted_once() {
    let Some(endpoint) = Endpoint::start().await else { return };
    let (plain, routed) = fill(&endpoint, 4).await;
    // A copy of a row of shard one lies on shard two, as during a move, and a function there says whose it is.
    for shard in ["one", "two", "three"] {
        let route = "CREATE FUNCTION lazuli.route_1(int) RETURNS bytea LANGUAGE sql IMMUTABLE AS \
             $$ SELECT int8send(($1::bigint) # (-9223372036854775808)) $$";
        endpoint.on_shard(shard, route);
    }
    endpoint.on_shard("two", "INSERT INTO orders (tenant, id, amount) SELECT 1, 1000 + n, 1 FROM generate_series(1, 3) n");
    let text = "SELECT count(*), sum(id) FROM orders";
    assert_ne!(rows(&plain, text).await, rows(&routed, text).await);
    endpoint
        .change(|snapshot| std::sync::Arc::make_mut(&mut snapshot.maps[0]).is_in_transit = true);
    assert_eq!(rows(&plain, text).await, rows(&routed, text).await);
    let joined =
        "SELECT count(*) FROM orders o JOIN items i ON i.tenant = o.tenant AND i.order_id = o.id";
    assert_eq!(rows(&plain, joined).await, rows(&routed, joined).await);
}
