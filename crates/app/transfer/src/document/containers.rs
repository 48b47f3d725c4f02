//! Databases and containers: listed and created, and their indexes built anew.

use std::sync::Arc;
use std::time::Duration;

use lazuli_console::{Failure, Result, output};
use lazuli_http::uri::percent_encode;
use serde_json::{Value, json};

use super::item::KeyPaths;
use super::service::{CONTINUATION, Place, Service, read};
use crate::account::Account;
use crate::session::Call;

/// Prints all containers with their partition keys.
pub fn list(account: &Arc<Account>, json: bool) -> Result<()> {
    let mut service = Service::new(account)?;
    let mut containers = Vec::new();
    for database in feed(&mut service, "/dbs", "Databases")? {
        let name = database["id"].as_str().unwrap_or_default();
        let path = format!("/dbs/{}/colls", percent_encode(name));
        for container in feed(&mut service, &path, "DocumentCollections")? {
            let (id, key) = (&container["id"], &container["partitionKey"]["paths"]);
            containers.push(json!({ "database": name, "container": id, "key": key }));
        }
    }
    let listed = Value::Array(containers);
    if json {
        output::json(&json!({ "containers": listed }));
    } else {
        let columns = ["database", "container", "key"];
        output::table(&columns, &output::rows(&listed, &columns));
    }
    Ok(())
}

/// All of a feed.
fn feed(service: &mut Service, path: &str, plural: &str) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    let mut next: Option<String> = None;
    loop {
        let headers: Vec<(&str, &str)> =
            next.iter().map(|next| (CONTINUATION, next.as_str())).collect();
        let answer =
            service.session.expect(Call { headers: &headers, ..Call::new("GET", path) })?;
        let mut page: Value = read(&answer.body)?;
        if let Value::Array(rows) = page[plural].take() {
            all.extend(rows);
        }
        match answer.header(CONTINUATION) {
            Some(more) => next = Some(more.to_owned()),
            None => return Ok(all),
        }
    }
}

/// Creates a container, and its database if there is none.
pub fn create(
    account: &Arc<Account>,
    place: &Place,
    keys: &[String],
    throughput: Option<u32>,
    json: bool,
) -> Result<()> {
    KeyPaths::parse(keys).map_err(Failure::usage)?;
    let mut service = Service::new(account)?;
    let body = json!({ "id": place.database }).to_string();
    let call = Call { body: body.as_bytes(), ..Call::new("POST", "/dbs") };
    service.session.ensure(call, "Conflict")?;
    let kind = if keys.len() > 1 { "MultiHash" } else { "Hash" };
    let key = json!({ "paths": keys, "kind": kind, "version": 2 });
    let body = json!({ "id": place.container, "partitionKey": key }).to_string();
    let units = throughput.map(|units| units.to_string());
    let headers: Vec<(&str, &str)> =
        units.iter().map(|units| ("x-ms-offer-throughput", units.as_str())).collect();
    let path = format!("/dbs/{}/colls", percent_encode(&place.database));
    let call = Call { headers: &headers, body: body.as_bytes(), ..Call::new("POST", &path) };
    service.session.expect(call)?;
    let answer = json!({ "container": place.shown(), "key": keys, "throughput": throughput });
    output::changed(json, &answer, || format!("created container {}", place.shown()));
    Ok(())
}

/// How often a container is asked how far its index has come.
const LOOKS: Duration = Duration::from_millis(500);

/// Builds the index of a container anew, and waits until that is done.
pub fn reindex(account: &Arc<Account>, place: &Place, waits: bool, json: bool) -> Result<()> {
    let mut service = Service::new(account)?;
    let path = place.path();
    let headers = [("x-lazuli-index", "rebuild")];
    service.session.expect(Call { headers: &headers, ..Call::new("POST", &path) })?;
    let mut is_done = false;
    while waits && !is_done {
        std::thread::sleep(LOOKS);
        let headers = [("x-ms-documentdb-populatequotainfo", "true")];
        let answer =
            service.session.expect(Call { headers: &headers, ..Call::new("GET", &path) })?;
        let percent = answer.header("x-ms-documentdb-collection-index-transformation-progress");
        is_done = percent == Some("100");
    }
    let answer = json!({ "container": place.shown(), "complete": is_done });
    output::changed(json, &answer, || match is_done {
        true => format!("built the index of {} anew", place.shown()),
        false => format!("began to build the index of {} anew", place.shown()),
    });
    Ok(())
}
