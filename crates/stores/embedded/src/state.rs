//! State shared by readers, transactions and the committer: the open engine, the current snapshot, and the first failure.

use std::collections::HashSet;
use std::fmt::Display;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use bytes::Bytes;
use fjall::{AbstractTree, Database, Keyspace, PersistMode, Snapshot};
use lazuli_store::{Error, Item, Result};
use tokio::sync::mpsc::WeakSender;

use crate::error::{from_engine, write_failed};
use crate::guards::{ByKey, KNOWN_MAX};
use crate::keyspaces::Keyspaces;
use crate::layout::Layout;
use crate::settings::Settings;
use crate::trim::Trim;
use crate::writeback::Writeback;

/// The engine, open, with its keyspaces.
pub(crate) type Engine = (Database, Keyspaces);

/// What readers see: only whole batches, and the guards that exist in that state.
pub(crate) struct Published {
    pub(crate) snapshot: Snapshot,
    /// Those that the committer knows.
    pub(crate) guards: Arc<HashSet<Bytes, ByKey>>,
    /// Others that readers have looked up in this snapshot. The committer learns them with its next batch.
    found: RwLock<HashSet<Bytes, ByKey>>,
}

impl Published {
    fn new(snapshot: Snapshot, guards: Arc<HashSet<Bytes, ByKey>>) -> Self {
        Self { snapshot, guards, found: RwLock::default() }
    }

    /// Whether a guard is known to exist without a read.
    pub(crate) fn knows(&self, guard: &Bytes) -> bool {
        self.guards.contains(guard)
            || self.found.read().unwrap_or_else(PoisonError::into_inner).contains(guard)
    }

    pub(crate) fn note_found(&self, guard: &Bytes) {
        let mut found = self.found.write().unwrap_or_else(PoisonError::into_inner);
        if found.len() < KNOWN_MAX {
            found.insert(guard.clone());
        }
    }

    pub(crate) fn take_found(&self) -> HashSet<Bytes, ByKey> {
        std::mem::take(&mut *self.found.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A running compaction.
pub(crate) struct Merging<'a>(&'a State);

impl Drop for Merging<'_> {
    fn drop(&mut self) {
        self.0.merges.fetch_sub(1, Ordering::AcqRel);
    }
}

/// An operation that takes long.
pub(crate) struct Working(Arc<State>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.works.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Nothing is ever sent: it is disconnected when the engine is closed.
pub(crate) enum Never {}

/// Fields are dropped in this order: the lock must outlive the engine.
pub(crate) struct State {
    published: RwLock<Arc<Published>>,
    pub(crate) keyspaces: Keyspaces,
    pub(crate) db: Database,
    /// While the engine is open it may write tables.
    _writeback: Option<Writeback>,
    /// The engine's directory.
    pub(crate) folder: PathBuf,
    /// The key of the marker, which every batch writes.
    pub(crate) marker: Bytes,
    /// How many compactions run that the engine does not know of.
    merges: AtomicUsize,
    /// Target size of compacted tables.
    pub(crate) table_bytes: u64,
    /// Whether adopted tables may be hard-linked.
    pub(crate) shares_tables: bool,
    /// Whether the engine has no workers, so that only commits write: then memtables are flushed when they are
    /// sealed, and tables are not compacted.
    pub(crate) is_still: bool,
    /// How many long operations are running.
    works: AtomicUsize,
    loads: Mutex<Vec<WeakSender<Vec<Item>>>>,
    failed: OnceLock<Error>,
    _lock: Arc<File>,
    _open: Sender<Never>,
}

impl State {
    pub(crate) fn new(
        engine: Engine,
        folder: PathBuf,
        marker: Bytes,
        lock: Arc<File>,
        settings: &Settings,
        is_still: bool,
    ) -> (Self, Receiver<Never>) {
        let (_open, closed) = channel();
        let (db, keyspaces) = engine;
        let published = Published::new(db.snapshot(), Arc::default());
        let published = RwLock::new(Arc::new(published));
        let failed = OnceLock::new();
        let _writeback = Writeback::start(&folder);
        Trim::left_in(&Layout::dropped_in(&folder), &Layout::tables_in(&folder)).start();
        let state = Self {
            published,
            keyspaces,
            db,
            _writeback,
            folder,
            marker,
            merges: AtomicUsize::new(0),
            table_bytes: settings.table_bytes,
            shares_tables: settings.shares_tables,
            is_still,
            works: AtomicUsize::new(0),
            loads: Mutex::default(),
            failed,
            _lock: lock,
            _open,
        };
        (state, closed)
    }

    /// The newest state with only whole batches.
    ///
    /// The engine's own newest snapshot may contain half a batch: a table that is finished while a batch is
    /// applied moves the visible sequence number past it.
    pub(crate) fn published(&self) -> Arc<Published> {
        self.published.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Publishes the written batches. Only the committer calls it, between two batches.
    pub(crate) fn publish(&self, guards: Arc<HashSet<Bytes, ByKey>>) {
        let new = Arc::new(Published::new(self.db.snapshot(), guards));
        let mut published = self.published.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *published, new);
        drop(published);
        // Closing the old one may collect garbage, which readers must not wait for.
        drop(old);
    }

    /// Marks a compaction as running until the result is dropped.
    pub(crate) fn merging(&self) -> Merging<'_> {
        self.merges.fetch_add(1, Ordering::AcqRel);
        Merging(self)
    }

    pub(crate) fn is_merging(&self) -> bool {
        self.db.active_compactions() > 0 || self.merges.load(Ordering::Acquire) > 0
    }

    /// Must be called before tables are dropped, so that their disk space is freed in the background.
    pub(crate) fn keep_tables(&self, tables: &[Arc<PathBuf>]) -> Trim {
        Trim::keep(&Layout::dropped_in(&self.folder), tables)
    }

    /// Marks an operation as running until the result is dropped. The engine is not closed meanwhile, and the
    /// operation checks from time to time whether a write has failed.
    pub(crate) fn working(self: &Arc<Self>) -> Working {
        self.works.fetch_add(1, Ordering::AcqRel);
        Working(self.clone())
    }

    /// Registers a load to be notified when a write fails, so that it does not wait for more input.
    pub(crate) fn tell_load(&self, parts: WeakSender<Vec<Item>>) {
        let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        loads.retain(|parts| parts.strong_count() > 0);
        loads.push(parts);
    }

    /// Whether it can be closed without waiting for anything but reads.
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_merging() && self.works.load(Ordering::Acquire) == 0
    }

    /// Records the first failure of a write. From then on writes are refused.
    pub(crate) fn fail(&self, cause: &dyn Display) -> Error {
        let error = self.failed.get_or_init(|| write_failed(cause)).clone();
        let loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        // A load with a full queue is not waiting.
        let told = loads.iter().filter_map(WeakSender::upgrade);
        told.for_each(|parts| drop(parts.try_send(Vec::new())));
        error
    }

    /// Whether writes are accepted.
    pub(crate) fn check(&self) -> Result<()> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Also checks the engine, whose workers may have failed.
    pub(crate) fn check_engine(&self) -> Result<()> {
        self.check()?;
        self.db.persist(PersistMode::Buffer).map_err(|error| self.fail(&error))
    }

    /// Flushes sealed memtables, for an engine without workers.
    pub(crate) fn flush_here(&self, keyspace: &Keyspace) -> Result<()> {
        // Tables must not be newer than journals.
        self.db.persist(PersistMode::SyncAll).map_err(|error| self.fail(&error))?;
        let flushes = keyspace.tree.get_flush_lock();
        let is_unread = self.db.supervisor.snapshot_tracker.get_seqno_safe_to_gc();
        let flushed = keyspace.tree.flush(&flushes, is_unread);
        flushed.map(drop).map_err(|error| from_engine(&error.into()))
    }
}
