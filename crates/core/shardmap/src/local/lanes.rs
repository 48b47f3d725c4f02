//! How a change of the local map keeps writes of its own process away. Other processes are kept away by the store.

use std::collections::BTreeSet;
use std::sync::Weak;

use lazuli_env::BoxFuture;

use super::{LocalChange, LocalMap};
use crate::PartitionId;

/// Who runs the writes of this shard in this process.
pub trait Lanes: Send + Sync {
    /// Waits until no write of these partitions, which ascend by id, is under way in this process, and lets none begin until
    /// what it answers is dropped.
    fn hold<'a>(&'a self, partitions: &'a [PartitionId]) -> BoxFuture<'a, Box<dyn Send>>;
}

impl LocalMap {
    /// Lets no write be under way to partitions that end with this change: what it read of their figures would be stale when
    /// it is committed. Other processes are kept out by the guards of the transaction.
    pub(super) async fn hold_lanes(&self, change: &LocalChange) -> Option<Box<dyn Send>> {
        let lanes = self.lanes.get()?.upgrade()?;
        let is_kept = |id: &PartitionId| change.puts.iter().any(|put| put.id == *id);
        let ended = change.drops.iter().map(|(id, _)| *id).filter(|id| !is_kept(id));
        let ended: Vec<_> = ended.collect::<BTreeSet<_>>().into_iter().collect();
        Some(lanes.hold(&ended).await)
    }

    /// Says who runs the writes of this shard in this process.
    pub fn set_lanes(&self, lanes: Weak<dyn Lanes>) {
        // A shard is opened anew with a map of its own, so there is one.
        let _ = self.lanes.set(lanes);
    }
}
