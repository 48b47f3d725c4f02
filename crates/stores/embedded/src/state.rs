//! What readers, transactions and the committer share: the open engine, the snapshot that is shown, and whether
//! something has failed.

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
use crate::guards::ByKey;
use crate::keyspaces::Keyspaces;
use crate::layout::Layout;
use crate::settings::Settings;
use crate::trim::Trim;
use crate::writeback::Writeback;

/// The engine, open, with its keyspaces.
pub(crate) type Engine = (Database, Keyspaces);

/// What readers see: whole batches only, and which guards are known to exist in just that state.
pub(crate) struct Published {
    pub(crate) snapshot: Snapshot,
    pub(crate) guards: Arc<HashSet<Bytes, ByKey>>,
}

/// A merge that is under way.
pub(crate) struct Merging<'a>(&'a State);

impl Drop for Merging<'_> {
    fn drop(&mut self) {
        self.0.merges.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Work that takes longer than one operation.
pub(crate) struct Working(Arc<State>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.works.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Nothing is ever sent: it is told by hanging up that the engine is closed.
pub(crate) enum Never {}

/// Fields are dropped in this order: the lock must outlive the engine.
pub(crate) struct State {
    published: RwLock<Arc<Published>>,
    pub(crate) keyspaces: Keyspaces,
    pub(crate) db: Database,
    /// As long as the engine is open it may write tables.
    _writeback: Option<Writeback>,
    /// The engine's directory.
    pub(crate) folder: PathBuf,
    /// The key of the marker, which every batch writes.
    pub(crate) marker: Bytes,
    /// How many merges are under way of which the engine does not know that they are.
    merges: AtomicUsize,
    /// How large tables become when they are merged.
    pub(crate) table_bytes: u64,
    /// Whether tables that come from another store may be the same files as there.
    pub(crate) shares_tables: bool,
    /// Whether the engine has no workers, so that nothing is written but what is committed: then memtables are written
    /// out where they are sealed, and tables are not merged.
    pub(crate) is_still: bool,
    /// How much is under way that takes longer than one operation.
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
        let published = Published { snapshot: db.snapshot(), guards: Arc::default() };
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

    /// The newest state that holds only whole batches.
    ///
    /// The engine's own newest snapshot may show half a batch: a table that is finished while a batch is applied
    /// moves the visible sequence number past it.
    pub(crate) fn published(&self) -> Arc<Published> {
        self.published.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Shows what is written so far. Only the committer calls it, between two batches.
    pub(crate) fn publish(&self, guards: Arc<HashSet<Bytes, ByKey>>) {
        let new = Arc::new(Published { snapshot: self.db.snapshot(), guards });
        let mut published = self.published.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *published, new);
        drop(published);
        // Closing the old one may collect garbage, which readers must not wait for.
        drop(old);
    }

    /// Notes that a merge is under way until what this answers is dropped.
    pub(crate) fn merging(&self) -> Merging<'_> {
        self.merges.fetch_add(1, Ordering::AcqRel);
        Merging(self)
    }

    pub(crate) fn is_merging(&self) -> bool {
        self.db.active_compactions() > 0 || self.merges.load(Ordering::Acquire) > 0
    }

    /// To be called before tables are dropped, so that freeing the disk under them is nothing that anybody waits for.
    pub(crate) fn keep_tables(&self, tables: &[Arc<PathBuf>]) -> Trim {
        Trim::keep(&Layout::dropped_in(&self.folder), tables)
    }

    /// Notes that something is under way until what this answers is dropped. The engine is not closed meanwhile, and
    /// whoever works looks now and then whether a write has failed.
    pub(crate) fn working(self: &Arc<Self>) -> Working {
        self.works.fetch_add(1, Ordering::AcqRel);
        Working(self.clone())
    }

    /// Has a load told when a write fails, so that it does not wait for more of what it is to write.
    pub(crate) fn tell_load(&self, parts: WeakSender<Vec<Item>>) {
        let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        loads.retain(|parts| parts.strong_count() > 0);
        loads.push(parts);
    }

    /// Whether it can be closed without waiting for anybody but those who read.
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_merging() && self.works.load(Ordering::Acquire) == 0
    }

    /// Remembers the first failure of a write. From then on no write is taken.
    pub(crate) fn fail(&self, cause: &dyn Display) -> Error {
        let error = self.failed.get_or_init(|| write_failed(cause)).clone();
        let loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        // One whose line is full is not waiting.
        let told = loads.iter().filter_map(WeakSender::upgrade);
        told.for_each(|parts| drop(parts.try_send(Vec::new())));
        error
    }

    /// Whether writes are taken.
    pub(crate) fn check(&self) -> Result<()> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Asks the engine too, whose workers may have failed behind our back.
    pub(crate) fn check_engine(&self) -> Result<()> {
        self.check()?;
        self.db.persist(PersistMode::Buffer).map_err(|error| self.fail(&error))
    }

    /// Writes sealed memtables out, in place of the workers that a still engine has not.
    pub(crate) fn flush_here(&self, keyspace: &Keyspace) -> Result<()> {
        // Tables must not run ahead of journals.
        self.db.persist(PersistMode::SyncAll).map_err(|error| self.fail(&error))?;
        let flushes = keyspace.tree.get_flush_lock();
        let is_unread = self.db.supervisor.snapshot_tracker.get_seqno_safe_to_gc();
        let flushed = keyspace.tree.flush(&flushes, is_unread);
        flushed.map(drop).map_err(|error| from_engine(&error.into()))
    }
}
