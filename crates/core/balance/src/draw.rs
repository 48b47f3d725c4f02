//! Random fleets for tests: the same seed gives the same fleet, and unusual ones are likely.

use std::collections::BTreeSet;

use lazuli_env::SplitMix64;
use lazuli_shardmap::{ContainerId, PartitionId, ShardId};

use crate::{Fleet, Load, PartitionFigures, Pin, ShardFigures, ShardState};

pub(crate) const MIB: u64 = 1 << 20;

pub(crate) struct Draw(SplitMix64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound)
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// A load of up to about 1 GiB and 1,000 requests per second, mostly much less.
    fn load(&mut self) -> Load {
        let small = |draw: &mut Self, top: usize| draw.below(top) * draw.below(top) / top;
        Load {
            bytes: small(self, 1024) as u64 * MIB,
            requests: small(self, 1_000) as f64,
            items: small(self, 1_000_000) as u64,
        }
    }

    /// Some shards with random partitions. Nothing is pinned, drained, split or merged.
    pub(crate) fn plain(&mut self) -> Fleet {
        let shards = 2 + self.below(20);
        let partitions = self.below(400);
        let used = 1 + self.below(shards);
        let mut fleet = Fleet::default();
        for id in 1..=shards as u32 {
            let capacity = if self.one_in(4) { 2.0 } else { 1.0 };
            fleet.shards.push(ShardFigures { capacity, ..ShardFigures::new(ShardId(id)) });
        }
        for id in 1..=partitions as u64 {
            let (load, shard) = (self.load(), ShardId(1 + self.below(used) as u32));
            let container = ContainerId(1 + id as u32 / 50);
            fleet.partitions.push(PartitionFigures::new(PartitionId(id), container, shard, load));
        }
        fleet
    }

    /// The same with all difficulties: pins, drained and unreachable shards, huge, hot and cold partitions, some of
    /// them busy.
    pub(crate) fn hard(&mut self) -> Fleet {
        let mut fleet = self.plain();
        for shard in &mut fleet.shards {
            shard.state = match self.below(12) {
                0 => ShardState::Draining,
                1 => ShardState::Away,
                _ => ShardState::Online,
            };
        }
        let ids: Vec<ShardId> = fleet.shards.iter().map(|shard| shard.id).collect();
        for _ in 0..self.below(4) {
            let shards: BTreeSet<_> = ids.iter().filter(|_| self.one_in(2)).copied().collect();
            fleet.pin(Pin { shards });
        }
        let pins = fleet.pins.len();
        let mut pin = None;
        for partition in &mut fleet.partitions {
            if self.one_in(10) {
                pin = (pins > 0 && self.one_in(2)).then(|| self.below(pins));
            }
            partition.pin = pin;
            partition.joins_next = !self.one_in(5);
            partition.locked = self.one_in(20);
            partition.moving_to = self.one_in(40).then(|| ids[self.below(ids.len())]);
            partition.shardlets = self.one_in(2).then(|| 1 + self.below(100) as u64);
            partition.hot_share = self.one_in(2).then(|| self.below(101) as f64 / 100.0);
            match self.below(20) {
                0 => partition.load.bytes += 20_000 * MIB,
                1 => partition.load.requests += 5_000.0,
                2..8 => partition.load = Load { bytes: MIB, requests: 0.0, items: 10 },
                _ => {}
            }
        }
        fleet
    }
}
