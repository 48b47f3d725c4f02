//! A plan: what should be done, why, and what comes of it.

use std::collections::{BTreeMap, BTreeSet};

use lazuli_shardmap::{PartitionId, ShardId};

use crate::board::Board;
use crate::{Fleet, Goal, Load, PartitionFigures, Settings, ShardState};

/// Why a partition moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its shard is to be emptied.
    Drain,
    /// The placement rules do not allow it where it is.
    Rules,
    /// The load goes from a full shard to an empty one.
    Even(Goal),
    /// Its neighbour, with which it is to be merged, is there.
    Merge,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move {
    pub partition: PartitionId,
    pub from: ShardId,
    pub to: ShardId,
    /// What goes along.
    pub load: Load,
    /// Those of its bytes that are copied: what lies outside of shards stays where it is.
    pub bytes_to_copy: u64,
    pub why: Why,
}

/// Where a partition is cut. Every cut lies between two shardlets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// In the middle of its bytes.
    Bytes,
    /// In the middle of its requests.
    Requests,
    /// Before and behind its busiest shardlet.
    HotShardlet,
}

/// A partition is cut in place. The pieces stay on its shard; a later plan may move them.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    pub partition: PartitionId,
    pub shard: ShardId,
    pub cut: Cut,
    /// What is expected of the pieces, in the order of routes.
    pub pieces: Vec<Piece>,
}

/// A partition that does not exist yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    pub load: Load,
    pub shardlets: Option<u64>,
    pub hot_share: Option<f64>,
}

/// Two neighbours become one, after one of them was moved to the other's shard if need be.
#[derive(Clone, Debug, PartialEq)]
pub struct Merge {
    pub left: PartitionId,
    pub right: PartitionId,
    /// Where both are in the end.
    pub shard: ShardId,
    pub first: Option<Move>,
    pub load: Load,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Split(Split),
    Merge(Merge),
    Move(Move),
}

impl Action {
    /// The partitions that it changes.
    fn partitions(&self) -> Vec<PartitionId> {
        match self {
            Self::Split(split) => vec![split.partition],
            Self::Merge(merge) => vec![merge.left, merge.right],
            Self::Move(one) => vec![one.partition],
        }
    }

    /// The move that is part of it, if one is.
    pub fn transfer(&self) -> Option<&Move> {
        match self {
            Self::Split(_) => None,
            Self::Merge(merge) => merge.first.as_ref(),
            Self::Move(one) => Some(one),
        }
    }
}

/// Why something that the settings ask for is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It has too many bytes, all of them in one shardlet, which is never torn apart.
    OneShardlet,
    /// It has too many requests, nearly all of them for one shardlet, which is alone already.
    HotShardlet,
    /// It has to leave its shard, and the rules leave it no other.
    NoPlace,
}

/// A partition that is left as it is, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    pub partition: PartitionId,
    pub left: Left,
}

/// Why a partition is not touched, whatever it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// It was moved or merged not long ago, and rests until this time in milliseconds since 1970.
    Changed { until_ms: u64 },
    /// It is on its way to another shard.
    Moving,
    /// Something else is done with it, it is not online, or what it holds is not known yet.
    Locked,
    /// Its shard does not answer.
    Away,
}

/// A partition that rests, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resting {
    pub partition: PartitionId,
    pub why: Rest,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In the order in which they should begin.
    pub actions: Vec<Action>,
    pub notes: Vec<Note>,
    /// How many more notes there would be.
    pub notes_unlisted: usize,
    /// Partitions that were not considered, as many as are listed, and how many more there are.
    pub resting: Vec<Resting>,
    pub resting_unlisted: usize,
    /// What each shard carries now and when all is done, in the order of the fleet's shards.
    pub before: Vec<Load>,
    pub after: Vec<Load>,
    /// The plan is as long as it may be; planning again after it goes on.
    pub cut_short: bool,
}

impl Plan {
    /// The bytes that all moves together copy.
    pub fn bytes_to_move(&self) -> u64 {
        self.actions.iter().filter_map(Action::transfer).map(|one| one.bytes_to_copy).sum()
    }
}

/// What should be done about this fleet. Settings that make no sense (see [`Settings::check`]) are the caller's to refuse.
///
/// First what must be: partitions that are too large or too busy are split, those that have to leave their shard leave it.
/// Then cold neighbours are merged, and what is uneven is evened out. No partition is touched twice by one plan.
pub fn plan(fleet: &Fleet, settings: &Settings, now_ms: u64) -> Plan {
    let before = fleet.loads();
    let mut board = Board::new(fleet, settings, now_ms);
    board.divide();
    board.force();
    board.settle();
    board.join();
    board.even();
    let after = board.loads();
    let cut_short = board.is_full();
    let (actions, notes, notes_unlisted) = board.into_results();
    let acted: BTreeSet<PartitionId> = actions.iter().flat_map(Action::partitions).collect();
    let mut resting = at_rest(fleet, settings, now_ms);
    // What has to leave its shard does, also when it rests.
    resting.retain(|one| !acted.contains(&one.partition));
    let resting_unlisted = resting.len().saturating_sub(RESTING_MAX);
    resting.truncate(RESTING_MAX);
    Plan { actions, notes, notes_unlisted, resting, resting_unlisted, before, after, cut_short }
}

/// The partitions that no plan touches at this time.
fn at_rest(fleet: &Fleet, settings: &Settings, now_ms: u64) -> Vec<Resting> {
    let place = fleet.places();
    let why = |one: &PartitionFigures| {
        let home = place(one.moving_to.unwrap_or(one.shard));
        if home.is_none_or(|at| fleet.shards[at].state == ShardState::Away) {
            return Some(Rest::Away);
        }
        if one.moving_to.is_some() {
            return Some(Rest::Moving);
        }
        if one.locked {
            return Some(Rest::Locked);
        }
        let until_ms = one.changed_at_ms?.saturating_add(settings.rest_ms);
        (now_ms < until_ms).then_some(Rest::Changed { until_ms })
    };
    let resting = |one: &PartitionFigures| why(one).map(|why| Resting { partition: one.id, why });
    fleet.partitions.iter().filter_map(resting).collect()
}

/// Plans one after another, each for what comes of the one before, until there is nothing left to do.
#[derive(Clone, Debug, PartialEq)]
pub struct WholePlan {
    /// None of them is empty but the last one, unless there are as many as there may be.
    pub plans: Vec<Plan>,
    /// Partitions that do not exist yet: the first of those that each is made of.
    pub made_of: BTreeMap<PartitionId, PartitionId>,
}

impl WholePlan {
    /// The partition of today that a partition is, or is made of.
    pub fn origin(&self, partition: PartitionId) -> PartitionId {
        let mut id = partition;
        while let Some(from) = self.made_of.get(&id) {
            id = *from;
        }
        id
    }
}

/// How many plans one after another are looked at.
const PLANS_MAX: usize = 32;

/// The whole way from this fleet to where nothing is left to do, as far as it can be foreseen: pieces of splits carry what
/// is expected of them, and what is moved or merged on the way rests from then on.
pub fn whole_plan(fleet: &Fleet, settings: &Settings, now_ms: u64) -> WholePlan {
    let mut whole = WholePlan { plans: Vec::new(), made_of: BTreeMap::new() };
    let mut fleet = fleet.clone();
    loop {
        let next = plan(&fleet, settings, now_ms);
        let is_last = next.actions.is_empty() || whole.plans.len() + 1 == PLANS_MAX;
        whole.made_of.extend(fleet.apply(&next.actions, now_ms));
        whole.plans.push(next);
        if is_last {
            return whole;
        }
    }
}

/// Partitions at rest that a plan lists; the others are counted.
const RESTING_MAX: usize = 1_000;
