//! One partition in the admin API: its figures, its neighbours, and where it would be split.

use lazuli_engine::Middle;
use serde_json::{Value, json};

use super::maps::{show_bound, show_partition};
use super::partitions::{find, right_of};
use super::refusal::Result;
use crate::running::Running;

/// The partition with its figures, and the one that it could be merged with.
pub(super) async fn show(running: &Running, id: u64) -> Result<Value> {
    let (container, partition) = find(running, id).await?;
    let shards = running.catalog().shards().await?;
    let shard = |of| shards.iter().find(|shard| shard.id == of);
    let mut shown = show_partition(running, &container, &partition, shard(partition.shard)).await;
    shown["right"] = match right_of(running, &partition).await? {
        Some(right) => show_partition(running, &container, &right, shard(right.shard)).await,
        None => Value::Null,
    };
    Ok(shown)
}

/// The key with which the right half would begin.
pub(super) async fn middle(running: &Running, id: u64, by: Middle) -> Result<Value> {
    let (container, partition) = find(running, id).await?;
    let at = running.engine.middle(&partition, by).await?;
    Ok(json!({ "partition": id, "at": show_bound(&container, &at) }))
}
