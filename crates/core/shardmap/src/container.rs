//! A container as the catalog knows it: one key schema, one map, one set of policies.

use std::collections::BTreeMap;

use crate::ContainerId;
use crate::key::KeySchema;
use crate::placement::Rule;

/// How routes are made from partition keys and given to partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// Single keys to shards; a key that is not listed has no place (S5).
    List,
    /// Contiguous ranges of keys to shards (S6).
    Range,
    /// The hash of the key to a virtual shard, and ranges of virtual shards to shards (S7, S8).
    Hash,
    /// The effective key that clients compute by the first of its recipes, and ranges of these to shards (D1).
    EpkV1,
    /// The same by the second recipe: a hash of 128 bits.
    EpkV2,
    /// The same with one hash for each part of the key.
    EpkMulti,
}

/// What holds for all items of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    /// Whether every write leaves a change record.
    pub changes: bool,
    /// The budget of each partition in cost units per second; none means no limit.
    pub throughput: Option<u32>,
    /// What the container's front keeps about it: its name as people wrote it, who may see it.
    pub attributes: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    pub id: ContainerId,
    /// Unique. Fronts use `service/account/name`.
    pub name: String,
    pub kind: MapKind,
    pub key: KeySchema,
    /// The one schema of all shardlets of this map (S13): who opens the container with another one is refused.
    pub schema: String,
    pub placement: Vec<Rule>,
    pub policies: Policies,
    /// Grows with every change of this record or of any of its partitions.
    pub version: u64,
}
