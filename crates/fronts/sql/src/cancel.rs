//! Cancels: clients name a session by numbers that we gave it, over a connection of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::session::CancelSlot;

/// The sessions that can be cancelled, by process and secret.
#[derive(Default)]
pub(crate) struct Cancels {
    sessions: Mutex<HashMap<(u32, u32), Arc<CancelSlot>>>,
}

impl Cancels {
    /// Gives a session its numbers.
    pub(crate) fn add(&self, slot: Arc<CancelSlot>) -> (u32, u32) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let key = (crate::chance() & 0x7fff_ffff, crate::chance());
            if let std::collections::hash_map::Entry::Vacant(entry) = sessions.entry(key) {
                entry.insert(slot);
                return key;
            }
        }
    }

    pub(crate) fn remove(&self, key: (u32, u32)) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }

    /// Has the shards end what the session runs there. Whether there is such a session is not told.
    pub(crate) async fn cancel(&self, key: (u32, u32)) {
        let slot = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        for canceller in slot.iter().flat_map(|slot| slot.running()) {
            canceller.cancel().await;
        }
    }
}
