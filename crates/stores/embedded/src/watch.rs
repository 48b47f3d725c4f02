//! When the committer looks at disk and engine beside what it is asked for: the engine's workers fail behind its back, and
//! the disk fills up or gets room without it.

use std::time::{Duration, Instant};

use lazuli_store::Result;

use crate::room::Room;
use crate::state::State;

/// How often it looks.
const LOOK: Duration = Duration::from_millis(500);
/// For how long after a write. A store in which nothing is written is to be quiet.
const LOOKING_MAX: Duration = Duration::from_secs(60);
/// For how long an engine stays still where the disk does not get more room: then it is seen whether its workers manage
/// with what there is.
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

    /// When to look again, whether or not anything is written until then.
    pub(crate) fn look_after(&self) -> Option<Duration> {
        let is_due = self.is_short || self.is_still || self.wrote_at.elapsed() < LOOKING_MAX;
        is_due.then_some(LOOK)
    }

    /// Looks, if it is time to. Fails if the engine takes no writes any more.
    pub(crate) fn look(&mut self, room: &Room, state: &State) -> Result<()> {
        if self.looked_at.elapsed() < LOOK {
            return Ok(());
        }
        self.looked_at = Instant::now();
        room.tend();
        self.is_short = room.shortage().is_some();
        state.check_engine()
    }

    /// Whether the engine is still, and need not be any more.
    pub(crate) fn is_over_standstill(&self, room: &Room) -> bool {
        self.is_still && (self.began.elapsed() > STILL_MAX || room.shortage().is_none())
    }
}
