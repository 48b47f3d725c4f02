//! Evening out: from the fullest shard to the emptiest allowed one, the partition that brings both nearest to the mean.
//!
//! Every move lowers the sum of the squares of all levels, so moves terminate and none is reversed. Passes are
//! repeated until one finds nothing: a second plan on the result of the plan then finds nothing either.

use std::collections::BTreeSet;

use crate::board::Board;
use crate::plan::{Action, Why};
use crate::residents::Residents;
use crate::{Fleet, Goal};

/// How many of the emptiest shards are tried as targets for a full one.
const TARGETS_TRIED: usize = 8;
/// How many of the fullest shards are tried as sources for an empty one.
const SOURCES_TRIED: usize = 32;

/// Shards that were outside of the band in this plan, by goal: they are brought to half of it.
struct Begun {
    full: Vec<[bool; 3]>,
    empty: Vec<[bool; 3]>,
}

impl Begun {
    fn new(fleet: &Fleet) -> Self {
        let none = vec![[false; 3]; fleet.shards.len()];
        Self { full: none.clone(), empty: none }
    }
}

/// A possible move.
#[derive(Clone, Copy)]
struct Candidate {
    partition: usize,
    from: usize,
    to: usize,
    goal: Goal,
    gain: f64,
}

impl Board<'_> {
    pub(crate) fn even(&mut self) {
        if self.goals.is_empty() {
            return;
        }
        let mut residents = Residents::new(self);
        let mut begun = Begun::new(self.fleet);
        loop {
            self.settle();
            let moves =
                self.relieve(&mut residents, &mut begun) + self.fill(&mut residents, &mut begun);
            if moves == 0 || self.is_full() {
                return;
            }
        }
    }

    /// Takes from the fullest shards until each is within the band or has no suitable partition.
    fn relieve(&mut self, residents: &mut Residents, begun: &mut Begun) -> usize {
        let mut moves = 0;
        let key = |board: &Self, shard| (board.fullest_level(shard).to_bits(), shard);
        let online = (0..self.fleet.shards.len()).filter(|shard| self.takes(*shard));
        let mut fullest: BTreeSet<(u64, usize)> = online.map(|shard| key(self, shard)).collect();
        while let Some((_, from)) = fullest.pop_last() {
            if self.is_full() {
                break;
            }
            let Some(best) = self.best_from(from, residents, begun) else { continue };
            let target = key(self, best.to);
            self.make(best, residents);
            moves += 1;
            fullest.insert(key(self, from));
            if fullest.remove(&target) {
                fullest.insert(key(self, best.to));
            }
        }
        moves
    }

    /// Gives to the emptiest shards until each is within the band or nothing fits.
    fn fill(&mut self, residents: &mut Residents, begun: &mut Begun) -> usize {
        let mut moves = 0;
        let key = |board: &Self, shard| (board.fullest_level(shard).to_bits(), shard);
        let online = (0..self.fleet.shards.len()).filter(|shard| self.takes(*shard));
        let mut emptiest: BTreeSet<(u64, usize)> = online.map(|shard| key(self, shard)).collect();
        while let Some((_, to)) = emptiest.pop_first() {
            if self.is_full() {
                break;
            }
            if let Some(best) = self.best_to(to, residents, begun) {
                self.make(best, residents);
                moves += 1;
                emptiest.insert(key(self, to));
            }
        }
        moves
    }

    fn make(&mut self, best: Candidate, residents: &mut Residents) {
        let one = self.transfer(best.partition, best.to, Why::Even(best.goal));
        residents.forget(self, best.from, best.partition);
        self.act(Action::Move(one));
    }

    fn best_from(
        &self,
        from: usize,
        residents: &mut Residents,
        begun: &mut Begun,
    ) -> Option<Candidate> {
        if self.is_cutting(from) {
            return None;
        }
        let mut goals = self.goals.clone();
        goals.sort_by(|a, b| self.level(from, *b).total_cmp(&self.level(from, *a)));
        for goal in goals {
            let mut best: Option<Candidate> = None;
            for lot in 0..residents.lots(from).len() {
                let group = residents.lots(from)[lot].group;
                if !self.is_too_full(from, group, goal, &mut begun.full[from][goal as usize]) {
                    continue;
                }
                let order = self.groups[group].order(goal);
                let targets = order.iter().map(|(_, to)| *to).filter(|to| *to != from);
                let found = targets
                    .take(TARGETS_TRIED)
                    .find_map(|to| self.best_between((from, lot), to, goal, residents));
                best = better(best, found);
            }
            if best.is_some() {
                return best;
            }
        }
        None
    }

    fn best_to(
        &self,
        to: usize,
        residents: &mut Residents,
        begun: &mut Begun,
    ) -> Option<Candidate> {
        let mut goals = self.goals.clone();
        goals.sort_by(|a, b| self.level(to, *a).total_cmp(&self.level(to, *b)));
        for goal in goals {
            for (at, group) in self.groups.iter().enumerate().filter(|(_, group)| group.has(to)) {
                if !self.is_too_empty(to, at, goal, &mut begun.empty[to][goal as usize]) {
                    continue;
                }
                let sources = group.order(goal).iter().rev().map(|(_, from)| *from);
                let sources = sources
                    .filter(|from| *from != to && !self.is_cutting(*from))
                    .take(SOURCES_TRIED);
                for from in
                    sources.take_while(|it| self.level(*it, goal) > group.mean[goal as usize])
                {
                    let lot = residents.lots(from).iter().position(|lot| lot.group == at);
                    let found =
                        lot.and_then(|lot| self.best_between((from, lot), to, goal, residents));
                    if found.is_some() {
                        return found;
                    }
                }
            }
        }
        None
    }

    pub(crate) fn is_too_full(
        &self,
        shard: usize,
        group: usize,
        goal: Goal,
        begun: &mut bool,
    ) -> bool {
        let mean = self.groups[group].mean[goal as usize];
        let (level, band) = (self.level(shard, goal), self.settings.band);
        let excess = (level - mean) * self.whole(shard, goal);
        let worth = excess > self.settings.floor.of(goal);
        *begun |= worth && level > mean * (1.0 + band);
        worth && *begun && level > mean * (1.0 + band / 2.0)
    }

    fn is_too_empty(&self, shard: usize, group: usize, goal: Goal, begun: &mut bool) -> bool {
        let mean = self.groups[group].mean[goal as usize];
        let (level, band) = (self.level(shard, goal), self.settings.band);
        let lack = (mean - level) * self.whole(shard, goal);
        let worth = lack > self.settings.floor.of(goal);
        *begun |= worth && level < mean * (1.0 - band);
        worth && *begun && level < mean * (1.0 - band / 2.0)
    }

    /// Of the partitions of a lot, the one whose move to this shard gains most.
    fn best_between(
        &self,
        (from, lot): (usize, usize),
        to: usize,
        goal: Goal,
        residents: &mut Residents,
    ) -> Option<Candidate> {
        let group = residents.lots(from)[lot].group;
        let mean = self.groups[group].mean[goal as usize];
        let [source, target] = [from, to].map(|it| self.whole(it, goal));
        let (high, low) = (self.level(from, goal), self.level(to, goal));
        if high <= low {
            return None;
        }
        // Up to the mean on both sides; if one is beyond it already, until both are equal.
        let to_mean = f64::min((high - mean) * source, (mean - low) * target);
        let alike = (high - low) / (1.0 / source + 1.0 / target);
        let wanted = if to_mean > 0.0 { to_mean } else { alike };
        let mut best = None;
        for partition in residents.near(self, (from, lot), goal, wanted) {
            let gain = self.gain(partition, from, to);
            let found = gain.map(|gain| Candidate { partition, from, to, goal, gain });
            best = better(best, found);
        }
        best
    }

    /// By how much the move lowers the sum of squares; none if it is too little, or overfills the target by any goal.
    fn gain(&self, partition: usize, from: usize, to: usize) -> Option<f64> {
        let figures = &self.fleet.partitions[partition];
        let group = self.group_of(partition);
        let [source, target] = [from, to].map(|it| self.fleet.shards[it].capacity);
        let (mut gain, mut own) = (0.0, 0.0);
        for goal in &self.goals {
            let load = figures.load.of(*goal);
            let (less, more) = (load / self.whole(from, *goal), load / self.whole(to, *goal));
            let (high, low) = (self.level(from, *goal), self.level(to, *goal));
            if more > 0.0 && low + more > self.ceiling(to, group, *goal).max(high) {
                return None;
            }
            let weight = self.settings.weights.of(*goal);
            gain += weight * source * less * (2.0 * high - less);
            gain -= weight * target * more * (2.0 * low + more);
            own += weight * (source * less * less + target * more * more);
        }
        (gain > 0.0 && gain >= self.settings.gain_min * own).then_some(gain)
    }
}

fn better(one: Option<Candidate>, other: Option<Candidate>) -> Option<Candidate> {
    match (one, other) {
        (Some(one), Some(other)) if other.gain > one.gain => Some(other),
        (None, other) => other,
        (one, _) => one,
    }
}
