//! Periodic checks of disk and engine by the committer: the engine's workers can fail, and the disk can fill up or
//! get space, without a commit.

use std::time::{Duration, Instant};

use lazuli_store::Result;

use crate::room::Room;
use crate::state::State;

/// The interval of checks.
const LOOK: Duration = Duration::from_millis(500);
/// How long after a write checks continue. An idle store should not wake up.
const LOOKING_MAX: Duration = Duration::from_secs(60);
/// How long an engine runs without workers while the disk stays full: then it is tried with workers.
const STILL_MAX: Duration = Duration::from_secs(120);

pub(crate) struct Watch {
    began: Instant,
    is_still: bool,
    wrote_at: Instant,
    looked_at: Instant,
    is_short: bool,
}

impl Watch {
    pub(crate) fn new(is_still: bool) -> Self {
        let now = Instant::now();
        Self { began: now, is_still, wrote_at: now, looked_at: now, is_short: is_still }
    }

    pub(crate) fn note_write(&mut self) {
        self.wrote_at = Instant::now();
    }

    /// When to check again, even if nothing is written until then.
    pub(crate) fn look_after(&self) -> Option<Duration> {
        let is_due = self.is_short || self.is_still || self.wrote_at.elapsed() < LOOKING_MAX;
        is_due.then_some(LOOK)
    }

    /// Checks, if it is time to. Fails if the engine refuses writes.
    pub(crate) fn look(&mut self, room: &Room, state: &State) -> Result<()> {
        if self.looked_at.elapsed() < LOOK {
            return Ok(());
        }
        self.looked_at = Instant::now();
        room.tend();
        self.is_short = room.shortage().is_some();
        state.check_engine()
    }

    /// Whether the engine has no workers, and can have them again.
    pub(crate) fn is_over_standstill(&self, room: &Room) -> bool {
        self.is_still && (self.began.elapsed() > STILL_MAX || room.shortage().is_none())
    }
}
