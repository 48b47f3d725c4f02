//! What goes into a local map and comes out of it.

use bytes::Bytes;
use lazuli_env::Id;
use lazuli_store::KeyRange;

use crate::record::record_fields;
use crate::{ContainerId, Epoch, Partition, PartitionId, ShardId};

/// Which shard of which catalog a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub catalog: Id,
    pub shard: ShardId,
}

/// What a request is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// The answer of a check: the partition is here, at the epoch asked for.
#[derive(Clone, Debug)]
pub struct Held {
    /// The key of the partition's row: it must exist when a write is committed.
    pub guard: Bytes,
    pub container: ContainerId,
    pub routes: KeyRange,
}

/// Data that no partition of a shard owns any more, to be deleted in slices that are guarded by its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Garbage {
    /// Never used again.
    pub id: u64,
    pub shard: ShardId,
    pub container: ContainerId,
    pub routes: KeyRange,
}

/// What one operation changes on one shard, in one commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalChange {
    pub operation: u64,
    /// All operations on this shard with lower numbers are finished.
    pub finished_below: u64,
    pub drops: Vec<(PartitionId, Epoch)>,
    pub puts: Vec<Partition>,
    pub garbage: Vec<Garbage>,
    /// A repair, which replaces the rows of the partitions it names whatever their epochs, present or not.
    pub forced: bool,
}

record_fields!(Garbage { id, shard, container, routes });
