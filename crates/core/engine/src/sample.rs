//! What was asked of the partitions in use since the last look: the raw material of a history.
//!
//! Every partition in use remembers what it has told already, so nothing is told twice, whichever shard a partition is on
//! and however often it was let go. Nothing here reads a store or wakes a partition; sizes of partitions that are not in use
//! come from [`LiveShard::sizes`].

use std::collections::BTreeMap;

use lazuli_shardmap::layout::{self, Space};
use lazuli_shardmap::{ContainerId, Partition, PartitionId, ShardId};
use lazuli_store::{Direction, KeyRange, PageLimit, Result, after_key};

use crate::engine::Engine;
use crate::latency::Latencies;
use crate::shard::{LiveShard, partition_of};
use crate::stats::{Counts, Size};

/// What was asked of one partition on one shard since the last sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    pub partition: PartitionId,
    /// Where it is; none if the shard does not hold it any more, or not yet.
    pub held: Option<Held>,
    /// What it holds, if that is known and has changed.
    pub size: Option<Size>,
    pub reads: u64,
    pub writes: u64,
    pub throttled: u64,
    pub read_times: Latencies,
    pub write_times: Latencies,
}

/// What was asked of partitions since they were warmed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub reads: u64,
    pub writes: u64,
    pub throttled: u64,
}

impl Asked {
    pub fn add(&mut self, other: &Self) {
        self.reads = self.reads.saturating_add(other.reads);
        self.writes = self.writes.saturating_add(other.writes);
        self.throttled = self.throttled.saturating_add(other.throttled);
    }
}

/// Whose a partition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub shard: ShardId,
    pub container: ContainerId,
}

impl Engine {
    /// What was asked of all partitions in use since the last call: for one caller, who calls again and again.
    pub fn sample(&self) -> Vec<Sample> {
        self.shards.all().iter().flat_map(|shard| shard.sample()).collect()
    }
}

impl LiveShard {
    fn sample(&self) -> Vec<Sample> {
        let mut samples = Vec::new();
        let mut gone = Vec::new();
        for partition in self.warm() {
            let row = self.local.get(partition.id);
            if matches!(row, Ok(None)) {
                gone.push(partition.id);
            }
            let held = row.ok().flatten();
            let held = held.map(|row| Held { shard: self.id, container: row.container });
            if let Some(mut sample) = partition.sample() {
                sample.held = held;
                sample.size = sample.size.filter(|_| held.is_some());
                samples.push(sample);
            }
        }
        // What has left the shard or was split is not asked for again.
        self.let_go(&gone);
        samples
    }

    /// What was asked of all partitions of this shard that are in use.
    pub fn asked(&self) -> Asked {
        let mut sum = Asked::default();
        self.warm().iter().for_each(|partition| sum.add(&partition.asked()));
        sum
    }

    /// What every partition of this shard holds, as far as it was ever counted, by partition. Reads one row for each.
    pub async fn sizes(&self) -> Result<BTreeMap<PartitionId, (Partition, Option<Size>)>> {
        let held = self.local.partitions()?.into_iter();
        let mut sizes: BTreeMap<_, _> = held.map(|row| (row.id, (row, None))).collect();
        let mut rest = KeyRange::prefix(layout::prefix(ContainerId::SYSTEM, Space::STATS));
        loop {
            let page = self.store.scan(&rest, Direction::Forward, PageLimit::MAX).await?;
            for (key, row) in &page.items {
                if let Some((_, size)) = sizes.get_mut(&partition_of(key)?) {
                    *size = Counts::decode(row.clone())?.size();
                }
            }
            match (page.more, page.items.last()) {
                (true, Some((last, _))) => rest.start = after_key(last),
                _ => return Ok(sizes),
            }
        }
    }
}
