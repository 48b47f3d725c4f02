//! Merges: cold neighbours become one partition, so that splits of busy times are undone later.

use crate::ShardState;
use crate::board::Board;
use crate::plan::{Action, Merge, Why};

impl Board<'_> {
    /// Each partition takes part in one merge at most; a sequence of many neighbours gets shorter plan by plan.
    pub(crate) fn join(&mut self) {
        if self.settings.merge_bytes == 0 {
            return;
        }
        let mut left = 0;
        while left + 1 < self.fleet.partitions.len() && !self.is_full() {
            let merged = self.are_cold(left, left + 1) && self.merge(left, left + 1);
            left += if merged { 2 } else { 1 };
        }
    }

    fn are_cold(&self, left: usize, right: usize) -> bool {
        if !self.is_free(left) || !self.is_free(right) {
            return false;
        }
        let [one, other] = [left, right].map(|it| &self.fleet.partitions[it]);
        let both = one.load + other.load;
        let online = |at: usize| self.fleet.shards[self.home[at]].state == ShardState::Online;
        one.joins_next
            && one.container == other.container
            && one.pin == other.pin
            && both.bytes <= self.settings.merge_bytes
            && both.requests <= self.settings.merge_requests
            && online(left)
            && online(right)
    }

    /// Merges both on the shard of one of them, preferably of the larger one. False if neither shard has room for the
    /// other, or if an empty one would have to move.
    fn merge(&mut self, left: usize, right: usize) -> bool {
        let [one, other] = [left, right].map(|it| &self.fleet.partitions[it]);
        let load = one.load + other.load;
        let (large, small) =
            if one.load.bytes >= other.load.bytes { (left, right) } else { (right, left) };
        let first = if self.home[left] == self.home[right] {
            None
        } else if self.fleet.partitions[small].is_empty() {
            // An empty partition costs nothing where it is.
            return false;
        } else if self.has_room(self.home[large], small) {
            Some(self.transfer(small, self.home[large], Why::Merge))
        } else if self.has_room(self.home[small], large) {
            Some(self.transfer(large, self.home[small], Why::Merge))
        } else {
            return false;
        };
        self.hold(left);
        self.hold(right);
        let shard = self.fleet.shards[self.home[left]].id;
        self.act(Action::Merge(Merge { left: one.id, right: other.id, shard, first, load }));
        true
    }

    /// Whether the shard stays within its limit by every goal when it gets the partition.
    fn has_room(&self, shard: usize, partition: usize) -> bool {
        let group = self.group_of(partition);
        let load = &self.fleet.partitions[partition].load;
        self.takes(shard)
            && self.goals.iter().all(|goal| {
                let more = load.of(*goal) / self.whole(shard, *goal);
                more == 0.0 || self.level(shard, *goal) + more <= self.ceiling(shard, group, *goal)
            })
    }
}
