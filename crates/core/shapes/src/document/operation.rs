//! Operations on items, and what came of them.

use std::fmt;
use std::sync::Arc;

use lazuli_engine::{Lsn, PartitionId, Result};

use super::item::{Body, Document, IndexDirective};

/// What must hold of an item's etag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Etag {
    /// Nothing.
    #[default]
    Any,
    /// It has this one.
    Is(Lsn),
    /// It has another one. A read that finds this one answers `NotModified`.
    IsNot(Lsn),
    /// There is no item.
    Absent,
}

/// Makes of an item what it is to be. Runs in the lane, perhaps more than once.
pub type Update = Arc<dyn Fn(&Document) -> Result<Body> + Send + Sync>;

/// What to do with one item.
#[derive(Clone)]
pub enum Action {
    Read,
    /// Fails with `ItemExists` if there is one.
    Create(Body),
    Upsert(Body),
    /// Fails with `ItemMissing` if there is none.
    Replace(Body),
    /// As replace, with what the function makes of the item: patches, and triggers of the front.
    Update(Update),
    Delete,
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "Read",
            Self::Create(_) => "Create",
            Self::Upsert(_) => "Upsert",
            Self::Replace(_) => "Replace",
            Self::Update(_) => "Update",
            Self::Delete => "Delete",
        })
    }
}

/// One operation on the item with this id.
#[derive(Clone, Debug)]
pub struct Operation {
    pub id: String,
    pub etag: Etag,
    pub action: Action,
}

impl Operation {
    pub fn read(id: &str) -> Self {
        Self::new(id, Action::Read)
    }

    pub fn create(body: Body) -> Self {
        Self { id: body.id().to_owned(), etag: Etag::Any, action: Action::Create(body) }
    }

    pub fn upsert(body: Body) -> Self {
        Self { id: body.id().to_owned(), etag: Etag::Any, action: Action::Upsert(body) }
    }

    pub fn replace(id: &str, body: Body) -> Self {
        Self::new(id, Action::Replace(body))
    }

    pub fn update(id: &str, update: Update) -> Self {
        Self::new(id, Action::Update(update))
    }

    pub fn delete(id: &str) -> Self {
        Self::new(id, Action::Delete)
    }

    fn new(id: &str, action: Action) -> Self {
        Self { id: id.to_owned(), etag: Etag::Any, action }
    }

    #[must_use]
    pub fn with(self, etag: Etag) -> Self {
        Self { etag, ..self }
    }
}

impl Operation {
    /// The same, with the item that it writes in the index or not.
    #[must_use]
    pub fn indexed(self, directive: IndexDirective) -> Self {
        let action = match self.action {
            Action::Create(body) => Action::Create(body.indexed(directive)),
            Action::Upsert(body) => Action::Upsert(body.indexed(directive)),
            Action::Replace(body) => Action::Replace(body.indexed(directive)),
            Action::Update(update) => Action::Update(Arc::new(move |document| {
                update(document).map(|body| body.indexed(directive))
            })),
            action @ (Action::Read | Action::Delete) => action,
        };
        Self { action, ..self }
    }
}

/// What an operation took, for those who charge for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub items_read: u64,
    pub bytes_read: u64,
    pub items_written: u64,
    pub bytes_written: u64,
    /// Entries of the index that were read, and that were written or deleted.
    pub entries_read: u64,
    pub entries_written: u64,
}

impl Work {
    pub fn add(&mut self, other: Self) {
        self.items_read += other.items_read;
        self.bytes_read += other.bytes_read;
        self.items_written += other.items_written;
        self.bytes_written += other.bytes_written;
        self.entries_read += other.entries_read;
        self.entries_written += other.entries_written;
    }
}

/// What came of an operation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The item as it is now; none if it was deleted.
    pub document: Option<Document>,
    /// Whether there was an item before.
    pub was_there: bool,
    pub work: Work,
    /// The range that the item is in.
    pub range: PartitionId,
    /// The last number of the range, which includes this operation: the session that a client goes on with.
    pub lsn: Lsn,
}
