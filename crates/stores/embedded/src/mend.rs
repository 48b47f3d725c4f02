//! The life of the thread that commits: after a failed write it opens the engine anew, behind the store's handle.
//!
//! The engine takes no write after one has failed, and neither do we: after a failed sync nobody knows what is on disk, and
//! another sync that goes well says nothing about it. Reads go on in the engine as it is, which shows whole batches that
//! were answered and nothing else. Writes are refused at once. Now and then a little is written to see whether the disk
//! takes writes; once it does,
//!
//! - those who work longer than one operation are waited for: they notice that a write has failed, and end;
//! - the engine is taken out, so that readers wait, and closed when the last of them has let go of it;
//! - what lies behind the last batch that was shown is cut off the journal: the batch that failed was never shown, its
//!   callers do not know what became of it, and from now on it has not happened. What no sync has confirmed is written
//!   anew (see `journal::settle`, `manifest::settle`);
//! - it is opened as it is at every start, with all that is checked there.
//!
//! Where the disk is full the engine is opened without workers: flushes and merges would fail at once, and deletions
//! must be possible. When there is room again it is opened once more, with them.

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

/// How long after a failure the disk is tried for the first time, and how often then.
const TRY_AFTER: Duration = Duration::from_millis(250);
/// The longest pause between two tries to open an engine that fails again and again.
const TRY_AFTER_MAX: Duration = Duration::from_secs(30);
/// An engine that lasts as long as this has not failed at once.
const LASTING: Duration = Duration::from_secs(60);
/// For how long readers may keep the engine after it was taken out. One operation does not take as long.
const READERS_MAX: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(1);

pub(crate) struct Mender {
    pub(crate) slot: Arc<Slot>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) layout: Layout,
    pub(crate) settings: Settings,
}

/// What there is of an engine that has failed.
struct Failed {
    error: Error,
    kept: Kept,
    /// None once it is closed.
    closed: Option<Receiver<Never>>,
    /// Whether it was only still, and nothing has failed.
    was_still: bool,
}

impl Mender {
    /// Runs until the queue is closed and empty.
    pub(crate) fn run(self, mut opened: Opened) {
        // Whatever ends this thread, a panic of the engine too, nobody may wait for it in vain.
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

    /// Refuses what comes until the engine is open again. None if the store is closed before.
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
                        // There is nothing to read from any more.
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

    /// Closes the engine, unless somebody is at work in it.
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
        // Whoever has begun to read since lets go of it in a moment, and closes it.
        let _ = closed.recv();
        failed.closed = None;
        Ok(())
    }
}

fn reopening() -> Error {
    write_failed(&"the disk was full, and the store is being opened anew")
}

/// Lets go of everybody who waits when the thread ends.
struct Abandon(Arc<Queue>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
