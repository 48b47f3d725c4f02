//! Splits: partitions that are too large or too busy are split in place, always between shardlets.

use crate::board::Board;
use crate::plan::{Action, Cut, Left, Piece, Split};
use crate::{Goal, Load, PartitionFigures, ShardState};

/// If the busiest shardlet has more than this share of the requests, the partition counts as that shardlet alone.
const ALONE_SHARE: f64 = 0.95;

impl Board<'_> {
    /// The pieces stay where they are, so no level changes. The same plan does not move them, because they have no ids yet.
    pub(crate) fn divide(&mut self) {
        for at in 0..self.fleet.partitions.len() {
            if self.is_full() {
                return;
            }
            let partition = &self.fleet.partitions[at];
            if !self.is_free(at) {
                continue;
            }
            match self.verdict(at) {
                Verdict::Fine => {}
                Verdict::Leave(left) => self.note(at, left),
                Verdict::Cut(cut) => {
                    let pieces = pieces(partition, cut);
                    let split =
                        Split { partition: partition.id, shard: partition.shard, cut, pieces };
                    self.cut(at);
                    self.act(Action::Split(split));
                }
            }
        }
    }

    fn verdict(&self, at: usize) -> Verdict {
        let partition = &self.fleet.partitions[at];
        // A partition that has to leave its shard is moved whole and split on its target.
        if self.fleet.shards[self.home[at]].state != ShardState::Online {
            return Verdict::Fine;
        }
        let single = partition.shardlets.is_some_and(|count| count <= 1);
        let hot = partition.hot_share.unwrap_or(0.0);
        let load = &partition.load;
        if load.requests > self.settings.split_requests || self.is_coarse(at, Goal::Requests) {
            return if single || hot >= ALONE_SHARE {
                Verdict::Leave(Left::HotShardlet)
            } else if hot >= self.settings.hot_share {
                Verdict::Cut(Cut::HotShardlet)
            } else {
                Verdict::Cut(Cut::Requests)
            };
        }
        let large = load.bytes > self.settings.split_bytes
            || self.is_coarse(at, Goal::Bytes)
            || self.is_coarse(at, Goal::Items);
        match large {
            false => Verdict::Fine,
            true if single => Verdict::Leave(Left::OneShardlet),
            true => Verdict::Cut(Cut::Bytes),
        }
    }

    /// Whether it is so large a part of its overloaded shard that moving it would only move the problem.
    fn is_coarse(&self, at: usize, goal: Goal) -> bool {
        let (home, load) = (self.home[at], self.fleet.partitions[at].load.of(goal));
        // Smaller pieces would be merged again.
        let merged = match goal {
            Goal::Bytes => self.settings.merge_bytes as f64,
            Goal::Requests => self.settings.merge_requests,
            Goal::Items => 0.0,
        };
        self.goals.contains(&goal)
            && load > self.whole(home, goal) * self.settings.split_share
            && load > 2.0 * f64::max(self.settings.floor.of(goal), merged)
            && self.is_too_full(home, self.group_of(at), goal, &mut false)
    }
}

enum Verdict {
    Fine,
    Cut(Cut),
    Leave(Left),
}

fn pieces(partition: &PartitionFigures, cut: Cut) -> Vec<Piece> {
    match cut {
        Cut::Bytes | Cut::Requests => halves(partition),
        Cut::HotShardlet => isolated(partition),
    }
}

/// Two halves. The busiest shardlet is in one of them; the rest is assumed to be spread evenly.
fn halves(partition: &PartitionFigures) -> Vec<Piece> {
    let load = partition.load;
    let hot = partition.hot_share.unwrap_or(0.0).min(1.0);
    let with_hot = f64::max(0.5, hot) * load.requests;
    let shardlets = partition.shardlets;
    let first = Piece {
        load: Load { bytes: load.bytes / 2, requests: with_hot, items: load.items / 2 },
        shardlets: shardlets.map(|count| count / 2),
        hot_share: partition.hot_share.map(|hot| hot / f64::max(0.5, hot)),
    };
    let second = Piece {
        load: rest(load, &[first.load]),
        shardlets: shardlets.map(|count| count - count / 2),
        hot_share: None,
    };
    vec![first, second]
}

/// The busiest shardlet alone, and the rest on both sides of it. It is assumed to be as large as the others.
fn isolated(partition: &PartitionFigures) -> Vec<Piece> {
    let load = partition.load;
    let count = partition.shardlets.unwrap_or(3).max(2);
    let requests = partition.hot_share.unwrap_or(1.0).min(1.0) * load.requests;
    let alone = Load { bytes: load.bytes / count, requests, items: load.items / count };
    let alone = Piece { load: alone, shardlets: Some(1), hot_share: Some(1.0) };
    let others = rest(load, &[alone.load]);
    let shardlets = partition.shardlets.map(|count| count - 1);
    if count == 2 {
        return vec![alone, Piece { load: others, shardlets, hot_share: None }];
    }
    let half =
        Load { bytes: others.bytes / 2, requests: others.requests / 2.0, items: others.items / 2 };
    let before = Piece { load: half, shardlets: shardlets.map(|count| count / 2), hot_share: None };
    let behind = Piece {
        load: rest(load, &[alone.load, half]),
        shardlets: shardlets.map(|count| count - count / 2),
        hot_share: None,
    };
    vec![before, alone, behind]
}

fn rest(load: Load, taken: &[Load]) -> Load {
    taken.iter().fold(load, |left, piece| Load {
        bytes: left.bytes - piece.bytes,
        requests: (left.requests - piece.requests).max(0.0),
        items: left.items - piece.items,
    })
}
