//! Which copies this process is making.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

#[derive(Default)]
pub(super) struct Copies {
    running: Mutex<BTreeSet<String>>,
}

impl Copies {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.running.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn begin(&self, id: &str) {
        self.lock().insert(id.to_owned());
    }

    pub(super) fn end(&self, id: &str) {
        self.lock().remove(id);
    }

    pub(super) fn is_running(&self, id: &str) -> bool {
        self.lock().contains(id)
    }
}
