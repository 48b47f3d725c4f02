//! How many bytes one shardlet has.
//!
//! Nothing is counted by shardlet. A small one is walked through; of a large one the store says roughly which part of its
//! partition it is, and what the partition has is counted exactly.

use bytes::Bytes;
use lazuli_shardmap::ContainerId;
use lazuli_store::{KeyRange, PageLimit, Result};

use super::middle::Ground;
use crate::engine::Engine;

/// Shardlets up to this are walked through.
const WALK_MAX: PageLimit = PageLimit { items: 100_000, bytes: 8 * 1024 * 1024 };

impl Engine {
    /// The bytes of the shardlet of a route: exactly if they are few, else roughly.
    pub async fn shardlet_size(&self, container: ContainerId, route: &Bytes) -> Result<u64> {
        let catalog = self.manager.catalog();
        let routes = KeyRange::prefix(route.clone());
        let found = catalog.partitions_in(container, &routes, 1).await?;
        let Some(partition) = found.into_iter().map(|entry| entry.partition).next() else {
            return Ok(0);
        };
        let container = catalog.container(container).await?;
        let shard = self.shards.get(partition.shard)?;
        let outside = &shard.settings.outside;
        let ground = Ground::new(&*shard.store, &container, &routes, outside);
        if let Some(bytes) = ground.counted(WALK_MAX).await? {
            return Ok(bytes);
        }
        let all = Ground::new(&*shard.store, &container, &partition.routes, outside);
        let (part, whole) = (ground.estimated().await?, all.estimated().await?);
        let counted = self.partition_size(partition.id, partition.shard).await?.bytes;
        let share = if whole > 0 { part as f64 / whole as f64 } else { 1.0 };
        Ok((counted as f64 * share.min(1.0)) as u64)
    }
}
