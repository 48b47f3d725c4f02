//! Group fsync of directory entries: one thread syncs the folder for all waiting writers.
//!
//! A new file is on disk when its content and its entry in the folder are. A writer requests the entry as soon as the
//! file exists, syncs the content meanwhile, and then waits; during one sync the next requests collect.

use std::fs::File;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The entries of one folder. The thread ends with the last reference.
pub(crate) struct Entries(Arc<Line>);

struct Line {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How many requests there were so far.
    asked: u64,
    /// How many of them are on disk.
    synced: u64,
    /// Why no more requests will succeed.
    failure: Option<String>,
    is_closed: bool,
}

/// The position of a request.
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

    /// Requests a sync of all entries made so far.
    pub(crate) fn ask(&self) -> Place {
        let mut state = self.0.lock();
        state.asked += 1;
        let place = Place(state.asked);
        drop(state);
        self.0.changed.notify_all();
        place
    }

    /// Blocks until they are synced. After a failure the state on disk is unknown, so every later request fails.
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
        // The numbers are consistent after every statement.
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
