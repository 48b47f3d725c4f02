//! From a directory to an open engine, step by step, each with its own error.

use std::fs::File;
use std::path::Path;

use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions};
use lazuli_store::{Error, Result};

use crate::error::from_engine;
use crate::layout::Layout;
use crate::marker::{self, Answered, Marker};
use crate::settings::{JOURNAL_BYTES_LEAST, Settings};
use crate::state::State;

/// The one keyspace that holds everything.
const KEYSPACE: &str = "data";

pub(crate) struct Opened {
    pub(crate) state: State,
    pub(crate) answered: Answered,
    /// The number of the last batch.
    pub(crate) number: u64,
}

pub(crate) fn open(path: &Path, settings: &Settings) -> Result<Opened> {
    let layout = Layout::new(path);
    let lock = layout.lock()?;
    open_locked(&layout, settings, lock).map_err(|error| error.context(path.display()))
}

fn open_locked(layout: &Layout, settings: &Settings, lock: File) -> Result<Opened> {
    let id = match layout.identify()? {
        Some(id) => id,
        None => layout.create(|folder| open_engine(folder, settings).map(drop))?,
    };
    let (db, keyspace) = open_engine(&layout.store(), settings)?;
    let key = marker::key(&id);
    let last = keyspace.get(&key).map_err(|error| from_engine(&error))?;
    let number = match last {
        None => 0,
        Some(value) => Marker::decode(&value).ok_or_else(unreadable)?.number,
    };
    let path = layout.answered();
    let io = |error: std::io::Error| crate::error::from_io(path.display(), &error);
    let promised = Answered::read(&path).map_err(io)?;
    if number < promised {
        let message = format!("commit {promised} was answered, the last that is left is {number}");
        return Err(Error::corrupt("store-lost-commits", message));
    }
    let answered = Answered::open(&path).map_err(io)?;
    Ok(Opened { state: State::new(db, keyspace, key, lock), answered, number })
}

fn unreadable() -> Error {
    Error::corrupt("store-corrupt", "the marker of the last batch cannot be read")
}

fn open_engine(folder: &Path, settings: &Settings) -> Result<(Database, Keyspace)> {
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
