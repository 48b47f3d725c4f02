//! Restores of a fleet: each node writes a record of its restores when they have changed, so that all nodes show them.

use std::sync::Arc;
use std::time::Duration;

use lazuli_shardmap::MapReason;
use lazuli_shardmap::catalog::{Catalog, Expected, kinds};
use lazuli_store::{Error, KeyRange, Result};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{Restores, Status};
use crate::fleet::Nodes;

/// How often a node looks whether its restores have changed.
const LOOK: Duration = Duration::from_secs(2);
/// The restores of one node that others see, the newest ones.
const TOLD_MAX: usize = 20;
/// The nodes whose restores are read.
const NODES_MAX: usize = 10_000;
/// How often a number is asked for while other nodes are given theirs.
const NUMBER_TRIES_MAX: usize = 100;
/// The key of the last number that was given out. Ids of nodes are longer.
const LAST: &[u8] = b"";

/// A number that no other restore of the fleet has.
pub(super) async fn next_number(catalog: &Catalog) -> Result<u64> {
    for _ in 0..NUMBER_TRIES_MAX {
        let found = catalog.get_record(kinds::RESTORE, LAST).await?;
        let (last, expected) = match &found {
            Some(found) => {
                let last = serde_json::from_slice(&found.value).unwrap_or(0u64);
                (last, Expected::Version(found.version))
            }
            None => (0, Expected::Nothing),
        };
        let next = last.saturating_add(1);
        match catalog.put_record(kinds::RESTORE, LAST, next.to_string(), expected).await {
            // Another node was given this number.
            Err(error) if error.is(MapReason::RecordChanged) => {}
            Err(error) if error.is(MapReason::RecordExists) => {}
            written => return written.map(|_| next),
        }
    }
    Err(Error::unavailable("too-many-restores", "other nodes begin restores all the time"))
}

/// Tells the others of the restores of this node, until the task is aborted.
pub(crate) fn tell(
    restores: Arc<Restores>,
    nodes: Arc<Nodes>,
    show: fn(&Status) -> Value,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let (mut told, mut removals) = (json!([]), nodes.removals());
        loop {
            tokio::time::sleep(LOOK).await;
            let now: Value = restores.list().iter().take(TOLD_MAX).map(show).collect();
            if now == told && nodes.removals() == removals {
                continue;
            }
            let before = nodes.removals();
            let value = json!({ "node": nodes.name(), "restores": now }).to_string();
            let key = nodes.id().to_bytes().to_vec();
            let catalog = nodes.catalog();
            match catalog.put_record(kinds::RESTORE, key, value, Expected::Anything).await {
                Ok(_) => (told, removals) = (now, before),
                Err(error) => tracing::debug!(%error, "cannot tell other nodes of restores yet"),
            }
        }
    })
}

/// The restores that other nodes have told of, each with the name of its node and whether that node is alive.
pub(crate) async fn elsewhere(nodes: &Nodes) -> Result<Vec<Value>> {
    if !nodes.is_fleet() {
        return Ok(Vec::new());
    }
    let all = KeyRange::all();
    let records = nodes.catalog().scan_records(kinds::RESTORE, &all, NODES_MAX).await?;
    let mut found = Vec::new();
    for record in records {
        if record.key[..] == *LAST || record.key[..] == nodes.id().to_bytes()[..] {
            continue;
        }
        let said: Value = serde_json::from_slice(&record.value).unwrap_or(Value::Null);
        let is_alive = nodes.is_alive(&record.key);
        for mut restore in said["restores"].as_array().cloned().unwrap_or_default() {
            restore["node"] = said["node"].clone();
            restore["node_alive"] = json!(is_alive);
            found.push(restore);
        }
    }
    Ok(found)
}
