//! Search indexes: documents by key, what is kept about their indexes, and the changes from which a text index is derived
//! (F1, F2). The model behind Azure AI Search.
//!
//! An index is a container with a hash map of twelve fixed slices, one partition for each of them at first, so that they can
//! be watched and moved like any other partition. The documents are the truth: they are durable when a write is answered, and
//! lookups and counts read them. The text index is derived from them outside of core, by whoever pulls the changes of a
//! [`Follower`]. `docs/decisions/0175-search-indexes.md` says why, `docs/formats/index.md` what the rows look like.

mod action;
mod batch;
mod directory;
mod follow;
mod index;
pub mod limits;
mod position;
mod read;
mod shelf;
mod spread;
mod trim;
mod wake;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use lazuli_engine::Engine;

pub use action::{Action, ActionKind, Outcome};
pub use batch::Written;
pub use follow::{Deletion, DocumentChange, Follower, Step};
pub use index::{Index, Scale, check_key, slice_of, slices};
pub use position::{Position, Positions};
pub use read::{Document, SliceFigures};
pub use shelf::{Expect, Record, RecordKind};
pub use spread::Placement;

use wake::Wakes;

lazuli_engine::reasons! {
    /// Errors of indexes that callers tell apart.
    pub enum IndexReason {
        IndexNotFound = "search-index-not-found",
        IndexExists = "search-index-exists",
        RecordNotFound = "search-record-not-found",
        RecordExists = "search-record-exists",
        /// The caller has seen another version.
        VersionDiffers = "search-version-differs",
        TooMany = "too-many-search-records",
        BadScale = "bad-search-scale",
        BadKey = "bad-document-key",
        TooLarge = "search-record-too-large",
    }
}

/// All indexes of all accounts. Cheap to clone.
#[derive(Clone)]
pub struct Indexes {
    engine: Arc<Engine>,
    wakes: Arc<Wakes>,
    /// What the containers of indexes say, read once for each version of them.
    known: Arc<Mutex<BTreeMap<String, Arc<Index>>>>,
    is_shared: bool,
}

impl Indexes {
    /// For a process that has the stores to itself, unless `is_shared`.
    pub fn new(engine: Arc<Engine>, is_shared: bool) -> Self {
        Self { engine, wakes: Arc::default(), known: Arc::default(), is_shared }
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Whether other processes write into the same stores: their writes wake nobody here.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Index>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
