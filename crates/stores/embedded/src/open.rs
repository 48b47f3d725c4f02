//! From a directory to an open engine, step by step, each with its own error.

use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use bytes::Bytes;
use fjall::compaction::Leveled;
use fjall::config::BlockSizePolicy;
use fjall::{AbstractTree, CompressionType, Database, KeyspaceCreateOptions, SeqNo};
use lazuli_store::{Error, Result};

use crate::error::{from_engine, from_io};
use crate::journal::{self, Cut, Scan};
use crate::keyspaces::{DATA, Keyspaces, OWN};
use crate::layout::Layout;
use crate::manifest;
use crate::marker::{self, Answered, Marker, Promise, StoreId};
use crate::merges::Hurry;
use crate::settings::{JOURNAL_BYTES_LEAST, Settings};
use crate::state::{Engine, Never, State};
use crate::table_ids;

/// Block size of tables. Half of it makes loads and scans a third slower; twice of it, reads of single keys a
/// quarter. Fixed when a store is created.
pub(crate) const BLOCK_BYTES: u32 = 8 * 1024;

pub(crate) struct Opened {
    pub(crate) state: Arc<State>,
    /// Disconnected when the engine is closed.
    pub(crate) closed: Receiver<Never>,
    pub(crate) answered: Answered,
    /// The marker of the last batch.
    pub(crate) last: Marker,
    pub(crate) recovery: Recovery,
}

/// The result of recovery when opening a store.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// How many bytes of journals were checked.
    pub journal_bytes: u64,
    /// The torn tail of a crash, which was never answered.
    pub cut: Option<Cut>,
    /// Set if answered commits may be missing from the journals.
    pub unsure: Option<Unsure>,
}

/// The file with the last answered commit is unreadable. So a journal that was cut at the end of a commit, or whose
/// last commit is damaged, looks complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsure {
    /// What is wrong with the file.
    pub what: &'static str,
    /// The journal that ends here, and its length: commits that were answered after that may be lost.
    pub journal: PathBuf,
    pub offset: u64,
    /// The number of the first commit that may be lost.
    pub commit: u64,
}

/// The state of a failed engine that is being reopened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// The last batch that was visible to readers. Later ones were refused, and must not come back.
    pub(crate) number: u64,
    /// The last batch that an fsync has confirmed.
    pub(crate) synced: u64,
}

/// How a store is reopened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Again {
    pub(crate) kept: Option<Kept>,
    /// See [`State::is_still`].
    pub(crate) is_still: bool,
}

/// Opens the store in a locked directory.
pub(crate) fn open(
    layout: &Layout,
    settings: &Settings,
    lock: &Arc<File>,
    again: Again,
) -> Result<Opened> {
    let lock = lock.clone();
    let open = || open_locked(layout, settings, lock, again);
    let opened = std::panic::catch_unwind(AssertUnwindSafe(open));
    // The engine asserts on invalid files: it treats damage as a programming error.
    let panicked = || Err(Error::corrupt("store-corrupt", "the engine cannot read its files"));
    opened.unwrap_or_else(|_| panicked()).map_err(|error| error.context(layout.root.display()))
}

/// Creates the store, which is closed again. The caller holds its lock.
pub(crate) fn create(layout: &Layout, settings: &Settings) -> Result<StoreId> {
    layout.create(|folder| open_engine(folder, settings, false).map(drop))
}

fn open_locked(
    layout: &Layout,
    settings: &Settings,
    lock: Arc<File>,
    again: Again,
) -> Result<Opened> {
    let found = layout.identify()?;
    let id = match found {
        Some(id) => id,
        None => create(layout, settings)?,
    };
    let store = layout.store();
    let key = marker::key(&id);
    let path = layout.answered();
    let io = |error: std::io::Error| from_io(path.display(), &error);
    let promise = Answered::read(&path).map_err(io)?;
    let mut promised = promise.number();
    manifest::check(&store)?;
    let mut last = u64::MAX;
    if let Some(kept) = again.kept {
        (promised, last) = (promised.max(kept.synced), kept.number);
        manifest::settle(&store)?;
    }
    let scan = journal::scan(&store, &key, promised, last)?;
    if let Some(torn) = &scan.torn {
        journal::cut(torn, &layout.torn())?;
    }
    if again.kept.is_some() {
        journal::settle(&scan)?;
    }
    let engine = open_engine(&store, settings, again.is_still)?;
    let last = check_numbers(&engine.1, &key, &scan, promised)?;
    // The engine has synced everything, and from now on readers see it.
    let mut answered = Answered::open(&path).map_err(io)?;
    answered.write(last.number).map_err(io)?;
    let unsure = found.and_then(|_| unsure(promise, &scan, last.number));
    let recovery = Recovery { journal_bytes: scan.bytes, cut: scan.torn, unsure };
    let (state, closed) = State::new(engine, store, key, lock, settings, again.is_still);
    Ok(Opened { state: Arc::new(state), closed, answered, last, recovery })
}

/// What may be lost if the answered file is unreadable.
fn unsure(promise: Promise, scan: &Scan, last: u64) -> Option<Unsure> {
    let what = match promise {
        Promise::Known(_) => return None,
        Promise::Missing => "is missing",
        Promise::Damaged => "is damaged",
    };
    let (journal, unsynced) = scan.unsynced.clone()?;
    Some(Unsure { what, journal, offset: unsynced.end, commit: last + 1 })
}

/// Whether tables and journals together hold every batch up to the last, and that one is not before the last promised one.
fn check_numbers(keyspaces: &Keyspaces, key: &Bytes, scan: &Scan, promised: u64) -> Result<Marker> {
    let own = &keyspaces.own.tree;
    let marker_at = |sequence: SeqNo| {
        let value = own.get(key, sequence).map_err(|error| from_engine(&error.into()))?;
        value.map_or(Ok(Marker::default()), |value| Marker::decode(&value).ok_or_else(unreadable))
    };
    let in_tables = match own.get_highest_persisted_seqno() {
        Some(sequence) => marker_at(sequence + 1)?.number,
        None => 0,
    };
    let newest = marker_at(SeqNo::MAX)?;
    let number = newest.number;
    let lost = |message: String| Err(Error::corrupt("store-lost-commits", message));
    let (first, last) =
        scan.ends.map_or((in_tables + 1, in_tables), |(first, last)| (first.number, last.number));
    if first > in_tables + 1 {
        return lost(format!("tables end with commit {in_tables}, journals begin with {first}"));
    }
    if last != number || last < in_tables {
        return lost(format!(
            "tables end with commit {in_tables}, journals with {last}, the engine shows {number}"
        ));
    }
    if number < promised {
        return lost(format!("commit {promised} was answered, the last one found is {number}"));
    }
    let data_end = scan.ends.map_or(newest.data_end_after(), |(first, _)| first.data_end);
    check_data(keyspaces, data_end, newest.loads).map(|()| newest)
}

/// Whether the tables of `data` hold everything that the journals do not, up to `data_end`, and nothing newer than
/// the last batch, unless a load may have followed it.
fn check_data(keyspaces: &Keyspaces, data_end: SeqNo, loads: bool) -> Result<()> {
    let end = |highest: Option<SeqNo>| highest.map_or(0, |sequence| sequence + 1);
    let in_tables = end(keyspaces.data.tree.get_highest_persisted_seqno());
    // Every batch has a marker in `own`.
    let last = end(keyspaces.own.tree.get_highest_seqno());
    let lost = |message: String| Err(Error::corrupt("store-lost-commits", message));
    if in_tables < data_end {
        return lost(format!("tables of data end at {in_tables}, journals begin after {data_end}"));
    }
    if in_tables > last && !loads {
        return lost(format!("tables of data end at {in_tables}, commits at {last}"));
    }
    Ok(())
}

fn unreadable() -> Error {
    Error::corrupt("store-corrupt", "the marker of the last batch cannot be read")
}

fn open_engine(folder: &Path, settings: &Settings, is_still: bool) -> Result<Engine> {
    // The committer rotates full memtables: the engine would fill the queue of its one worker with requests.
    let blocks = BlockSizePolicy::all(BLOCK_BYTES);
    let options = || {
        let options = KeyspaceCreateOptions::default().max_memtable_size(u64::MAX);
        let merging = Leveled::default().with_table_target_size(settings.table_bytes);
        options.data_block_size_policy(blocks.clone()).compaction_strategy(Arc::new(merging))
    };
    let hurry = Hurry::default();
    let merges = hurry.clone();
    let open = || {
        let db = Database::builder(folder)
            .cache_size(settings.cache_bytes)
            .max_journaling_size(settings.journal_bytes_max.max(JOURNAL_BYTES_LEAST))
            .worker_threads_unchecked(if is_still { 0 } else { settings.workers.max(1) })
            // Journals are not compressed, so that their checksums can be verified without decompressing.
            .journal_compression(CompressionType::None)
            .with_compaction_filter_factories(Arc::new(move |_| Some(Arc::new(merges.clone()))))
            .open()?;
        let (data, own) = (db.keyspace(DATA.0, options)?, db.keyspace(OWN.0, options)?);
        Ok((db, Keyspaces { data, own, memtable_bytes: settings.memtable_bytes, hurry }))
    };
    let (db, keyspaces) = open().map_err(|error| from_engine(&error))?;
    if (keyspaces.data.id(), keyspaces.own.id()) != (DATA.1, OWN.1) {
        return Err(Error::corrupt("store-corrupt", "its keyspaces are not those of our stores"));
    }
    table_ids::draw(&keyspaces.data);
    Ok((db, keyspaces))
}
