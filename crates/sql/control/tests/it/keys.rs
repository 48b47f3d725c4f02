//! A shard computes the same route as a router, for every type of key.

use lazuli_sharded_sql::{ColumnType, MapKind, ShardMap};
use lazuli_sql_control::{Kind, NewMap};

use crate::fixture::{NAME, World};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const VALUES: &[(&str, ColumnType, &[&str])] = &[
    ("bigint", ColumnType::Int8, &["0", "-1", "42", "9223372036854775807", "-9223372036854775808"]),
    ("integer", ColumnType::Int4, &["0", "-1", "2147483647", "-2147483648"]),
    ("smallint", ColumnType::Int2, &["7", "-32768"]),
    ("text", ColumnType::Text, &["", "a", "acme", "grün", "a b", "O'Neil", "日本"]),
    ("character varying", ColumnType::Varchar, &["x", "long enough to fill more than one block"]),
    ("uuid", ColumnType::Uuid, &["00112233-4455-6677-8899-aabbccddeeff"]),
    ("bytea", ColumnType::Bytea, &["\\x", "\\x00", "\\x00ff00", "\\xdeadbeef"]),
    ("boolean", ColumnType::Bool, &["t", "f"]),
    ("date", ColumnType::Date, &["2000-01-01", "1999-12-31", "0001-01-01", "9999-12-31"]),
    (
        "timestamp with time zone",
        ColumnType::Timestamptz,
        &["2024-02-29 12:30:00.123456+00", "1969-07-20 20:17:40+00"],
    ),
    ("timestamp without time zone", ColumnType::Timestamp, &["2024-02-29 12:30:00.000001"]),
];

#[test]
fn a_shard_computes_the_same_route_as_a_router_for_every_type_of_key() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.run(async { process.control.init(NAME, &[world.shard("s1")]).await.unwrap() });
    for (nth, (name, column, values)) in VALUES.iter().enumerate() {
        for (kind, core) in [(Kind::Range, MapKind::Range), (Kind::Hash, MapKind::Hash)] {
            let map_name = format!("m{nth}-{core:?}");
            let new =
                NewMap { name: map_name.clone(), kind, key: vec![(*name).to_owned()], on: None };
            let id = process.run(process.control.add_map(NAME, &new)).unwrap();
            let map = ShardMap {
                id,
                name: map_name,
                kind: core,
                key: vec![*column],
                mappings: Vec::new(),
                is_in_transit: false,
            };
            for value in *values {
                let route = map.route(&[column.parse(value).unwrap()]).unwrap();
                let literal = lazuli_sharded_sql::quote_literal(value);
                let query = format!("SELECT encode(lazuli.route_{id}({literal}::{name}), 'hex')");
                assert_eq!(world.sql("s1", &query), hex(&route), "{name} {core:?} {value}");
            }
        }
    }
}

#[test]
fn composite_keys_sort_on_a_shard_as_they_do_in_a_map() {
    let Some(world) = World::start() else { return };
    let process = world.process();
    process.run(async { process.control.init(NAME, &[world.shard("s1")]).await.unwrap() });
    let key = vec!["text".to_owned(), "bigint".to_owned()];
    let new = NewMap { name: "pairs".to_owned(), kind: Kind::Range, key, on: None };
    let id = process.run(process.control.add_map(NAME, &new)).unwrap();
    let sorted = world.sql(
        "s1",
        &format!(
            "SELECT a || ',' || b FROM (VALUES ('a', 2), ('', 5), ('b', -1), ('a', -7), ('aa', 0), ('a', 10)) v(a, b) \
             ORDER BY lazuli.route_{id}(a, b)"
        ),
    );
    assert_eq!(sorted, ",5\na,-7\na,2\na,10\naa,0\nb,-1");
}
