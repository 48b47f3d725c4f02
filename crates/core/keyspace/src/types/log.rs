//! How a value tells what changed in it, element by element, so that a journal can write one row for each element and not
//! whole values.
//!
//! A row is an element (its key within the value) and bytes. Both are encoded by the type; rows sorted by the bytes of
//! their elements build the value again.

/// Who is told.
pub trait ElementLog {
    /// Whether rows are wanted: otherwise they need not be encoded, and what they hold does not matter.
    fn is_on(&self) -> bool;
    fn put(&mut self, element: &[u8], row: &[u8]);
    fn remove(&mut self, element: &[u8]);
    /// So much has changed that all rows are written anew when the command ends.
    fn rewrite(&mut self);
}

impl ElementLog for crate::log::Log<'_> {
    fn is_on(&self) -> bool {
        self.keeps_rows()
    }

    fn put(&mut self, element: &[u8], row: &[u8]) {
        crate::log::Log::put(self, element, row);
    }

    fn remove(&mut self, element: &[u8]) {
        crate::log::Log::remove(self, element);
    }

    fn rewrite(&mut self) {
        crate::log::Log::rewrite(self);
    }
}

/// For values that no key holds yet: results of commands before they are stored, values on their way from a file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unlogged;

impl ElementLog for Unlogged {
    fn is_on(&self) -> bool {
        false
    }

    fn put(&mut self, _element: &[u8], _row: &[u8]) {}

    fn remove(&mut self, _element: &[u8]) {}

    fn rewrite(&mut self) {}
}

/// Visits all rows of a value.
#[cfg(test)]
type AllRows<'a> = &'a dyn Fn(&mut dyn FnMut(&[u8], &[u8]));

/// Keeps rows as a journal does, for tests of the types.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct Journaled {
    pub(crate) rows: std::collections::BTreeMap<Vec<u8>, Vec<u8>>,
    is_rewritten: bool,
}

#[cfg(test)]
impl Journaled {
    /// Ends a command: `all` visits the rows of the value.
    pub(crate) fn settle(&mut self, all: AllRows<'_>) {
        if std::mem::take(&mut self.is_rewritten) {
            self.rows.clear();
            all(&mut |element, row| {
                self.rows.insert(element.to_vec(), row.to_vec());
            });
        }
    }
}

#[cfg(test)]
impl ElementLog for Journaled {
    fn is_on(&self) -> bool {
        true
    }

    fn put(&mut self, element: &[u8], row: &[u8]) {
        self.rows.insert(element.to_vec(), row.to_vec());
    }

    fn remove(&mut self, element: &[u8]) {
        self.rows.remove(element);
    }

    fn rewrite(&mut self) {
        self.is_rewritten = true;
    }
}
