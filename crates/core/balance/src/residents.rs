//! The partitions of each shard that a plan may still move, sorted by load so that one of a wanted size is found quickly.
//!
//! A shard is sorted at its first use: a plan of a few moves touches few shards of many.

use std::collections::BTreeSet;

use crate::Goal;
use crate::board::Board;

/// How many partitions on each side of the wanted size are compared.
const NEAR: usize = 8;

/// Partitions of one shard that may go to the same group of shards.
pub(crate) struct Lot {
    pub(crate) group: usize,
    partitions: Vec<usize>,
    sorted: [Option<BTreeSet<(u64, usize)>>; 3],
}

pub(crate) struct Residents {
    lots: Vec<Vec<Lot>>,
}

impl Residents {
    pub(crate) fn new(board: &Board<'_>) -> Self {
        let mut lots: Vec<Vec<Lot>> = board.fleet.shards.iter().map(|_| Vec::new()).collect();
        for partition in (0..board.home.len())
            .filter(|it| board.is_free(*it) && !board.fleet.partitions[*it].is_empty())
        {
            let group = board.group_of(partition);
            let lots = &mut lots[board.home[partition]];
            match lots.iter_mut().find(|lot| lot.group == group) {
                Some(lot) => lot.partitions.push(partition),
                None => {
                    let sorted = [None, None, None];
                    lots.push(Lot { group, partitions: vec![partition], sorted });
                }
            }
        }
        Self { lots }
    }

    pub(crate) fn lots(&self, shard: usize) -> &[Lot] {
        &self.lots[shard]
    }

    /// The partitions of a lot whose load is nearest to the wanted one, from both sides.
    pub(crate) fn near(
        &mut self,
        board: &Board<'_>,
        (shard, lot): (usize, usize),
        goal: Goal,
        wanted: f64,
    ) -> Vec<usize> {
        let lot = &mut self.lots[shard][lot];
        let sorted = lot.sorted[goal as usize].get_or_insert_with(|| {
            let left = lot.partitions.iter().filter(|it| !board.is_held(**it));
            left.map(|it| (bits(board, *it, goal), *it)).collect()
        });
        let at = (wanted.max(0.0).to_bits(), usize::MAX);
        let below = sorted.range(..=at).rev().take(NEAR);
        let above = sorted.range(at..).take(NEAR);
        below.chain(above).map(|(_, partition)| *partition).collect()
    }

    /// Removes a partition that has moved from this shard.
    pub(crate) fn forget(&mut self, board: &Board<'_>, shard: usize, partition: usize) {
        let group = board.group_of(partition);
        for lot in self.lots[shard].iter_mut().filter(|lot| lot.group == group) {
            for goal in Goal::ALL {
                if let Some(sorted) = &mut lot.sorted[goal as usize] {
                    sorted.remove(&(bits(board, partition, goal), partition));
                }
            }
        }
    }
}

/// Loads are never negative, so their bits sort like their values.
fn bits(board: &Board<'_>, partition: usize, goal: Goal) -> u64 {
    board.fleet.partitions[partition].load.of(goal).max(0.0).to_bits()
}
