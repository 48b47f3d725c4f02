//! How many requests a front answered lately, in steps of a few seconds: enough for a rate and a small chart.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::metrics::Outcome;

/// The length of a step, in seconds.
pub const STEP_S: u64 = 5;
/// How many steps are kept.
const STEPS: usize = 60;

/// What was answered in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    pub requests: u64,
    /// Answered with a refusal: what the client should not have asked, throttled requests among it.
    pub refused: u64,
    /// Answered with a failure of the server.
    pub failed: u64,
}

/// The steps in a ring; each says which step since the start it holds.
type Ring = [(u64, Step); STEPS];

pub(crate) struct Recent {
    began: Instant,
    ring: Mutex<Ring>,
}

impl Default for Recent {
    fn default() -> Self {
        Self { began: Instant::now(), ring: Mutex::new([(0, Step::default()); STEPS]) }
    }
}

impl Recent {
    pub(crate) fn count(&self, outcome: Outcome) {
        self.count_at(self.step(), outcome);
    }

    fn count_at(&self, step: u64, outcome: Outcome) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = &mut ring[place(step)];
        if slot.0 != step {
            *slot = (step, Step::default());
        }
        slot.1.requests += 1;
        slot.1.refused += u64::from(outcome.is_refused());
        slot.1.failed += u64::from(outcome.is_failed());
    }

    /// The last steps that are over, the oldest first. Before the start there is nothing.
    pub(crate) fn steps(&self) -> Vec<Step> {
        self.steps_before(self.step())
    }

    fn steps_before(&self, now: u64) -> Vec<Step> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = now.saturating_sub(STEPS as u64 - 1);
        let step = |number: u64| match ring[place(number)] {
            (held, step) if held == number => step,
            _ => Step::default(),
        };
        (oldest..now).map(step).collect()
    }

    fn step(&self) -> u64 {
        self.began.elapsed().as_secs() / STEP_S
    }
}

fn place(step: u64) -> usize {
    (step % STEPS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_kept_for_a_while_and_then_forgotten() {
        let recent = Recent::default();
        for status in [200, 404, 503] {
            recent.count_at(7, Outcome::Status(status));
        }
        recent.count_at(8, Outcome::Status(200));
        let seen = recent.steps_before(9);
        assert_eq!(seen.len(), 9);
        assert_eq!(seen[7], Step { requests: 3, refused: 1, failed: 1 });
        assert_eq!(seen[8], Step { requests: 1, refused: 0, failed: 0 });
        let later = 7 + STEPS as u64;
        assert_eq!(recent.steps_before(later).len(), STEPS - 1);
        let sum = |now| recent.steps_before(now).iter().map(|one| one.requests).sum::<u64>();
        assert_eq!((sum(later), sum(later + 1), sum(later + 2)), (1, 0, 0));
    }

    #[test]
    fn the_step_under_way_is_not_told() {
        let recent = Recent::default();
        recent.count_at(3, Outcome::Status(200));
        assert_eq!(recent.steps_before(3), vec![Step::default(); 3]);
    }
}
