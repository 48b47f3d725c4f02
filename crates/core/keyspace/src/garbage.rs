//! Garbage: rows of the store that nothing refers to any more, deleted in the background.
//!
//! A key that is deleted or replaced, or a database that is cleared, leaves the rows of its elements behind. Their generation or
//! database is never used again, so they are deleted at any time, whatever commands write meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::Result;
use lazuli_env::Clock;
use tokio::sync::Notify;

use crate::shelf::Shelf;

/// What is remembered at most. Rows of what does not fit are found when the keyspace is loaded the next time.
const GARBAGE_MAX: usize = 1_000_000;
/// How many rows are deleted in one transaction, and for how many entries of the list.
const ROWS_AT_ONCE: usize = 1_000;
const ENTRIES_AT_ONCE: usize = 256;
/// The collector rests for as long as it has worked, so that it takes at most half of what one task can.
const REST_MAX: Duration = Duration::from_millis(200);
/// How long it rests after a failed deletion.
const RETRY: Duration = Duration::from_secs(1);

/// Rows to delete: a slot and what they begin with.
type Entry = (u16, Bytes);

#[derive(Default)]
pub(crate) struct Garbage {
    entries: Mutex<BTreeSet<Entry>>,
    added: Notify,
}

impl Garbage {
    pub(crate) fn add(&self, garbage: impl IntoIterator<Item = Entry>) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in garbage {
            if entries.len() >= GARBAGE_MAX {
                break;
            }
            entries.insert(entry);
        }
        if !entries.is_empty() {
            self.added.notify_one();
        }
    }

    /// The next entries behind one.
    fn next(&self, last: Option<&Entry>) -> Vec<Entry> {
        let from = last.map_or(Bound::Unbounded, |it| Bound::Excluded(it.clone()));
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.range((from, Bound::Unbounded)).take(ENTRIES_AT_ONCE).cloned().collect()
    }

    fn remove(&self, done: &[Entry]) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in done {
            entries.remove(entry);
        }
    }
}

impl Shelf {
    /// Deletes garbage for as long as it is polled.
    pub(crate) async fn collect(&self, clock: &dyn Clock) {
        let mut last = None;
        loop {
            let entries = self.garbage.next(last.as_ref());
            if entries.is_empty() {
                // Entries whose shard was away are tried again from the first one on.
                match last.take() {
                    Some(_) => clock.sleep(REST_MAX).await,
                    None => self.garbage.added.notified().await,
                }
                continue;
            }
            let begun = clock.uptime();
            match self.collect_some(&entries).await {
                Ok(done) => self.garbage.remove(&entries[..done]),
                Err(_error) => {
                    // The list is in the order of slots: what is behind may be on another shard.
                    last = entries.last().cloned();
                    clock.sleep(RETRY).await;
                }
            }
            clock.sleep(clock.uptime().saturating_sub(begun).min(REST_MAX)).await;
        }
    }

    /// Deletes rows of some entries, up to a limit. How many of the entries have none left.
    async fn collect_some(&self, entries: &[Entry]) -> Result<usize> {
        let (mut rows, mut done) = (BTreeMap::new(), 0);
        for (slot, start) in entries {
            let (found, is_all) = self.find(*slot, start, ROWS_AT_ONCE - rows.len()).await?;
            rows.extend(found.into_iter().map(|row| ((*slot, row), None)));
            done += usize::from(is_all);
            if !is_all || rows.len() >= ROWS_AT_ONCE {
                break;
            }
        }
        self.write_rows(rows).await?;
        Ok(done)
    }
}
