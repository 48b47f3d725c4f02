//! What a batch changes among callers' data, which its marker has to say.

use lazuli_store::Write;

use crate::keyspaces::is_data;

/// What a batch does in `data`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// At least one key has a new value when all is written.
    Puts,
    /// Perhaps none has.
    Deletes,
}

/// What the writes of a batch do in `data`, if anything.
pub(crate) fn change_of_data<'a>(writes: impl Iterator<Item = &'a Write>) -> Option<Change> {
    let mut changes = false;
    let mut put = None;
    for write in writes.filter(|write| is_data(write.key())) {
        changes = true;
        match write {
            Write::Put(key, _) => put = Some(key),
            // A batch may hold a key twice, and the last one counts.
            Write::Delete(key) if put == Some(key) => put = None,
            Write::Delete(_) => {}
        }
    }
    changes.then_some(if put.is_some() { Change::Puts } else { Change::Deletes })
}
