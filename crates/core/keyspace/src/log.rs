//! How a change of a value with elements reports what it changed.

use crate::event::{Class, Event};
use crate::rows::{Row, Rows};

/// Passed to the code that changes a value. It gathers rows for the store, events, and the number of changes.
pub struct Log<'l> {
    pub(crate) rows: &'l mut Rows,
    pub(crate) events: &'l mut Vec<Event>,
    pub(crate) classes: Class,
    /// The number of the database as clients know it.
    pub(crate) database: usize,
    /// Its number in rows.
    pub(crate) id: u32,
    pub(crate) key: &'l [u8],
    pub(crate) generation: u64,
    pub(crate) changes: u64,
    pub(crate) is_head_changed: bool,
    pub(crate) is_rewritten: bool,
}

impl Log<'_> {
    /// Whether rows are wanted at all: without persistence they need not be encoded.
    #[inline]
    pub fn keeps_rows(&self) -> bool {
        self.rows.is_on
    }

    /// An element was added or changed. Counts as one change.
    #[inline]
    pub fn put(&mut self, element: &[u8], row: &[u8]) {
        self.changes += 1;
        if self.rows.is_on {
            let (database, key, generation) = (self.id, self.key, self.generation);
            self.rows.push(Row::Element { database, key, generation, element, row });
        }
    }

    /// An element was removed. Counts as one change.
    #[inline]
    pub fn remove(&mut self, element: &[u8]) {
        self.changes += 1;
        if self.rows.is_on {
            let (database, key, generation) = (self.id, self.key, self.generation);
            self.rows.push(Row::ElementGone { database, key, generation, element });
        }
    }

    /// What `Kind::head` writes has changed.
    pub fn head(&mut self) {
        self.is_head_changed = true;
    }

    /// So much was changed that all rows are written anew. Counts as one change.
    pub fn rewrite(&mut self) {
        self.is_rewritten = true;
        self.changes += 1;
    }

    /// Counts changes that no row shows.
    pub fn changed(&mut self, count: u64) {
        self.changes += count;
    }

    /// Reports an event of this key. The event `del` of a value that became empty follows by itself.
    pub fn event(&mut self, class: Class, name: &'static str) {
        if self.classes.0 & class.0 != 0 {
            let key = self.key.into();
            self.events.push(Event { class, name, database: self.database, key });
        }
    }
}
