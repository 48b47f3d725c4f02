//! The shard map manager: everything that changes shards, containers and partitions.
//!
//! What concerns the catalog alone is one commit there. What concerns local maps too is an *operation* of three steps: the
//! catalog decides it and writes it down with all it will do; the local maps of its shards take it, those that lose routes
//! first; the catalog makes it its truth and forgets the operation. From the first commit on it only goes forward, and
//! anybody may do the next step: who began it, who comes across it, or the reconciler. All steps can be done again.
//!
//! An operation claims the routes it is about. Others that need any of them finish it first, so a shard that is down holds
//! up its own routes and nothing else.

mod attach;
mod bounds;
mod containers;
mod deletion;
mod garbage;
mod locks;
mod moves;
mod partitions;
mod placing;
mod restore;
mod rules;
mod shards;

use std::sync::Arc;

use lazuli_env::{BoxFuture, Env, Id};
use lazuli_store::{Error, KeyRange, Result};

use crate::catalog::{
    Catalog, CatalogChange, ContainerChange, Decision, Draft, Entry, Lease, MapOperation, Refusal,
    View,
};
use crate::source::{MapDelta, MapSource};
use crate::{
    Container, ContainerId, Epoch, Identity, LocalChange, LocalMap, MapReason, Partition,
    PartitionId, ShardId,
};

pub use containers::{ContainerUpdate, Cuts, NewContainer};
pub use moves::NewMove;
pub(crate) use moves::at_rest;
pub use partitions::NewPartition;
pub use restore::{Taken, is_restore};
pub use shards::{Holdings, NewShard, ShardUpdate};

/// The most partitions that one operation adds or removes: enough for one per virtual shard.
pub const OPERATION_PARTITIONS_MAX: usize = 16_384;
/// The longest name of a shard or container, and the longest location.
pub const NAME_BYTES_MAX: usize = 1_024;
/// How many operations in its way a change finishes before it gives up.
const SETTLE_TRIES_MAX: usize = 64;

/// The open local maps of the shards.
pub trait LocalMaps: Send + Sync {
    /// Fails with `Unavailable` while the shard is down.
    fn local(&self, shard: ShardId) -> Result<Arc<LocalMap>>;
}

/// A partition as the caller knows it. If it has changed since, what the caller asks for is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub id: PartitionId,
    pub epoch: Epoch,
    /// The token of the caller's lock, if the caller has locked it.
    pub lock: Option<Id>,
}

impl Known {
    #[must_use]
    pub fn locked(self, token: Id) -> Self {
        Self { lock: Some(token), ..self }
    }
}

impl From<&Partition> for Known {
    fn from(partition: &Partition) -> Self {
        Self { id: partition.id, epoch: partition.epoch, lock: None }
    }
}

pub struct Manager {
    env: Env,
    catalog: Arc<Catalog>,
    shards: Arc<dyn LocalMaps>,
}

impl Manager {
    pub fn new(env: Env, catalog: Arc<Catalog>, shards: Arc<dyn LocalMaps>) -> Self {
        Self { env, catalog, shards }
    }

    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    pub(crate) fn local(&self, shard: ShardId) -> Result<Arc<LocalMap>> {
        let local = self.shards.local(shard)?;
        local.expect(Identity { catalog: self.catalog.id(), shard })?;
        Ok(local)
    }

    /// Makes a change, after finishing whatever stands in its way, and finishes the operation it begins.
    pub(crate) async fn run<C: CatalogChange>(&self, change: &C) -> Result<C::Output> {
        let change = Reachable { change, manager: self };
        for _ in 0..SETTLE_TRIES_MAX {
            match self.catalog.change(&change).await {
                Ok((output, None)) => return Ok(output),
                Ok((output, Some(operation))) => {
                    self.env.points.reach(&operation.name, "decided").await;
                    self.finish(&operation).await?;
                    return Ok(output);
                }
                Err(Refusal::Error(error)) => return Err(error),
                Err(Refusal::Pending(number)) => self.finish_pending(number).await?,
            }
        }
        Err(Error::unavailable("operation-pending", "operations keep coming in between"))
    }

    /// Finishes the pending operations of a container, as far as their shards answer. The first that does not is the
    /// error, after all others were tried.
    pub async fn settle(&self, container: ContainerId) -> Result<()> {
        self.settle_routes(container, &KeyRange::all()).await
    }

    /// The same on some routes of it: those of others may be on shards that are down.
    pub async fn settle_routes(&self, container: ContainerId, routes: &KeyRange) -> Result<()> {
        let mut outcome = Ok(());
        for operation in self.catalog.operations().await? {
            let claims = &operation.claims;
            let is_here = claims.is_empty() || claims.iter().any(|claim| claim.overlaps(routes));
            if operation.container == container && is_here {
                let finished = self.finish(&operation).await;
                outcome = outcome.and(finished);
            }
        }
        outcome
    }

    /// Finishes an operation if it is still pending.
    pub(crate) async fn finish_pending(&self, number: u64) -> Result<()> {
        let snapshot = self.catalog.snapshot().await?;
        match View::of(&*snapshot).operation(number).await? {
            Some(operation) => self.finish(&operation).await,
            None => Ok(()),
        }
    }

    /// Takes an operation through its second and third step, however far it has come.
    pub(crate) async fn finish(&self, operation: &MapOperation) -> Result<()> {
        let steps = self.apply(operation, None).await;
        let place = || format!("operation {} ({})", operation.number, operation.name);
        steps.map_err(|error| error.context(place()))?;
        self.conclude(operation.number).await?;
        self.env.points.reach(&operation.name, "concluded").await;
        Ok(())
    }

    /// The third step. Does nothing if it was done.
    pub(crate) async fn conclude(&self, number: u64) -> Result<()> {
        match self.catalog.change(&Conclude { number }).await {
            Ok(()) => Ok(()),
            Err(Refusal::Error(error)) => Err(error),
            Err(Refusal::Pending(_)) => unreachable!("nothing stands in the way of an end"),
        }
    }

    /// The second step on all shards but one that is lost, if any.
    pub(crate) async fn apply(
        &self,
        operation: &MapOperation,
        lost: Option<ShardId>,
    ) -> Result<()> {
        for shard in operation.shards() {
            if Some(shard) == lost {
                continue;
            }
            let local = self.local(shard)?;
            let change = self.local_change(operation, shard).await?;
            match local.apply(&change).await {
                Ok(()) => self.env.points.reach(&operation.name, "taken by a shard").await,
                // Refused for being late, while the catalog knows it no more: others have finished it.
                Err(error) if error.is(MapReason::OperationStale) => {
                    let snapshot = self.catalog.snapshot().await?;
                    let pending = View::of(&*snapshot).operation(operation.number).await?;
                    return if pending.is_none() { Ok(()) } else { Err(error) };
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What the operation does on one shard. Operations on that shard below the oldest pending one are finished, because
    /// numbers only grow.
    async fn local_change(&self, operation: &MapOperation, shard: ShardId) -> Result<LocalChange> {
        let pending = self.catalog.operations().await?;
        let oldest = pending.iter().filter(|other| other.shards().contains(&shard));
        let oldest = oldest.map(|other| other.number).min().unwrap_or(operation.number);
        let here = operation.drops.iter().filter(|drop| drop.shard == shard);
        let puts = operation.puts.iter().map(|put| &put.partition);
        let arrived = operation.arrived.iter().filter(|it| it.shard == shard);
        let container = match &operation.change {
            ContainerChange::Create(container) | ContainerChange::Update(container) => {
                Some(container.clone())
            }
            _ if operation.puts.is_empty() => None,
            // One that is being deleted has no rows left to be found by.
            _ => self.catalog.container(operation.container).await.ok(),
        };
        Ok(LocalChange {
            container,
            operation: operation.number,
            finished_below: oldest.min(operation.number),
            drops: here.map(|drop| (drop.partition, drop.epoch)).collect(),
            puts: puts.filter(|put| put.shard == shard).cloned().collect(),
            garbage: operation.garbage.iter().filter(|it| it.shard == shard).cloned().collect(),
            arrivals: operation.arrivals.iter().filter(|it| it.shard == shard).cloned().collect(),
            arrived: arrived.map(|it| (it.number, it.epoch)).collect(),
            forced: operation.forced,
        })
    }
}

/// Routers that find a map out of date help to finish what changed it.
impl MapSource for Manager {
    fn container(&self, id: ContainerId) -> BoxFuture<'_, Result<Container>> {
        MapSource::container(&*self.catalog, id)
    }

    fn container_named<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Container>> {
        MapSource::container_named(&*self.catalog, name)
    }

    fn partitions(&self, id: ContainerId) -> BoxFuture<'_, Result<(u64, Vec<Partition>)>> {
        MapSource::partitions(&*self.catalog, id)
    }

    fn changes_since(&self, id: ContainerId, version: u64) -> BoxFuture<'_, Result<MapDelta>> {
        Box::pin(async move {
            // Whether or not it can be finished now, the catalog's answer stands.
            let _ = self.settle(id).await;
            MapSource::changes_since(&*self.catalog, id, version).await
        })
    }
}

/// Refuses to begin an operation on a shard that would not take it: it would only hold up its routes.
struct Reachable<'a, C> {
    change: &'a C,
    manager: &'a Manager,
}

impl<C: CatalogChange> CatalogChange for Reachable<'_, C> {
    type Output = (C::Output, Option<MapOperation>);

    async fn decide(&self, draft: &mut Draft) -> Decision<Self::Output> {
        let output = self.change.decide(draft).await?;
        let begun = draft.begun().cloned();
        if let Some(operation) = &begun {
            for shard in operation.shards() {
                let local = self.manager.local(shard)?;
                local.refresh().await?;
                let seen = local.seen()?;
                if operation.number <= seen {
                    // Unless the catalog has gone on, because the store has aborted this transaction meanwhile.
                    return Err(match self.manager.catalog.version().await? >= seen {
                        true => Error::unavailable("catalog-changed", "the transaction was lost"),
                        false => behind(shard, seen),
                    }
                    .into());
                }
            }
        }
        Ok((output, begun))
    }

    fn lease(&self) -> Option<&Lease> {
        self.change.lease()
    }
}

fn behind(shard: ShardId, seen: u64) -> Error {
    let message = format!(
        "shard {shard} has taken operation {seen}, which this catalog does not know: \
         was the catalog restored from a backup? Rebuild it from its shards"
    );
    Error::precondition("catalog-behind", message)
}

struct Conclude {
    number: u64,
}

impl CatalogChange for Conclude {
    type Output = ();

    async fn decide(&self, draft: &mut Draft) -> Decision<()> {
        if let Some(operation) = draft.view().operation(self.number).await? {
            draft.finish(&operation).await?;
        }
        Ok(())
    }
}

/// Refuses routes that a pending operation has claimed.
pub(crate) async fn unclaimed(
    view: View<'_>,
    container: ContainerId,
    routes: &KeyRange,
) -> Decision<()> {
    match view.claim(container, routes).await? {
        Some(claim) => Err(Refusal::Pending(claim.operation)),
        None => Ok(()),
    }
}

/// The partition that the caller knows, if it is still as the caller knows it and not locked by another owner.
async fn known(view: View<'_>, known: Known) -> Decision<Entry> {
    let entry = view.entry(known.id).await?;
    let partition = &entry.partition;
    unclaimed(view, partition.container, &partition.routes).await?;
    if partition.epoch != known.epoch {
        let message =
            format!("partition {} is at epoch {}, not {}", known.id, partition.epoch, known.epoch);
        return Err(Error::precondition(MapReason::PartitionChanged, message).into());
    }
    match (entry.lock, known.lock) {
        (held, given) if held == given => Ok(entry),
        (Some(token), None) if is_restore(token) => Err(restore::restoring(known.id).into()),
        (Some(_), None) => Err(locks::locked(known.id).into()),
        _ => Err(locks::not_held(known.id).into()),
    }
}

/// Names and locations are for people: neither empty nor endless.
fn check_name(what: &str, name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        let message = format!("a {what} has 1 to {NAME_BYTES_MAX} bytes, not {}", name.len());
        return Err(Error::invalid("name-unfit", message));
    }
    Ok(())
}
