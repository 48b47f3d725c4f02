//! Changes of partitions in the admin API: split, merge, move, state, and moving everything off a shard.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{Middle, MoveOptions};
use lazuli_shardmap::manager::Known;
use lazuli_shardmap::route::{virtual_routes, virtual_shard};
use lazuli_shardmap::{
    Container, MapKind, MapReason, Partition, PartitionId, PartitionState, Shard, ShardId, drained,
    placement,
};
use serde_json::{Value, json};

use super::maps::{hex, show_bounds, state_name};
use super::refusal::{Refusal, Result};
use super::request::PartitionChange;
use super::shards;
use crate::running::Running;

/// The most partitions that one request begins to move away from a shard; the next request goes on.
const DRAIN_MAX: usize = 1_000;

pub(super) async fn change(
    running: &Running,
    id: u64,
    change: PartitionChange,
    body: &Value,
) -> Result<Value> {
    let (container, partition) = find(running, id).await?;
    match change {
        PartitionChange::Split => split(running, &container, &partition, body).await,
        PartitionChange::Merge => merge(running, &container, &partition).await,
        PartitionChange::Move => send(running, &container, &partition, body).await,
        PartitionChange::State => set_state(running, &container, &partition, body).await,
    }
}

/// The partition of this id, with its container.
pub(super) async fn find(running: &Running, id: u64) -> Result<(Container, Partition)> {
    let missing = |error: lazuli_store::Error| match error.reason() {
        Some(MapReason::PartitionNotFound) => {
            Refusal::not_found("partition", &id.to_string(), "lazuli partition list")
        }
        _ => error.into(),
    };
    let entry = running.catalog().partition(PartitionId(id)).await.map_err(missing)?;
    let container = running.catalog().container(entry.partition.container).await?;
    Ok((container, entry.partition))
}

/// `{"at": KEY}`, the key with which the right half begins; `{"isolate": KEY}`, the shardlet that is to be alone; else
/// `{"by": "size"}` or `{"by": "load"}`, what both halves have as much of.
async fn split(
    running: &Running,
    container: &Container,
    partition: &Partition,
    body: &Value,
) -> Result<Value> {
    let engine = &running.engine;
    let pieces = match (route(container, body, "at")?, route(container, body, "isolate")?) {
        (Some(_), Some(_)) => return Err(Refusal::bad_request("at or isolate, not both")),
        (Some(at), None) => {
            let at = bound(container, &at)?;
            <[_; 2]>::from(engine.split(Known::from(partition), at).await?).to_vec()
        }
        (None, Some(shardlet)) => engine.isolate(partition, &shardlet).await?.pieces,
        (None, None) => {
            let at = engine.middle(partition, middle(body)?).await?;
            <[_; 2]>::from(engine.split(Known::from(partition), at).await?).to_vec()
        }
    };
    let ids: Vec<u64> = pieces.iter().map(|piece| piece.id.0).collect();
    tracing::info!(partition = partition.id.0, pieces = ?ids, "split");
    let shown: Vec<Value> = pieces.iter().map(|piece| show(container, piece)).collect();
    Ok(json!({ "partitions": shown }))
}

fn middle(body: &Value) -> Result<Middle> {
    match &body["by"] {
        Value::Null => Ok(Middle::Size),
        Value::String(text) if text == "size" => Ok(Middle::Size),
        Value::String(text) if text == "load" => Ok(Middle::Load),
        _ => Err(Refusal::bad_request("by must be size or load")),
    }
}

/// The route of a key in the body, if one is there.
fn route(container: &Container, body: &Value, name: &str) -> Result<Option<Bytes>> {
    let text = match &body[name] {
        Value::Null => return Ok(None),
        Value::String(text) => text,
        _ => {
            let message = format!("{name} must be a key, as `lazuli partition list` prints them");
            return Err(Refusal::bad_request(message));
        }
    };
    let key = container.key.parse(text)?;
    Ok(Some(container.kind.route(&container.key, &key)?))
}

/// Where a partition can be cut so that this route comes to lie in the right half, first if possible: hash maps are cut
/// between virtual shards, and maps by effective keys between those.
fn bound(container: &Container, route: &Bytes) -> Result<Bytes> {
    if container.kind != MapKind::Hash {
        return Ok(route.slice_ref(container.kind.unit(&container.key, route)?));
    }
    let shard = virtual_shard(route).ok_or_else(|| Refusal::bad_request("the key has no hash"))?;
    Ok(virtual_routes(shard..shard + 1)?.start)
}

/// With the right neighbour.
async fn merge(running: &Running, container: &Container, left: &Partition) -> Result<Value> {
    let none = || Refusal::bad_request("the partition has no neighbour on its right");
    let right = right_of(running, left).await?.ok_or_else(none)?;
    let merged = running.engine.merge(Known::from(left), Known::from(&right)).await?;
    tracing::info!(left = left.id.0, right = right.id.0, merged = merged.id.0, "merged");
    Ok(json!({ "partition": show(container, &merged) }))
}

/// The partition with the routes behind those of this one, if there are any.
pub(super) async fn right_of(running: &Running, left: &Partition) -> Result<Option<Partition>> {
    let Some(end) = left.routes.end.clone() else { return Ok(None) };
    let beyond = lazuli_store::KeyRange::new(end, None);
    let found = running.catalog().partitions_in(left.container, &beyond, 1).await?;
    Ok(found.into_iter().next().map(|entry| entry.partition))
}

/// `{"to": SHARD, "shardlet": KEY, "pause_limit_ms": …, "bytes_per_second": …}`: a job. With a shardlet, that one is
/// isolated first, and goes alone.
async fn send(
    running: &Running,
    container: &Container,
    partition: &Partition,
    body: &Value,
) -> Result<Value> {
    let to = body["to"].as_str().ok_or_else(|| Refusal::bad_request("to must name a shard"))?;
    let target = shards::find(running, to).await?;
    let mut options = MoveOptions::default();
    if let Some(limit) = number(body, "pause_limit_ms")? {
        options.pause_limit = Duration::from_millis(limit);
    }
    options.bytes_per_second = number(body, "bytes_per_second")?;
    let partition = match route(container, body, "shardlet")? {
        Some(shardlet) => &running.engine.isolate(partition, &shardlet).await?.alone,
        None => partition,
    };
    let begun = running.engine.move_partition(partition.id, target.id, options).await?;
    tracing::info!(partition = partition.id.0, to, job = begun.number, "began a move");
    Ok(json!({ "job": begun.number, "partition": partition.id.0, "to": to }))
}

fn number(body: &Value, name: &str) -> Result<Option<u64>> {
    match &body[name] {
        Value::Null => Ok(None),
        value => match value.as_u64().filter(|number| *number > 0) {
            Some(number) => Ok(Some(number)),
            None => Err(Refusal::bad_request(format!("{name} must be a number above zero"))),
        },
    }
}

/// `{"state": "online"}`, `"offline"` or `"read-only"`.
async fn set_state(
    running: &Running,
    container: &Container,
    partition: &Partition,
    body: &Value,
) -> Result<Value> {
    let state = match body["state"].as_str() {
        Some("online") => PartitionState::Online,
        Some("offline") => PartitionState::Offline,
        Some("read-only") => PartitionState::ReadOnly,
        _ => return Err(Refusal::bad_request("state must be online, offline or read-only")),
    };
    let now = running.manager().set_state(Known::from(partition), state).await?;
    tracing::info!(partition = now.id.0, state = state_name(now.state), "changed a state");
    Ok(json!({ "partition": show(container, &now) }))
}

/// Lets a shard take partitions again.
pub(super) async fn fill(running: &Running, name: &str) -> Result<Value> {
    let shard = shards::find(running, name).await?;
    drained::set(running.catalog(), shard.id, false).await?;
    tracing::info!(shard = name, "to be filled again");
    Ok(json!({ "name": name }))
}

/// Begins to move everything on a shard to others that may hold it, each to the one that then has the fewest. From now on
/// the balancer gives it nothing.
pub(super) async fn drain(running: &Running, name: &str) -> Result<Value> {
    let shard = shards::find(running, name).await?;
    drained::set(running.catalog(), shard.id, true).await?;
    let drained = drained::list(running.catalog()).await?;
    let all = running.catalog().shards().await?;
    let mut held: BTreeMap<ShardId, u64> = BTreeMap::new();
    for other in all.iter().filter(|other| !drained.contains(&other.id)) {
        if running.host.why_down(other.id).is_none() {
            held.insert(other.id, running.catalog().partition_count(other.id).await?);
        }
    }
    let (mut jobs, mut refused) = (Vec::new(), Vec::new());
    for partition in running.catalog().partitions_on(shard.id, DRAIN_MAX).await? {
        let container = running.catalog().container(partition.container).await?;
        let fits = |other: &&Shard| {
            held.contains_key(&other.id)
                && placement::allowed(&container.placement, &partition.routes, other).is_ok()
        };
        let target = all.iter().filter(fits).min_by_key(|other| (held[&other.id], other.id));
        let begun = match target {
            Some(target) => {
                let options = MoveOptions::default();
                running.engine.move_partition(partition.id, target.id, options).await
            }
            None => Err(lazuli_store::Error::precondition(
                "no-shard-allowed",
                "no other shard that answers may hold it",
            )),
        };
        match (begun, target) {
            (Ok(begun), Some(target)) => {
                *held.entry(target.id).or_default() += 1;
                jobs.push(json!(begun.number));
            }
            (Err(error), _) => {
                refused.push(json!({ "partition": partition.id.0, "error": error.to_string() }));
            }
            (Ok(_), None) => {}
        }
    }
    tracing::info!(shard = name, jobs = jobs.len(), refused = refused.len(), "began to drain");
    Ok(json!({ "name": name, "jobs": jobs, "refused": refused }))
}

fn show(container: &Container, partition: &Partition) -> Value {
    let (from, to) = show_bounds(container, &partition.routes);
    json!({
        "id": partition.id.0,
        "map": container.name,
        "from": from,
        "to": to,
        "from_route": hex(&partition.routes.start),
        "to_route": partition.routes.end.as_ref().map(|end| hex(end)),
        "epoch": partition.epoch.0,
        "state": state_name(partition.state),
    })
}
