//! Shards come and go while everything runs (S1).

use std::collections::{BTreeMap, BTreeSet};

use lazuli_store::{Error, Result};

use super::placing::check_placement;
use super::{Manager, check_name};
use crate::catalog::{CatalogChange, Decision, Draft, Refusal, View};
use crate::{ContainerId, Garbage, Partition, Shard, ShardId};

/// How many partitions a look at a shard names.
const HOLDINGS_NAMED_MAX: usize = 100;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewShard {
    pub name: String,
    pub location: String,
    pub region: String,
    pub labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardUpdate {
    pub id: ShardId,
    /// The version that the caller has seen.
    pub version: u64,
    pub name: String,
    pub region: String,
    pub labels: BTreeMap<String, String>,
}

/// What a shard holds: all of it must go before the shard can.
#[derive(Clone, Debug)]
pub struct Holdings {
    pub shard: Shard,
    pub partitions: u64,
    /// The first of them.
    pub first: Vec<Partition>,
    /// Operations on the shard that are not finished.
    pub operations: Vec<u64>,
    /// Data that no partition owns and that waits to be deleted. It does not keep the shard.
    pub garbage: Vec<Garbage>,
}

impl Manager {
    pub async fn add_shard(&self, shard: &NewShard) -> Result<Shard> {
        self.run(shard).await
    }

    /// Changes what a shard is called and what it is good for. Changing nothing is fine and changes nothing.
    pub async fn update_shard(&self, update: &ShardUpdate) -> Result<Shard> {
        self.run(update).await
    }

    /// Removes a shard that holds no partition, else `shard-not-empty`.
    pub async fn remove_shard(&self, id: ShardId, version: u64) -> Result<()> {
        self.run(&RemoveShard { id, version }).await
    }

    /// What would have to leave the shard before it can be removed.
    pub async fn check_shard(&self, id: ShardId) -> Result<Holdings> {
        let snapshot = self.catalog.snapshot().await?;
        let view = View::of(&*snapshot);
        let shard = view.shard(id).await?;
        let entries = view.entries_on(id, HOLDINGS_NAMED_MAX).await?;
        let pending = view.operations().await?;
        let garbage = view.garbage().await?;
        let here = pending.iter().filter(|operation| operation.shards().contains(&id));
        Ok(Holdings {
            shard,
            partitions: view.count_on(id, None).await?,
            first: entries.into_iter().map(|entry| entry.partition).collect(),
            operations: here.map(|operation| operation.number).collect(),
            garbage: garbage.into_iter().filter(|garbage| garbage.shard == id).collect(),
        })
    }
}

impl CatalogChange for NewShard {
    type Output = Shard;

    async fn decide(&self, draft: &mut Draft) -> Decision<Shard> {
        check_free(draft.view(), None, &self.name, &self.location).await?;
        let Self { name, location, region, labels } = self.clone();
        let shard = Shard { id: draft.new_shard_id(), name, location, region, labels, version: 1 };
        draft.put_shard(None, &shard);
        Ok(shard)
    }
}

impl CatalogChange for ShardUpdate {
    type Output = Shard;

    async fn decide(&self, draft: &mut Draft) -> Decision<Shard> {
        let view = draft.view();
        let before = view.shard(self.id).await?;
        check_version(&before, self.version)?;
        let Self { name, region, labels, .. } = self.clone();
        let mut after = Shard { name, region, labels, ..before.clone() };
        if after == before {
            return Ok(before);
        }
        check_free(view, Some(self.id), &after.name, &after.location).await?;
        if (&after.region, &after.labels) != (&before.region, &before.labels) {
            check_held(view, &after).await?;
        }
        after.version += 1;
        draft.put_shard(Some(&before), &after);
        Ok(after)
    }
}

struct RemoveShard {
    id: ShardId,
    version: u64,
}

impl CatalogChange for RemoveShard {
    type Output = ();

    async fn decide(&self, draft: &mut Draft) -> Decision<()> {
        let view = draft.view();
        let shard = view.shard(self.id).await?;
        check_version(&shard, self.version)?;
        idle(view, self.id).await?;
        let held = view.count_on(self.id, None).await?;
        if held > 0 {
            let message = format!("shard {} holds {held} partitions", shard.name);
            return Err(Error::precondition("shard-not-empty", message).into());
        }
        if let Some(moving) = view.moves().await?.iter().find(|it| it.names(self.id)) {
            let message = format!("move {} is not over yet", moving.number);
            return Err(Error::precondition("shard-in-move", message).into());
        }
        let garbage = view.garbage().await?;
        for garbage in garbage.iter().filter(|garbage| garbage.shard == self.id) {
            draft.drop_garbage(garbage);
        }
        draft.drop_shard(&shard);
        Ok(())
    }
}

/// Refuses names and locations that another shard has.
pub(crate) async fn check_free(
    view: View<'_>,
    me: Option<ShardId>,
    name: &str,
    location: &str,
) -> Result<()> {
    check_name("shard's name", name)?;
    check_name("shard's location", location)?;
    let taken = |found: Option<ShardId>| found.is_some() && found != me;
    if taken(view.shard_named(name).await?) {
        return Err(Error::exists("shard-exists", format!("there is a shard named {name}")));
    }
    if taken(view.shard_at(location).await?) {
        let message = format!("there is a shard at {location}");
        return Err(Error::exists("location-taken", message));
    }
    Ok(())
}

fn check_version(shard: &Shard, version: u64) -> Result<()> {
    if shard.version == version {
        return Ok(());
    }
    let message = format!("shard {} is at version {}, not {version}", shard.name, shard.version);
    Err(Error::precondition("shard-changed", message))
}

/// Refuses while an operation on the shard is pending.
pub(crate) async fn idle(view: View<'_>, shard: ShardId) -> Decision<()> {
    let pending = view.operations().await?;
    match pending.iter().find(|operation| operation.shards().contains(&shard)) {
        Some(operation) => Err(Refusal::Pending(operation.number)),
        None => Ok(()),
    }
}

/// Refuses a shard's new region or labels where a partition that it holds must not be then.
async fn check_held(view: View<'_>, shard: &Shard) -> Decision<()> {
    idle(view, shard.id).await?;
    let containers = view.containers().await?;
    let ruled = containers.iter().filter(|container| !container.placement.is_empty());
    let ruled: BTreeMap<ContainerId, _> = ruled.map(|it| (it.id, it)).collect();
    let mut held = BTreeSet::new();
    for id in ruled.keys() {
        if view.count_on(shard.id, Some(*id)).await? > 0 {
            held.insert(*id);
        }
    }
    if held.is_empty() {
        return Ok(());
    }
    for entry in view.entries_on(shard.id, usize::MAX).await? {
        if let Some(container) = ruled.get(&entry.partition.container) {
            check_placement(container, &entry.partition.routes, shard)?;
        }
    }
    Ok(())
}
