//! A fleet drawn from a seed.

use lazuli_balance::{Fleet, Load, PartitionFigures, ShardFigures, ShardState};
use lazuli_shardmap::{ContainerId, PartitionId, ShardId};

use crate::args::simulate::{Simulate, Spread, Start};
use crate::failure::{Failure, Result};

/// Requests per second of each shard on average, unless told otherwise.
const REQUESTS_PER_SHARD: f64 = 1_000.0;
/// Neighbours are found in containers of so many partitions.
const CONTAINER_PARTITIONS: u64 = 100;
const ITEM_BYTES: u64 = 1_024;
const SHARDLETS_MAX: u64 = 1_000;
/// The largest share of a busiest shardlet in what is drawn; most are far below it.
const HOT_SHARE_MAX: f64 = 0.8;
/// A partition has from so much of the average bytes to so much.
const SIZE_MIN: f64 = 0.25;
const SIZE_MAX: f64 = 8.0;

/// SplitMix64: the same seed draws the same on every machine.
pub(super) struct Draw(pub(super) u64);

impl Draw {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    /// From 0 up to, not including, 1.
    fn part(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

pub(super) fn fleet(wanted: &Simulate) -> Result<Fleet> {
    let (empty, drain) = (wanted.empty, wanted.drain);
    if empty.saturating_add(drain) >= wanted.shards {
        return Err(Failure::usage("one shard at least is neither empty nor drained"));
    }
    let mut draw = Draw(wanted.seed);
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
            Start::Random => 1 + draw.below(used),
        };
        let size = (SIZE_MIN + (SIZE_MIN - 1.0) * (1.0 - draw.part()).ln()).min(SIZE_MAX);
        let bytes = (wanted.bytes as f64 * size) as u64;
        let load = Load { bytes, requests, items: bytes / ITEM_BYTES };
        let container = ContainerId((1 + at / CONTAINER_PARTITIONS) as u32);
        let last = (at + 1) % CONTAINER_PARTITIONS == 0 || at + 1 == wanted.partitions;
        let shardlets = 1 + draw.below(SHARDLETS_MAX);
        let hot = draw.part();
        fleet.partitions.push(PartitionFigures {
            joins_next: !last,
            shardlets: Some(shardlets),
            hot_share: Some((HOT_SHARE_MAX * hot * hot).max(1.0 / shardlets as f64)),
            ..PartitionFigures::new(PartitionId(at + 1), container, ShardId(shard as u32), load)
        });
    }
    Ok(fleet)
}

/// The requests of each partition: ranks by the wanted law, dealt out by chance.
fn requests(wanted: &Simulate, draw: &mut Draw) -> Vec<f64> {
    let total = wanted.requests.unwrap_or(REQUESTS_PER_SHARD * wanted.shards as f64);
    let weight = |rank: u64| match wanted.load {
        Spread::Uniform => 1.0,
        Spread::Zipf(exponent) => (rank as f64).powf(-exponent),
    };
    let mut loads: Vec<f64> = (1..=wanted.partitions).map(weight).collect();
    let unit = total / loads.iter().sum::<f64>();
    loads.iter_mut().for_each(|load| *load *= unit);
    for last in (1..loads.len()).rev() {
        loads.swap(last, draw.below(last as u64 + 1) as usize);
    }
    loads
}
