//! A partition as the catalog and the local map know it.

use lazuli_store::KeyRange;

use crate::{ContainerId, Epoch, PartitionId, ShardId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionState {
    Online,
    ReadOnly,
    Offline,
    /// Online, on its way to another shard: every write also records its key.
    Sending,
    /// About to be another shard's: it can be read, and writes wait for a moment.
    Fenced,
}

impl PartitionState {
    /// Whether only a move brings a partition into this state, and out of it.
    pub fn is_moving(self) -> bool {
        matches!(self, Self::Sending | Self::Fenced)
    }
}

/// A contiguous slice of a container's routing space on exactly one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    pub id: PartitionId,
    pub container: ContainerId,
    /// The routes it holds.
    pub routes: KeyRange,
    pub shard: ShardId,
    pub epoch: Epoch,
    pub state: PartitionState,
}
