//! Partitions: added, taken offline and back, deleted.

use bytes::Bytes;
use lazuli_store::{Error, KeyRange, Result};

use super::containers::too_many;
use super::placing::{Spread, check_bounds};
use super::{Known, Manager, OPERATION_PARTITIONS_MAX, known, unclaimed};
use crate::catalog::{CatalogChange, Decision, Draft, Entry, MapOperation};
use crate::{
    Container, ContainerId, Epoch, MapKind, MapReason, Move, Partition, PartitionState, ShardId,
};

/// Routes to be given a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPartition {
    pub routes: KeyRange,
    /// Where it shall live. None leaves it to the rules, and then to who holds the fewest.
    pub shard: Option<ShardId>,
}

impl NewPartition {
    /// The partition of one key in a list map.
    pub fn point(route: impl Into<Bytes>, shard: Option<ShardId>) -> Self {
        Self { routes: KeyRange::prefix(route), shard }
    }

    pub fn range(routes: KeyRange, shard: Option<ShardId>) -> Self {
        Self { routes, shard }
    }
}

impl Manager {
    /// Adds partitions to a list or range map, all or none of them. Routes that have one already are refused with
    /// `point-mapped` or `range-overlaps`.
    pub async fn add_partitions(
        &self,
        container: ContainerId,
        partitions: &[NewPartition],
    ) -> Result<Vec<Partition>> {
        self.run(&AddPartitions { container, partitions, manager: self }).await
    }

    pub async fn add_partition(
        &self,
        container: ContainerId,
        partition: NewPartition,
    ) -> Result<Partition> {
        let mut added = self.add_partitions(container, &[partition]).await?;
        Ok(added.remove(0))
    }

    /// Deletes a partition that is offline, else `partition-not-offline`. Its data becomes garbage.
    pub async fn delete_partition(&self, partition: Known) -> Result<()> {
        self.run(&DeletePartition { partition }).await
    }

    /// Takes a partition online, offline, or lets it only be read. The state it has already is fine and changes nothing.
    pub async fn set_state(&self, partition: Known, state: PartitionState) -> Result<Partition> {
        self.run(&SetState { partition, state }).await
    }
}

struct AddPartitions<'a> {
    container: ContainerId,
    partitions: &'a [NewPartition],
    manager: &'a Manager,
}

impl CatalogChange for AddPartitions<'_> {
    type Output = Vec<Partition>;

    async fn decide(&self, draft: &mut Draft) -> Decision<Vec<Partition>> {
        let container = draft.view().container(self.container).await?;
        if container.kind.is_tiled() {
            return Err(tiled(&container).into());
        }
        if self.partitions.len() > OPERATION_PARTITIONS_MAX {
            return Err(too_many(self.partitions.len()).into());
        }
        if self.partitions.is_empty() {
            return Ok(vec![]);
        }
        check_disjoint(&container, self.partitions)?;
        let mut spread = Spread::over(draft.view(), &[], self.manager).await?;
        let mut operation = MapOperation::new("add partitions", container.id);
        for new in self.partitions {
            check_bounds(&container, &new.routes)?;
            check_unmapped(draft, &container, &new.routes).await?;
            let shard = spread.choose(&container, &new.routes, new.shard)?;
            check_clean(draft, &container, &new.routes, shard).await?;
            let partition = Partition {
                id: draft.new_partition_id(),
                container: container.id,
                routes: new.routes.clone(),
                shard,
                epoch: Epoch::FIRST,
                state: PartitionState::Online,
            };
            operation.claims.push(new.routes.clone());
            operation.puts.push(Entry { partition, lock: None });
        }
        let added = draft.begin(operation)?.puts;
        Ok(added.into_iter().map(|entry| entry.partition).collect())
    }
}

struct DeletePartition {
    partition: Known,
}

impl CatalogChange for DeletePartition {
    type Output = ();

    async fn decide(&self, draft: &mut Draft) -> Decision<()> {
        let Entry { partition, .. } = known(draft.view(), self.partition).await?;
        let container = draft.view().container(partition.container).await?;
        if container.kind.is_tiled() {
            return Err(tiled(&container).into());
        }
        if partition.state != PartitionState::Offline {
            let message = format!("partition {} is not offline", partition.id);
            return Err(Error::precondition("partition-not-offline", message).into());
        }
        let mut operation = MapOperation::new("delete partition", container.id);
        operation.claims.push(partition.routes.clone());
        operation.remove(&partition);
        let Partition { shard, routes, .. } = partition;
        operation.garbage.push(draft.new_garbage(shard, container.id, routes));
        draft.begin(operation)?;
        Ok(())
    }
}

struct SetState {
    partition: Known,
    state: PartitionState,
}

impl CatalogChange for SetState {
    type Output = Partition;

    async fn decide(&self, draft: &mut Draft) -> Decision<Partition> {
        let entry = known(draft.view(), self.partition).await?;
        let before = entry.partition;
        if self.state.is_moving() {
            let message = "only a move brings a partition into this state";
            return Err(Error::invalid("state-of-moves", message).into());
        }
        if before.state.is_moving() && entry.lock.is_some() {
            let message = format!("partition {} is on its way: cancel its move first", before.id);
            return Err(Error::precondition("partition-moving", message).into());
        }
        if before.state == self.state {
            return Ok(before);
        }
        let after = Partition { state: self.state, epoch: before.epoch.next(), ..before.clone() };
        let mut operation = MapOperation::new("set state", before.container);
        operation.claims.push(before.routes.clone());
        operation.remove(&before);
        operation.puts.push(Entry { partition: after.clone(), lock: entry.lock });
        draft.begin(operation)?;
        Ok(after)
    }
}

fn tiled(container: &Container) -> Error {
    let message =
        format!("the map of container {} by hashes has no gaps to fill or make", container.name);
    Error::invalid("map-tiled", message)
}

fn overlap(container: &Container) -> Error {
    let name = &container.name;
    match container.kind {
        MapKind::List => Error::exists(
            MapReason::PointMapped,
            format!("a key of container {name} has a partition"),
        ),
        MapKind::Range | MapKind::Hash | MapKind::EpkV1 | MapKind::EpkV2 | MapKind::EpkMulti => {
            let message = format!("routes of container {name} have a partition");
            Error::exists("range-overlaps", message)
        }
    }
}

/// Refuses new partitions that overlap each other.
fn check_disjoint(container: &Container, partitions: &[NewPartition]) -> Result<()> {
    let mut ranges: Vec<&KeyRange> = partitions.iter().map(|new| &new.routes).collect();
    ranges.sort_unstable_by(|a, b| a.start.cmp(&b.start));
    let overlaps = ranges.windows(2).any(|pair| pair[0].overlaps(pair[1]));
    if overlaps { Err(overlap(container)) } else { Ok(()) }
}

/// Refuses routes that have a partition, and those that a pending operation has claimed.
async fn check_unmapped(draft: &Draft, container: &Container, routes: &KeyRange) -> Decision<()> {
    unclaimed(draft.view(), container.id, routes).await?;
    if draft.view().entries(container.id, routes, 1).await?.is_empty() {
        return Ok(());
    }
    Err(overlap(container).into())
}

/// Refuses a shard that still has to delete what an earlier partition or move left among these routes.
pub(super) async fn check_clean(
    draft: &Draft,
    container: &Container,
    routes: &KeyRange,
    shard: ShardId,
) -> Result<()> {
    if let Some(garbage) = draft.view().garbage_in(container.id, shard, routes, 1).await?.first() {
        let message = format!("shard {shard} is still deleting garbage {}", garbage.id);
        return Err(Error::unavailable("range-being-cleaned", message));
    }
    // What a move that was called off has brought there becomes garbage yet, and takes with it whatever it meets.
    let comes = |moving: &Move| {
        moving.container == container.id && moving.target == shard && moving.routes.overlaps(routes)
    };
    match draft.view().moves().await?.iter().find(|moving| comes(moving)) {
        None => Ok(()),
        Some(moving) => {
            let message = format!("shard {shard} still has what move {} brought", moving.number);
            Err(Error::unavailable("range-being-cleaned", message))
        }
    }
}
