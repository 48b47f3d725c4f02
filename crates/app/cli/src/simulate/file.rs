//! A fleet described in a JSON file.

use std::collections::BTreeMap;
use std::path::Path;

use lazuli_balance::{Fleet, Load, PartitionFigures, Pin, ShardFigures, ShardState};
use lazuli_shardmap::{ContainerId, PartitionId, ShardId};
use serde::Deserialize;

use lazuli_console::{Failure, Result};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    shards: Vec<Shard>,
    /// Those of one container follow each other in the order of their routes.
    partitions: Vec<Partition>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shard {
    id: u32,
    #[serde(default)]
    region: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default = "one")]
    capacity: f64,
    #[serde(default)]
    state: FileShardState,
}

fn one() -> f64 {
    1.0
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FileShardState {
    #[default]
    Online,
    Draining,
    Away,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Partition {
    shard: u32,
    container: u32,
    bytes: u64,
    #[serde(default)]
    requests: f64,
    #[serde(default)]
    items: u64,
    shardlets: Option<u64>,
    hot_share: Option<f64>,
    /// Whether it may be merged with the one behind it.
    #[serde(default)]
    joins_next: bool,
    /// The region and the labels that it is bound to.
    region: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

impl Partition {
    fn takes(&self, shard: &Shard) -> bool {
        self.region.as_ref().is_none_or(|region| *region == shard.region)
            && self.labels.iter().all(|(name, value)| shard.labels.get(name) == Some(value))
    }
}

pub(super) fn read(path: &Path) -> Result<Fleet> {
    let failed = |error: String| Failure::failed(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let file: File = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    fleet(&file).map_err(failed)
}

fn fleet(file: &File) -> std::result::Result<Fleet, String> {
    let mut fleet = Fleet::default();
    for shard in &file.shards {
        let id = ShardId(shard.id);
        if fleet.shards.iter().any(|other| other.id == id) {
            return Err(format!("there are two shards {id}"));
        }
        if !(shard.capacity.is_finite() && shard.capacity > 0.0) {
            return Err(format!("the capacity of shard {id} is a number above 0"));
        }
        let state = match shard.state {
            FileShardState::Online => ShardState::Online,
            FileShardState::Draining => ShardState::Draining,
            FileShardState::Away => ShardState::Away,
        };
        fleet.shards.push(ShardFigures { id, capacity: shard.capacity, state });
    }
    if !fleet.shards.iter().any(|shard| shard.state == ShardState::Online) {
        return Err("no shard is online".to_owned());
    }
    // Most partitions are bound to the same few regions and labels.
    let mut pins: BTreeMap<(Option<&str>, &BTreeMap<String, String>), usize> = BTreeMap::new();
    for (id, partition) in (1..).map(PartitionId).zip(&file.partitions) {
        let shard = ShardId(partition.shard);
        if !fleet.shards.iter().any(|other| other.id == shard) {
            return Err(format!("partition {id} is on shard {shard}, which is not there"));
        }
        let wrong = |what: &str| Err(format!("the {what} of partition {id} is out of bounds"));
        if !(partition.requests.is_finite() && partition.requests >= 0.0) {
            return wrong("requests");
        }
        if partition.hot_share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            return wrong("hot_share");
        }
        let bound = partition.region.is_some() || !partition.labels.is_empty();
        let pin = bound.then(|| {
            *pins.entry((partition.region.as_deref(), &partition.labels)).or_insert_with(|| {
                let fit = file.shards.iter().filter(|shard| partition.takes(shard));
                fleet.pin(Pin { shards: fit.map(|shard| ShardId(shard.id)).collect() })
            })
        });
        let (bytes, requests, items) = (partition.bytes, partition.requests, partition.items);
        let load = Load { bytes, requests, items };
        fleet.partitions.push(PartitionFigures {
            pin,
            shardlets: partition.shardlets,
            hot_share: partition.hot_share,
            joins_next: partition.joins_next,
            ..PartitionFigures::new(id, ContainerId(partition.container), shard, load)
        });
    }
    Ok(fleet)
}
