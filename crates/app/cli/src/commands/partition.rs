//! `lazuli partition …`: slices of maps, cut, joined and moved while they are in use.

use serde_json::{Value, json};

use super::{backup, job, map};
use crate::args::Target;
use crate::args::partition::{Middle, Move, PartitionCommand, Split};
use crate::client::Client;
use crate::failure::Result;
use crate::output::{self, cell};

pub(crate) fn run(command: PartitionCommand) -> Result<()> {
    match command {
        PartitionCommand::List { map, shard, target } => {
            map::list_partitions(map.as_deref(), shard.as_deref(), &target)
        }
        PartitionCommand::Split(wanted) => split(&wanted),
        PartitionCommand::Merge { id, target } => merge(id, &target),
        PartitionCommand::Move(wanted) => send(&wanted),
        PartitionCommand::Offline { id, target } => set_state(id, "offline", &target),
        PartitionCommand::Online { id, target } => set_state(id, "online", &target),
        PartitionCommand::Readonly { id, target } => set_state(id, "read-only", &target),
        PartitionCommand::Backup(wanted) => backup::take(&wanted),
        PartitionCommand::Restore(wanted) => backup::restore(&wanted),
    }
}

fn change(id: u64, what: &str, body: &Value, target: &Target) -> Result<Value> {
    Client::find(target)?.post(&format!("/v1/partitions/{id}/{what}"), body)
}

fn split(wanted: &Split) -> Result<()> {
    let Split { id, at, by, isolate, target } = wanted;
    let body = match (at, isolate) {
        (Some(at), _) => json!({ "at": at }),
        (None, Some(key)) => json!({ "isolate": key }),
        (None, None) => json!({ "by": match by {
            Middle::Size => "size",
            Middle::Load => "load",
        } }),
    };
    let answer = change(*id, "split", &body, target)?;
    output::changed(target.json, &answer, || {
        let pieces = answer["partitions"].as_array().into_iter().flatten();
        let ids: Vec<String> = pieces.map(|piece| cell(&piece["id"])).collect();
        match ids.split_last() {
            Some((last, others)) if !others.is_empty() => {
                format!("split partition {id} into {} and {last}", others.join(", "))
            }
            _ => format!("partition {id} has nothing else in it already"),
        }
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
    if let Some(key) = &wanted.shardlet {
        body["shardlet"] = json!(key);
    }
    let target = &wanted.target;
    let begun = change(wanted.id, "move", &body, target)?;
    if wanted.detach {
        output::changed(target.json, &begun, || {
            let [job, id, to] = ["job", "partition", "to"].map(|part| cell(&begun[part]));
            format!("job {job} moves partition {id} to {to}")
        });
        return Ok(());
    }
    job::follow(begun["job"].as_u64().unwrap_or_default(), target)
}
