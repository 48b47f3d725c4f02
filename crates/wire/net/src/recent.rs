//! How many requests a front answered lately and how long they took, in steps of a few seconds, minutes and ten minutes:
//! enough for rates, percentiles and charts of the last ten minutes, two hours and day.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::metrics::{BUCKETS_S, Outcome, bucket_of};

/// The length of the finest step, in seconds.
pub const STEP_S: u64 = 5;

/// How fine figures of the last time are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// The last ten minutes, in steps of [`STEP_S`].
    Fine,
    /// The last two hours, in minutes.
    Minute,
    /// The last day, in steps of ten minutes.
    TenMinutes,
}

impl Grain {
    const ALL: [Self; 3] = [Self::Fine, Self::Minute, Self::TenMinutes];

    /// The length of a step, in seconds.
    pub const fn step_s(self) -> u64 {
        match self {
            Self::Fine => STEP_S,
            Self::Minute => 60,
            Self::TenMinutes => 600,
        }
    }

    /// How many steps are kept.
    const fn steps(self) -> usize {
        match self {
            Self::Fine | Self::Minute => 120,
            Self::TenMinutes => 144,
        }
    }

    /// How many of the finest steps are one of this grain.
    const fn folds(self) -> u64 {
        self.step_s() / STEP_S
    }
}

/// What was answered in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    pub requests: u64,
    /// Answered with a refusal: what the client should not have asked, throttled requests among it.
    pub refused: u64,
    /// Answered with a failure of the server.
    pub failed: u64,
    /// How many fell into each bucket of [`BUCKETS_S`], and beyond the last one.
    pub buckets: [u32; BUCKETS_S.len() + 1],
}

impl Step {
    fn count(&mut self, outcome: Outcome, took: Duration, times: u64) {
        self.requests += times;
        self.refused += if outcome.is_refused() { times } else { 0 };
        self.failed += if outcome.is_failed() { times } else { 0 };
        let bucket = &mut self.buckets[bucket_of(took)];
        *bucket = bucket.saturating_add(u32::try_from(times).unwrap_or(u32::MAX));
    }

    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.refused += other.refused;
        self.failed += other.failed;
        for (mine, others) in self.buckets.iter_mut().zip(other.buckets) {
            *mine = mine.saturating_add(others);
        }
    }
}

/// Steps in a ring; each says which step since the start it holds.
struct Ring {
    steps: Box<[(u64, Step)]>,
}

impl Ring {
    fn new(grain: Grain) -> Self {
        Self { steps: vec![(0, Step::default()); grain.steps()].into() }
    }

    fn place(&self, number: u64) -> usize {
        (number % self.steps.len() as u64) as usize
    }

    /// The step of this number, empty if its place holds another one still.
    fn at(&mut self, number: u64) -> &mut Step {
        let place = self.place(number);
        let slot = &mut self.steps[place];
        if slot.0 != number {
            *slot = (number, Step::default());
        }
        &mut slot.1
    }

    fn held(&self, number: u64) -> Step {
        match self.steps[self.place(number)] {
            (held, step) if held == number => step,
            _ => Step::default(),
        }
    }
}

/// One ring for each grain. A request is counted in the finest one alone, because that is done for every request; the next
/// step adds what is over to the others.
struct Rings {
    /// The finest step that was counted in last.
    newest: u64,
    rings: [Ring; 3],
}

impl Rings {
    fn of(&mut self, grain: Grain) -> &mut Ring {
        &mut self.rings[grain as usize]
    }

    /// Adds the newest step to the coarser rings, as soon as it is over.
    fn fold(&mut self, now: u64) {
        if now <= self.newest {
            return;
        }
        let newest = self.newest;
        let over = self.of(Grain::Fine).held(newest);
        for grain in [Grain::Minute, Grain::TenMinutes] {
            let number = newest / grain.folds();
            self.of(grain).at(number).add(&over);
        }
        self.newest = now;
    }
}

pub(crate) struct Recent {
    began: Instant,
    rings: Mutex<Rings>,
}

impl Default for Recent {
    fn default() -> Self {
        let rings = Rings { newest: 0, rings: Grain::ALL.map(Ring::new) };
        Self { began: Instant::now(), rings: Mutex::new(rings) }
    }
}

impl Recent {
    pub(crate) fn count(&self, outcome: Outcome, took: Duration, times: u64) {
        self.count_at(self.step(), outcome, took, times);
    }

    fn count_at(&self, step: u64, outcome: Outcome, took: Duration, times: u64) {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        rings.fold(step);
        rings.of(Grain::Fine).at(step).count(outcome, took, times);
    }

    /// The last steps that are over, the oldest first. Before the start there is nothing.
    pub(crate) fn steps(&self, grain: Grain) -> Vec<Step> {
        self.steps_before(self.step(), grain)
    }

    fn steps_before(&self, now: u64, grain: Grain) -> Vec<Step> {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        rings.fold(now);
        let now = now / grain.folds();
        let oldest = now.saturating_sub(grain.steps() as u64 - 1);
        (oldest..now).map(|number| rings.of(grain).held(number)).collect()
    }

    /// The number of the finest step under way.
    pub(crate) fn step(&self) -> u64 {
        self.began.elapsed().as_secs() / STEP_S
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOK: Duration = Duration::from_millis(3);

    #[test]
    fn steps_are_kept_for_a_while_and_then_forgotten() {
        let recent = Recent::default();
        for status in [200, 404, 503] {
            recent.count_at(7, Outcome::Status(status), TOOK, 1);
        }
        recent.count_at(8, Outcome::Status(200), TOOK, 1);
        let seen = recent.steps_before(9, Grain::Fine);
        assert_eq!(seen.len(), 9);
        assert_eq!((seen[7].requests, seen[7].refused, seen[7].failed), (3, 1, 1));
        assert_eq!((seen[8].requests, seen[8].refused, seen[8].failed), (1, 0, 0));
        assert_eq!(seen[7].buckets[bucket_of(TOOK)], 3);
        let steps = Grain::Fine.steps();
        let later = 7 + steps as u64;
        assert_eq!(recent.steps_before(later, Grain::Fine).len(), steps - 1);
        let sum = |now| -> u64 {
            recent.steps_before(now, Grain::Fine).iter().map(|one| one.requests).sum()
        };
        assert_eq!((sum(later), sum(later + 1), sum(later + 2)), (1, 0, 0));
    }

    #[test]
    fn the_step_under_way_is_not_told() {
        let recent = Recent::default();
        recent.count_at(3, Outcome::Status(200), TOOK, 1);
        assert_eq!(recent.steps_before(3, Grain::Fine), vec![Step::default(); 3]);
    }

    #[test]
    fn coarser_steps_have_what_the_finer_ones_had_long_after_those_are_gone() {
        let recent = Recent::default();
        for step in 0..240 {
            recent.count_at(step, Outcome::Ok, TOOK, 2);
        }
        let sum = |now, grain| -> Vec<u64> {
            recent.steps_before(now, grain).iter().map(|one| one.requests).collect()
        };
        assert_eq!(sum(240, Grain::Minute), vec![24; 20]);
        assert_eq!(sum(240, Grain::TenMinutes), vec![240; 2]);
        let hour = 720;
        assert!(sum(hour, Grain::Fine).iter().all(|count| *count == 0));
        assert_eq!(sum(hour, Grain::Minute).iter().sum::<u64>(), 480);
        assert_eq!(sum(hour, Grain::TenMinutes), [240, 240, 0, 0, 0, 0]);
    }
}
