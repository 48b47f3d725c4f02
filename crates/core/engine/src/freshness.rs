//! Reads that allow an old state, so that copies of stores can answer them.

use std::time::Duration;

use bytes::Bytes;
use lazuli_store::{Reader, Reads, Result};

use crate::engine::Engine;
use crate::shard::LiveShard;

/// How new the state must be that reads show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// With everything that was answered before.
    Newest,
    /// At most [`lazuli_store::limits::STALENESS_MAX`] old.
    Stale,
}

impl Engine {
    /// The same engine, whose reads of partitions may show an old state: that of a copy of the store, if it has one. How old
    /// it may be says [`Self::staleness`]. Writes are as ever.
    #[must_use]
    pub fn allowing_stale(&self) -> Self {
        Self { freshness: Freshness::Stale, ..self.clone() }
    }

    /// How old the state may be that reads of this engine show.
    pub fn staleness(&self) -> Duration {
        if self.freshness == Freshness::Newest {
            return Duration::ZERO;
        }
        let copies = self.shards.all().into_iter().filter_map(|shard| shard.store.copies());
        copies.map(|copies| copies.staleness()).max().unwrap_or_default()
    }

    /// A snapshot of a shard's store, as new as the reads of this engine must be.
    pub(crate) async fn snapshot(
        &self,
        shard: &LiveShard,
        guard: &Bytes,
        reads: Reads,
    ) -> Result<Box<dyn Reader>> {
        let guards = std::slice::from_ref(guard);
        match self.freshness {
            Freshness::Newest => shard.store.snapshot(guards, reads).await,
            Freshness::Stale => shard.store.stale_snapshot(guards, reads).await,
        }
    }
}
