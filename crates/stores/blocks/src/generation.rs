//! The generation that this process writes to: assigns ids, and begins the next generation when a folder is full.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use lazuli_store::blocks::BlockId;

use crate::entries::Entries;
use crate::layout::Layout;

/// Files of one folder: few enough to list it quickly.
pub(crate) const FOLDER_FILES_MAX: u64 = 16 * 1024;

pub(crate) struct Generations {
    layout: Layout,
    is_synced: bool,
    state: Mutex<State>,
}

struct State {
    /// The highest generation in use, also by earlier processes.
    last: u64,
    current: Option<Current>,
}

struct Current {
    number: u64,
    entries: Option<Arc<Entries>>,
}

/// The id of a new file, and the thread that syncs its entry; none with relaxed durability.
pub(crate) struct Slot {
    pub(crate) id: BlockId,
    pub(crate) entries: Option<Arc<Entries>>,
}

impl Generations {
    pub(crate) fn new(layout: Layout, last: u64, is_synced: bool) -> Self {
        Self { layout, is_synced, state: Mutex::new(State { last, current: None }) }
    }

    /// The next id. Blocks while a folder is created.
    pub(crate) fn next(&self) -> io::Result<Slot> {
        // If a folder cannot be created its number stays unused, which is harmless.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.current.as_ref().is_none_or(|it| it.number >= FOLDER_FILES_MAX) {
            state.last += 1;
            self.layout.begin(state.last)?;
            let folder = self.layout.folder(state.last);
            let entries = match self.is_synced {
                true => Some(Entries::start(File::open(folder)?)?),
                false => None,
            };
            state.current = Some(Current { number: 0, entries });
        }
        let generation = state.last;
        let Some(current) = &mut state.current else {
            return Err(io::Error::other("there is no folder to write to"));
        };
        current.number += 1;
        let id = BlockId { generation, number: current.number };
        Ok(Slot { id, entries: current.entries.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_folder_is_followed_by_the_next_one() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::open(root.path()).unwrap();
        let generations = Generations::new(layout.clone(), 6, true);
        for number in 1..=FOLDER_FILES_MAX {
            assert_eq!(generations.next().unwrap().id, BlockId { generation: 7, number });
        }
        assert_eq!(generations.next().unwrap().id, BlockId { generation: 8, number: 1 });
        assert_eq!(layout.generations().unwrap(), [7, 8]);
    }
}
