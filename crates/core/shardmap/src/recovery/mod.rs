//! Recovery: where a shard and the catalog differ after a restore, and what an operator decides about it.
//!
//! Nothing here happens by itself. A repair is an operation like any other, but one that replaces whatever rows it finds,
//! and its epochs are above all that either side has seen, so no router and no writer mistakes the old for the new.

mod compare;
mod repair;

use lazuli_store::{Error, KeyRange, Result};

use crate::catalog::{CatalogChange, Decision, Draft, View};
use crate::manager::Manager;
use crate::{Container, ContainerId, Epoch, MapReason, Partition, PartitionId, ShardId};
use compare::Differing;
use repair::Repair;

/// How often a rebuild looks again after repairing.
const REBUILD_ROUNDS_MAX: usize = 4;

/// A stretch of routes on which a shard and the catalog do not agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub shard: ShardId,
    pub container: ContainerId,
    pub routes: KeyRange,
    /// What the catalog says the shard holds.
    pub catalog: Vec<Partition>,
    /// What the shard says it holds.
    pub local: Vec<Partition>,
    /// What the catalog says other shards hold of the same routes.
    pub elsewhere: Vec<Partition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DifferenceKind {
    /// The catalog says the shard holds it, the shard does not know it.
    CatalogOnly,
    /// The shard says it holds it, the catalog does not know it, or has it elsewhere.
    ShardOnly,
    /// Both know these routes, with other bounds, another epoch or another state.
    Both,
}

/// Who is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    Ignore,
    /// The shard takes over the catalog's rows. Data of routes that are not there becomes garbage.
    KeepCatalog,
    /// The catalog takes over the shard's rows.
    KeepShard,
}

impl Difference {
    pub fn kind(&self) -> DifferenceKind {
        match (self.catalog.is_empty(), self.local.is_empty()) {
            (false, true) => DifferenceKind::CatalogOnly,
            (true, _) => DifferenceKind::ShardOnly,
            (false, false) => DifferenceKind::Both,
        }
    }

    /// An epoch above all that anybody has seen here.
    fn next_epoch(&self) -> Epoch {
        let all = self.catalog.iter().chain(&self.local).chain(&self.elsewhere);
        all.map(|partition| partition.epoch).max().unwrap_or(Epoch(0)).next()
    }
}

impl Manager {
    /// Where the shard and the catalog differ, but for what operations are changing just now.
    pub async fn detect(&self, shard: ShardId) -> Result<Vec<Difference>> {
        let first = self.compare(shard).await?;
        if first.is_empty() {
            return Ok(first);
        }
        // An operation between the two readings looks like a difference once, but not the same one twice.
        let second = self.compare(shard).await?;
        Ok(second.into_iter().filter(|difference| first.contains(difference)).collect())
    }

    async fn compare(&self, shard: ShardId) -> Result<Vec<Difference>> {
        let snapshot = self.catalog().snapshot().await?;
        let view = View::of(&*snapshot);
        view.shard(shard).await?;
        let local = self.local(shard)?;
        local.refresh().await?;
        let local = local.partitions()?;
        let differing = Differing::of(view, shard, local).await?;
        let mut settled = Vec::new();
        for difference in differing.stretches() {
            if view.claim(difference.container, &difference.routes).await?.is_none() {
                settled.push(difference);
            }
        }
        Ok(settled)
    }

    /// Settles a difference. If it is no longer as it was detected: `difference-changed`. An operation on the same routes
    /// that cannot be finished has to be forced first.
    pub async fn resolve(&self, difference: &Difference, resolution: Resolution) -> Result<()> {
        if resolution == Resolution::Ignore {
            return Ok(());
        }
        let local = self.local(difference.shard)?;
        local.refresh().await?;
        let rows = local.partitions()?;
        let mut here: Vec<_> = rows.iter().filter(|row| is_within(row, difference)).collect();
        here.sort_by(|a, b| a.routes.start.cmp(&b.routes.start).then(a.id.cmp(&b.id)));
        if !here.iter().copied().eq(&difference.local) {
            return Err(changed());
        }
        let garbage = local.garbage().await?;
        let repair = Repair {
            difference,
            resolution,
            seen: local.seen()?,
            last_partition: rows.iter().map(|row| row.id).max().unwrap_or(PartitionId(0)),
            last_garbage: garbage.iter().map(|garbage| garbage.id).max().unwrap_or(0),
        };
        self.run(&repair).await
    }

    /// Makes a pending operation go through although a shard is not as it expects, and finishes it.
    pub async fn force_operation(&self, number: u64) -> Result<()> {
        self.run(&Force { number }).await?;
        self.finish_pending(number).await
    }

    /// Makes a shard's local map what the catalog says. Answers what could not be settled.
    pub async fn rebuild_local(&self, shard: ShardId) -> Result<Vec<Difference>> {
        self.rebuild(shard, Resolution::KeepCatalog).await
    }

    /// Makes the catalog's rows of a shard what the shard's local map says. Answers what could not be settled: routes that
    /// the catalog has on another shard, and those of containers that it does not know.
    pub async fn rebuild_catalog(&self, shard: ShardId) -> Result<Vec<Difference>> {
        self.rebuild(shard, Resolution::KeepShard).await
    }

    /// Writes down a container as a shard remembers it, in a catalog that was lost and is made again.
    pub async fn adopt_container(&self, container: &Container) -> Result<()> {
        self.run(&AdoptContainer { container }).await
    }

    async fn rebuild(&self, shard: ShardId, keep: Resolution) -> Result<Vec<Difference>> {
        for operation in self.catalog().operations().await? {
            if operation.shards().contains(&shard)
                && let Err(error) = self.finish(&operation).await
            {
                if !error.is(MapReason::LocalMapDiffers) {
                    return Err(error);
                }
                self.force_operation(operation.number).await?;
            }
        }
        for _ in 0..REBUILD_ROUNDS_MAX {
            let mut progress = false;
            for difference in self.detect(shard).await? {
                progress |= self.resolve(&difference, keep).await.is_ok();
            }
            if !progress {
                break;
            }
        }
        self.detect(shard).await
    }
}

fn changed() -> Error {
    Error::precondition("difference-changed", "it has changed since it was detected: detect again")
}

fn is_within(row: &Partition, difference: &Difference) -> bool {
    row.container == difference.container && row.routes.overlaps(&difference.routes)
}

struct AdoptContainer<'a> {
    container: &'a Container,
}

impl CatalogChange for AdoptContainer<'_> {
    type Output = ();

    async fn decide(&self, draft: &mut Draft) -> Decision<()> {
        let Container { id, name, .. } = self.container;
        match draft.view().container_id(name).await? {
            None => draft.adopt_container(self.container),
            Some(found) if found == *id => {}
            Some(_) => {
                let message = format!("there are two containers named {name}");
                return Err(Error::exists("container-exists", message).into());
            }
        }
        Ok(())
    }
}

struct Force {
    number: u64,
}

impl CatalogChange for Force {
    type Output = ();

    async fn decide(&self, draft: &mut Draft) -> Decision<()> {
        if let Some(operation) = draft.view().operation(self.number).await? {
            draft.force(operation);
        }
        Ok(())
    }
}
