//! `lazuli map …`: lists and shows maps.

use lazuli_http::uri::percent_encode;
use serde_json::Value;

use crate::args::{MapCommand, Target};
use crate::client::Client;
use lazuli_console::Result;
use lazuli_console::output::{self, cell, rows};

const PARTITION_COLUMNS: [&str; 10] =
    ["id", "map", "from", "to", "shard", "epoch", "state", "items", "bytes", "writes"];

pub(crate) fn run(command: MapCommand) -> Result<()> {
    match command {
        MapCommand::List(target) => list(&target),
        MapCommand::Show { name, target } => show(&name, &target),
    }
}

/// Prints partitions of a map, of a shard, or all.
pub(crate) fn list_partitions(
    map: Option<&str>,
    shard: Option<&str>,
    target: &Target,
) -> Result<()> {
    let partitions = partitions(&Client::find(target)?, map, shard)?;
    if target.json {
        output::json(&serde_json::json!({ "partitions": partitions }));
    } else {
        output::table(&PARTITION_COLUMNS, &rows(&partitions, &PARTITION_COLUMNS));
    }
    Ok(())
}

fn list(target: &Target) -> Result<()> {
    let maps = pages(&Client::find(target)?, "/v1/maps?", "maps")?;
    if target.json {
        output::json(&serde_json::json!({ "maps": maps }));
        return Ok(());
    }
    let columns = ["id", "name", "kind", "key", "schema", "partitions", "version"];
    output::table(&columns, &rows(&maps, &columns));
    Ok(())
}

fn show(name: &str, target: &Target) -> Result<()> {
    let client = Client::find(target)?;
    let mut map = client.get(&format!("/v1/maps/{}", percent_encode(name)))?;
    let partitions = partitions(&client, Some(name), None)?;
    if target.json {
        map["partitions"] = partitions;
        output::json(&map);
        return Ok(());
    }
    for field in ["name", "id", "kind", "key", "schema", "version", "changes", "throughput"] {
        output::line(&format!("{:<11} {}", field, cell(&map[field])));
    }
    for rule in map["placement"].as_array().into_iter().flatten() {
        let parts = ["from", "to", "region", "labels"].map(|part| cell(&rule[part]));
        let [from, to, region, labels] = parts;
        output::line(&format!(
            "{:<11} {from} to {to}: region {region}, labels {labels}",
            "placement"
        ));
    }
    output::line("");
    output::table(&PARTITION_COLUMNS, &rows(&partitions, &PARTITION_COLUMNS));
    Ok(())
}

/// All partitions, page by page.
pub(super) fn partitions(client: &Client, map: Option<&str>, shard: Option<&str>) -> Result<Value> {
    let mut path = "/v1/partitions?".to_owned();
    for (name, value) in [("map", map), ("shard", shard)] {
        if let Some(value) = value {
            path.push_str(&format!("{name}={}&", percent_encode(value)));
        }
    }
    pages(client, &path, "partitions")
}

/// All of a list that comes in pages. The path ends where the next parameter begins.
fn pages(client: &Client, path: &str, list: &str) -> Result<Value> {
    let mut all = Vec::new();
    let mut after = String::new();
    loop {
        let mut page = client.get(&format!("{path}after={}", percent_encode(&after)))?;
        if let Value::Array(items) = page[list].take() {
            all.extend(items);
        }
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => return Ok(Value::Array(all)),
        }
    }
}
