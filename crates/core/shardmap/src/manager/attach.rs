//! Shards that are lost, restored or moved to another place.

use lazuli_store::{Error, Result};

use super::shards::{check_free, idle};
use super::{Manager, NewShard, OPERATION_PARTITIONS_MAX};
use crate::catalog::{CatalogChange, Decision, Draft};
use crate::{Identity, Shard, ShardId};

impl Manager {
    /// Takes a shard of this catalog in again that was detached, restored or moved: under its old id, at its new location.
    /// What it holds is compared afterwards (`detect`).
    pub async fn attach_shard(&self, shard: &NewShard, identity: Identity) -> Result<Shard> {
        if identity.catalog != self.catalog.id() {
            let message = format!("the shard belongs to catalog {}", identity.catalog);
            return Err(Error::precondition("wrong-shard", message));
        }
        self.run(&Attach { shard, id: identity.shard }).await
    }

    /// Forgets a shard that is lost, with all the catalog has on it. The shard itself is not asked and not changed; if it
    /// comes back it can be attached again.
    pub async fn detach_shard(&self, id: ShardId) -> Result<()> {
        for operation in self.catalog.operations().await? {
            if operation.shards().contains(&id) {
                self.apply(&operation, Some(id)).await?;
                self.conclude(operation.number).await?;
            }
        }
        while !self.run(&Detach { id }).await? {}
        Ok(())
    }
}

struct Attach<'a> {
    shard: &'a NewShard,
    id: ShardId,
}

impl CatalogChange for Attach<'_> {
    type Output = Shard;

    async fn decide(&self, draft: &mut Draft) -> Decision<Shard> {
        let NewShard { name, location, region, labels } = self.shard.clone();
        check_free(draft.view(), Some(self.id), &name, &location).await?;
        let before = match draft.view().has_shard(self.id).await? {
            true => Some(draft.view().shard(self.id).await?),
            false => None,
        };
        let version = before.as_ref().map_or(1, |before| before.version + 1);
        let shard = Shard { id: self.id, name, location, region, labels, version };
        draft.put_shard(before.as_ref(), &shard);
        Ok(shard)
    }
}

/// Forgets as many partitions of the shard as one commit may, and the shard with the last of them.
struct Detach {
    id: ShardId,
}

impl CatalogChange for Detach {
    type Output = bool;

    async fn decide(&self, draft: &mut Draft) -> Decision<bool> {
        let view = draft.view();
        let shard = view.shard(self.id).await?;
        idle(view, self.id).await?;
        let entries = view.entries_on(self.id, OPERATION_PARTITIONS_MAX + 1).await?;
        let garbage = view.garbage().await?;
        for entry in entries.iter().take(OPERATION_PARTITIONS_MAX) {
            draft.drop_entry(entry);
        }
        let is_last = entries.len() <= OPERATION_PARTITIONS_MAX;
        if is_last {
            for garbage in garbage.iter().filter(|garbage| garbage.shard == self.id) {
                draft.drop_garbage(garbage);
            }
            draft.drop_shard(&shard);
        }
        Ok(is_last)
    }
}
