//! The input of the planner: shards, partitions, their figures, and their allowed shards.

use std::collections::BTreeSet;
use std::ops::{Add, AddAssign};

use lazuli_shardmap::placement::{Rule, allowed};
use lazuli_shardmap::{ContainerId, PartitionId, Shard, ShardId};
use lazuli_store::KeyRange;

/// A dimension of load that is spread evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Goal {
    Bytes,
    Requests,
    Items,
}

impl Goal {
    pub const ALL: [Self; 3] = [Self::Bytes, Self::Requests, Self::Items];

    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Requests => "requests",
            Self::Items => "items",
        }
    }
}

/// The load of a partition, or of all partitions of a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    pub bytes: u64,
    /// Per second.
    pub requests: f64,
    pub items: u64,
}

impl Load {
    pub fn of(&self, goal: Goal) -> f64 {
        match goal {
            Goal::Bytes => self.bytes as f64,
            Goal::Requests => self.requests,
            Goal::Items => self.items as f64,
        }
    }
}

impl Add for Load {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            requests: self.requests + other.requests,
            items: self.items + other.items,
        }
    }
}

impl AddAssign for Load {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardState {
    Online,
    /// All partitions leave it, and none goes there.
    Draining,
    /// It cannot be reached: nothing leaves it and nothing goes there.
    Away,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ShardFigures {
    pub id: ShardId,
    /// Its share of the load relative to others: capacity 2 gets twice as much as 1.
    pub capacity: f64,
    pub state: ShardState,
}

impl ShardFigures {
    pub fn new(id: ShardId) -> Self {
        Self { id, capacity: 1.0, state: ShardState::Online }
    }
}

/// The shards that placement rules allow for a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    pub shards: BTreeSet<ShardId>,
}

impl Pin {
    /// The shards on which these rules allow these routes; none if any shard is allowed.
    pub fn of(rules: &[Rule], routes: &KeyRange, shards: &[Shard]) -> Option<Self> {
        if !rules.iter().any(|rule| rule.routes.overlaps(routes)) {
            return None;
        }
        let fit = shards.iter().filter(|shard| allowed(rules, routes, shard).is_ok());
        Some(Self { shards: fit.map(|shard| shard.id).collect() })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct PartitionFigures {
    pub id: PartitionId,
    pub container: ContainerId,
    pub shard: ShardId,
    pub load: Load,
    /// Its bytes in block files, which a move does not copy.
    pub outside: u64,
    /// Its pin, as numbered by [`Fleet::pin`]; none means that any shard is allowed.
    pub pin: Option<usize>,
    /// The number of its shardlets, if known.
    pub shardlets: Option<u64>,
    /// The share of its busiest shardlet in its requests, from 0 to 1, if known.
    pub hot_share: Option<f64>,
    /// Whether it may be merged with the next one: its routes end where those of the next one begin, in a map that merges.
    pub joins_next: bool,
    /// The target of its running move. It counts there and is left alone.
    pub moving_to: Option<ShardId>,
    /// Another operation uses it, so it is left alone.
    pub locked: bool,
    /// When it was last moved or merged, in milliseconds since 1970. It rests from then on, except for forced moves.
    /// The pieces of a split do not rest, because they shall be moved.
    pub changed_at_ms: Option<u64>,
}

/// Requests per second up to which an empty partition is not worth a move.
const EMPTY_REQUESTS_MAX: f64 = 1.0;

impl PartitionFigures {
    /// Whether it is empty and has almost no requests: moving it balances nothing.
    pub(crate) fn is_empty(&self) -> bool {
        let Load { bytes, requests, items } = self.load;
        bytes == 0 && items == 0 && requests < EMPTY_REQUESTS_MAX
    }

    pub fn new(id: PartitionId, container: ContainerId, shard: ShardId, load: Load) -> Self {
        Self {
            id,
            container,
            shard,
            load,
            outside: 0,
            pin: None,
            shardlets: None,
            hot_share: None,
            joins_next: false,
            moving_to: None,
            locked: false,
            changed_at_ms: None,
        }
    }
}

/// The input of the planner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    pub shards: Vec<ShardFigures>,
    /// Partitions of one container are in the order of their routes.
    pub partitions: Vec<PartitionFigures>,
    pub pins: Vec<Pin>,
}

impl Fleet {
    /// The number of this pin. Partitions with the same shards share one.
    pub fn pin(&mut self, pin: Pin) -> usize {
        let known = self.pins.iter().position(|other| *other == pin);
        known.unwrap_or_else(|| {
            self.pins.push(pin);
            self.pins.len() - 1
        })
    }

    /// The load of each shard, in the order of the shards. Moving partitions count on their target.
    pub fn loads(&self) -> Vec<Load> {
        let mut loads = vec![Load::default(); self.shards.len()];
        let place = self.places();
        for partition in &self.partitions {
            if let Some(at) = place(partition.moving_to.unwrap_or(partition.shard)) {
                loads[at] += partition.load;
            }
        }
        loads
    }

    /// These loads divided by the shards' capacity, as multiples of the mean of the online shards.
    pub fn levels(&self, loads: &[Load], goal: Goal) -> Vec<f64> {
        let online = self.shards.iter().filter(|shard| shard.state == ShardState::Online);
        let capacity: f64 = online.map(|shard| shard.capacity).sum();
        let total: f64 = loads.iter().map(|load| load.of(goal)).sum();
        let level = |(shard, load): (&ShardFigures, &Load)| {
            let level = load.of(goal) / shard.capacity / (total / capacity);
            if level.is_finite() { level } else { 0.0 }
        };
        self.shards.iter().zip(loads).map(level).collect()
    }

    /// The level of the fullest shard: 1 is perfectly even.
    pub fn peak(&self, loads: &[Load], goal: Goal) -> f64 {
        self.levels(loads, goal).into_iter().fold(0.0, f64::max)
    }

    /// From a shard's id to its index in the list.
    pub(crate) fn places(&self) -> impl Fn(ShardId) -> Option<usize> {
        let mut places: Vec<(ShardId, usize)> =
            self.shards.iter().enumerate().map(|(at, shard)| (shard.id, at)).collect();
        places.sort_unstable();
        move |id| places.binary_search_by_key(&id, |(id, _)| *id).ok().map(|at| places[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_pin_holds_the_shards_that_all_rules_allow() {
        let shard = |id: u32, region: &str| Shard {
            id: ShardId(id),
            name: format!("shard-{id}"),
            location: format!("shard-{id}"),
            region: region.to_owned(),
            labels: BTreeMap::new(),
            version: 1,
        };
        let shards = [shard(1, "eu"), shard(2, "us"), shard(3, "eu")];
        let rule = Rule {
            routes: KeyRange::new("m", None),
            region: Some("eu".to_owned()),
            labels: BTreeMap::new(),
        };
        let rules = [rule];
        let before = KeyRange::new("a", Some("m".into()));
        assert_eq!(Pin::of(&rules, &before, &shards), None);
        let pin = Pin::of(&rules, &KeyRange::all(), &shards).unwrap();
        assert_eq!(pin.shards, BTreeSet::from([ShardId(1), ShardId(3)]));
        let mut fleet = Fleet::default();
        assert_eq!(fleet.pin(pin.clone()), 0);
        assert_eq!(fleet.pin(pin), 0);
        assert_eq!(fleet.pin(Pin { shards: BTreeSet::new() }), 1);
    }
}
