//! Containers: made with their first partitions, given other policies, deleted.

use bytes::Bytes;
use lazuli_store::{Error, KeyRange, Result};

use super::placing::{Spread, check_bounds, check_placement};
use super::{Manager, OPERATION_PARTITIONS_MAX, check_name, unclaimed};
use crate::catalog::{
    CatalogChange, ContainerChange, Decision, Draft, Entry, MapOperation, Refusal, View,
};
use crate::epk;
use crate::key::KeySchema;
use crate::placement::Rule;
use crate::route::virtual_cut;
use crate::{Container, ContainerId, Epoch, MapKind, Partition, PartitionState, Policies, ShardId};

/// The partitions that a container begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cuts {
    /// None: list and range maps may have gaps.
    Empty,
    /// The whole space of a map by hashes in so many equal parts.
    Even(u16),
    /// The whole space of a range map or one by effective keys, cut at these routes; no cut makes one partition.
    At(Vec<Bytes>),
}

#[derive(Clone, Debug)]
pub struct NewContainer {
    pub name: String,
    pub kind: MapKind,
    pub key: KeySchema,
    pub schema: String,
    pub placement: Vec<Rule>,
    pub policies: Policies,
    pub cuts: Cuts,
    /// Where the first partitions go, as far as the rules allow it; none named means any shard.
    pub shards: Vec<ShardId>,
}

#[derive(Clone, Debug)]
pub struct ContainerUpdate {
    pub id: ContainerId,
    /// The version that the caller has seen.
    pub version: u64,
    pub schema: String,
    pub placement: Vec<Rule>,
    pub policies: Policies,
}

impl Manager {
    pub async fn create_container(&self, container: &NewContainer) -> Result<Container> {
        self.run(&Create { new: container, offline: None, manager: self }).await
    }

    /// Makes a container whose partitions are offline where they hold some of these routes, for a restore that fills them
    /// before anybody sees what is in there.
    pub async fn create_container_offline(
        &self,
        container: &NewContainer,
        routes: &KeyRange,
    ) -> Result<Container> {
        self.run(&Create { new: container, offline: Some(routes), manager: self }).await
    }

    /// Changes schema tag, rules and policies. Rules that a partition breaks where it is now are refused. Changing nothing
    /// is fine and changes nothing.
    pub async fn update_container(&self, update: &ContainerUpdate) -> Result<Container> {
        self.run(update).await
    }
}

impl NewContainer {
    fn ranges(&self) -> Result<Vec<KeyRange>> {
        match (self.kind, &self.cuts) {
            (MapKind::List | MapKind::Range, Cuts::Empty) => Ok(vec![]),
            (MapKind::Hash, Cuts::Even(parts)) => virtual_cut(*parts),
            (MapKind::EpkV1, Cuts::Even(parts)) => epk::cut(*parts, true),
            (MapKind::EpkV2 | MapKind::EpkMulti, Cuts::Even(parts)) => epk::cut(*parts, false),
            (
                MapKind::Range | MapKind::EpkV1 | MapKind::EpkV2 | MapKind::EpkMulti,
                Cuts::At(cuts),
            ) => {
                let starts = std::iter::once(Bytes::new()).chain(cuts.iter().cloned());
                let ends = cuts.iter().cloned().map(Some).chain(std::iter::once(None));
                Ok(starts.zip(ends).map(|(start, end)| KeyRange::new(start, end)).collect())
            }
            _ => {
                let message = "a list map begins empty, a map by hashes with even parts, a range \
                               map empty or cut at given routes";
                Err(Error::invalid("cuts-unfit", message))
            }
        }
    }
}

struct Create<'a> {
    new: &'a NewContainer,
    /// Partitions that hold some of these begin offline.
    offline: Option<&'a KeyRange>,
    manager: &'a Manager,
}

impl CatalogChange for Create<'_> {
    type Output = Container;

    async fn decide(&self, draft: &mut Draft) -> Decision<Container> {
        let new = self.new;
        check_name("container's name", &new.name)?;
        let ranges = new.ranges()?;
        if ranges.len() > OPERATION_PARTITIONS_MAX {
            return Err(too_many(ranges.len()).into());
        }
        name_is_free(draft.view(), &new.name).await?;
        let mut spread = Spread::over(draft.view(), &new.shards, self.manager).await?;
        let container = Container {
            id: draft.new_container_id(),
            name: new.name.clone(),
            kind: new.kind,
            key: new.key.clone(),
            schema: new.schema.clone(),
            placement: new.placement.clone(),
            policies: new.policies.clone(),
            version: 1,
        };
        let mut operation = MapOperation::new("create container", container.id);
        operation.claims.push(KeyRange::all());
        for routes in ranges {
            check_bounds(&container, &routes)?;
            let shard = spread.choose(&container, &routes, None)?;
            let is_offline = self.offline.is_some_and(|offline| offline.overlaps(&routes));
            let state = match is_offline {
                true => PartitionState::Offline,
                false => PartitionState::Online,
            };
            let partition = Partition {
                id: draft.new_partition_id(),
                container: container.id,
                routes,
                shard,
                epoch: Epoch::FIRST,
                state,
            };
            operation.puts.push(Entry { partition, lock: None });
        }
        operation.change = ContainerChange::Create(container.clone());
        draft.take_name(&container);
        draft.begin(operation)?;
        Ok(container)
    }
}

impl CatalogChange for ContainerUpdate {
    type Output = Container;

    async fn decide(&self, draft: &mut Draft) -> Decision<Container> {
        let view = draft.view();
        let before = view.container(self.id).await?;
        unclaimed(view, self.id, &KeyRange::all()).await?;
        check_version(&before, self.version)?;
        let Self { schema, placement, policies, .. } = self.clone();
        let mut after = Container { schema, placement, policies, ..before.clone() };
        if after == before {
            return Ok(before);
        }
        if after.placement != before.placement {
            check_placed(view, &after).await?;
        }
        after.version += 1;
        draft.put_container(&after);
        Ok(after)
    }
}

pub(super) fn check_version(container: &Container, version: u64) -> Result<()> {
    if container.version == version {
        return Ok(());
    }
    let Container { name, version: found, .. } = container;
    let message = format!("container {name} is at version {found}, not {version}");
    Err(Error::precondition("container-changed", message))
}

pub(super) fn too_many(count: usize) -> Error {
    let message = format!("{count} partitions at once; {OPERATION_PARTITIONS_MAX} are allowed");
    Error::too_large("too-many-partitions", message)
}

/// Refuses a name that is taken. If its container is still in the making, that is finished first.
async fn name_is_free(view: View<'_>, name: &str) -> Decision<()> {
    let Some(id) = view.container_id(name).await? else { return Ok(()) };
    if let Some(claim) = view.claim(id, &KeyRange::all()).await?
        && view.container(id).await.is_err()
    {
        return Err(Refusal::Pending(claim.operation));
    }
    let message = format!("there is a container named {name}");
    Err(Error::exists("container-exists", message).into())
}

/// Refuses rules that a partition of the container breaks where it is.
async fn check_placed(view: View<'_>, container: &Container) -> Result<()> {
    let shards = view.shards().await?;
    for entry in view.entries(container.id, &KeyRange::all(), usize::MAX).await? {
        let Partition { routes, shard, .. } = &entry.partition;
        if let Some(shard) = shards.iter().find(|it| it.id == *shard) {
            check_placement(container, routes, shard)?;
        }
    }
    Ok(())
}
