//! What readers, transactions and the committer share: the open engine, the snapshot that is shown, and whether
//! something has failed.

use std::collections::HashSet;
use std::fmt::Display;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use bytes::Bytes;
use fjall::{Database, PersistMode, Snapshot};
use lazuli_store::{Error, Result};

use crate::error::POISONED;
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
    /// The number of the last batch, and of the last one that is on disk for certain.
    written: AtomicU64,
    synced: AtomicU64,
    failed: OnceLock<Error>,
    _lock: File,
}

impl State {
    pub(crate) fn new(
        engine: Engine,
        folder: PathBuf,
        marker: Bytes,
        lock: File,
        settings: &Settings,
    ) -> Self {
        let (db, keyspaces) = engine;
        let published = Published { snapshot: db.snapshot(), guards: Arc::default() };
        let published = RwLock::new(Arc::new(published));
        let failed = OnceLock::new();
        let _writeback = Writeback::start(&folder);
        Trim::left_in(&Layout::dropped_in(&folder), &Layout::tables_in(&folder)).start();
        Self {
            published,
            keyspaces,
            db,
            _writeback,
            folder,
            marker,
            merges: AtomicUsize::new(0),
            table_bytes: settings.table_bytes,
            shares_tables: settings.shares_tables,
            written: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            failed,
            _lock: lock,
        }
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

    /// Notes how far batches are written, and how far they are on disk.
    pub(crate) fn note_batches(&self, written: u64, synced: u64) {
        self.written.store(written, Ordering::Release);
        self.synced.store(synced, Ordering::Release);
    }

    /// How many batches are written.
    pub(crate) fn batches_written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// How many batches are on disk.
    pub(crate) fn batches_synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Remembers the first failure of a write. From then on everything answers with it.
    pub(crate) fn fail(&self, cause: &dyn Display) -> Error {
        let message = format!("{POISONED} (it was: {cause})");
        self.failed.get_or_init(|| Error::unavailable("store-failed", message)).clone()
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Asks the engine too, whose workers may have failed behind our back.
    pub(crate) fn check_engine(&self) -> Result<()> {
        self.check()?;
        self.db.persist(PersistMode::Buffer).map_err(|error| self.fail(&error))
    }
}
