//! Plans of statements, without a server.

use std::collections::BTreeMap;
use std::sync::Arc;

use lazuli_sharded_sql::{ColumnType, MapKind, ShardMap, Snapshot, Table, TableKind, TableName};

use super::*;

const BPCHAR: u32 = 1042;
const NUMERIC: u32 = 1700;
const A_DOMAIN: u32 = 20_000;

fn map(key: Vec<ColumnType>) -> Arc<ShardMap> {
    let (name, mappings) = ("m".to_owned(), Vec::new());
    Arc::new(ShardMap { id: 1, name, kind: MapKind::Range, key, mappings, is_in_transit: false })
}

/// Sharded `t (k int4, v)` and `u (k int8, v)` on one map, `names (name text, v)`, `both (a int4, b text)`, reference `r`.
fn model() -> (Snapshot, Facts) {
    let sharded = |map, key: &[(&str, ColumnType)]| {
        let key = key.iter().map(|(name, column)| ((*name).to_owned(), *column)).collect();
        Table { kind: TableKind::Sharded { map, key } }
    };
    let name = |table: &str| TableName::new("public", table);
    let tables = BTreeMap::from([
        (name("t"), sharded(0, &[("k", ColumnType::Int4)])),
        (name("u"), sharded(0, &[("k", ColumnType::Int8)])),
        (name("names"), sharded(1, &[("name", ColumnType::Text)])),
        (name("both"), sharded(2, &[("a", ColumnType::Int4), ("b", ColumnType::Text)])),
        (name("r"), Table { kind: TableKind::Reference }),
    ]);
    let maps = vec![
        map(vec![ColumnType::Int4]),
        map(vec![ColumnType::Text]),
        map(vec![ColumnType::Int4, ColumnType::Text]),
    ];
    let snapshot = Snapshot {
        name: "d".into(),
        version: 1,
        tables,
        maps,
        shards: Vec::new(),
        catalog_shard: 0,
        logins: BTreeMap::new(),
    };
    let facts = |columns: &[(&str, u32)]| TableFacts {
        columns: columns
            .iter()
            .map(|(name, oid)| ColumnFacts {
                name: (*name).to_owned(),
                oid: *oid,
                ..ColumnFacts::default()
            })
            .collect(),
    };
    let facts = Facts {
        tables: BTreeMap::from([
            (name("t"), facts(&[("k", 23), ("v", 23)])),
            (name("u"), facts(&[("k", 20), ("v", 23)])),
            (name("names"), facts(&[("name", 25), ("v", 23)])),
            (name("both"), facts(&[("a", 23), ("b", 25)])),
            (
                name("r"),
                facts(&[("i", 20), ("n", NUMERIC), ("c", BPCHAR), ("d", A_DOMAIN), ("x", 25)]),
            ),
        ]),
        ..Facts::default()
    };
    (snapshot, facts)
}

fn planned(text: &str) -> Result<Plan, SqlError> {
    let (snapshot, facts) = model();
    let path = vec!["public".to_owned()];
    plan(text, &Context { snapshot: &snapshot, facts: &facts, search_path: &path })
}

/// The keys that the tables of a statement are bound to; none if one is bound to nothing.
fn bound(text: &str) -> Option<Vec<Vec<KeySource>>> {
    match planned(text) {
        Ok(Plan::Routed(routed)) => {
            let keys = |bound: Bound| bound.columns.into_iter().flatten().collect();
            routed.bounds.map(|bounds| bounds.into_iter().map(keys).collect())
        }
        other => panic!("{text}: {other:?}"),
    }
}

fn literal(text: &str) -> KeySource {
    KeySource::Literal(text.to_owned())
}

#[test]
fn tables_are_bound_by_equalities_that_hold_for_every_row() {
    let five = || vec![literal("5")];
    for (text, expected) in [
        ("SELECT * FROM t WHERE k = 5", vec![five()]),
        ("SELECT * FROM t WHERE v = 1 AND (k = 5 AND v = 2)", vec![five()]),
        ("SELECT * FROM t WHERE 5 = t.k", vec![five()]),
        ("SELECT * FROM t AS x WHERE x.k = '5'::int", vec![five()]),
        ("SELECT * FROM t WHERE k = $2", vec![vec![KeySource::Parameter(2)]]),
        ("SELECT * FROM t WHERE k IN (5, 6)", vec![vec![literal("5"), literal("6")]]),
        ("SELECT * FROM t WHERE k = ANY ($1)", vec![vec![KeySource::ParameterArray(1)]]),
        ("SELECT * FROM t WHERE k = -5", vec![vec![literal("-5")]]),
        ("SELECT * FROM t JOIN u ON t.k = u.k WHERE u.k = 5", vec![five(), five()]),
        ("SELECT * FROM t LEFT JOIN u ON t.k = u.k WHERE t.k = 5", vec![five(), five()]),
        ("SELECT * FROM t, r, u WHERE t.k = r.i AND r.i = u.k AND u.k = 5", vec![five(), five()]),
        (
            "SELECT * FROM t WHERE k = 5 AND EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
            vec![five(), five()],
        ),
        (
            "SELECT * FROM t WHERE k = 5 AND v IN (SELECT v FROM u WHERE k = 6)",
            vec![five(), vec![literal("6")]],
        ),
        ("SELECT * FROM (SELECT * FROM t WHERE k = 5) x", vec![five()]),
        ("WITH x AS (SELECT * FROM t WHERE k = 5) SELECT * FROM x", vec![five()]),
        ("SELECT * FROM (SELECT v AS k, k AS z FROM t) x WHERE x.z = 5", vec![five()]),
        ("SELECT z FROM (SELECT k AS z FROM t WHERE v > 0) x WHERE z = 5", vec![five()]),
        ("SELECT * FROM both WHERE a = 1 AND b = 'x'", vec![vec![literal("1"), literal("x")]]),
        ("INSERT INTO t (v, k) VALUES (1, 5)", vec![five()]),
        ("INSERT INTO t VALUES (5, 1)", vec![five()]),
        ("INSERT INTO t (k, v) SELECT k, v FROM u WHERE k = 5", vec![five(), five()]),
        ("UPDATE t SET v = 1 WHERE k = 5", vec![five()]),
        ("UPDATE t SET v = u.v FROM u WHERE u.k = t.k AND t.k = 5", vec![five(), five()]),
        ("DELETE FROM t USING u WHERE u.k = t.k AND u.k = 5", vec![five(), five()]),
    ] {
        assert_eq!(bound(text), Some(expected), "{text}");
    }
}

#[test]
fn what_may_not_hold_for_every_row_binds_nothing() {
    for text in [
        "SELECT * FROM t",
        "SELECT * FROM t WHERE k = 5 OR v = 1",
        "SELECT * FROM t WHERE NOT k = 5",
        "SELECT * FROM t WHERE k > 5",
        "SELECT * FROM t WHERE k + 0 = 5",
        "SELECT * FROM t WHERE k = 5 + 0",
        "SELECT * FROM t WHERE k::text = '5'",
        "SELECT * FROM t WHERE k = 5.0",
        "SELECT * FROM t WHERE k NOT IN (5)",
        "SELECT * FROM t WHERE k IN (5, v)",
        "SELECT * FROM t WHERE (k = 5) = true",
        "SELECT k = 5 FROM t",
        "SELECT * FROM t JOIN u ON t.v = u.v WHERE t.k = 5",
        "SELECT * FROM t JOIN u ON true WHERE t.k = 5",
        // The condition of an outer join says nothing of the side that is kept.
        "SELECT * FROM t LEFT JOIN u ON t.k = u.k AND t.k = 5",
        "SELECT * FROM t LEFT JOIN u ON t.k = u.k WHERE u.k = 5",
        "SELECT * FROM t FULL JOIN u ON t.k = u.k WHERE t.k = 5",
        // A subquery binds no row of the query around it.
        "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.k = 5)",
        "SELECT * FROM t WHERE k = 5 AND v IN (SELECT v FROM u)",
        "SELECT * FROM (SELECT * FROM t) x WHERE x.k = 5",
        "SELECT * FROM (SELECT k FROM t LIMIT 1) x WHERE x.k = 5",
        "SELECT * FROM (SELECT v AS k FROM t) x WHERE x.k = 5",
        "SELECT * FROM (SELECT k, row_number() OVER (ORDER BY v) AS n FROM t) x WHERE x.k = 5",
        "SELECT * FROM (SELECT k FROM t) x (v) WHERE x.v = 5",
        "SELECT * FROM t WHERE k = 5 UNION SELECT * FROM t",
        "SELECT * FROM both WHERE a = 1",
        "DELETE FROM t WHERE true OR k = 5",
    ] {
        assert_eq!(bound(text), None, "{text}");
    }
}

#[test]
fn an_equality_through_a_column_of_another_type_binds_nothing() {
    for text in [
        "SELECT * FROM names, r WHERE names.name = r.c AND r.c = 'a '",
        "SELECT * FROM names, r WHERE names.name = r.d AND r.d = 'ABC'",
        "SELECT * FROM t, r WHERE t.k = r.n AND r.n = 5",
        "SELECT * FROM t, r WHERE t.k = r.n AND r.n = '5.0'",
        "SELECT * FROM names, (SELECT 'a'::char(5) AS c) x WHERE names.name = x.c AND x.c = 'a '",
    ] {
        assert_eq!(bound(text), None, "{text}");
    }
    let through_text = "SELECT * FROM names, r WHERE names.name = r.x AND r.x = 'a '";
    assert_eq!(bound(through_text), Some(vec![vec![literal("a ")]]));
}

#[test]
fn what_the_router_does_not_know_is_refused() {
    for text in [
        "SELECT * FROM a_view",
        "SELECT * FROM t JOIN a_view ON true",
        "SELECT * INTO x FROM t WHERE k = 5",
        "CREATE TEMP TABLE t (k int)",
        "WITH x AS (DELETE FROM t WHERE k = 5 RETURNING *) SELECT * FROM x",
        "SELECT pg_advisory_lock(1)",
        "UPDATE t SET k = 6 WHERE k = 5",
        "UPDATE t SET (v, k) = (1, 2) WHERE k = 5",
        "INSERT INTO t (v) VALUES (1)",
        "INSERT INTO t (k, v) VALUES (DEFAULT, 1)",
        "INSERT INTO t (k, v) SELECT v, v FROM r",
        "INSERT INTO r (i) VALUES (nextval('s'))",
        "UPDATE r SET x = now()::text",
        "TABLE t",
        "MERGE INTO t USING u ON t.k = u.k WHEN MATCHED THEN DELETE",
        "LOCK TABLE t",
        "SELECT * FROM pg_class, t WHERE t.k = 5",
    ] {
        assert!(planned(text).is_err(), "{text}: {:?}", planned(text));
    }
    assert!(matches!(planned("SELECT pg_advisory_xact_lock(1)"), Ok(Plan::Anywhere)));
    assert!(matches!(planned("SELECT * FROM pg_catalog.pg_class"), Ok(Plan::Anywhere)));
}
