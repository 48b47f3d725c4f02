//! `lazuli shard …`: lists, adds, drains, removes and repairs shards.

use lazuli_http::uri::percent_encode;
use serde_json::{Value, json};

use super::job;
use crate::args::{Keep, ShardCommand, Target};
use crate::client::{Client, fetch};
use lazuli_console::output::{self, cell, rows};
use lazuli_console::{Failure, Result};

pub(crate) fn run(command: ShardCommand) -> Result<()> {
    match command {
        ShardCommand::List(target) => list(&target),
        ShardCommand::Add { name, at, region, labels, target } => {
            add(&name, at.as_deref(), &region, &labels, &target)
        }
        ShardCommand::Repair { name, accept: true, target, .. } => accept(&name, &target),
        ShardCommand::Repair { name, keep: Some(keep), target, .. } => repair(&name, keep, &target),
        ShardCommand::Repair { name, target, .. } => preview(&name, &target),
        ShardCommand::Drain { name, stop: true, target, .. } => fill(&name, &target),
        ShardCommand::Drain { name, detach, target, .. } => drain(&name, detach, &target),
        ShardCommand::Remove { name, target } => remove(&name, &target),
    }
}

fn list(target: &Target) -> Result<()> {
    let Some(answer) = fetch(target, "/v1/shards")? else { return Ok(()) };
    let columns = [
        "id",
        "name",
        "region",
        "labels",
        "partitions",
        "items",
        "size",
        "reads",
        "writes",
        "state",
        "standby",
    ];
    let sums = Client::find(target)?.get("/v1/overview")?;
    let mut shards = answer["shards"].clone();
    let mut has_standbys = false;
    for shard in shards.as_array_mut().into_iter().flatten() {
        add_sums(shard, &sums["shards"]);
        let standby = standby(shard);
        has_standbys |= !standby.is_empty();
        shard["standby"] = json!(standby);
    }
    // Most installations have none.
    let columns = if has_standbys { &columns[..] } else { &columns[..columns.len() - 1] };
    output::table(columns, &rows(&shards, columns));
    Ok(())
}

/// What the shard holds and was asked for since the server started. Sums that are not complete have a mark.
fn add_sums(shard: &mut Value, sums: &Value) {
    let mut sums = sums.as_array().into_iter().flatten();
    let Some(sums) = sums.find(|sums| sums["name"] == shard["name"]) else { return };
    let mark = if sums["partial"] == json!(true) { "+" } else { "" };
    if let (Some(items), Some(bytes)) = (sums["items"].as_u64(), sums["bytes"].as_u64()) {
        shard["items"] = json!(format!("{items}{mark}"));
        shard["size"] = json!(format!("{}{mark}", output::size(bytes)));
    }
    for name in ["reads", "writes"] {
        shard[name] = sums[name].clone();
    }
}

/// How far behind the standby is that reads go to which allow an old state.
fn standby(shard: &Value) -> String {
    match (shard["standby"].as_str(), shard["standby_behind_s"].as_f64()) {
        (Some("read"), Some(seconds)) => format!("{seconds:.1} s behind"),
        (Some("unused"), _) => "unused".to_owned(),
        _ => String::new(),
    }
}

fn add(
    name: &str,
    at: Option<&str>,
    region: &str,
    labels: &[String],
    target: &Target,
) -> Result<()> {
    let labels = parse_labels(labels)?;
    let body = json!({ "name": name, "at": at, "region": region, "labels": labels });
    let answer = Client::find(target)?.post("/v1/shards", &body)?;
    output::changed(target.json, &answer, || {
        format!("added shard {} with id {}", cell(&answer["name"]), cell(&answer["id"]))
    });
    Ok(())
}

fn remove(name: &str, target: &Target) -> Result<()> {
    let answer = Client::find(target)?.delete(&path(name, ""))?;
    output::changed(target.json, &answer, || format!("removed shard {name}"));
    Ok(())
}

fn fill(name: &str, target: &Target) -> Result<()> {
    let answer = Client::find(target)?.delete(&path(name, "/drain"))?;
    output::changed(target.json, &answer, || format!("shard {name} takes partitions again"));
    Ok(())
}

/// Each round moves as many partitions as the server starts at once; others may have arrived meanwhile.
fn drain(name: &str, detach: bool, target: &Target) -> Result<()> {
    let client = Client::find(target)?;
    let mut moved = 0;
    loop {
        let answer = client.post(&path(name, "/drain"), &json!({}))?;
        if let Some(refused) = answer["refused"].as_array().and_then(|refused| refused.first()) {
            let (partition, error) = (cell(&refused["partition"]), cell(&refused["error"]));
            let message = format!("partition {partition} cannot leave shard {name}: {error}");
            return Err(Failure::failed(message));
        }
        let jobs: Vec<u64> =
            answer["jobs"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
        if detach || jobs.is_empty() {
            let answer = json!({ "name": name, "jobs": jobs, "moved": moved });
            output::changed(target.json, &answer, || match detach {
                true => format!("{} jobs drain shard {name}", jobs.len()),
                false => format!("drained shard {name}: {moved} partitions moved"),
            });
            return Ok(());
        }
        for job in jobs {
            job::wait(job, &client, |_| {})?.1?;
            moved += 1;
        }
    }
}

/// Prints what is wrong, the possible repairs, and what each would lose. Changes nothing.
fn preview(name: &str, target: &Target) -> Result<()> {
    let Some(answer) = fetch(target, &path(name, "/repair"))? else { return Ok(()) };
    let differences = answer["differences"].as_u64().unwrap_or(0);
    if answer["error"].is_null() && differences == 0 {
        output::line(&format!("nothing is wrong with shard {name}"));
        return Ok(());
    }
    if differences > 0 {
        output::line(&format!(
            "catalog and shard {name} differ in {differences} places (`lazuli fsck` lists them): \
             decide with --keep catalog or --keep shard"
        ));
        return Ok(());
    }
    let maps = answer["maps"].as_array().into_iter().flatten();
    let mut maps = maps.map(cell).collect::<Vec<_>>().join(", ");
    if let Some(more) = answer["maps_unnamed"].as_u64().filter(|more| *more > 0) {
        maps = format!("{maps} and {more} more");
    }
    let (state, partitions) = (cell(&answer["state"]), cell(&answer["partitions"]));
    output::line(&format!("shard {name} is {state}: {}", cell(&answer["error"])));
    output::line(&format!("It should hold {partitions} partitions, of {maps}."));
    if let Some(lost) = answer["lost"].as_str() {
        output::line("- Put the right folder back and start again. Until then it stays refused.");
        output::line(&format!(
            "- `lazuli shard repair {name} --accept` takes it as it is. Lost is"
        ));
        output::line(&format!("  {lost}."));
        output::line("  Block files that only those writes named are removed some time later.");
    }
    Ok(())
}

fn accept(name: &str, target: &Target) -> Result<()> {
    let answer = Client::find(target)?.post(&path(name, "/repair"), &json!({ "accept": true }))?;
    output::changed(target.json, &answer, || {
        let left = answer["differences_left"].as_u64().unwrap_or(0);
        let rest = match left {
            0 => String::new(),
            left => format!("; it differs from the catalog in {left} places: see `lazuli fsck`"),
        };
        format!("took the folder of shard {name} as it is{rest}")
    });
    Ok(())
}

fn repair(name: &str, keep: Keep, target: &Target) -> Result<()> {
    let body = match keep {
        Keep::Catalog => json!({ "keep": "catalog" }),
        Keep::Shard => json!({ "keep": "shard" }),
    };
    let answer = Client::find(target)?.post(&path(name, "/repair"), &body)?;
    let left = answer["differences_left"].as_u64().unwrap_or(0);
    output::changed(target.json, &answer, || {
        let before = cell(&answer["differences_before"]);
        format!("settled differences of shard {name}: {before} before, {left} left")
    });
    if left == 0 { Ok(()) } else { Err(Failure::failed("some differences could not be settled")) }
}

fn path(name: &str, rest: &str) -> String {
    format!("/v1/shards/{}{rest}", percent_encode(name))
}

fn parse_labels(labels: &[String]) -> Result<Value> {
    let mut parsed = serde_json::Map::new();
    for label in labels {
        let (name, value) = label.split_once('=').ok_or_else(|| {
            Failure::usage(format!("a label is written NAME=VALUE, not `{label}`"))
        })?;
        parsed.insert(name.to_owned(), json!(value));
    }
    Ok(Value::Object(parsed))
}
