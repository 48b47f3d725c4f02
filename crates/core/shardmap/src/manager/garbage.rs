//! Garbage: data that no partition owns any more.
//!
//! An operation that takes routes from a shard names their data as garbage, in its own record and so before any row goes.
//! The shard gets a row for it in the same commit that takes the partition's row away; the engine deletes the data in
//! slices that are guarded by that row. Until it is done, the routes cannot come back to that shard.

use lazuli_store::Result;

use super::{Manager, unclaimed};
use crate::catalog::{CatalogChange, Decision, Draft};
use crate::{Garbage, ShardId};

impl Manager {
    /// Data that is to be deleted, on all shards. Slices are deleted under [`crate::LocalMap::garbage_guard`].
    pub async fn garbage(&self) -> Result<Vec<Garbage>> {
        self.catalog.garbage().await
    }

    /// Says that all data of this garbage is deleted. Again is fine.
    pub async fn garbage_done(&self, garbage: &Garbage) -> Result<()> {
        self.local(garbage.shard)?.garbage_done(garbage.id).await?;
        self.run(&GarbageDone { garbage }).await
    }

    /// Makes catalog and shard agree on garbage. What only the catalog knows was deleted by a process that died before it could say so.
    /// What only the shard knows was forgotten with a restore of the catalog: it is adopted, unless a partition owns those
    /// routes now.
    pub(crate) async fn reconcile_garbage(&self, shard: ShardId) -> Result<()> {
        let local = self.local(shard)?;
        // The shard knows garbage before the catalog does and forgets it first, so it is asked before and after.
        let earlier = local.garbage().await?;
        let pending = self.catalog.operations().await?;
        let known = self.catalog.garbage().await?;
        let later = local.garbage().await?;
        for garbage in known.iter().filter(|garbage| garbage.shard == shard) {
            if !later.contains(garbage) {
                self.garbage_done(garbage).await?;
            }
        }
        let is_pending = |garbage: &Garbage| pending.iter().any(|it| it.garbage.contains(garbage));
        for garbage in earlier {
            if later.contains(&garbage)
                && !known.contains(&garbage)
                && !is_pending(&garbage)
                && !self.run(&Adopt { garbage: &garbage }).await?
            {
                local.garbage_done(garbage.id).await?;
            }
        }
        Ok(())
    }
}

struct Adopt<'a> {
    garbage: &'a Garbage,
}

impl CatalogChange for Adopt<'_> {
    type Output = bool;

    async fn decide(&self, draft: &mut Draft) -> Decision<bool> {
        let Garbage { shard, container, routes, .. } = self.garbage;
        unclaimed(draft.view(), *container, routes).await?;
        let entries = draft.view().entries(*container, routes, usize::MAX).await?;
        if entries.iter().any(|entry| entry.partition.shard == *shard) {
            return Ok(false);
        }
        draft.put_garbage(self.garbage);
        Ok(true)
    }
}

struct GarbageDone<'a> {
    garbage: &'a Garbage,
}

impl CatalogChange for GarbageDone<'_> {
    type Output = ();

    async fn decide(&self, draft: &mut Draft) -> Decision<()> {
        let Garbage { shard, container, routes, .. } = self.garbage;
        let found = draft.view().garbage_in(*container, *shard, routes, usize::MAX).await?;
        // What came later at the same place is not done.
        if found.contains(self.garbage) {
            draft.drop_garbage(self.garbage);
        }
        Ok(())
    }
}
