//! The working state of a plan: the shard of each partition, the level of each shard, and the actions so far.
//!
//! The *level* of a shard is its load per capacity as a part of the mean of the whole fleet: at 1 it carries
//! exactly its share. Shards are kept ordered by level, for each group of shards that rules name, so that the fullest
//! and the emptiest are known after every move.

use std::collections::BTreeSet;

use crate::plan::{Action, Left, Move, Note, Why};
use crate::{Fleet, Goal, Load, Settings, ShardState};

/// Notes that a plan lists; the others are counted.
const NOTES_MAX: usize = 1_000;

/// Shards that some partitions may be on: all of them, or those of one pin.
pub(crate) struct Group {
    member: Vec<bool>,
    /// Online members, emptiest first, by each goal.
    order: [BTreeSet<(u64, usize)>; 3],
    /// The mean of their levels, by each goal.
    pub(crate) mean: [f64; 3],
}

impl Group {
    pub(crate) fn order(&self, goal: Goal) -> &BTreeSet<(u64, usize)> {
        &self.order[goal as usize]
    }

    pub(crate) fn has(&self, shard: usize) -> bool {
        self.member[shard]
    }
}

pub(crate) struct Board<'a> {
    pub(crate) fleet: &'a Fleet,
    pub(crate) settings: &'a Settings,
    /// The goals in use: those with a weight and with any load.
    pub(crate) goals: Vec<Goal>,
    pub(crate) groups: Vec<Group>,
    /// The shard of each partition, or its target if it is moving. Partitions of unknown shards are `held`.
    pub(crate) home: Vec<usize>,
    /// Partitions that must not be changed.
    held: Vec<bool>,
    /// Of these, those that only rest: forced moves may move them.
    resting: Vec<bool>,
    /// Shards with a split in this plan. The next plan moves the pieces, so nothing else has to leave.
    cutting: Vec<bool>,
    totals: Vec<[f64; 3]>,
    /// The mean load per capacity of the whole fleet.
    scale: [f64; 3],
    actions: Vec<Action>,
    notes: Vec<Note>,
    notes_unlisted: usize,
}

impl<'a> Board<'a> {
    pub(crate) fn new(fleet: &'a Fleet, settings: &'a Settings, now_ms: u64) -> Self {
        let place = fleet.places();
        let all = vec![true; fleet.shards.len()];
        let of_pin = fleet.pins.iter().map(|pin| {
            fleet.shards.iter().map(|shard| pin.shards.contains(&shard.id)).collect::<Vec<_>>()
        });
        let groups = std::iter::once(all).chain(of_pin).map(|member| Group {
            member,
            order: Default::default(),
            mean: [0.0; 3],
        });
        let mut board = Self {
            fleet,
            settings,
            goals: Vec::new(),
            groups: groups.collect(),
            home: Vec::with_capacity(fleet.partitions.len()),
            held: Vec::with_capacity(fleet.partitions.len()),
            resting: Vec::with_capacity(fleet.partitions.len()),
            cutting: vec![false; fleet.shards.len()],
            totals: Vec::new(),
            scale: [0.0; 3],
            actions: Vec::new(),
            notes: Vec::new(),
            notes_unlisted: 0,
        };
        for partition in &fleet.partitions {
            let home = place(partition.moving_to.unwrap_or(partition.shard));
            let away = home.is_none_or(|at| fleet.shards[at].state == ShardState::Away);
            let busy = partition.locked || partition.moving_to.is_some();
            let pinned = partition.pin.is_none_or(|pin| pin < fleet.pins.len());
            let rests = partition.changed_at_ms;
            board.home.push(home.unwrap_or(usize::MAX));
            board.held.push(away || busy || !pinned);
            board
                .resting
                .push(rests.is_some_and(|at| now_ms < at.saturating_add(settings.rest_ms)));
        }
        board.measure();
        board.settle();
        board
    }

    /// Computes the mean of the fleet. Partitions are summed in their own order, so that it does not depend on their
    /// shards.
    fn measure(&mut self) {
        let mut sums = [0.0; 3];
        for (partition, home) in self.fleet.partitions.iter().zip(&self.home) {
            let shard = self.fleet.shards.get(*home);
            if shard.is_some_and(|shard| shard.state != ShardState::Away) {
                Goal::ALL.iter().for_each(|goal| sums[*goal as usize] += partition.load.of(*goal));
            }
        }
        let online = self.fleet.shards.iter().filter(|shard| shard.state == ShardState::Online);
        let capacity: f64 = online.map(|shard| shard.capacity).sum();
        self.scale = sums.map(|sum| if capacity > 0.0 { sum / capacity } else { 0.0 });
        let counts =
            |goal: &Goal| self.settings.weights.of(*goal) > 0.0 && self.scale[*goal as usize] > 0.0;
        self.goals = Goal::ALL.into_iter().filter(counts).collect();
    }

    /// Computes the load of each shard from the partitions, and from that all levels, orders and means.
    pub(crate) fn settle(&mut self) {
        self.totals = vec![[0.0; 3]; self.fleet.shards.len()];
        for (partition, home) in self.fleet.partitions.iter().zip(&self.home) {
            if let Some(total) = self.totals.get_mut(*home) {
                Goal::ALL.iter().for_each(|goal| total[*goal as usize] += partition.load.of(*goal));
            }
        }
        for at in 0..self.groups.len() {
            let members: Vec<usize> = (0..self.fleet.shards.len())
                .filter(|shard| self.takes(*shard) && self.groups[at].has(*shard))
                .collect();
            let capacity: f64 = members.iter().map(|it| self.fleet.shards[*it].capacity).sum();
            for goal in Goal::ALL {
                let order = members.iter().map(|it| (self.level(*it, goal).to_bits(), *it));
                let order: BTreeSet<_> = order.collect();
                let total: f64 = members.iter().map(|it| self.totals[*it][goal as usize]).sum();
                let mean = total / (capacity * self.scale[goal as usize]);
                self.groups[at].order[goal as usize] = order;
                self.groups[at].mean[goal as usize] = if mean.is_finite() { mean } else { 0.0 };
            }
        }
    }

    /// The level of the shard.
    pub(crate) fn level(&self, shard: usize, goal: Goal) -> f64 {
        let whole = self.whole(shard, goal);
        // Adding and subtracting may leave a sum slightly below zero.
        if whole > 0.0 { (self.totals[shard][goal as usize] / whole).max(0.0) } else { 0.0 }
    }

    /// The load at which the shard carries exactly its share.
    pub(crate) fn whole(&self, shard: usize, goal: Goal) -> f64 {
        self.fleet.shards[shard].capacity * self.scale[goal as usize]
    }

    /// The level up to which the shard may be filled for partitions of this group: the mean of the group, plus the
    /// larger of half the band and the floor.
    pub(crate) fn ceiling(&self, shard: usize, group: usize, goal: Goal) -> f64 {
        let mean = self.groups[group].mean[goal as usize];
        let floor = self.settings.floor.of(goal) / self.whole(shard, goal);
        mean + f64::max(mean * self.settings.band / 2.0, floor)
    }

    pub(crate) fn fullest_level(&self, shard: usize) -> f64 {
        self.goals.iter().map(|goal| self.level(shard, *goal)).fold(0.0, f64::max)
    }

    pub(crate) fn takes(&self, shard: usize) -> bool {
        let shard = &self.fleet.shards[shard];
        shard.state == ShardState::Online && shard.capacity > 0.0
    }

    pub(crate) fn group_of(&self, partition: usize) -> usize {
        self.fleet.partitions[partition].pin.map_or(0, |pin| pin + 1)
    }

    pub(crate) fn is_held(&self, partition: usize) -> bool {
        self.held[partition]
    }

    pub(crate) fn is_free(&self, partition: usize) -> bool {
        !self.held[partition] && !self.resting[partition]
    }

    pub(crate) fn hold(&mut self, partition: usize) {
        self.held[partition] = true;
    }

    /// Holds a partition that is split, and its shard, for the rest of this plan.
    pub(crate) fn cut(&mut self, partition: usize) {
        self.hold(partition);
        self.cutting[self.home[partition]] = true;
    }

    pub(crate) fn is_cutting(&self, shard: usize) -> bool {
        self.cutting[shard]
    }

    pub(crate) fn is_full(&self) -> bool {
        self.actions.len() >= self.settings.actions_max
    }

    pub(crate) fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    pub(crate) fn note(&mut self, partition: usize, left: Left) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(Note { partition: self.fleet.partitions[partition].id, left });
        } else {
            self.notes_unlisted += 1;
        }
    }

    /// Puts the partition on another shard, for the rest of this plan.
    pub(crate) fn transfer(&mut self, partition: usize, to: usize, why: Why) -> Move {
        let from = self.home[partition];
        let figures = &self.fleet.partitions[partition];
        for goal in Goal::ALL {
            let load = figures.load.of(goal);
            self.relevel(from, goal, -load);
            self.relevel(to, goal, load);
        }
        self.home[partition] = to;
        self.hold(partition);
        let [from, to] = [from, to].map(|it| self.fleet.shards[it].id);
        let bytes_to_copy = figures.load.bytes.saturating_sub(figures.outside);
        Move { partition: figures.id, from, to, load: figures.load, bytes_to_copy, why }
    }

    fn relevel(&mut self, shard: usize, goal: Goal, more: f64) {
        let old = self.level(shard, goal).to_bits();
        self.totals[shard][goal as usize] += more;
        let new = self.level(shard, goal).to_bits();
        for group in &mut self.groups {
            let order = &mut group.order[goal as usize];
            if group.member[shard] && order.remove(&(old, shard)) {
                order.insert((new, shard));
            }
        }
    }

    /// The load of each shard after all actions so far.
    pub(crate) fn loads(&self) -> Vec<Load> {
        let mut loads = vec![Load::default(); self.fleet.shards.len()];
        for (partition, home) in self.fleet.partitions.iter().zip(&self.home) {
            if let Some(load) = loads.get_mut(*home) {
                *load += partition.load;
            }
        }
        loads
    }

    pub(crate) fn into_results(self) -> (Vec<Action>, Vec<Note>, usize) {
        (self.actions, self.notes, self.notes_unlisted)
    }
}
