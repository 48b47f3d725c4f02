//! What the planner is told: shards, partitions, their figures, and where each may be.

use std::collections::BTreeSet;
use std::ops::{Add, AddAssign};

use lazuli_shardmap::placement::{Rule, allowed};
use lazuli_shardmap::{ContainerId, PartitionId, Shard, ShardId};
use lazuli_store::KeyRange;

/// What can be spread evenly.
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

/// What a partition, or all partitions of a shard, carry.
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
    /// Everything is to leave it, and nothing goes there.
    Draining,
    /// It cannot be reached: nothing leaves it and nothing goes there.
    Away,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ShardFigures {
    pub id: ShardId,
    /// How much it should carry compared with others: one of capacity 2 gets twice as much as one of 1.
    pub capacity: f64,
    pub state: ShardState,
}

impl ShardFigures {
    pub fn new(id: ShardId) -> Self {
        Self { id, capacity: 1.0, state: ShardState::Online }
    }
}

/// The shards that placement rules leave open to a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    pub shards: BTreeSet<ShardId>,
}

impl Pin {
    /// The shards on which these rules allow these routes; none where any shard will do.
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
    /// Those of its bytes that lie outside of its shard, so that a move does not copy them.
    pub outside: u64,
    /// The pin it is bound to, as [`Fleet::pin`] numbers them; none means that any shard will do.
    pub pin: Option<usize>,
    /// How many shardlets it has, if that is known.
    pub shardlets: Option<u64>,
    /// The share of its busiest shardlet in its requests, from 0 to 1, if that is known.
    pub hot_share: Option<f64>,
    /// Whether it may be merged with the one behind it: its routes end where that one's begin, in a map that merges.
    pub joins_next: bool,
    /// Where it is being moved to. It is counted there and left alone.
    pub moving_to: Option<ShardId>,
    /// Something else is done with it, so it is left alone.
    pub locked: bool,
    /// When it was last moved or merged, in milliseconds since 1970. It rests from then on, except from what must be.
    /// The pieces of a split do not rest: they are what is to be moved.
    pub changed_at_ms: Option<u64>,
}

/// An empty partition may be asked for so often in a second without being worth a move.
const EMPTY_REQUESTS_MAX: f64 = 1.0;

impl PartitionFigures {
    /// Whether it holds nothing and next to nothing is asked of it: whether it is here or there evens out nothing.
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

/// All that the planner knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    pub shards: Vec<ShardFigures>,
    /// Those of one container follow each other in the order of their routes.
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

    /// What each shard carries, in the order of the shards. Partitions under way count where they go.
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

    /// These loads of shards by their capacity, as multiples of the mean of those that are online.
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

    /// From a shard's id to its place in the list.
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
