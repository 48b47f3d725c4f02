//! How a batch changes callers' data, as recorded in its marker.

use lazuli_store::Write;

use crate::keyspaces::is_data;

/// The effect of a batch on `data`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataChange {
    /// At least one key has a new value when all is written.
    Puts,
    /// It may only delete.
    Deletes,
}

/// What the writes of a batch do in `data`, if anything.
pub(crate) fn change_of_data<'a>(writes: impl Iterator<Item = &'a Write>) -> Option<DataChange> {
    let mut changes = false;
    let mut put = None;
    for write in writes.filter(|write| is_data(write.key())) {
        changes = true;
        match write {
            Write::Put(key, _) => put = Some(key),
            // A batch may have a key twice; the last write is valid.
            Write::Delete(key) if put == Some(key) => put = None,
            Write::Delete(_) => {}
        }
    }
    changes.then_some(if put.is_some() { DataChange::Puts } else { DataChange::Deletes })
}
