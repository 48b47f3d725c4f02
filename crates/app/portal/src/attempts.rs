//! Rate limit of wrong admin tokens: after a few, every attempt is refused for a while. Only this machine can reach the
//! portal and the admin API, so the attempts at both count together.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Wrong tokens in [`WINDOW`] after which every further attempt is refused, right or wrong.
const WRONG_MAX: u32 = 10;
/// How long wrong tokens count.
const WINDOW: Duration = Duration::from_secs(60);

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    Right,
    Wrong,
    /// Every attempt is refused before this time has passed.
    Wait(Duration),
}

/// The wrong tokens of late.
#[derive(Debug, Default)]
pub struct Attempts(Mutex<Option<(Instant, u32)>>);

impl Attempts {
    /// How long to wait before the next attempt, if there were too many.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        let (since, wrong) = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        let age = now.saturating_duration_since(since);
        (wrong >= WRONG_MAX && age < WINDOW).then(|| WINDOW - age)
    }

    /// Counts a wrong token.
    pub fn count_wrong(&self, now: Instant) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = match *kept {
            Some((since, wrong)) if now.saturating_duration_since(since) < WINDOW => {
                Some((since, wrong.saturating_add(1)))
            }
            _ => Some((now, 1)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_too_many_wrong_tokens_everybody_waits() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        for _ in 0..WRONG_MAX {
            assert_eq!(attempts.wait(start), None);
            attempts.count_wrong(start);
        }
        assert_eq!(attempts.wait(start), Some(WINDOW));
        assert_eq!(attempts.wait(start + WINDOW / 2), Some(WINDOW / 2));
        assert_eq!(attempts.wait(start + WINDOW), None);
    }
}
