//! A random fleet that follows from a seed.

use lazuli_balance::{Fleet, Load, PartitionFigures, ShardFigures, ShardState};
use lazuli_env::SplitMix64;
use lazuli_shardmap::{ContainerId, PartitionId, ShardId};

use super::args::{Simulate, Spread, Start};
use lazuli_console::{Failure, Result};

/// Requests per second of each shard on average, unless given.
const REQUESTS_PER_SHARD: f64 = 1_000.0;
/// How many partitions a container has. Only neighbours in one container can be merged.
const CONTAINER_PARTITIONS: u64 = 100;
const ITEM_BYTES: u64 = 1_024;
const SHARDLETS_MAX: usize = 1_000;
/// The largest share of the busiest shardlet of a partition; most are far below it.
const HOT_SHARE_MAX: f64 = 0.8;
/// The smallest and the largest partition, in multiples of the average bytes.
const SIZE_MIN: f64 = 0.25;
const SIZE_MAX: f64 = 8.0;

pub(super) fn fleet(wanted: &Simulate) -> Result<Fleet> {
    let (empty, drain) = (wanted.empty, wanted.drain);
    if empty.saturating_add(drain) >= wanted.shards {
        return Err(Failure::usage("one shard at least is neither empty nor drained"));
    }
    let mut draw = SplitMix64::new(wanted.seed);
    let mut fleet = Fleet::default();
    for id in 1..=wanted.shards {
        let state = if id <= drain { ShardState::Draining } else { ShardState::Online };
        fleet.shards.push(ShardFigures { state, ..ShardFigures::new(ShardId(id as u32)) });
    }
    let used = wanted.shards - empty;
    let requests = requests(wanted, &mut draw);
    fleet.partitions.reserve(requests.len());
    for (at, requests) in (0_u64..).zip(requests) {
        let shard = match wanted.start {
            Start::OneShard => 1,
            Start::Even => 1 + at % used,
            Start::Random => 1 + draw.below(used as usize) as u64,
        };
        let size = (SIZE_MIN + (SIZE_MIN - 1.0) * (1.0 - draw.unit()).ln()).min(SIZE_MAX);
        let bytes = (wanted.bytes as f64 * size) as u64;
        let load = Load { bytes, requests, items: bytes / ITEM_BYTES };
        let container = ContainerId((1 + at / CONTAINER_PARTITIONS) as u32);
        let last = (at + 1) % CONTAINER_PARTITIONS == 0 || at + 1 == wanted.partitions;
        let shardlets = 1 + draw.below(SHARDLETS_MAX) as u64;
        let hot = draw.unit();
        fleet.partitions.push(PartitionFigures {
            joins_next: !last,
            shardlets: Some(shardlets),
            hot_share: Some((HOT_SHARE_MAX * hot * hot).max(1.0 / shardlets as f64)),
            ..PartitionFigures::new(PartitionId(at + 1), container, ShardId(shard as u32), load)
        });
    }
    Ok(fleet)
}

/// The requests of each partition: distributed as wanted, in random order.
fn requests(wanted: &Simulate, draw: &mut SplitMix64) -> Vec<f64> {
    let total = wanted.requests.unwrap_or(REQUESTS_PER_SHARD * wanted.shards as f64);
    let weight = |rank: u64| match wanted.load {
        Spread::Uniform => 1.0,
        Spread::Zipf(exponent) => (rank as f64).powf(-exponent),
    };
    let mut loads: Vec<f64> = (1..=wanted.partitions).map(weight).collect();
    let unit = total / loads.iter().sum::<f64>();
    loads.iter_mut().for_each(|load| *load *= unit);
    for last in (1..loads.len()).rev() {
        loads.swap(last, draw.below(last + 1));
    }
    loads
}
