//! Directory entries on their way to the disk: one thread syncs the folder for all who wait.
//!
//! A new file is on disk when its content and its entry in the folder are. Writers ask for the entry as soon as the file
//! is there, sync the content meanwhile, and then wait; while one sync is under way the next ones gather.

use std::fs::File;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The entries of one folder. The thread ends with the last one who holds this.
pub(crate) struct Entries(Arc<Line>);

struct Line {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How many have asked so far.
    asked: u64,
    /// How many of them are on disk.
    synced: u64,
    /// Why no more will be.
    failure: Option<String>,
    is_closed: bool,
}

/// Somebody's place in the line.
#[derive(Clone, Copy)]
pub(crate) struct Place(u64);

impl Entries {
    pub(crate) fn start(folder: File) -> io::Result<Arc<Self>> {
        let line = Arc::new(Line { state: Mutex::default(), changed: Condvar::new() });
        let of_thread = line.clone();
        let thread = std::thread::Builder::new().name("lazuli:entries".to_owned());
        thread.spawn(move || of_thread.run(&folder))?;
        Ok(Arc::new(Self(line)))
    }

    /// Asks that all entries made so far be synced.
    pub(crate) fn ask(&self) -> Place {
        let mut state = self.0.lock();
        state.asked += 1;
        let place = Place(state.asked);
        drop(state);
        self.0.changed.notify_all();
        place
    }

    /// Blocks until they are. After a failure nobody knows what is on disk, so nothing is ever promised again.
    pub(crate) fn wait(&self, place: Place) -> io::Result<()> {
        let mut state = self.0.lock();
        loop {
            if state.synced >= place.0 {
                return Ok(());
            }
            if let Some(failure) = &state.failure {
                return Err(io::Error::other(format!("the folder cannot be synced: {failure}")));
            }
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The numbers are whole after every statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, folder: &File) {
        loop {
            let mut state = self.lock();
            while state.asked == state.synced && !state.is_closed {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.asked == state.synced {
                return;
            }
            let asked = state.asked;
            drop(state);
            let synced = folder.sync_all();
            let mut state = self.lock();
            match synced {
                Ok(()) => state.synced = asked,
                Err(error) => state.failure = Some(error.to_string()),
            }
            self.changed.notify_all();
            if state.failure.is_some() {
                return;
            }
        }
    }
}
