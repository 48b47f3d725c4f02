//! A plan: actions, their reasons, and their predicted result.

use std::collections::{BTreeMap, BTreeSet};

use lazuli_shardmap::{PartitionId, ShardId};

use crate::board::Board;
use crate::{Fleet, Goal, Load, PartitionFigures, Settings, ShardState};

/// Why a partition moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its shard is drained.
    Drain,
    /// The placement rules forbid its shard.
    Rules,
    /// From a full shard to an empty one.
    Even(Goal),
    /// To its neighbour, with which it will be merged.
    Merge,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move {
    pub partition: PartitionId,
    pub from: ShardId,
    pub to: ShardId,
    /// The load that moves.
    pub load: Load,
    /// Bytes to copy: block files are not copied.
    pub bytes_to_copy: u64,
    pub why: Why,
}

/// Where a partition is split. Every cut is between two shardlets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// In the middle of its bytes.
    Bytes,
    /// In the middle of its requests.
    Requests,
    /// Before and after its busiest shardlet.
    HotShardlet,
}

/// A partition is split in place. The pieces stay on its shard; a later plan may move them.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    pub partition: PartitionId,
    pub shard: ShardId,
    pub cut: Cut,
    /// Predictions for the pieces, in the order of routes.
    pub pieces: Vec<Piece>,
}

/// A partition that does not exist yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    pub load: Load,
    pub shardlets: Option<u64>,
    pub hot_share: Option<f64>,
}

/// Two neighbours become one, after a move of one of them if they are on different shards.
#[derive(Clone, Debug, PartialEq)]
pub struct Merge {
    pub left: PartitionId,
    pub right: PartitionId,
    /// The shard of both in the end.
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

    /// Its move, if it has one.
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
    /// It has too many bytes, all of them in one shardlet, which is never split.
    OneShardlet,
    /// It has too many requests, nearly all of them for one shardlet, which is alone already.
    HotShardlet,
    /// It has to leave its shard, and the rules allow no other.
    NoPlace,
}

/// A partition that is left alone, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    pub partition: PartitionId,
    pub left: Left,
}

/// Why a partition is not changed, whatever its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// It was recently moved or merged, and rests until this time in milliseconds since 1970.
    Changed { until_ms: u64 },
    /// It is being moved.
    Moving,
    /// Another operation uses it, it is not online, or its size is not known yet.
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
    /// How many further notes are not listed.
    pub notes_unlisted: usize,
    /// Partitions that were left out, as many as are listed, and how many more there are.
    pub resting: Vec<Resting>,
    pub resting_unlisted: usize,
    /// The load of each shard now and after all actions, in the order of the fleet's shards.
    pub before: Vec<Load>,
    pub after: Vec<Load>,
    /// The plan has its maximum length; the next plan continues.
    pub cut_short: bool,
}

impl Plan {
    /// The bytes that all moves together copy.
    pub fn bytes_to_move(&self) -> u64 {
        self.actions.iter().filter_map(Action::transfer).map(|one| one.bytes_to_copy).sum()
    }
}

/// The plan for this fleet. The caller must refuse invalid settings (see [`Settings::check`]).
///
/// First what must be: partitions that are too large or too busy are split, those that have to leave their shard
/// are moved. Then cold neighbours are merged, and load is evened out. No partition is changed twice by one plan.
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
    // Forced moves apply to resting partitions too.
    resting.retain(|one| !acted.contains(&one.partition));
    let resting_unlisted = resting.len().saturating_sub(RESTING_MAX);
    resting.truncate(RESTING_MAX);
    Plan { actions, notes, notes_unlisted, resting, resting_unlisted, before, after, cut_short }
}

/// The partitions that no plan changes at this time.
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

/// A sequence of plans, each for the predicted result of the one before, until there is nothing left to do.
#[derive(Clone, Debug, PartialEq)]
pub struct WholePlan {
    /// Only the last one is empty, unless the maximum number of plans is reached.
    pub plans: Vec<Plan>,
    /// Partitions that do not exist yet, with the first of the partitions that each is made of.
    pub made_of: BTreeMap<PartitionId, PartitionId>,
}

impl WholePlan {
    /// The existing partition that a partition is, or is made of.
    pub fn origin(&self, partition: PartitionId) -> PartitionId {
        let mut id = partition;
        while let Some(from) = self.made_of.get(&id) {
            id = *from;
        }
        id
    }
}

/// Maximum number of plans.
const PLANS_MAX: usize = 32;

/// All plans from this fleet until nothing is left to do, as far as they can be predicted: pieces of splits have
/// their predicted load, and partitions that are moved or merged on the way rest from then on.
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

/// Resting partitions that a plan lists; the others are counted.
const RESTING_MAX: usize = 1_000;
