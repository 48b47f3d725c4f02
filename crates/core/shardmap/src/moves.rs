//! A move as the catalog keeps it: a partition on its way from one shard to another, and who leads it.

use lazuli_env::Id;
use lazuli_store::KeyRange;

use crate::record::{record_choice, record_fields};
use crate::{ContainerId, PartitionId, ShardId};

/// How far a move has been decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveStage {
    /// The data is on its way; the source owns it.
    Copying,
    /// The source takes no more writes; it still owns the data.
    Fenced,
    /// The target owns the data; the source has some left to delete. There is no way back.
    Arrived,
    /// Called off: the source owns the data and takes writes again; the target still expects it.
    Cancelled,
    /// Called off: the target has some left to delete.
    Cleared,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The version of the catalog that began it: never used again.
    pub number: u64,
    /// Grows whenever another engine takes the lead. One with a lower epoch is refused.
    pub epoch: u64,
    /// With which the partition is locked.
    pub token: Id,
    pub partition: PartitionId,
    pub container: ContainerId,
    pub routes: KeyRange,
    pub source: ShardId,
    pub target: ShardId,
    pub stage: MoveStage,
    /// Whether it rests until it is resumed.
    pub is_paused: bool,
    /// The longest time for which writers may have to wait.
    pub pause_limit_ms: u64,
    /// The most bytes that are copied in a second; zero is no limit.
    pub bytes_per_second: u64,
    pub begun_ms: u64,
}

impl Move {
    /// Whether it begins or ends on this shard.
    pub fn names(&self, shard: ShardId) -> bool {
        self.source == shard || self.target == shard
    }

    /// Whether it can still be called off.
    pub fn is_open(&self) -> bool {
        matches!(self.stage, MoveStage::Copying | MoveStage::Fenced)
    }
}

record_choice!(MoveStage { Copying = 1, Fenced = 2, Arrived = 3, Cancelled = 4, Cleared = 5 });
record_fields!(Move {
    number,
    epoch,
    token,
    partition,
    container,
    routes,
    source,
    target,
    stage,
    is_paused,
    pause_limit_ms,
    bytes_per_second,
    begun_ms,
});
