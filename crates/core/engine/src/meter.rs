//! The budget of a partition: cost in, yes or "come again after" out.

use std::time::Duration;

/// Cost units per second with room for one second's worth of burst. A request may overdraw the budget once: what it
/// takes beyond is paid off before the next one is let in, so that a large request is slow but never impossible.
#[derive(Debug)]
pub(crate) struct Budget {
    per_second: f64,
    left: f64,
    updated: Duration,
}

impl Budget {
    pub(crate) fn new(per_second: u32, now: Duration) -> Self {
        let per_second = f64::from(per_second.max(1));
        Self { per_second, left: per_second, updated: now }
    }

    pub(crate) fn per_second(&self) -> u32 {
        self.per_second as u32
    }

    /// Takes `cost` from the budget, or says how long to wait.
    pub(crate) fn charge(&mut self, cost: u32, now: Duration) -> Result<(), Duration> {
        let passed = now.saturating_sub(self.updated).as_secs_f64();
        self.left = (self.left + passed * self.per_second).min(self.per_second);
        self.updated = now;
        if self.left <= 0.0 {
            return Err(Duration::from_secs_f64((1.0 - self.left) / self.per_second));
        }
        self.take(cost);
        Ok(())
    }

    /// Takes `cost` from the budget, whatever is left of it.
    pub(crate) fn take(&mut self, cost: u32) {
        self.left -= f64::from(cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_lets_in_what_it_promises_over_time() {
        let mut budget = Budget::new(100, Duration::ZERO);
        let mut let_in = 0;
        for millis in 0..10_000u64 {
            if budget.charge(1, Duration::from_millis(millis)).is_ok() {
                let_in += 1;
            }
        }
        assert!((1_050..=1_150).contains(&let_in), "10 s at 100 and a burst: {let_in}");
    }

    #[test]
    fn a_large_request_is_let_in_and_paid_off_afterwards() {
        let mut budget = Budget::new(10, Duration::ZERO);
        assert!(budget.charge(100, Duration::ZERO).is_ok());
        let wait = budget.charge(1, Duration::ZERO).unwrap_err();
        assert!(wait > Duration::from_secs(8) && wait < Duration::from_secs(10), "{wait:?}");
        assert!(budget.charge(1, wait).is_ok());
    }
}
