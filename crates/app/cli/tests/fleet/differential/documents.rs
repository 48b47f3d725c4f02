//! Requests to Documents: items of one container with a hashed partition key, point operations, patches, batches, queries.

use std::sync::LazyLock;

use lazuli_azure::auth::Key;
use lazuli_azure::auth::master_key::authorization;
use lazuli_http::client::blocking::{Answer, date_now};
use serde_json::{Value, json};

use super::{Asked, Chance, Front};
use crate::program::{Server, exchange as send};

/// The key that emulators of the service publish.
static KEY: LazyLock<Key> = LazyLock::new(|| {
    let text =
        "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
    Key::from_base64(text).unwrap()
});

/// Signs a request and sends it. The link that is signed is the path, without its last word where that names the type.
pub(super) fn exchange(
    server: &Server,
    kind: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let date = date_now();
    let link = path.strip_suffix(&format!("/{kind}")).unwrap_or(path);
    let link = if path == kind { "" } else { link };
    let authorization = authorization(&KEY, method, kind, link, &date);
    let ours = [
        ("x-ms-date", date.as_str()),
        ("authorization", authorization.as_str()),
        ("x-ms-version", "2020-07-15"),
    ];
    let headers = [&ours[..], headers].concat();
    send(&server.endpoint("documents"), None, method, &format!("/{path}"), &headers, body).unwrap()
}

fn asked(kind: &'static str, method: &'static str, path: String) -> Asked {
    Asked::new(Front::Documents(kind), method, path).with("content-type", "application/json")
}

pub(super) fn next(chance: &mut Chance, seed: u64, n: u64) -> Asked {
    let database = format!("d{seed}");
    // Without these most requests would be about nothing.
    match n {
        0 => return asked("dbs", "POST", "dbs".into()).body(json!({ "id": database }).to_string()),
        1 | 2 => return create(&database, &format!("dbs/{database}/colls/things{}", n - 1)),
        _ => {}
    }
    let container = format!("dbs/{database}/colls/{}", chance.name("things", 2));
    let (key, id) = (chance.name("key", 4), chance.name("id", 5));
    let kept = format!("item {container} {key} {id}");
    let of_key =
        |request: Asked| request.with("x-ms-documentdb-partitionkey", json!([key]).to_string());
    let one = |method| {
        of_key(asked("docs", method, format!("{container}/docs/{id}"))).keep(kept.clone(), "etag")
    };
    let all = |method| {
        of_key(asked("docs", method, format!("{container}/docs"))).keep(kept.clone(), "etag")
    };
    let item = item(chance, &key, &id);
    let conditions = [format!("<{kept}>"), format!("<{kept}>"), "\"old\"".to_owned()];
    let condition = chance.pick(&conditions).clone();
    match chance.below(100) {
        0..10 => match chance.below(3) {
            0 => asked("dbs", "POST", "dbs".into()).body(json!({ "id": database }).to_string()),
            _ => create(&database, &container),
        },
        10..11 => asked("colls", "DELETE", container),
        11..12 => asked("colls", "GET", format!("dbs/{database}/colls")),
        12..30 => all("POST").body(item.to_string()),
        30..40 => all("POST").with("x-ms-documentdb-is-upsert", "true").body(item.to_string()),
        40..55 => one("GET"),
        55..60 => one("PUT").body(item.to_string()),
        60..64 => one("PUT").with("if-match", condition).body(item.to_string()),
        64..70 => one("PATCH").body(patch(chance).to_string()),
        70..75 => one("DELETE"),
        75..78 => one("DELETE").with("if-match", condition),
        78..84 => batch(chance, of_key(asked("docs", "POST", format!("{container}/docs"))), &key),
        84..86 => asked("docs", "GET", format!("{container}/docs")),
        _ => query(chance, &container, &key),
    }
}

fn create(database: &str, container: &str) -> Asked {
    let name = container.rsplit('/').next().unwrap_or_default();
    let key = json!({ "paths": ["/pk"], "kind": "Hash", "version": 2 });
    asked("colls", "POST", format!("dbs/{database}/colls"))
        .body(json!({ "id": name, "partitionKey": key }).to_string())
}

fn item(chance: &mut Chance, key: &str, id: &str) -> Value {
    let number = chance.below(100);
    json!({
        "id": id, "pk": key, "number": number, "flag": number.is_multiple_of(2),
        "text": format!("text {number} é"),
        "list": [number, "two", null], "inner": { "deep": { "number": number as f64 / 8.0 } },
    })
}

fn patch(chance: &mut Chance) -> Value {
    let number = chance.below(100);
    let operations = [
        json!([{ "op": "set", "path": "/number", "value": number }]),
        json!([{ "op": "incr", "path": "/number", "value": 3 }]),
        json!([{ "op": "add", "path": "/list/1", "value": number }]),
        json!([{ "op": "remove", "path": "/flag" }]),
        json!([{ "op": "remove", "path": "/absent" }]),
        json!([{ "op": "set", "path": "/id", "value": "another" }]),
    ];
    json!({ "operations": chance.pick(&operations) })
}

fn batch(chance: &mut Chance, request: Asked, key: &str) -> Asked {
    let mut operations = Vec::new();
    for _ in 0..=chance.below(3) {
        let id = chance.name("id", 5);
        let body = item(chance, key, &id);
        operations.push(match chance.below(4) {
            0 => json!({ "operationType": "Create", "resourceBody": body }),
            1 => json!({ "operationType": "Upsert", "resourceBody": body }),
            2 => json!({ "operationType": "Read", "id": id }),
            _ => json!({ "operationType": "Delete", "id": id }),
        });
    }
    request
        .with("x-ms-cosmos-is-batch-request", "true")
        .with("x-ms-cosmos-batch-atomic", "true")
        .body(Value::from(operations).to_string())
}

fn query(chance: &mut Chance, container: &str, key: &str) -> Asked {
    let texts = [
        "SELECT * FROM c ORDER BY c.number",
        "SELECT c.id, c.number FROM c WHERE c.number > 50",
        "SELECT VALUE COUNT(1) FROM c WHERE c.flag",
        "SELECT TOP 2 c.text FROM c ORDER BY c.text DESC",
        "SELECT VALUE c.inner.deep FROM c WHERE ARRAY_CONTAINS(c.list, 'two')",
        "SELECT * FROM c WHERE c.id = 'id1' AND c.absent = 1",
        "SELECT * FORM c",
    ];
    let body = json!({ "query": chance.pick(&texts), "parameters": [] }).to_string();
    Asked::new(Front::Documents("docs"), "POST", format!("{container}/docs"))
        .with("content-type", "application/query+json")
        .with("x-ms-documentdb-isquery", "true")
        .with("x-ms-documentdb-partitionkey", json!([key]).to_string())
        .body(body)
}
