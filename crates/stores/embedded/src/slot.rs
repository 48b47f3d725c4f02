//! Holds the open engine of a store. After a failed write it is closed and reopened behind the store's handle (see
//! `mend`): so callers use it only for the length of one operation.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use lazuli_store::{Error, Result, StoreHealth};
use tokio::sync::Notify;

use crate::room::Room;
use crate::state::State;

enum Current {
    Open(Arc<State>),
    /// It is being reopened, which ends soon.
    Opening,
    /// Reopening has failed, and is retried.
    Closed(Error),
}

pub(crate) struct Slot {
    current: RwLock<Current>,
    settled: Notify,
    /// Why writes fail, while they do.
    failure: Mutex<Option<Error>>,
    /// The number of the last batch, and of the last one that is on disk for certain.
    written: AtomicU64,
    synced: AtomicU64,
    pub(crate) room: Room,
    /// Held so that no other process opens the directory meanwhile.
    pub(crate) lock: Arc<File>,
}

impl Slot {
    pub(crate) fn new(state: Arc<State>, room: Room, lock: Arc<File>) -> Self {
        let current = RwLock::new(Current::Open(state));
        let (written, synced) = (AtomicU64::new(0), AtomicU64::new(0));
        let (settled, failure) = (Notify::new(), Mutex::default());
        Self { current, settled, failure, written, synced, room, lock }
    }

    /// The engine; none while it is being reopened.
    pub(crate) fn now(&self) -> Result<Option<Arc<State>>> {
        match &*self.current.read().unwrap_or_else(PoisonError::into_inner) {
            Current::Open(state) => Ok(Some(state.clone())),
            Current::Opening => Ok(None),
            Current::Closed(error) => Err(error.clone()),
        }
    }

    /// The engine. Waits while it is being reopened.
    pub(crate) async fn engine(&self) -> Result<Arc<State>> {
        loop {
            let mut settled = std::pin::pin!(self.settled.notified());
            // Subscribing before checking cannot miss the notification.
            settled.as_mut().enable();
            match self.now()? {
                Some(state) => return Ok(state),
                None => settled.await,
            }
        }
    }

    /// Detaches the engine, so that it can be closed. None if it is detached.
    pub(crate) fn take(&self) -> Option<Arc<State>> {
        match self.set(Current::Opening) {
            Current::Open(state) => Some(state),
            Current::Opening | Current::Closed(_) => None,
        }
    }

    pub(crate) fn put(&self, state: Arc<State>) {
        self.set(Current::Open(state));
        self.settled.notify_waiters();
    }

    /// Records that it cannot be reopened yet.
    pub(crate) fn give_up(&self, error: Error) {
        self.set(Current::Closed(error));
        self.settled.notify_waiters();
    }

    fn set(&self, new: Current) -> Current {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *current, new)
    }

    fn failure(&self) -> MutexGuard<'_, Option<Error>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_failure(&self, failure: Option<Error>) {
        *self.failure() = failure;
    }

    /// Records the last written batch, and the last one on disk. The latter never shrinks, also when the engine is
    /// reopened.
    pub(crate) fn note_batches(&self, written: u64, synced: u64) {
        self.written.store(written, Ordering::Release);
        self.synced.fetch_max(synced, Ordering::AcqRel);
    }

    pub(crate) fn batches_written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    pub(crate) fn batches_synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Why writes fail, if they do.
    pub(crate) fn why_failed(&self) -> Option<Error> {
        // A failure of this moment may not be recorded here yet.
        self.failure().clone().or_else(|| self.now().ok()??.check().err())
    }

    pub(crate) fn health(&self) -> StoreHealth {
        self.why_failed().map_or_else(|| self.room.health(), StoreHealth::Failed)
    }
}
