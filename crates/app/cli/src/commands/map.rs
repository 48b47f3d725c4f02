//! `lazuli map …`: lists and shows maps.

use lazuli_http::uri::percent_encode;
use serde_json::Value;

use crate::args::{MapCommand, Target};
use crate::client::Client;
use lazuli_console::output::{self, cell, rows};
use lazuli_console::{Failure, Result};

/// The most names that an error lists.
const NAMES_SHOWN_MAX: usize = 5;

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
    let client = Client::find(target)?;
    let map = map.map(|said| container(&client, said)).transpose()?;
    let partitions = partitions(&client, map.as_deref(), shard)?;
    if target.json {
        output::json(&serde_json::json!({ "partitions": partitions }));
    } else {
        print_partitions(partitions);
    }
    Ok(())
}

/// Prints partitions with sizes as people read them, and their sums below if there are several.
fn print_partitions(mut partitions: Value) {
    let (mut count, mut items, mut bytes) = (0, 0, 0);
    for partition in partitions.as_array_mut().into_iter().flatten() {
        count += 1;
        items += partition["items"].as_u64().unwrap_or(0);
        bytes += partition["bytes"].as_u64().unwrap_or(0);
        if let Some(size) = partition["bytes"].as_u64() {
            partition["bytes"] = output::size(size).into();
        }
    }
    output::table(&PARTITION_COLUMNS, &rows(&partitions, &PARTITION_COLUMNS));
    if count > 1 {
        output::line(&format!("{count} partitions, {items} items, {}", output::size(bytes)));
    }
}

/// The full name of the container that people mean: the name itself, its last part in any case, or a part of it that no
/// other container has.
pub(super) fn container(client: &Client, said: &str) -> Result<String> {
    let narrowed = client.get(&format!("/v1/maps?name={}", percent_encode(said)))?;
    let narrowed = names(&narrowed["maps"]);
    if narrowed.iter().any(|name| name == said) {
        return Ok(said.to_owned());
    }
    let all = names(&pages(client, "/v1/maps?", "maps")?);
    let is_last = |name: &&String| {
        name.rsplit('/').next().is_some_and(|last| last.eq_ignore_ascii_case(said))
    };
    let by_last: Vec<&String> = all.iter().filter(is_last).collect();
    let lower = said.to_lowercase();
    let by_part: Vec<&String> =
        all.iter().filter(|name| name.to_lowercase().contains(&lower)).collect();
    let meant = if by_last.is_empty() { by_part } else { by_last };
    match meant.as_slice() {
        [name] => Ok((*name).clone()),
        [] => Err(Failure::failed(format!("no container has `{said}` in its name"))
            .hint("`lazuli map list` lists them")),
        several => {
            let shown = several.iter().take(NAMES_SHOWN_MAX).map(|name| name.as_str());
            let shown = shown.collect::<Vec<_>>().join(", ");
            Err(Failure::failed(format!("`{said}` is in several names: {shown}"))
                .hint("give the whole name"))
        }
    }
}

fn names(maps: &Value) -> Vec<String> {
    let maps = maps.as_array().into_iter().flatten();
    maps.filter_map(|map| map["name"].as_str().map(str::to_owned)).collect()
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
    let name = container(&client, name)?;
    let mut map = client.get(&format!("/v1/maps/{}", percent_encode(&name)))?;
    let partitions = partitions(&client, Some(&name), None)?;
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
    print_partitions(partitions);
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
