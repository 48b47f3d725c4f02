//! `lazuli partition …`: lists, splits, merges and moves partitions while they are in use.

use serde_json::{Value, json};

use super::{backup, job, map};
use crate::args::Target;
use crate::args::partition::{Middle, Move, OnePartition, PartitionCommand, Split};
use crate::client::Client;
use lazuli_console::Result;
use lazuli_console::output::{self, cell};

pub(crate) fn run(command: PartitionCommand) -> Result<()> {
    match command {
        PartitionCommand::List { map, shard, target } => {
            map::list_partitions(map.as_deref(), shard.as_deref(), &target)
        }
        PartitionCommand::Split(wanted) => split(&wanted),
        PartitionCommand::Merge(wanted) => merge(&wanted),
        PartitionCommand::Move(wanted) => send(&wanted),
        PartitionCommand::Offline(wanted) => set_state(&wanted, "offline"),
        PartitionCommand::Online(wanted) => set_state(&wanted, "online"),
        PartitionCommand::Readonly(wanted) => set_state(&wanted, "read-only"),
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

fn merge(OnePartition { id, target }: &OnePartition) -> Result<()> {
    let answer = change(*id, "merge", &json!({}), target)?;
    output::changed(target.json, &answer, || {
        let merged = cell(&answer["partition"]["id"]);
        format!("merged partition {id} and its right neighbour into {merged}")
    });
    Ok(())
}

fn set_state(OnePartition { id, target }: &OnePartition, state: &str) -> Result<()> {
    let answer = change(*id, "state", &json!({ "state": state }), target)?;
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
