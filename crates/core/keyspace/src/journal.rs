//! The journal: rows that commands changed, in the order in which they took effect, on their way to the store.
//!
//! Commands push under the locks of their keys, so that rows of one key never overtake each other. One task takes all that
//! waits, keeps the last state of every row, and writes it in as few transactions as the limits of the engine allow.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::keyspace::Keyspace;
use crate::rows::END_BYTES;
use crate::shelf::Shelf;

/// How much may wait for the store before commands wait too.
const WAITING_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How often is written under `everysec`.
const PERIOD: Duration = Duration::from_secs(1);
/// How long to wait after a failed write.
const RETRY: Duration = Duration::from_millis(200);

/// What is promised about writes that were answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// Nothing: everything goes with the process.
    None,
    /// At most about a second of them is lost.
    EverySecond,
    /// They are on disk, and so is whatever a read has shown.
    Always,
}

pub struct Journal {
    pub(crate) shelf: Arc<Shelf>,
    persistence: Persistence,
    waiting: Mutex<Vec<u8>>,
    /// How many bytes were pushed altogether.
    pushed: AtomicU64,
    /// How many of them are in the store, and the bell that rings when there are more. Not a `watch` channel: that wakes
    /// those who wait in an order by chance, which the simulator could not replay.
    kept: AtomicU64,
    has_kept: Notify,
    wanted: Notify,
    is_failing: AtomicBool,
    saved_ms: AtomicU64,
}

impl Journal {
    pub fn new(shelf: Arc<Shelf>, persistence: Persistence) -> Self {
        Self {
            shelf,
            persistence,
            waiting: Mutex::default(),
            pushed: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            has_kept: Notify::new(),
            wanted: Notify::new(),
            is_failing: AtomicBool::new(false),
            saved_ms: AtomicU64::new(0),
        }
    }

    /// Adds the rows of one command or transaction.
    pub(crate) fn push(&self, rows: &[u8]) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.extend_from_slice(rows);
        waiting.extend_from_slice(END_BYTES);
        self.pushed.fetch_add((rows.len() + END_BYTES.len()) as u64, Ordering::Relaxed);
        drop(waiting);
        if self.persistence == Persistence::Always {
            self.wanted.notify_one();
        }
    }

    fn waiting_bytes(&self) -> u64 {
        self.pushed.load(Ordering::Relaxed).saturating_sub(self.kept.load(Ordering::Relaxed))
    }

    /// Waits until so many of the pushed bytes are in the store.
    async fn kept(&self, bytes: u64) {
        loop {
            let rings = self.has_kept.notified();
            tokio::pin!(rings);
            // Listens before it looks, so that no ring is missed in between.
            rings.as_mut().enable();
            if self.kept.load(Ordering::Acquire) >= bytes {
                return;
            }
            rings.await;
        }
    }

    /// Takes all that waits, and where it ends.
    fn take(&self) -> (Vec<u8>, u64) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut *waiting), self.pushed.load(Ordering::Relaxed))
    }

    /// Writes what waits, again and again; never ends.
    pub async fn run(self: Arc<Self>, keyspace: Arc<Keyspace>) {
        let clock = keyspace.env.clock.clone();
        loop {
            let pause = clock.sleep(PERIOD);
            tokio::select! {
                biased;
                () = self.wanted.notified() => {}
                () = pause => {}
            }
            let (rows, end) = self.take();
            if rows.is_empty() {
                continue;
            }
            // Rows say what is, so that writing them twice does no harm.
            while let Err(_error) = self.shelf.write(&rows).await {
                self.is_failing.store(true, Ordering::Relaxed);
                clock.sleep(RETRY).await;
            }
            self.is_failing.store(false, Ordering::Relaxed);
            self.saved_ms.store(clock.now_ms(), Ordering::Relaxed);
            self.kept.store(end, Ordering::Release);
            self.has_kept.notify_waiters();
        }
    }
}

impl Keyspace {
    /// Reads everything from the store, if it is durable. To be called once, before any command.
    pub async fn load(&self) -> lazuli_engine::Result<()> {
        match &self.journal {
            Some(journal) => journal.shelf.load(self).await,
            None => Ok(()),
        }
    }

    /// Writes to the store what commands change, and deletes garbage, for as long as it is polled. Ends at once if nothing is
    /// kept.
    pub async fn keep(self: Arc<Self>) {
        if let Some(journal) = &self.journal {
            let collecting = journal.shelf.collect(&*self.env.clock);
            tokio::join!(journal.clone().run(self.clone()), collecting);
        }
    }

    /// Where its rows are kept, if they are.
    pub fn shelf(&self) -> Option<&Arc<Shelf>> {
        self.journal.as_ref().map(|journal| &journal.shelf)
    }

    pub fn is_persistent(&self) -> bool {
        self.journal.is_some()
    }

    /// What is promised about answered writes, in a word.
    pub fn promise(&self) -> &'static str {
        match self.journal.as_ref().map_or(Persistence::None, |it| it.persistence) {
            Persistence::None => "none",
            Persistence::EverySecond => "everysec",
            Persistence::Always => "always",
        }
    }

    /// When rows were written to the store last.
    pub fn saved_at_ms(&self) -> Option<u64> {
        let saved = self.journal.as_ref()?.saved_ms.load(Ordering::Relaxed);
        Some(saved).filter(|it| *it > 0)
    }

    /// How much waits for the store.
    pub fn waiting_bytes(&self) -> u64 {
        self.journal.as_ref().map_or(0, |it| it.waiting_bytes())
    }

    /// Whether the store refuses what is written.
    pub fn is_failing(&self) -> bool {
        self.journal.as_ref().is_some_and(|it| it.is_failing.load(Ordering::Relaxed))
    }

    /// Waits until replies may be sent: under `always` until everything that commands have done so far is in the store,
    /// under `everysec` until not too much waits for it.
    #[inline]
    pub async fn settled(&self) {
        let Some(journal) = &self.journal else { return };
        let pushed = journal.pushed.load(Ordering::Relaxed);
        match journal.persistence {
            Persistence::Always => journal.kept(pushed).await,
            Persistence::EverySecond if journal.waiting_bytes() > WAITING_BYTES_MAX => {
                journal.wanted.notify_one();
                journal.kept(pushed.saturating_sub(WAITING_BYTES_MAX)).await;
            }
            _ => {}
        }
    }

    /// Waits until everything that commands have done so far is in the store.
    pub async fn flush(&self) {
        let Some(journal) = &self.journal else { return };
        journal.wanted.notify_one();
        journal.kept(journal.pushed.load(Ordering::Relaxed)).await;
    }
}
