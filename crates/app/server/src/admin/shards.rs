//! Shards in the admin API.

use std::collections::BTreeMap;

use lazuli_shardmap::manager::NewShard;
use lazuli_shardmap::{Shard, drained};
use lazuli_store::{Copies, Error};
use serde_json::{Value, json};

use super::refusal::{Refusal, Result};
use super::repairs;
use crate::fleet::FOLLOWED_WITHIN;
use crate::running::Running;

/// The region of a shard that names none.
const REGION_DEFAULT: &str = "local";
/// The most labels of a shard.
const LABELS_MAX: usize = 64;

pub(super) async fn list(running: &Running) -> Result<Value> {
    let mut shown = Vec::new();
    for shard in running.catalog().shards().await? {
        shown.push(show(running, &shard).await?);
    }
    Ok(json!({ "shards": shown }))
}

/// `{"name": …, "at": …, "region": …, "labels": {…}}` to a new empty shard: in a folder, or at the address of a database.
pub(super) async fn add(running: &Running, body: &Value) -> Result<Value> {
    let shard = parse(body)?;
    if find(running, &shard.name).await.is_err() {
        running.host.check_new(&shard.name, &shard.location)?;
    }
    let shard = running.manager().add_shard(&shard).await?;
    running.host.open(&shard).await?;
    tracing::info!(shard = shard.name, "added a shard");
    if running.nodes.is_fleet() {
        // So that whoever goes on with another node finds the shard in use there.
        tokio::time::sleep(FOLLOWED_WITHIN).await;
    }
    show(running, &shard).await
}

pub(super) async fn remove(running: &Running, name: &str) -> Result<Value> {
    let shard = find(running, name).await?;
    running.host.announce_removal(&shard)?;
    running.manager().remove_shard(shard.id, shard.version).await?;
    drained::set(running.catalog(), shard.id, false).await?;
    running.host.retire(&shard).await?;
    running.host.forget(shard.id).await?;
    tracing::info!(shard = shard.name, "removed a shard");
    Ok(json!({ "id": shard.id.0, "name": shard.name }))
}

/// `{"keep": "catalog"}` or `{"keep": "shard"}`: who is right where they differ. `{"accept": true}`: a folder that is in
/// doubt is taken as it is.
pub(super) async fn repair(running: &Running, name: &str, body: &Value) -> Result<Value> {
    if body["accept"] == json!(true) {
        return repairs::accept(running, name).await;
    }
    let shard = find(running, name).await?;
    let manager = running.manager();
    let before = manager.detect(shard.id).await?.len();
    let left = match body["keep"].as_str() {
        Some("catalog") => manager.rebuild_local(shard.id).await?,
        Some("shard") => manager.rebuild_catalog(shard.id).await?,
        _ => {
            return Err(Refusal::bad_request("keep must be catalog or shard, or accept true"));
        }
    };
    tracing::info!(shard = shard.name, before, left = left.len(), "repaired a shard");
    Ok(json!({ "name": shard.name, "differences_before": before, "differences_left": left.len() }))
}

/// How many partitions a shard holds: by its own count, which is in memory, or by the catalog's if it is down.
async fn partition_count(running: &Running, shard: &Shard) -> Result<u64> {
    let live = running.engine.shards().get(shard.id).ok();
    match live.and_then(|live| live.local().partition_count().ok()) {
        Some(count) => Ok(count as u64),
        None => Ok(running.catalog().partition_count(shard.id).await?),
    }
}

/// The shard of this name.
pub(super) async fn find(running: &Running, name: &str) -> Result<Shard> {
    let shards = running.catalog().shards().await?;
    let found = shards.into_iter().find(|shard| shard.name == name);
    found.ok_or_else(|| Refusal::not_found("shard", name, "lazuli shard list"))
}

async fn show(running: &Running, shard: &Shard) -> Result<Value> {
    let not_yet = || Error::unavailable("shard-down", "this node has not opened the shard yet");
    let is_known = running.host.opened(shard.id).is_some();
    let down = running.host.why_down(shard.id).or_else(|| (!is_known).then(not_yet));
    let health = running.host.opened(shard.id).map(|opened| opened.store().health());
    let reason = health.as_ref().and_then(|health| health.reason());
    let is_drained = drained::list(running.catalog()).await?.contains(&shard.id);
    let copies = running.host.opened(shard.id).and_then(|opened| opened.store().copies());
    let (standby, standby_error) = match &copies {
        None => (Value::Null, None),
        Some(Copies::Behind(time)) => (json!(time.as_secs_f64()), None),
        Some(Copies::Unused(error)) => (Value::Null, Some(error.to_string())),
    };
    Ok(json!({
        "id": shard.id.0,
        "name": shard.name,
        // What this node may read from a standby was answered this many seconds ago at the most.
        "standby_behind_s": standby,
        "standby": match &copies {
            None => "none",
            Some(Copies::Behind(_)) => "read",
            Some(Copies::Unused(_)) => "unused",
        },
        "standby_error": standby_error,
        "location": shard.location,
        "region": shard.region,
        "labels": shard.labels,
        "version": shard.version,
        "partitions": partition_count(running, shard).await?,
        "state": match (&down, &health, is_drained) {
            (Some(_), ..) if running.host.refusal(shard.id).is_some() => "refused",
            (Some(_), ..) => "down",
            (None, Some(health), _) if reason.is_some() => health.name(),
            (None, _, true) => "draining",
            (None, _, false) => "online",
        },
        "error": down.as_ref().or(reason).map(|error| error.to_string()),
    }))
}

fn parse(body: &Value) -> Result<NewShard> {
    let wrong = |what: &str| Refusal::bad_request(what.to_owned());
    let name = body["name"].as_str().ok_or_else(|| wrong("name must be text"))?;
    let region = match &body["region"] {
        Value::Null => REGION_DEFAULT,
        other => other.as_str().ok_or_else(|| wrong("region must be text"))?,
    };
    let labels = match &body["labels"] {
        Value::Null => BTreeMap::new(),
        Value::Object(labels) if labels.len() <= LABELS_MAX => {
            let pair =
                |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
            let pairs: Option<BTreeMap<_, _>> = labels.iter().map(pair).collect();
            pairs.ok_or_else(|| wrong("labels must be text"))?
        }
        _ => return Err(wrong("labels must be an object of at most 64 texts")),
    };
    let location = match &body["at"] {
        // The folder of an embedded shard is called as the shard is.
        Value::Null => name.to_owned(),
        Value::String(address) if address.contains("://") => address.clone(),
        _ => return Err(wrong("at must be the address of a database: postgres://…")),
    };
    Ok(NewShard { name: name.to_owned(), location, region: region.to_owned(), labels })
}
