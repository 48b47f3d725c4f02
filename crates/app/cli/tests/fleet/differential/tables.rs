//! Requests to Tables: a few tables and keys, so that they meet, with conditions that hold and others that do not.

use super::{Asked, Chance, Front};

const ACCOUNT: &str = "/devstoreaccount1";

fn asked(method: &'static str, path: String) -> Asked {
    Asked::new(Front::Tables, method, format!("{ACCOUNT}/{path}"))
}

pub(super) fn next(chance: &mut Chance, seed: u64) -> Asked {
    let table = chance.name(&format!("t{seed}n"), 2);
    let (key, row) = (chance.name("key", 4), chance.name("row", 6));
    let kept = format!("entity {table} {key} {row}");
    let entity = format!("{table}(PartitionKey='{key}',RowKey='{row}')");
    let with_etag = |request: Asked| request.keep(kept.clone(), "etag");
    let if_match =
        ["*".to_owned(), format!("<{kept}>"), format!("<{kept}>"), "W/\"old\"".to_owned()];
    let body = value(chance, &key, &row);
    match chance.below(100) {
        0..12 => asked("POST", "Tables".into()).body(format!(r#"{{"TableName":"{table}"}}"#)),
        12..13 => asked("DELETE", format!("Tables('{table}')")),
        13..15 => asked("GET", "Tables".into()),
        15..40 => with_etag(asked("POST", table).body(body)),
        40..46 => with_etag(asked("PUT", entity).body(body)),
        46..52 => with_etag(asked("PATCH", entity).body(body)),
        52..60 => {
            with_etag(asked("PUT", entity).with("if-match", chance.pick(&if_match)).body(body))
        }
        60..66 => {
            with_etag(asked("PATCH", entity).with("if-match", chance.pick(&if_match)).body(body))
        }
        66..72 => asked("DELETE", entity).with("if-match", chance.pick(&if_match)),
        72..84 => with_etag(asked("GET", entity)),
        _ => query(chance, &table, &key),
    }
}

/// An entity with properties of several types, some of them absent; now and then one that must be refused.
fn value(chance: &mut Chance, key: &str, row: &str) -> String {
    let mut fields = vec![format!(r#""PartitionKey":"{key}","RowKey":"{row}""#)];
    let number = chance.below(1000);
    for (at, field) in [
        format!(r#""Number":{number}"#),
        format!(r#""Long":"{number}000000000000","Long@odata.type":"Edm.Int64""#),
        format!(r#""Text":"text {number} é""#),
        format!(r#""Flag":{}"#, number.is_multiple_of(2)),
        r#""When":"2026-11-18T10:00:00Z","When@odata.type":"Edm.DateTime""#.to_owned(),
        format!(r#""Double":{number}.5"#),
        format!(r#""Bytes":"{:04}","Bytes@odata.type":"Edm.Binary""#, number),
        r#""Long":"not a number","Long@odata.type":"Edm.Int64""#.to_owned(),
    ]
    .into_iter()
    .enumerate()
    {
        let (of, most) = if at == 7 { (30, 1) } else { (2, 1) };
        if chance.below(of) < most {
            fields.push(field);
        }
    }
    format!("{{{}}}", fields.join(","))
}

fn query(chance: &mut Chance, table: &str, key: &str) -> Asked {
    let filters = [
        format!("PartitionKey%20eq%20'{key}'"),
        "Number%20gt%20500".to_owned(),
        format!("PartitionKey%20ge%20'{key}'%20and%20Flag%20eq%20true"),
        "not%20(Text%20eq%20'a')%20or%20Double%20lt%20100.0".to_owned(),
        "When%20lt%20datetime'2027-01-01T00:00:00Z'".to_owned(),
        "Number%20gt%20".to_owned(),
    ];
    let filter = chance.pick(&filters);
    let top = ["", "&$top=1", "&$top=3", "&$top=1000", "&$top=0"];
    let select = ["", "&$select=RowKey,Number", "&$select=Text"];
    let path = format!("{table}()?$filter={filter}{}{}", chance.pick(&top), chance.pick(&select));
    let (key_name, row_name) = (format!("next key {table}"), format!("next row {table}"));
    let (key_header, row_header) =
        ("x-ms-continuation-nextpartitionkey", "x-ms-continuation-nextrowkey");
    if chance.below(4) == 0 {
        let next = format!("&NextPartitionKey=<{key_name}>&NextRowKey=<{row_name}>");
        return asked("GET", format!("{path}{next}"));
    }
    asked("GET", path).keep(key_name, key_header).keep(row_name, row_header)
}
