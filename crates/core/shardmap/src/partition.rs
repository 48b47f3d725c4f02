//! A partition as the catalog and the local map know it.

use lazuli_store::KeyRange;

use crate::{ContainerId, Epoch, PartitionId, ShardId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionState {
    Online,
    ReadOnly,
    Offline,
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
