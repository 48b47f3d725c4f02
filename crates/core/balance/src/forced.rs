//! Forced moves: away from drained shards, and away from shards that the placement rules forbid.

use crate::board::Board;
use crate::plan::{Action, Left, Why};
use crate::{Goal, ShardState};

/// How many of the emptiest shards by each goal are compared.
const TARGETS_COMPARED: usize = 8;

impl Board<'_> {
    /// The heaviest go first, each to the shard whose worst goal stays lowest. Resting ones are moved too.
    pub(crate) fn force(&mut self) {
        let mut leaving: Vec<(u64, usize, Why)> = (0..self.home.len())
            .filter(|partition| !self.is_held(*partition))
            .filter_map(|partition| {
                let why = self.must_leave(partition)?;
                Some((self.heaviest(partition).to_bits(), partition, why))
            })
            .collect();
        leaving.sort_by_key(|(weight, partition, _)| (std::cmp::Reverse(*weight), *partition));
        let mut arrived = vec![0_usize; self.fleet.shards.len()];
        for (_, partition, why) in leaving {
            if self.is_full() {
                return;
            }
            match self.lowest(partition, &arrived) {
                Some(to) => {
                    arrived[to] += 1;
                    let one = self.transfer(partition, to, why);
                    self.act(Action::Move(one));
                }
                None => {
                    self.hold(partition);
                    self.note(partition, Left::NoPlace);
                }
            }
        }
    }

    fn must_leave(&self, partition: usize) -> Option<Why> {
        let home = self.home[partition];
        if self.fleet.shards[home].state == ShardState::Draining {
            Some(Why::Drain)
        } else if !self.groups[self.group_of(partition)].has(home) {
            Some(Why::Rules)
        } else {
            None
        }
    }

    /// Its load by its heaviest goal, as a part of the mean load of a shard of capacity 1.
    fn heaviest(&self, partition: usize) -> f64 {
        let load = &self.fleet.partitions[partition].load;
        let home = self.home[partition];
        let parts = self.goals.iter().map(|goal| {
            let whole = self.whole(home, *goal) / self.fleet.shards[home].capacity;
            load.of(*goal) / whole
        });
        parts.filter(|part| part.is_finite()).fold(0.0, f64::max)
    }

    fn lowest(&self, partition: usize, arrived: &[usize]) -> Option<usize> {
        let group = &self.groups[self.group_of(partition)];
        let load = &self.fleet.partitions[partition].load;
        let goals = if self.goals.is_empty() { &Goal::ALL[..] } else { &self.goals };
        let emptiest =
            goals.iter().flat_map(|goal| group.order(*goal).iter().take(TARGETS_COMPARED));
        let level_with = |shard: usize| {
            let with =
                |goal: &Goal| self.level(shard, *goal) + load.of(*goal) / self.whole(shard, *goal);
            goals.iter().map(with).filter(|level| level.is_finite()).fold(0.0, f64::max).to_bits()
        };
        let shards = emptiest.map(|(_, shard)| *shard);
        shards.min_by_key(|shard| (level_with(*shard), arrived[*shard], *shard))
    }
}
