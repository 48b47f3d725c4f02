//! How many requests each front answered lately, in steps of a few seconds: enough for a rate and a small chart.
//!
//! Memory is bounded by the number of fronts and steps.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The length of a step, in seconds.
pub(crate) const STEP_S: u64 = 5;
/// How many steps are kept.
const STEPS: usize = 60;

/// What was answered in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) requests: u64,
    /// Answered with a status of 400 to 499: what the client should not have asked, throttled requests among it.
    pub(crate) refused: u64,
    /// Answered with 500 or above.
    pub(crate) failed: u64,
}

/// The steps of one front in a ring; each says which step since the start it holds.
type Ring = [(u64, Step); STEPS];

pub(crate) struct Recent {
    began: Instant,
    fronts: Mutex<BTreeMap<&'static str, Ring>>,
}

impl Default for Recent {
    fn default() -> Self {
        Self { began: Instant::now(), fronts: Mutex::default() }
    }
}

impl Recent {
    pub(super) fn count(&self, front: &'static str, status: u16) {
        self.count_at(self.step(), front, status);
    }

    fn count_at(&self, step: u64, front: &'static str, status: u16) {
        let mut fronts = self.fronts.lock().unwrap_or_else(PoisonError::into_inner);
        let ring = fronts.entry(front).or_insert_with(|| [(0, Step::default()); STEPS]);
        let slot = &mut ring[place(step)];
        if slot.0 != step {
            *slot = (step, Step::default());
        }
        slot.1.requests += 1;
        slot.1.refused += u64::from((400..500).contains(&status));
        slot.1.failed += u64::from(status >= 500);
    }

    /// The last steps of a front that are over, the oldest first. Before the start there is nothing.
    pub(crate) fn steps(&self, front: &str) -> Vec<Step> {
        self.steps_before(self.step(), front)
    }

    fn steps_before(&self, now: u64, front: &str) -> Vec<Step> {
        let fronts = self.fronts.lock().unwrap_or_else(PoisonError::into_inner);
        let ring = fronts.get(front);
        let oldest = now.saturating_sub(STEPS as u64 - 1);
        let step = |number: u64| {
            let slot = ring.map(|ring| ring[place(number)]);
            slot.filter(|(held, _)| *held == number).map_or_else(Step::default, |(_, step)| step)
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
            recent.count_at(7, "tables", status);
        }
        recent.count_at(8, "tables", 200);
        let seen = recent.steps_before(9, "tables");
        assert_eq!(seen.len(), 9);
        assert_eq!(seen[7], Step { requests: 3, refused: 1, failed: 1 });
        assert_eq!(seen[8], Step { requests: 1, refused: 0, failed: 0 });
        assert_eq!(recent.steps_before(9, "blobs")[7], Step::default());
        let later = 7 + STEPS as u64;
        assert_eq!(recent.steps_before(later, "tables").len(), STEPS - 1);
        let sum =
            |now| recent.steps_before(now, "tables").iter().map(|one| one.requests).sum::<u64>();
        assert_eq!((sum(later), sum(later + 1), sum(later + 2)), (1, 0, 0));
    }

    #[test]
    fn the_step_under_way_is_not_told() {
        let recent = Recent::default();
        recent.count_at(3, "tables", 200);
        assert_eq!(recent.steps_before(3, "tables"), vec![Step::default(); 3]);
    }
}
