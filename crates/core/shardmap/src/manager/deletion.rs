//! Deleting a container: out of sight in one commit, its partitions in rounds, its data by the garbage collection.

use lazuli_store::{KeyRange, Result};

use super::containers::check_version;
use super::{Manager, OPERATION_PARTITIONS_MAX, locks, unclaimed};
use crate::ContainerId;
use crate::catalog::{
    CatalogChange, ContainerChange, Decision, Deleting, Draft, Entry, MapOperation,
};

impl Manager {
    /// Deletes a container and all its partitions. From its first commit on it is hidden and its name is free;
    /// what a crash leaves over, the reconciler finishes.
    pub async fn delete_container(&self, id: ContainerId, version: u64) -> Result<()> {
        let mut done = self.run(&StartDeleting { id, version }).await?;
        while !done {
            done = self.run(&DeleteRound { id }).await?;
        }
        Ok(())
    }

    /// Goes on with a deletion that was begun.
    pub(crate) async fn go_on_deleting(&self, id: ContainerId) -> Result<()> {
        while !self.run(&DeleteRound { id }).await? {}
        Ok(())
    }
}

struct StartDeleting {
    id: ContainerId,
    version: u64,
}

impl CatalogChange for StartDeleting {
    type Output = bool;

    async fn decide(&self, draft: &mut Draft) -> Decision<bool> {
        let view = draft.view();
        let container = view.container(self.id).await?;
        unclaimed(view, self.id, &KeyRange::all()).await?;
        check_version(&container, self.version)?;
        if let Some(entry) = view.locked_in(self.id).await? {
            return Err(locks::locked(entry.partition.id).into());
        }
        let mut shards = Vec::new();
        for shard in view.shards().await? {
            if view.count_on(shard.id, Some(self.id)).await? > 0 {
                shards.push(shard.id);
            }
        }
        let deleting = Deleting { container, shards };
        draft.start_deleting(&deleting);
        round(draft, &deleting).await
    }
}

/// Takes away as many partitions as one operation may, and the last trace of the container with the last of them.
struct DeleteRound {
    id: ContainerId,
}

impl CatalogChange for DeleteRound {
    type Output = bool;

    async fn decide(&self, draft: &mut Draft) -> Decision<bool> {
        unclaimed(draft.view(), self.id, &KeyRange::all()).await?;
        match draft.view().deleting_one(self.id).await? {
            Some(deleting) => round(draft, &deleting).await,
            None => Ok(true),
        }
    }
}

async fn round(draft: &mut Draft, deleting: &Deleting) -> Decision<bool> {
    let id = deleting.container.id;
    let most = OPERATION_PARTITIONS_MAX;
    let entries: Vec<Entry> = draft.view().entries(id, &KeyRange::all(), most + 1).await?;
    let is_last = entries.len() <= most;
    let mut operation = MapOperation::new("delete container", id);
    operation.claims.push(KeyRange::all());
    for entry in entries.iter().take(most) {
        operation.remove(&entry.partition);
    }
    operation.change = ContainerChange::None;
    if is_last {
        operation.change = ContainerChange::Forget;
        // A shard that was removed meanwhile takes its data along.
        for shard in &deleting.shards {
            if draft.view().has_shard(*shard).await? {
                let garbage = draft.new_garbage(*shard, id, KeyRange::all());
                operation.garbage.push(garbage);
            }
        }
    }
    draft.begin(operation)?;
    Ok(is_last)
}
