//! `lazuli partition …`: slices of maps, cut, joined and moved while they are in use.

use serde_json::{Value, json};

use super::{job, map};
use crate::args::Target;
use crate::args::partition::{Move, PartitionCommand};
use crate::client::Client;
use crate::failure::Result;
use crate::output::{self, cell};

pub(crate) fn run(command: PartitionCommand) -> Result<()> {
    match command {
        PartitionCommand::List { map, shard, target } => {
            map::list_partitions(map.as_deref(), shard.as_deref(), &target)
        }
        PartitionCommand::Split { id, at, target } => split(id, &at, &target),
        PartitionCommand::Merge { id, target } => merge(id, &target),
        PartitionCommand::Move(wanted) => send(&wanted),
        PartitionCommand::Offline { id, target } => set_state(id, "offline", &target),
        PartitionCommand::Online { id, target } => set_state(id, "online", &target),
        PartitionCommand::Readonly { id, target } => set_state(id, "read-only", &target),
    }
}

fn change(id: u64, what: &str, body: &Value, target: &Target) -> Result<Value> {
    Client::find(target)?.post(&format!("/v1/partitions/{id}/{what}"), body)
}

fn split(id: u64, at: &str, target: &Target) -> Result<()> {
    let answer = change(id, "split", &json!({ "at": at }), target)?;
    output::changed(target.json, &answer, || {
        let [left, right] = [0, 1].map(|half| cell(&answer["partitions"][half]["id"]));
        format!("split partition {id} into {left} and {right}")
    });
    Ok(())
}

fn merge(id: u64, target: &Target) -> Result<()> {
    let answer = change(id, "merge", &json!({}), target)?;
    output::changed(target.json, &answer, || {
        let merged = cell(&answer["partition"]["id"]);
        format!("merged partition {id} and its right neighbour into {merged}")
    });
    Ok(())
}

fn set_state(id: u64, state: &str, target: &Target) -> Result<()> {
    let answer = change(id, "state", &json!({ "state": state }), target)?;
    output::changed(target.json, &answer, || format!("partition {id} is {state}"));
    Ok(())
}

fn send(wanted: &Move) -> Result<()> {
    let mut body = json!({ "to": wanted.to });
    body["pause_limit_ms"] =
        json!(u64::try_from(wanted.pause_limit.as_millis()).unwrap_or(u64::MAX));
    if let Some(bandwidth) = wanted.bandwidth {
        body["bytes_per_second"] = json!(bandwidth);
    }
    let target = &wanted.target;
    let begun = change(wanted.id, "move", &body, target)?;
    if wanted.detach {
        output::changed(target.json, &begun, || {
            let (id, to) = (wanted.id, &wanted.to);
            format!("job {} moves partition {id} to {to}", cell(&begun["job"]))
        });
        return Ok(());
    }
    job::follow(begun["job"].as_u64().unwrap_or_default(), target)
}
