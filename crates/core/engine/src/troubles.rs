//! What went wrong in the background, for an operator to see: the last error of each kind of work, and how often.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use lazuli_store::Error;

use crate::engine::Engine;

/// The last error of one kind of background work.
#[derive(Clone, Debug)]
pub struct Trouble {
    pub work: &'static str,
    pub error: Error,
    /// How often this work has failed since the start.
    pub count: u64,
}

#[derive(Default)]
pub(crate) struct Troubles {
    last: Mutex<BTreeMap<&'static str, Trouble>>,
}

impl Troubles {
    fn last(&self) -> MutexGuard<'_, BTreeMap<&'static str, Trouble>> {
        self.last.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn note(&self, work: &'static str, error: Error) {
        let mut last = self.last();
        let count = last.get(work).map_or(0, |trouble| trouble.count) + 1;
        last.insert(work, Trouble { work, error, count });
    }

    pub(crate) fn list(&self) -> Vec<Trouble> {
        self.last().values().cloned().collect()
    }
}

impl Engine {
    /// The last trouble of each kind of background work.
    pub fn troubles(&self) -> Vec<Trouble> {
        self.troubles.list()
    }
}
