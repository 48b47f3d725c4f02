//! `lazuli hub …`: event hubs, by the admin API.

use std::time::Duration;

use lazuli_console::Result;
use lazuli_console::output::{self, cell, rows};
use lazuli_http::uri::percent_encode;
use serde_json::{Value, json};

use super::bus::{found, pages, typed};
use crate::args::messaging::{HubCommand, Owner};
use crate::client::Client;

/// How long `tail` waits before it looks again.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) fn run(command: HubCommand) -> Result<()> {
    match command {
        HubCommand::List(owner) => list(&owner),
        HubCommand::Show { name, owner } => show(&name, &owner),
        HubCommand::Create { name, partitions, retention, retention_bytes, cleanup, owner } => {
            let (client, account) = found(&owner)?;
            let body = json!({
                "name": name,
                "partitions": partitions,
                "retention_hours": retention,
                "retention_bytes": retention_bytes,
                "cleanup": cleanup,
            });
            let answer = client.post(&format!("/v1/hubs/{}", percent_encode(&account)), &body)?;
            output::changed(owner.target.json, &answer, || {
                format!("created hub {name} with {} partitions", cell(&answer["partitions"]))
            });
            Ok(())
        }
        HubCommand::Delete { name, owner } => {
            let (client, account) = found(&owner)?;
            let answer = client.delete(&hub(&account, &name, ""))?;
            output::changed(owner.target.json, &answer, || format!("deleted hub {name}"));
            Ok(())
        }
        HubCommand::Partitions { name, count, owner } => {
            let (client, account) = found(&owner)?;
            let path = hub(&account, &name, "/partitions");
            let answer = client.put(&path, &json!({ "count": count }))?;
            output::changed(owner.target.json, &answer, || {
                format!("hub {name} has {} partitions now", cell(&answer["partitions"]))
            });
            Ok(())
        }
        HubCommand::Send { name, text, key, partition, owner } => {
            let body = json!({ "text": typed(&text)?, "key": key, "partition": partition });
            let (client, account) = found(&owner)?;
            let answer = client.post(&hub(&account, &name, "/events"), &body)?;
            output::changed(owner.target.json, &answer, || {
                let (partition, offset) = (cell(&answer["partition"]), cell(&answer["offset"]));
                format!("sent to partition {partition} of {name} at offset {offset}")
            });
            Ok(())
        }
        HubCommand::Tail { name, partition, from_start, once, owner } => {
            tail(&name, partition, from_start, once, &owner)
        }
        HubCommand::Capture { name, container, seconds, bytes, off: _, owner } => {
            capture(&name, container.as_deref(), seconds, bytes, &owner)
        }
        HubCommand::AddGroup { name, group, owner } => add_group(&name, &group, &owner),
        HubCommand::DeleteGroup { name, group, owner } => delete_group(&name, &group, &owner),
    }
}

/// Has events written to a container of blobs; without one, to none any more.
fn capture(
    name: &str,
    container: Option<&str>,
    seconds: Option<u32>,
    bytes: Option<u64>,
    owner: &Owner,
) -> Result<()> {
    let (client, account) = found(owner)?;
    let path = hub(&account, name, "/capture");
    let answer = match container {
        None => client.delete(&path)?,
        Some(container) => {
            let body = json!({ "container": container, "seconds": seconds, "bytes": bytes });
            client.put(&path, &body)?
        }
    };
    output::changed(owner.target.json, &answer, || match container {
        Some(container) => format!("events of {name} are written to {container} from now on"),
        None => format!("events of {name} are not written to files any more"),
    });
    Ok(())
}

fn add_group(name: &str, group: &str, owner: &Owner) -> Result<()> {
    let (client, account) = found(owner)?;
    let answer = client.post(&hub(&account, name, "/groups"), &json!({ "name": group }))?;
    output::changed(owner.target.json, &answer, || {
        format!("hub {name} has the consumer group {group} now")
    });
    Ok(())
}

fn delete_group(name: &str, group: &str, owner: &Owner) -> Result<()> {
    let (client, account) = found(owner)?;
    let path = hub(&account, name, &format!("/groups/{}", percent_encode(group)));
    let answer = client.delete(&path)?;
    output::changed(owner.target.json, &answer, || {
        format!("deleted consumer group {group} of {name}")
    });
    Ok(())
}

/// The path of a hub, and of what is below it, in the admin API.
fn hub(account: &str, name: &str, rest: &str) -> String {
    format!("/v1/hubs/{}/{}{rest}", percent_encode(account), percent_encode(name))
}

fn list(owner: &Owner) -> Result<()> {
    let (client, account) = found(owner)?;
    let hubs = pages(&client, &format!("/v1/hubs/{}", percent_encode(&account)), "hubs")?;
    if owner.target.json {
        output::json(&hubs);
        return Ok(());
    }
    let columns = ["name", "partitions", "retention_hours", "retention_bytes"];
    output::table(&columns, &rows(&hubs, &columns));
    Ok(())
}

fn show(name: &str, owner: &Owner) -> Result<()> {
    let (client, account) = found(owner)?;
    let answer = client.get(&hub(&account, name, ""))?;
    if owner.target.json {
        output::json(&answer);
        return Ok(());
    }
    let columns = ["partition", "first", "next", "bytes", "appends_per_second", "reads_per_second"];
    output::table(&columns, &rows(&answer["all_partitions"], &columns));
    let consumers = answer["consumers"].as_array().map(Vec::as_slice).unwrap_or_default();
    for one in consumers {
        let (group, lag) = (cell(&one["group"]), cell(&one["lag"]));
        output::line(&format!("group {group} is {lag} events behind"));
    }
    Ok(())
}

/// Prints events of all partitions, or of one, in the order in which they are found.
fn tail(
    name: &str,
    partition: Option<u32>,
    from_start: bool,
    once: bool,
    owner: &Owner,
) -> Result<()> {
    let (client, account) = found(owner)?;
    let mut next: Vec<(u32, String)> = Vec::new();
    let begin = if from_start { "first" } else { "end" };
    loop {
        // There may be more of them than a moment ago.
        let count = client.get(&hub(&account, name, ""))?["partitions"].as_u64().unwrap_or(0);
        let known = next.len() as u64;
        let all = partition.is_none().then_some(known..count);
        // A partition that was added while others were followed is followed from its first event on.
        let from = if known == 0 { begin } else { "first" };
        next.extend(all.into_iter().flatten().map(|number| (number as u32, from.to_owned())));
        if let (Some(one), 0) = (partition, known) {
            next.push((one, begin.to_owned()));
        }
        let mut printed = 0;
        for (partition, from) in &mut next {
            printed += print_next(&client, &hub(&account, name, ""), *partition, from, owner)?;
        }
        if printed == 0 && once {
            return Ok(());
        }
        if printed == 0 {
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}

/// Prints what a partition has from a place on, and moves the place behind it.
fn print_next(
    client: &Client,
    hub: &str,
    partition: u32,
    from: &mut String,
    owner: &Owner,
) -> Result<usize> {
    let path = format!("{hub}/events?partition={partition}&from={from}&limit=250");
    let answer = client.get(&path)?;
    *from = cell(&answer["next"]);
    let events = answer["events"].as_array().map(Vec::as_slice).unwrap_or_default();
    for event in events {
        output::line(&line(event, owner.target.json));
    }
    Ok(events.len())
}

fn line(event: &Value, as_json: bool) -> String {
    if as_json {
        return event.to_string();
    }
    let [partition, offset, key, text] =
        ["partition", "offset", "key", "text"].map(|field| cell(&event[field]));
    format!("{partition}/{offset}  {key}  {text}")
}
