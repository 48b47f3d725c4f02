//! Cutting partitions in place: in the middle of their bytes or their requests, or around one shardlet.
//!
//! What is never torn apart is a *unit*: a shardlet, or in hash maps all shardlets of one virtual shard, or all of one effective key. Every cut lies
//! between two units. Finding a middle costs little however much there is: `middle` says how.

mod middle;
mod shardlet;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use lazuli_shardmap::manager::Known;
use lazuli_shardmap::route::{virtual_routes, virtual_shard};
use lazuli_shardmap::{Container, MapKind, Partition, PartitionId};
use lazuli_store::{Error, KeyRange, Result};

use crate::engine::Engine;
use crate::hot::HotKey;
use middle::{Ground, WALK_MAX};

/// What both halves of a partition should have as much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Middle {
    /// Bytes of keys and values.
    Size,
    /// Requests, as far as they are known: those for the hottest keys, and the others spread like the bytes.
    Load,
}

/// A shardlet that was given a partition of its own.
#[derive(Clone, Debug)]
pub struct Isolated {
    /// All pieces of what was one partition, in the order of routes.
    pub pieces: Vec<Partition>,
    /// The piece that has the shardlet and nothing else; in hash maps, what shares its virtual shard too.
    pub alone: Partition,
}

impl Engine {
    /// The route at which a partition is cut into two halves. Fails with `one-shardlet` where there is nothing to cut
    /// between.
    pub async fn middle(&self, partition: &Partition, middle: Middle) -> Result<Bytes> {
        let container = self.manager.catalog().container(partition.container).await?;
        let shard = self.shards.get(partition.shard)?;
        let hot = match middle {
            Middle::Size => Vec::new(),
            Middle::Load => self.hot_keys(partition)?,
        };
        let requests = match middle {
            Middle::Size => 0,
            Middle::Load => shard.partition(partition.id).requests(),
        };
        let outside = &shard.settings.outside;
        let ground = Ground::new(&*shard.store, &container, &partition.routes, outside);
        let found = ground.middle(&hot, requests, WALK_MAX).await?;
        found.ok_or_else(|| indivisible(partition.id))
    }

    /// Whether a partition has no two shardlets that it could be cut between.
    pub async fn is_one_shardlet(&self, partition: &Partition) -> Result<bool> {
        let container = self.manager.catalog().container(partition.container).await?;
        let shard = self.shards.get(partition.shard)?;
        let outside = &shard.settings.outside;
        Ground::new(&*shard.store, &container, &partition.routes, outside).is_one_unit().await
    }

    /// The keys of a partition that were asked for most, since it was warmed up.
    pub fn hot_keys(&self, partition: &Partition) -> Result<Vec<HotKey>> {
        Ok(self.shards.get(partition.shard)?.partition(partition.id).hot_keys())
    }

    /// How often a partition was asked for anything, since it was warmed up.
    pub fn requests(&self, partition: &Partition) -> Result<u64> {
        Ok(self.shards.get(partition.shard)?.partition(partition.id).requests())
    }

    /// Cuts a partition in two, whether or not the caller stays to hear of it.
    pub async fn split(&self, partition: Known, at: Bytes) -> Result<(Partition, Partition)> {
        let manager = self.manager.clone();
        self.to_the_end(async move { manager.split(partition, at).await }).await
    }

    /// Makes one partition of two neighbours on one shard, whether or not the caller stays to hear of it.
    pub async fn merge(&self, left: Known, right: Known) -> Result<Partition> {
        let manager = self.manager.clone();
        self.to_the_end(async move { manager.merge(left, right).await }).await
    }

    /// Gives the shardlet of a route a partition of its own, by up to two cuts. One that is alone stays as it is.
    pub async fn isolate(&self, partition: &Partition, route: &[u8]) -> Result<Isolated> {
        let container = self.manager.catalog().container(partition.container).await?;
        if !partition.routes.contains(route) {
            let message = format!("the key is not in partition {}", partition.id);
            return Err(Error::invalid("key-outside", message));
        }
        let unit = unit(&container, route)?;
        let mut pieces = Vec::new();
        let mut alone = partition.clone();
        if unit.start > partition.routes.start {
            let (before, rest) = self.split(Known::from(&alone), unit.start).await?;
            pieces.push(before);
            alone = rest;
        }
        let mut behind = None;
        if let Some(end) = unit.end.filter(|end| partition.routes.contains(end)) {
            let (this, rest) = self.split(Known::from(&alone), end).await?;
            alone = this;
            behind = Some(rest);
        }
        pieces.push(alone.clone());
        pieces.extend(behind);
        Ok(Isolated { pieces, alone })
    }
}

/// The routes of the unit that a key's `route | rest` belongs to.
fn unit(container: &Container, tail: &[u8]) -> Result<KeyRange> {
    match container.kind {
        MapKind::Hash => {
            let short = || Error::corrupt("route-corrupt", "a key of a hash map without a hash");
            let shard = virtual_shard(tail).ok_or_else(short)?;
            virtual_routes(shard..shard + 1)
        }
        MapKind::Range | MapKind::List | MapKind::EpkV1 | MapKind::EpkV2 | MapKind::EpkMulti => {
            let unit = container.kind.unit(&container.key, tail)?;
            Ok(KeyRange::prefix(Bytes::copy_from_slice(unit)))
        }
    }
}

fn indivisible(partition: PartitionId) -> Error {
    let message =
        format!("partition {partition} has no two shardlets, and one is never torn apart");
    Error::precondition("one-shardlet", message)
}
