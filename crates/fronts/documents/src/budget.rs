//! Budgets of request units: each physical partition has its even share of a container's throughput per second.
//!
//! A request is refused when its partition's share is used up; what it costs is known only afterwards, so a budget can go
//! below nothing and then has to recover. Partitions with little throughput save what they do not use for a while and spend
//! it on bursts, as the service does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lazuli_shapes::document::Rid;

use crate::charge::Units;
use crate::error::{Fault, Result};

/// Partitions with less throughput than this save up what they do not use, and spend no more than this per second.
const BURST_UNITS: f64 = 3_000.0;
/// For how many seconds they save.
const BURST_SECONDS: f64 = 300.0;
/// The most budgets that are kept. A forgotten one begins anew.
const BUDGETS_MAX: usize = 100_000;

/// What shares one budget: a range of a container, or of a database whose containers share.
pub(crate) type Owner = (String, u64);

#[derive(Default)]
pub(crate) struct Budgets {
    all: Mutex<HashMap<Owner, Arc<Mutex<Bucket>>>>,
}

/// Units that are there to spend.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Of this second; below zero after an expensive request.
    left: f64,
    saved: f64,
    /// What was spent of the savings in this second.
    spent_saved: f64,
    at_ms: u64,
    /// The units per second that requests have cost of late.
    pace: Pace,
}

/// An average that forgets: what is as old as [`PACE_SECONDS`] counts for about a third.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    per_second: f64,
    at_ms: u64,
}

/// How far back the pace of spending looks.
const PACE_SECONDS: f64 = 30.0;

impl Pace {
    fn at(self, now_ms: u64) -> f64 {
        let seconds = now_ms.saturating_sub(self.at_ms) as f64 / 1_000.0;
        self.per_second * (-seconds / PACE_SECONDS).exp()
    }

    fn add(&mut self, units: f64, now_ms: u64) {
        *self = Self { per_second: self.at(now_ms) + units / PACE_SECONDS, at_ms: now_ms };
    }
}

/// The right to spend of a budget.
pub(crate) struct Account(Option<Arc<Mutex<Bucket>>>);

impl Account {
    /// One without limit.
    pub(crate) fn free() -> Self {
        Self(None)
    }

    /// Takes what a request has cost.
    pub(crate) fn take(&self, units: Units) {
        let Some(bucket) = &self.0 else { return };
        let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
        // Requests come in order, so this is about now.
        let now_ms = bucket.at_ms;
        bucket.pace.add(units, now_ms);
        let from_left = bucket.left.max(0.0).min(units);
        bucket.left -= from_left;
        let rest = units - from_left;
        let from_saved = bucket.saved.min(rest);
        bucket.saved -= from_saved;
        bucket.spent_saved += from_saved;
        bucket.left -= rest - from_saved;
    }
}

impl Budgets {
    /// Lets a request in, or says when to come again. `rate` is the share of the owner, in units per second.
    pub(crate) fn admit(&self, owner: Owner, rate: f64, now_ms: u64) -> Result<Account> {
        let bucket = {
            let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() >= BUDGETS_MAX {
                all.clear();
            }
            let pace = Pace { per_second: 0.0, at_ms: now_ms };
            let fresh = Bucket { left: rate, saved: 0.0, spent_saved: 0.0, at_ms: now_ms, pace };
            all.entry(owner).or_insert_with(|| Arc::new(Mutex::new(fresh))).clone()
        };
        let wait = {
            let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
            bucket.refill(rate, now_ms);
            bucket.wait(rate)
        };
        match wait {
            None => Ok(Account(Some(bucket))),
            Some(wait) => Err(Fault::over_budget(wait)),
        }
    }
}

impl Budgets {
    /// The units per second that a range of a container was asked for of late.
    pub(crate) fn spent(&self, container: &Rid, range: u64, now_ms: u64) -> f64 {
        let owner = (container.to_string(), range);
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(bucket) = all.get(&owner).cloned() else { return 0.0 };
        drop(all);
        let bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
        (bucket.pace.at(now_ms) * 100.0).round() / 100.0
    }
}

impl Bucket {
    /// Adds what has come in since the last request.
    fn refill(&mut self, rate: f64, now_ms: u64) {
        let seconds = now_ms.saturating_sub(self.at_ms) as f64 / 1_000.0;
        if seconds >= 1.0 {
            self.spent_saved = 0.0;
        } else {
            self.spent_saved = (self.spent_saved - BURST_UNITS * seconds).max(0.0);
        }
        self.at_ms = self.at_ms.max(now_ms);
        let full = self.left + rate * seconds;
        let over = (full - rate).max(0.0);
        self.left = full - over;
        if rate < BURST_UNITS {
            self.saved = (self.saved + over).min(rate * BURST_SECONDS);
        }
    }

    /// How long to wait until there is something to spend; none if there is now.
    fn wait(&self, rate: f64) -> Option<Duration> {
        let may_burst = self.saved > 0.0 && self.spent_saved + rate < BURST_UNITS;
        if self.left > 0.0 || (may_burst && self.left >= 0.0) {
            return None;
        }
        let seconds = (1.0 - self.left) / rate.max(1.0);
        Some(Duration::from_secs_f64(seconds.clamp(0.001, 60.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> Owner {
        ("c".to_owned(), 1)
    }

    /// Requests of five units, evenly spread over some seconds, and how many were let in.
    fn load(budgets: &Budgets, rate: f64, asked_per_s: u64, from_ms: u64, seconds: u64) -> u64 {
        let count = asked_per_s * seconds / 5;
        let mut admitted = 0;
        for n in 0..count {
            let now_ms = from_ms + n * seconds * 1_000 / count;
            if let Ok(account) = budgets.admit(owner(), rate, now_ms) {
                account.take(5.0);
                admitted += 1;
            }
        }
        admitted * 5 / seconds
    }

    #[test]
    fn a_container_of_400_units_refuses_the_rest_of_a_load_of_1000() {
        let budgets = Budgets::default();
        let admitted = load(&budgets, 400.0, 1_000, 0, 60);
        assert!((395..=412).contains(&admitted), "{admitted}");
        let neighbour = budgets.admit(("c".to_owned(), 2), 400.0, 1_000);
        assert!(neighbour.is_ok());
    }

    #[test]
    fn the_pace_is_what_was_spent_of_late() {
        let budgets = Budgets::default();
        let rid = Rid::parse("AQAAAIAAAAI=").unwrap();
        let owner = || (rid.to_string(), 1);
        for second in 0..120 {
            let account = budgets.admit(owner(), 4_000.0, second * 1_000).unwrap();
            account.take(100.0);
        }
        let pace = budgets.spent(&rid, 1, 119_000);
        assert!((90.0..=110.0).contains(&pace), "{pace}");
        assert!(budgets.spent(&rid, 1, 300_000) < 1.0);
        assert_eq!(budgets.spent(&rid, 2, 119_000), 0.0);
    }

    #[test]
    fn idle_time_is_saved_for_a_burst() {
        let budgets = Budgets::default();
        budgets.admit(owner(), 400.0, 0).unwrap();
        let burst = load(&budgets, 400.0, 2_000, 100_000, 10);
        assert!(burst >= 1_900, "{burst}");
        // From 3,000 units on nothing is saved.
        let budgets = Budgets::default();
        budgets.admit(owner(), 4_000.0, 0).unwrap();
        let burst = load(&budgets, 4_000.0, 9_000, 100_000, 10);
        assert!(burst <= 4_500, "{burst}");
    }

    #[test]
    fn the_time_to_wait_is_the_time_it_takes() {
        let budgets = Budgets::default();
        budgets.admit(owner(), 400.0, 0).unwrap().take(1_200.0);
        let refused = budgets.admit(owner(), 400.0, 0).err().unwrap();
        let wait = refused.retry_after.unwrap().as_millis() as u64;
        assert!((1_900..=2_100).contains(&wait), "{wait}");
        assert!(budgets.admit(owner(), 400.0, wait - 50).is_err());
        assert!(budgets.admit(owner(), 400.0, wait + 1).is_ok());
    }
}
