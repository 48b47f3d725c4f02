//! A plan: what should be done, why, and what comes of it.

use lazuli_shardmap::{PartitionId, ShardId};

use crate::board::Board;
use crate::{Fleet, Goal, Load, Settings};

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

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In the order in which they should begin.
    pub actions: Vec<Action>,
    pub notes: Vec<Note>,
    /// How many more notes there would be.
    pub notes_unlisted: usize,
    /// What each shard carries now and when all is done, in the order of the fleet's shards.
    pub before: Vec<Load>,
    pub after: Vec<Load>,
    /// The plan is as long as it may be; planning again after it goes on.
    pub cut_short: bool,
}

impl Plan {
    /// The bytes that all moves together copy.
    pub fn bytes_to_move(&self) -> u64 {
        self.actions.iter().filter_map(Action::transfer).map(|one| one.load.bytes).sum()
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
    Plan { actions, notes, notes_unlisted, before, after, cut_short }
}
