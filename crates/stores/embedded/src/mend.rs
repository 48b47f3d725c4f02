//! The main loop of the committing thread: after a failed write it reopens the engine behind the store's handle.
//!
//! The engine refuses writes after one has failed, and so do we: after a failed fsync the state on disk is unknown, and a
//! later successful fsync proves nothing about it. Reads continue in the failed engine, which has only complete, answered
//! batches. Writes are refused at once. The thread probes the disk from time to time; once writes work,
//!
//! - it waits for operations that take long: they notice the failure, and end;
//! - it detaches the engine, so that readers wait, and closes it when the last reader has released it;
//! - it cuts everything after the last visible batch off the journal: the failed batch was never visible, its callers
//!   know that its outcome is unknown, and from now on it has not happened. Data that no fsync has confirmed is
//!   rewritten (see `journal::settle`, `manifest::settle`);
//! - it opens the engine as at every start, with all checks.
//!
//! On a full disk the engine is opened without workers: flushes and compactions would fail at once, and deletions
//! must be possible. When there is space again it is reopened with them.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use lazuli_store::{Error, Result};

use crate::committer::{Committer, End};
use crate::error::write_failed;
use crate::layout::Layout;
use crate::open::{self, Again, Kept, Opened};
use crate::queue::{Queue, Taken};
use crate::settings::Settings;
use crate::slot::Slot;
use crate::state::{Never, State};

/// How long after a failure the disk is first probed, and how often after that.
const TRY_AFTER: Duration = Duration::from_millis(250);
/// The longest pause between two attempts to open an engine that keeps failing.
const TRY_AFTER_MAX: Duration = Duration::from_secs(30);
/// An engine that runs this long has not failed at once.
const LASTING: Duration = Duration::from_secs(60);
/// How long readers may hold the engine after it was detached. No operation takes as long.
const READERS_MAX: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(1);

pub(crate) struct Mender {
    pub(crate) slot: Arc<Slot>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) layout: Layout,
    pub(crate) settings: Settings,
}

/// The remains of a failed engine.
struct Failed {
    error: Error,
    kept: Kept,
    /// None once it is closed.
    closed: Option<Receiver<Never>>,
    /// Whether it only lacked workers, and nothing has failed.
    was_still: bool,
}

impl Mender {
    /// Runs until the queue is closed and empty.
    pub(crate) fn run(self, mut opened: Opened) {
        // If this thread ends, also by a panic of the engine, no caller may wait forever.
        let _abandon = Abandon(self.queue.clone());
        let mut pause = TRY_AFTER;
        loop {
            let began = Instant::now();
            let Opened { state, closed, answered, last, .. } = opened;
            let (slot, queue) = (self.slot.clone(), self.queue.clone());
            let durability = self.settings.durability;
            let mut committer = Committer::new(slot, state, queue, durability, answered, &last);
            let end = committer.run();
            let kept = committer.kept();
            drop(committer);
            let (error, was_still) = match end {
                End::Closed => return,
                End::Failed(error) => (error, false),
                End::Moves => (reopening(), true),
            };
            pause = match began.elapsed() > LASTING || was_still {
                true => TRY_AFTER,
                false => (2 * pause).min(TRY_AFTER_MAX),
            };
            let failed = Failed { error, kept, closed: Some(closed), was_still };
            match self.mend(failed, pause) {
                Some(again) => opened = again,
                None => return,
            }
        }
    }

    /// Refuses writes until the engine is open again. None if the store is closed before.
    fn mend(&self, mut failed: Failed, mut pause: Duration) -> Option<Opened> {
        if !failed.was_still {
            self.slot.set_failure(Some(failed.error.clone()));
        }
        let mut due = Instant::now() + if failed.was_still { Duration::ZERO } else { TRY_AFTER };
        loop {
            let wait = due.saturating_duration_since(Instant::now()).max(LOOK);
            match self.queue.take(Some(wait)) {
                Taken::Jobs(jobs) => {
                    jobs.into_iter().for_each(|job| job.answer(Err(failed.error.clone())));
                }
                Taken::Nothing => {}
                Taken::Closed => return None,
            }
            if Instant::now() < due {
                continue;
            }
            match self.try_again(&mut failed) {
                Ok(opened) => {
                    self.slot.put(opened.state.clone());
                    self.slot.set_failure(None);
                    return Some(opened);
                }
                Err(error) => {
                    if failed.closed.is_none() {
                        // There is no engine to read from.
                        self.slot.give_up(error.clone());
                        pause = (2 * pause).min(TRY_AFTER_MAX);
                    }
                    self.slot.set_failure(Some(error.clone()));
                    failed.error = error;
                    due = Instant::now() + pause;
                }
            }
        }
    }

    fn try_again(&self, failed: &mut Failed) -> Result<Opened> {
        self.slot.room.tend();
        self.slot.room.probe().map_err(|error| write_failed(&error))?;
        self.close(failed)?;
        let is_still = !failed.was_still && self.slot.room.shortage().is_some();
        let again = Again { kept: Some(failed.kept), is_still };
        open::open(&self.layout, &self.settings, &self.slot.lock, again)
    }

    /// Closes the engine, unless a long operation uses it.
    fn close(&self, failed: &mut Failed) -> Result<()> {
        let Some(closed) = &failed.closed else { return Ok(()) };
        let is_idle = |state: &State| state.is_idle();
        if !self.slot.now()?.is_none_or(|state| is_idle(&state)) {
            return Err(failed.error.clone());
        }
        let Some(state) = self.slot.take() else { return Ok(()) };
        let began = Instant::now();
        while Arc::strong_count(&state) > 1 {
            if began.elapsed() > READERS_MAX {
                self.slot.put(state);
                return Err(failed.error.clone());
            }
            std::thread::sleep(LOOK);
        }
        drop(state);
        // A reader that has just begun releases the engine soon, and thereby closes it.
        let _ = closed.recv();
        failed.closed = None;
        Ok(())
    }
}

fn reopening() -> Error {
    write_failed(&"the disk was full, and the store is being opened anew")
}

/// Releases all waiting callers when the thread ends.
struct Abandon(Arc<Queue>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
