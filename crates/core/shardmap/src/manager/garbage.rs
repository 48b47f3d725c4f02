//! Garbage: data that no partition owns any more.
//!
//! An operation that takes routes from a shard names their data as garbage, in its own record and so before any row goes.
//! The shard gets a row for it in the same commit that takes the partition's row away; the engine deletes the data in
//! slices that are guarded by that row. Until it is done, the routes cannot come back to that shard.

use lazuli_store::Result;

use super::Manager;
use crate::Garbage;
use crate::catalog::{Change, Decision, Draft};

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
}

struct GarbageDone<'a> {
    garbage: &'a Garbage,
}

impl Change for GarbageDone<'_> {
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
