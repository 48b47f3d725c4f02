//! Folders in doubt in the admin API: the reason, what would be lost, and accepting them as they are.

use std::collections::BTreeSet;

use lazuli_http::date::format_rfc1123;
use lazuli_shardmap::lineage::{Doubt, Start};
use lazuli_store::Error;
use serde_json::{Value, json};

use super::refusal::{Refusal, Result};
use super::shards::find;
use crate::admission::Refusal as Refused;
use crate::running::Running;

/// How many partitions of a shard are looked at, and how many of their maps are named.
const PARTITIONS_MAX: usize = 100_000;
const MAPS_NAMED_MAX: usize = 20;
const MILLIS_PER_SECOND: u64 = 1_000;

/// What is wrong with a shard, and what `accept` would mean.
pub(super) async fn preview(running: &Running, name: &str) -> Result<Value> {
    let shard = find(running, name).await?;
    let down = running.host.why_down(shard.id);
    let refusal = running.host.refusal(shard.id);
    let partitions = running.catalog().partitions_on(shard.id, PARTITIONS_MAX).await?;
    let containers: BTreeSet<_> = partitions.iter().map(|it| it.container).collect();
    let mut maps = Vec::new();
    for id in containers.iter().take(MAPS_NAMED_MAX) {
        let found = running.catalog().container(*id).await;
        maps.push(found.map_or_else(|_| format!("container {id}"), |it| it.name));
    }
    let differences = match &down {
        None => running.manager().detect(shard.id).await?.len(),
        Some(_) => 0,
    };
    let lost = match &refusal {
        Some(Refused::Doubt(doubt)) => Some(lost(doubt)),
        _ => None,
    };
    Ok(json!({
        "name": shard.name,
        "state": match (&down, &refusal) {
            (None, _) => "online",
            (Some(_), None) => "down",
            (Some(_), Some(_)) => "refused",
        },
        "code": down.as_ref().map(|error| error.code()),
        "error": match &refusal {
            Some(refusal) => Some(refusal.to_string()),
            None => down.map(|error| error.to_string()),
        },
        "partitions": partitions.len(),
        "maps": maps,
        "maps_unnamed": containers.len().saturating_sub(MAPS_NAMED_MAX),
        "differences": differences,
        "lost": lost,
    }))
}

/// Takes the folder of a shard as it is.
pub(super) async fn accept(running: &Running, name: &str) -> Result<Value> {
    let shard = find(running, name).await?;
    match running.host.refusal(shard.id) {
        Some(Refused::Doubt(doubt)) => {
            tracing::warn!(shard = shard.name, %doubt, "the folder of a shard is taken as it is");
        }
        Some(refused @ Refused::Other(_)) => {
            let message = format!("{refused}: put each folder back where it belongs");
            return Err(Error::precondition(refused.code(), message).into());
        }
        None => {
            let message = format!("the folder of shard {name} is not in doubt");
            return Err(Error::precondition("not-in-doubt", message).into());
        }
    }
    running.host.accept(&shard).await?;
    let left = running.manager().detect(shard.id).await?.len();
    Ok(json!({
        "name": shard.name,
        "accepted": true,
        "differences_before": left,
        "differences_left": left,
    }))
}

/// The same for the folder of block files.
pub(super) fn preview_blocks(running: &Running) -> Value {
    let doubt = running.blocks.doubt();
    json!({
        "in_doubt": doubt.is_some(),
        "code": doubt.map(|doubt| doubt.code()),
        "error": doubt.map(|doubt| doubt.to_string()),
        "lost": doubt.map(|_| {
            "blobs whose block files are not in this folder cannot be read (`lazuli fsck` lists \
             them), and files that no row names are removed again"
        }),
    })
}

pub(super) async fn accept_blocks(running: &Running, body: &Value) -> Result<Value> {
    if body["accept"] != json!(true) {
        return Err(Refusal::bad_request("accept must be true"));
    }
    let Some(doubt) = running.blocks.doubt() else {
        let message = "the folder of block files is not in doubt";
        return Err(Error::precondition("not-in-doubt", message).into());
    };
    tracing::warn!(%doubt, "the folder of block files is taken as it is");
    running.blocks.accept(&running.host.lineage).await?;
    Ok(json!({ "accepted": true }))
}

fn at(millis: u64) -> String {
    format_rfc1123(i64::try_from(millis / MILLIS_PER_SECOND).unwrap_or(0))
}

fn named(start: Start) -> String {
    format!("start {} ({})", start.number, at(start.millis()))
}

/// What is given up if the folder is taken as it is.
fn lost(doubt: &Doubt) -> String {
    match doubt {
        Doubt::OlderStart { found: Some(found), expected } => format!(
            "everything that was written to these partitions since the copy was made, which was \
             some time after {}; the shard was last in use with {}",
            named(*found),
            named(*expected)
        ),
        Doubt::OlderStart { found: None, expected } => format!(
            "everything that was written to these partitions since the copy was made, which was \
             before any start was written down; the shard was last in use with {}",
            named(*expected)
        ),
        Doubt::OlderCommits { found, floor, floor_ms } => format!(
            "at least the {} commits to these partitions that were made before {}",
            floor - found,
            at(*floor_ms)
        ),
        Doubt::OlderCatalog { found, .. } => format!(
            "nothing of this shard; but the catalog does not know what has become of maps, \
             partitions and accounts until {}",
            named(*found)
        ),
        Doubt::OlderCatalogCommits { found, floor } => format!(
            "nothing of this shard; but the catalog does not know its own last {} commits",
            floor - found
        ),
        Doubt::Parted { found, .. } => format!(
            "what was written to these partitions with the catalog that took part in another {}",
            named(*found)
        ),
    }
}
