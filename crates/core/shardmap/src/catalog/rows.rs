//! The rows of the catalog beside shards, containers and partitions themselves.

use std::collections::BTreeSet;

use bytes::{Bytes, BytesMut};
use lazuli_env::Id;
use lazuli_store::{KeyRange, Result};

use crate::local::{Arrival, Arrived};
use crate::record::{Record, record_fields, unknown_choice};
use crate::{Container, ContainerId, Epoch, Garbage, Partition, PartitionId, ShardId};

/// The format of the catalog's store. A newer one is refused.
pub const CATALOG_FORMAT: u32 = 1;

/// The first row: what this store is.
pub(super) struct IdentityRow {
    pub(super) format: u32,
    pub(super) id: Id,
}

/// The row of the newest version: the counters from which ids come, so that none is given twice.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) next_shard: u32,
    pub(super) next_container: u32,
    pub(super) next_partition: u64,
    pub(super) next_garbage: u64,
    /// The oldest version that the change log still holds.
    pub(super) log_from: u64,
}

/// A partition as the catalog keeps it, with who has locked it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub partition: Partition,
    pub lock: Option<Id>,
}

/// Routes that a pending operation has taken: nothing else may touch them until it is finished.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) operation: u64,
    pub(crate) routes: KeyRange,
}

/// A container that is being deleted: its name is free again, its partitions go in rounds.
#[derive(Clone, Debug)]
pub(crate) struct Deleting {
    pub(crate) container: Container,
    /// Where its data has to be deleted afterwards.
    pub(crate) shards: Vec<ShardId>,
}

/// A row of a shard's local map that an operation takes away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedRow {
    pub shard: ShardId,
    pub partition: PartitionId,
    pub epoch: Epoch,
}

/// What becomes of the container's own row when an operation is finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerChange {
    /// Its version grows.
    Touch,
    Create(Container),
    /// It becomes this.
    Update(Container),
    /// It stays as it is, or is gone already but for its partitions.
    None,
    /// Its last trace goes.
    Forget,
}

/// A change of the map that was decided and will be done, whatever happens to who began it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapOperation {
    /// The version of the catalog that decided it.
    pub number: u64,
    /// What it is, for people.
    pub name: String,
    pub container: ContainerId,
    pub claims: Vec<KeyRange>,
    /// Partitions that leave the catalog.
    pub removes: Vec<PartitionId>,
    /// Partitions that enter the catalog, and the local maps of their shards.
    pub puts: Vec<Entry>,
    /// Rows that leave the local maps.
    pub drops: Vec<DroppedRow>,
    pub garbage: Vec<Garbage>,
    /// Partitions that begin to come to a shard.
    pub arrivals: Vec<Arrival>,
    /// Arrivals that are over.
    pub arrived: Vec<Arrived>,
    pub change: ContainerChange,
    /// A repair, which replaces rows of local maps whatever they are.
    pub forced: bool,
}

impl MapOperation {
    /// An operation on one container that does nothing yet.
    pub(crate) fn new(name: &str, container: ContainerId) -> Self {
        Self {
            number: 0,
            name: name.into(),
            container,
            claims: vec![],
            removes: vec![],
            puts: vec![],
            drops: vec![],
            garbage: vec![],
            arrivals: vec![],
            arrived: vec![],
            change: ContainerChange::Touch,
            forced: false,
        }
    }

    /// Takes a partition from the catalog and from its shard.
    pub(crate) fn remove(&mut self, partition: &Partition) {
        let Partition { id, shard, epoch, .. } = *partition;
        self.removes.push(id);
        self.drops.push(DroppedRow { shard, partition: id, epoch });
    }

    /// The shards it changes: those that something begins to come to, because they can still be away without harm; then
    /// those that lose rows, so that no route is ever held twice; then the others.
    pub fn shards(&self) -> Vec<ShardId> {
        let arrivals = self.arrivals.iter().map(|arrival| arrival.shard);
        let drops = self.drops.iter().map(|drop| drop.shard);
        let puts = self.puts.iter().map(|put| put.partition.shard);
        let garbage = self.garbage.iter().map(|garbage| garbage.shard);
        let arrived = self.arrived.iter().map(|arrived| arrived.shard);
        let mut shards: Vec<ShardId> = Vec::new();
        for group in
            [arrivals.collect(), drops.collect(), puts.chain(garbage).chain(arrived).collect()]
        {
            let group: BTreeSet<ShardId> = group;
            shards.extend(
                group.into_iter().filter(|shard| !shards.contains(shard)).collect::<Vec<_>>(),
            );
        }
        shards
    }
}

/// What one version of the catalog changed, for those who follow it.
#[derive(Clone, Debug)]
pub(crate) struct LogRow {
    /// Tells the writer of a commit whose answer was lost whether it was written.
    pub(crate) change: Id,
    pub(crate) shards: Vec<ShardId>,
    /// Containers whose own row changed, appeared or went.
    pub(crate) containers: Vec<ContainerId>,
    /// Containers of which so much changed that following is no cheaper than reading them again.
    pub(crate) reloads: Vec<ContainerId>,
    pub(crate) removes: Vec<Partition>,
    pub(crate) puts: Vec<Partition>,
}

impl LogRow {
    pub(super) fn new(change: Id) -> Self {
        let (shards, containers, reloads) = (vec![], vec![], vec![]);
        Self { change, shards, containers, reloads, removes: vec![], puts: vec![] }
    }
}

impl Record for ContainerChange {
    fn write(&self, out: &mut BytesMut) {
        let byte: u8 = match self {
            Self::Touch => 1,
            Self::Create(_) => 2,
            Self::None => 3,
            Self::Forget => 4,
            Self::Update(_) => 5,
        };
        byte.write(out);
        if let Self::Create(container) | Self::Update(container) = self {
            container.write(out);
        }
    }

    fn read(input: &mut Bytes) -> Result<Self> {
        match u8::read(input)? {
            1 => Ok(Self::Touch),
            2 => Container::read(input).map(Self::Create),
            3 => Ok(Self::None),
            4 => Ok(Self::Forget),
            5 => Container::read(input).map(Self::Update),
            other => Err(unknown_choice("ContainerChange", other)),
        }
    }
}

record_fields!(IdentityRow { format, id });
record_fields!(Head { next_shard, next_container, next_partition, next_garbage, log_from });
record_fields!(Entry { partition, lock });
record_fields!(Claim { operation, routes });
record_fields!(Deleting { container, shards });
record_fields!(DroppedRow { shard, partition, epoch });
record_fields!(MapOperation {
    number,
    name,
    container,
    claims,
    removes,
    puts,
    drops,
    garbage,
    arrivals,
    arrived,
    change,
    forced
});
record_fields!(LogRow { change, shards, containers, reloads, removes, puts });
