//! Copies that processes are making, so that the collector tells them from those whose process has died. Where several
//! processes share the stores, those of others are known by their claims.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lazuli_engine::Result;

use super::Blobs;

#[derive(Default)]
pub(super) struct Copies {
    own: Mutex<BTreeSet<Bytes>>,
    /// Those of all nodes, as of the last look.
    claimed: Mutex<BTreeSet<Bytes>>,
}

fn lock(ids: &Mutex<BTreeSet<Bytes>>) -> MutexGuard<'_, BTreeSet<Bytes>> {
    // A set is whole after every statement.
    ids.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Copies {
    pub(super) fn is_running(&self, id: &str) -> bool {
        let is_in = |ids| lock(ids).contains(id.as_bytes());
        is_in(&self.own) || is_in(&self.claimed)
    }
}

impl Blobs {
    pub(super) async fn begin_copy(&self, id: &str) -> Result<()> {
        let id = Bytes::copy_from_slice(id.as_bytes());
        self.engine.claim(id.clone()).await?;
        lock(&self.copies.own).insert(id);
        Ok(())
    }

    pub(super) async fn end_copy(&self, id: &str) {
        lock(&self.copies.own).remove(id.as_bytes());
        // A claim that stays ends with this process.
        let _ = self.engine.unclaim(Bytes::copy_from_slice(id.as_bytes())).await;
    }

    /// Finds out which copies other nodes are making.
    pub(super) async fn look_for_copies(&self) -> Result<()> {
        *lock(&self.copies.claimed) = self.engine.claims().await?;
        Ok(())
    }
}
