//! From a directory to an open engine, step by step, each with its own error.

use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::Path;

use bytes::Bytes;
use fjall::{AbstractTree, CompressionType, Database, Keyspace, KeyspaceCreateOptions, SeqNo};
use lazuli_store::{Error, Result};

use crate::error::{from_engine, from_io};
use crate::journal::{self, Cut, Scan};
use crate::layout::Layout;
use crate::manifest;
use crate::marker::{self, Answered, Marker};
use crate::settings::{JOURNAL_BYTES_LEAST, Settings};
use crate::state::{Engine, State};

/// The one keyspace that holds everything.
const KEYSPACE: &str = "data";

pub(crate) struct Opened {
    pub(crate) state: State,
    pub(crate) answered: Answered,
    /// The number of the last batch.
    pub(crate) number: u64,
    pub(crate) recovery: Recovery,
}

/// What opening a store found to do.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// How much of the journals was looked through.
    pub journal_bytes: u64,
    /// What a crash had left half written, and nobody was told was done.
    pub cut: Option<Cut>,
}

pub(crate) fn open(path: &Path, settings: &Settings) -> Result<Opened> {
    let layout = Layout::new(path);
    let lock = layout.lock()?;
    let opened =
        std::panic::catch_unwind(AssertUnwindSafe(|| open_locked(&layout, settings, lock)));
    // The engine asserts what its files should say: to it damage is a fault in the program.
    let panicked = || Err(Error::corrupt("store-corrupt", "the engine cannot make sense of it"));
    opened.unwrap_or_else(|_| panicked()).map_err(|error| error.context(path.display()))
}

fn open_locked(layout: &Layout, settings: &Settings, lock: File) -> Result<Opened> {
    let id = match layout.identify()? {
        Some(id) => id,
        None => layout.create(|folder| open_engine(folder, settings).map(drop))?,
    };
    let store = layout.store();
    let key = marker::key(&id);
    let path = layout.answered();
    let io = |error: std::io::Error| from_io(path.display(), &error);
    let promised = Answered::read(&path).map_err(io)?;
    manifest::check(&store)?;
    let scan = journal::scan(&store, &key, promised)?;
    if let Some(torn) = &scan.torn {
        journal::cut(torn, &layout.torn())?;
    }
    let engine = open_engine(&store, settings)?;
    let number = check_numbers(&engine.1, &key, &scan, promised)?;
    // The engine has synced what it found, and from now on readers see it.
    let mut answered = Answered::open(&path).map_err(io)?;
    answered.write(number).map_err(io)?;
    let recovery = Recovery { journal_bytes: scan.bytes, cut: scan.torn };
    Ok(Opened { state: State::new(engine, store, key, lock), answered, number, recovery })
}

/// Whether tables and journals together hold every batch up to the last, and that one is not behind what was promised.
fn check_numbers(keyspace: &Keyspace, key: &Bytes, scan: &Scan, promised: u64) -> Result<u64> {
    let number_at = |sequence: SeqNo| {
        let value = keyspace.tree.get(key, sequence).map_err(|error| from_engine(&error.into()))?;
        value.map_or(Ok(0), |value| Ok(Marker::decode(&value).ok_or_else(unreadable)?.number))
    };
    let in_tables = match keyspace.tree.get_highest_persisted_seqno() {
        Some(sequence) => number_at(sequence + 1)?,
        None => 0,
    };
    let number = number_at(SeqNo::MAX)?;
    let lost = |message: String| Err(Error::corrupt("store-lost-commits", message));
    let (first, last) = scan.numbers.unwrap_or((in_tables + 1, in_tables));
    if first > in_tables + 1 {
        return lost(format!("tables end with commit {in_tables}, journals begin with {first}"));
    }
    if last != number || last < in_tables {
        return lost(format!(
            "tables end with commit {in_tables}, journals with {last}, the engine shows {number}"
        ));
    }
    if number < promised {
        return lost(format!("commit {promised} was answered, the last that is left is {number}"));
    }
    Ok(number)
}

fn unreadable() -> Error {
    Error::corrupt("store-corrupt", "the marker of the last batch cannot be read")
}

fn open_engine(folder: &Path, settings: &Settings) -> Result<Engine> {
    let options = || KeyspaceCreateOptions::default().max_memtable_size(settings.memtable_bytes);
    let open = || {
        let db = Database::builder(folder)
            .cache_size(settings.cache_bytes)
            .max_journaling_size(settings.journal_bytes_max.max(JOURNAL_BYTES_LEAST))
            .worker_threads(settings.workers.max(1))
            // Journals stay as written, so that their sums can be checked without unpacking.
            .journal_compression(CompressionType::None)
            .open()?;
        let keyspace = db.keyspace(KEYSPACE, options)?;
        Ok((db, keyspace))
    };
    open().map_err(|error| from_engine(&error))
}
