//! What a router knows of one container, and one reading of the catalog for all who wait for it.
//!
//! Readings of one container come one after another and are numbered. A request is content with a
//! reading that began after the request came, however it ended. One that
//! began before may have missed what the request is about. So however many requests wait, the
//! catalog is read once for them, twice at most. Who has the turn may vanish at any moment: the
//! next in line takes over.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use lazuli_store::Result;
use tokio::sync::{Mutex, MutexGuard};

use crate::map::Map;
use crate::{Container, Partition, PartitionId};

/// The map of a container as the catalog had it at one version, and the container as it was then or later.
pub(super) struct Loaded {
    pub(super) container: Arc<Container>,
    pub(super) version: u64,
    pub(super) map: Map,
}

#[derive(Default)]
pub(super) struct Slot {
    loaded: RwLock<Option<Loaded>>,
    /// How many readings have begun.
    begun: AtomicU64,
    /// The number of the last reading that ended, and how.
    ended: Mutex<Option<(u64, Result<()>)>>,
}

impl Slot {
    /// What `look` sees in what is known; none if nothing is.
    pub(super) fn read<T>(&self, look: impl FnOnce(&Loaded) -> T) -> Option<T> {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(look)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Option<Loaded>> {
        self.loaded.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn container(&self) -> Option<Arc<Container>> {
        self.read(|loaded| loaded.container.clone())
    }

    pub(super) fn version(&self) -> Option<u64> {
        self.read(|loaded| loaded.version)
    }

    pub(super) fn entries(&self) -> usize {
        self.read(|loaded| loaded.map.len()).unwrap_or(0)
    }

    pub(super) fn replace(&self, loaded: Loaded) {
        *self.write() = Some(loaded);
    }

    /// Takes changes in. If they make no sense, nothing is known any more: the next reading is a
    /// full one.
    pub(super) fn apply(
        &self,
        container: Arc<Container>,
        version: u64,
        removed: &[PartitionId],
        put: &[Partition],
    ) -> Result<()> {
        let mut guard = self.write();
        let Some(loaded) = guard.as_mut() else { return Ok(()) };
        for id in removed {
            loaded.map.remove(*id);
        }
        let outcome = put.iter().try_for_each(|partition| loaded.map.put(partition));
        (loaded.container, loaded.version) = (container, version);
        if outcome.is_err() {
            *guard = None;
        }
        outcome
    }

    /// The turn to read the catalog. One has it at a time.
    pub(super) async fn turn(&self) -> Turn<'_> {
        let came_after = self.begun.load(Ordering::Relaxed);
        let ended = self.ended.lock().await;
        Turn { begun: &self.begun, came_after, ended }
    }
}

pub(super) struct Turn<'a> {
    begun: &'a AtomicU64,
    came_after: u64,
    ended: MutexGuard<'a, Option<(u64, Result<()>)>>,
}

impl Turn<'_> {
    /// How a reading ended that began while this turn was waited for.
    pub(super) fn outcome(&self) -> Option<Result<()>> {
        let ended = self.ended.as_ref().filter(|(number, _)| *number > self.came_after);
        ended.map(|(_, outcome)| outcome.clone())
    }

    /// Begins a reading. Only who has the turn does, so numbers are never given twice.
    pub(super) fn begin(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn end(mut self, number: u64, outcome: &Result<()>) {
        *self.ended = Some((number, outcome.clone()));
    }
}
