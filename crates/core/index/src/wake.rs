//! Tells those who derive a text index that documents were written, right after the commit.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use lazuli_engine::ContainerId;
use tokio::sync::watch;

use crate::{Index, Indexes};

/// One counter for each index that somebody follows.
#[derive(Default)]
pub(crate) struct Wakes(Mutex<BTreeMap<ContainerId, watch::Sender<u64>>>);

impl Wakes {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<ContainerId, watch::Sender<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tell(&self, container: ContainerId) {
        let mut wakes = self.lock();
        let Some(wake) = wakes.get(&container) else { return };
        if wake.is_closed() {
            wakes.remove(&container);
        } else {
            wake.send_modify(|count| *count += 1);
        }
    }
}

impl Indexes {
    /// Changes whenever documents of this index were written by this process.
    pub fn watch(&self, index: &Index) -> watch::Receiver<u64> {
        self.wakes.lock().entry(index.id()).or_insert_with(|| watch::channel(0).0).subscribe()
    }
}
