//! The result of a fleet when actions are done as predicted: for virtual time, and for tests.

use std::collections::BTreeMap;

use lazuli_shardmap::PartitionId;

use crate::plan::{Action, Merge, Split};
use crate::{Fleet, PartitionFigures};

impl Fleet {
    /// Applies all of these actions at once. New partitions get ids above all existing ones. Returns them, each with
    /// the first of the partitions that it was made of.
    pub fn apply(&mut self, actions: &[Action], now_ms: u64) -> BTreeMap<PartitionId, PartitionId> {
        let mut made_of = BTreeMap::new();
        let by_id: BTreeMap<PartitionId, &Action> =
            actions.iter().map(|action| (subject(action), action)).collect();
        let largest = self.partitions.iter().map(|it| it.id.0).max().unwrap_or(0);
        let mut ids = (largest + 1..).map(PartitionId);
        let mut fresh = || ids.next().unwrap_or(PartitionId(u64::MAX));
        let mut old = std::mem::take(&mut self.partitions).into_iter().peekable();
        self.partitions.reserve(old.len());
        while let Some(mut partition) = old.next() {
            match by_id.get(&partition.id) {
                None => self.partitions.push(partition),
                Some(Action::Move(one)) => {
                    partition.shard = one.to;
                    partition.moving_to = None;
                    partition.changed_at_ms = Some(now_ms);
                    self.partitions.push(partition);
                }
                Some(Action::Split(split)) => {
                    let pieces = pieces(&partition, split, &mut fresh);
                    made_of.extend(pieces.iter().map(|piece| (piece.id, partition.id)));
                    self.partitions.extend(pieces);
                }
                Some(Action::Merge(merge)) => match old.next_if(|right| right.id == merge.right) {
                    Some(right) => {
                        let one = merged(&partition, &right, merge, now_ms, fresh());
                        made_of.insert(one.id, partition.id);
                        self.partitions.push(one);
                    }
                    None => self.partitions.push(partition),
                },
            }
        }
        made_of
    }
}

/// The predicted part of a partition's bytes in block files that a piece has.
fn outside_of(whole: &PartitionFigures, bytes: u64) -> u64 {
    match whole.load.bytes {
        0 => 0,
        all => (whole.outside as f64 * (bytes as f64 / all as f64)) as u64,
    }
}

fn subject(action: &Action) -> PartitionId {
    match action {
        Action::Split(split) => split.partition,
        Action::Merge(merge) => merge.left,
        Action::Move(one) => one.partition,
    }
}

fn pieces(
    whole: &PartitionFigures,
    split: &Split,
    fresh: &mut impl FnMut() -> PartitionId,
) -> Vec<PartitionFigures> {
    let last = split.pieces.len().saturating_sub(1);
    let pieces = split.pieces.iter().enumerate().map(|(at, piece)| PartitionFigures {
        id: fresh(),
        load: piece.load,
        outside: outside_of(whole, piece.load.bytes),
        shardlets: piece.shardlets,
        hot_share: piece.hot_share,
        joins_next: at < last || whole.joins_next,
        changed_at_ms: None,
        ..whole.clone()
    });
    pieces.collect()
}

fn merged(
    left: &PartitionFigures,
    right: &PartitionFigures,
    merge: &Merge,
    now_ms: u64,
    id: PartitionId,
) -> PartitionFigures {
    let hottest = |it: &PartitionFigures| it.hot_share.map(|share| share * it.load.requests);
    let requests = merge.load.requests;
    let hot = hottest(left).zip(hottest(right)).map(|(left, right)| left.max(right) / requests);
    PartitionFigures {
        id,
        shard: merge.shard,
        load: left.load + right.load,
        outside: left.outside + right.outside,
        shardlets: left.shardlets.zip(right.shardlets).map(|(left, right)| left + right),
        hot_share: hot.filter(|share| share.is_finite()),
        joins_next: right.joins_next,
        moving_to: None,
        changed_at_ms: Some(now_ms),
        ..left.clone()
    }
}
