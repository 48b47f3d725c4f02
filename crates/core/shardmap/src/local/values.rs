//! What goes into a local map and comes out of it.

use bytes::Bytes;
use lazuli_env::Id;
use lazuli_store::KeyRange;

use crate::record::record_fields;
use crate::{Container, ContainerId, Epoch, Partition, PartitionId, ShardId};

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
    pub partition: PartitionId,
    pub container: ContainerId,
    pub routes: KeyRange,
    /// Whether what is written must be written down for a move.
    pub is_sending: bool,
}

/// A partition on its way to a shard: what is copied there is guarded by this row, and it is not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The number of the move.
    pub number: u64,
    /// The job epoch of who leads it.
    pub epoch: u64,
    pub shard: ShardId,
    pub container: ContainerId,
    pub partition: PartitionId,
    pub routes: KeyRange,
}

/// An arrival that is over, one way or the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    pub shard: ShardId,
    pub number: u64,
    pub epoch: u64,
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
    /// The container of the rows that it puts, of which the shard keeps a copy.
    pub container: Option<Container>,
    pub garbage: Vec<Garbage>,
    pub arrivals: Vec<Arrival>,
    /// Arrivals that go: by number and job epoch.
    pub arrived: Vec<(u64, u64)>,
    /// A repair, which replaces the rows of the partitions it names whatever their epochs, present or not.
    pub forced: bool,
}

record_fields!(Garbage { id, shard, container, routes });
record_fields!(Arrival { number, epoch, shard, container, partition, routes });
record_fields!(Arrived { shard, number, epoch });
