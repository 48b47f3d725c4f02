//! The row locks of a simulated server: a transaction holds one for each of its guards, whichever process it belongs to.
//!
//! As on PostgreSQL: a lock ends with its transaction; a transaction that sits idle for too long is aborted by the server; a
//! transaction that waits for too long gives up.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use lazuli_store::Result;
use tokio::sync::Notify;

use crate::disk::down;
use crate::executor::World;
use crate::lock;

/// How long a transaction waits for a lock.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// How long a transaction may hold locks without a request before the server aborts it.
const IDLE_MAX: Duration = Duration::from_secs(3);

#[derive(Default)]
struct Table {
    /// The transaction that holds a key.
    keys: BTreeMap<Bytes, u64>,
    /// When a transaction that holds locks made its last request. None while its commit is under way.
    active: BTreeMap<u64, Option<Duration>>,
    next: u64,
}

impl Table {
    fn end(&mut self, id: u64) {
        if self.active.remove(&id).is_some() {
            self.keys.retain(|_, holder| *holder != id);
        }
    }

    /// When the last of these keys is free by itself at the earliest; none if all are free now.
    fn busy_until(&mut self, id: u64, keys: &[Bytes], now: Duration) -> Option<Duration> {
        let mut until: Option<Duration> = None;
        for key in keys {
            let Some(holder) = self.keys.get(key).copied().filter(|holder| *holder != id) else {
                continue;
            };
            let ends = match self.active.get(&holder).copied().flatten() {
                Some(last) if last + IDLE_MAX <= now => {
                    self.end(holder);
                    continue;
                }
                Some(last) => last + IDLE_MAX,
                None => now + WAIT_MAX,
            };
            until = until.max(Some(ends));
        }
        until
    }
}

/// The locks of one server. Clones share them.
#[derive(Clone)]
pub(crate) struct Locks {
    world: World,
    table: Arc<Mutex<Table>>,
    freed: Arc<Notify>,
}

impl Locks {
    pub(crate) fn new(world: &World) -> Self {
        Self { world: world.clone(), table: Arc::default(), freed: Arc::default() }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    /// A transaction without locks yet.
    pub(crate) fn begin(&self) -> Locked {
        let mut table = self.table();
        table.next += 1;
        let id = table.next;
        table.active.insert(id, Some(self.world.now()));
        Locked { locks: self.clone(), id }
    }
}

/// The locks of one transaction, until it is dropped.
pub(crate) struct Locked {
    locks: Locks,
    id: u64,
}

impl Locked {
    /// Takes all of these keys, or fails after a while.
    pub(crate) async fn take(&self, keys: &[Bytes]) -> Result<()> {
        let Locks { world, freed, .. } = &self.locks;
        let deadline = world.now() + WAIT_MAX;
        loop {
            let freed = freed.notified();
            let now = world.now();
            let until = {
                let mut table = self.locks.table();
                let until = table.busy_until(self.id, keys, now);
                if until.is_none() {
                    table.keys.extend(keys.iter().map(|key| (key.clone(), self.id)));
                    table.active.insert(self.id, Some(now));
                    return Ok(());
                }
                until
            };
            if now >= deadline {
                return Err(down());
            }
            let wait = until.unwrap_or(deadline).min(deadline).saturating_sub(now);
            tokio::select! {
                biased;
                () = freed => {}
                () = world.sleep(wait.max(Duration::from_micros(1))) => {}
            }
        }
    }

    /// Notes a request. Fails if the server has aborted the transaction meanwhile.
    pub(crate) fn touch(&self) -> Result<()> {
        let now = self.locks.world.now();
        self.note(Some(now))
    }

    /// From here on the transaction is the server's to end.
    pub(crate) fn commit(&self) -> Result<()> {
        self.note(None)
    }

    fn note(&self, active: Option<Duration>) -> Result<()> {
        let now = self.locks.world.now();
        let mut table = self.locks.table();
        match table.active.get_mut(&self.id) {
            Some(Some(last)) if *last + IDLE_MAX <= now => {
                table.end(self.id);
                Err(down())
            }
            Some(last) => {
                *last = active;
                Ok(())
            }
            None => Err(down()),
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.locks.table().end(self.id);
        self.locks.freed.notify_waiters();
    }
}
