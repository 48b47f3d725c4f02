//! What a front counts, whatever its protocol: requests by operation and outcome, how long they took, bytes, connections.
//!
//! Memory is bounded: operations are words of the front's own table, and so are outcomes.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::task::JoinError;

use crate::recent::{Grain, Recent, Step};

/// The upper bounds of the histogram's buckets, in seconds.
pub const BUCKETS_S: [f64; 12] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 10.0];

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The status of an HTTP response.
    Status(u16),
    Ok,
    /// Refused with this code: the client should not have asked.
    Refused(&'static str),
    /// Failed with this code: the server could not.
    Failed(&'static str),
}

impl Outcome {
    pub fn is_refused(self) -> bool {
        matches!(self, Self::Refused(_) | Self::Status(400..500))
    }

    pub fn is_failed(self) -> bool {
        matches!(self, Self::Failed(_) | Self::Status(500..))
    }

    /// As metrics name it.
    pub fn text(self) -> String {
        match self {
            Self::Status(status) => status.to_string(),
            Self::Ok => "ok".to_owned(),
            Self::Refused(code) | Self::Failed(code) => code.to_owned(),
        }
    }
}

/// The requests of one operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    pub outcomes: BTreeMap<Outcome, u64>,
    /// How many fell into each bucket of [`BUCKETS_S`], and beyond the last one.
    pub buckets: [u64; BUCKETS_S.len() + 1],
    pub sum_s: f64,
    lately: Lately,
}

/// The requests of one operation in the step that is under way, and in the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Lately {
    step: u64,
    now: u64,
    before: u64,
}

impl Lately {
    fn count(&mut self, step: u64, times: u64) {
        *self = Self { step, now: self.at(step) + times, before: self.at(step.wrapping_sub(1)) };
    }

    /// How many were counted in one step, as far as it is known.
    fn at(&self, step: u64) -> u64 {
        match self.step.wrapping_sub(step) {
            0 => self.now,
            1 => self.before,
            _ => 0,
        }
    }
}

/// The bucket of [`BUCKETS_S`] for a duration.
pub(crate) fn bucket_of(took: Duration) -> usize {
    let took_s = took.as_secs_f64();
    BUCKETS_S.iter().position(|bound| took_s <= *bound).unwrap_or(BUCKETS_S.len())
}

/// What a part of the requests took at most, in seconds: `part` is 0.99 for all but the slowest hundredth. It is as exact as
/// the buckets are, even between their bounds; beyond the last bound it is that bound. None if there were no requests.
pub fn quantile_s(buckets: &[u64; BUCKETS_S.len() + 1], part: f64) -> Option<f64> {
    let all: u64 = buckets.iter().sum();
    let wanted = all as f64 * part;
    let (mut below, mut lower) = (0.0, 0.0);
    for (count, upper) in buckets.iter().zip(BUCKETS_S) {
        let count = *count as f64;
        if count > 0.0 && below + count >= wanted {
            return Some(lower + (upper - lower) * (wanted - below) / count);
        }
        (below, lower) = (below + count, upper);
    }
    (all > 0).then_some(lower)
}

/// The figures of one front.
pub struct Metrics {
    name: &'static str,
    pub(crate) opened: AtomicU64,
    pub(crate) closed: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) accept_failures: AtomicU64,
    panics: AtomicU64,
    timeouts: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    requests: AtomicU64,
    series: Mutex<BTreeMap<&'static str, Series>>,
    recent: Recent,
}

/// What a front counted since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that are open now.
    pub connections_open: u64,
    pub connections: u64,
    /// Connections that were closed because too many were open, or because their address is not allowed.
    pub refused: u64,
    /// Connections that the system refused to hand out.
    pub accept_failures: u64,
    /// Requests and connections that panicked: each one is a fault of ours.
    pub panics: u64,
    /// Requests that ran into the request time-out.
    pub timeouts: u64,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// Requests that came in over a connection, answered or not.
    pub requests: u64,
}

impl Metrics {
    pub fn new(name: &'static str) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            name,
            opened: zero(),
            closed: zero(),
            refused: zero(),
            accept_failures: zero(),
            panics: zero(),
            timeouts: zero(),
            received_bytes: zero(),
            sent_bytes: zero(),
            requests: zero(),
            series: Mutex::default(),
            recent: Recent::default(),
        }
    }

    /// The front's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Counts a request that was answered.
    pub fn observe(&self, operation: &'static str, outcome: Outcome, took: Duration) {
        self.observe_many(operation, outcome, 1, took);
    }

    /// Counts several requests of one kind at once, for fronts that answer too many to count each here. They took `each` on
    /// average.
    pub fn observe_many(
        &self,
        operation: &'static str,
        outcome: Outcome,
        times: u64,
        each: Duration,
    ) {
        self.recent.count(outcome, each, times);
        let step = self.recent.step();
        let mut series = self.lock();
        let series = series.entry(operation).or_default();
        *series.outcomes.entry(outcome).or_default() += times;
        series.buckets[bucket_of(each)] += times;
        series.sum_s += each.as_secs_f64() * times as f64;
        series.lately.count(step, times);
    }

    /// Counts a request that has come in.
    pub fn count_request(&self) {
        add(&self.requests, 1);
    }

    pub fn count_panic(&self) {
        add(&self.panics, 1);
    }

    pub fn count_timeout(&self) {
        add(&self.timeouts, 1);
    }

    pub(crate) fn count_ended(&self, ended: &Result<(), JoinError>) {
        if ended.as_ref().is_err_and(JoinError::is_panic) {
            self.count_panic();
        }
    }

    pub(crate) fn count_received(&self, bytes: usize) {
        add(&self.received_bytes, bytes);
    }

    pub(crate) fn count_sent(&self, polled: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = polled {
            add(&self.sent_bytes, *bytes);
        }
    }

    pub fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // Read first, because each connection is counted as opened before it is counted as closed.
        let closed = read(&self.closed);
        let connections = read(&self.opened);
        Counts {
            connections_open: connections.saturating_sub(closed),
            connections,
            refused: read(&self.refused),
            accept_failures: read(&self.accept_failures),
            panics: read(&self.panics),
            timeouts: read(&self.timeouts),
            received_bytes: read(&self.received_bytes),
            sent_bytes: read(&self.sent_bytes),
            requests: read(&self.requests),
        }
    }

    /// The requests of every operation so far.
    pub fn operations(&self) -> BTreeMap<&'static str, Series> {
        self.lock().clone()
    }

    /// The last steps that are over, the oldest first.
    pub fn recent(&self, grain: Grain) -> Vec<Step> {
        self.recent.steps(grain)
    }

    /// How many requests of an operation came in the last step that is over, a second.
    pub fn rate(&self, series: &Series) -> f64 {
        let over = self.recent.step().wrapping_sub(1);
        series.lately.at(over) as f64 / Grain::Fine.step_s() as f64
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Series>> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn add(counter: &AtomicU64, by: usize) {
    counter.fetch_add(by as u64, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_outcome_and_timed_by_operation() {
        let metrics = Metrics::new("tables");
        metrics.observe("get-entity", Outcome::Status(200), Duration::from_millis(2));
        metrics.observe("get-entity", Outcome::Status(200), Duration::from_secs(60));
        metrics.observe("get-entity", Outcome::Status(404), Duration::from_micros(100));
        let series = &metrics.operations()["get-entity"];
        let expected = [(Outcome::Status(200), 2), (Outcome::Status(404), 1)];
        assert_eq!(series.outcomes, BTreeMap::from(expected));
        assert_eq!((series.buckets[0], series.buckets[2], series.buckets[12]), (1, 1, 1));
        assert!(series.sum_s > 60.0 && series.sum_s < 60.1);
    }

    #[test]
    fn quantiles_lie_within_the_bucket_of_their_request() {
        let mut buckets = [0; BUCKETS_S.len() + 1];
        assert_eq!(quantile_s(&buckets, 0.5), None);
        (buckets[1], buckets[4]) = (90, 10);
        let at = |part| (quantile_s(&buckets, part).unwrap() * 1e6).round();
        assert_eq!((at(0.45), at(0.9), at(0.95), at(1.0)), (750.0, 1000.0, 7500.0, 10000.0));
        buckets[BUCKETS_S.len()] = 1_000;
        assert_eq!(quantile_s(&buckets, 0.99), Some(10.0), "it took ten seconds at least");
    }

    #[test]
    fn the_requests_of_a_step_are_told_when_it_is_over() {
        let mut lately = Lately::default();
        lately.count(7, 3);
        lately.count(7, 2);
        assert_eq!((lately.at(7), lately.at(6)), (5, 0));
        lately.count(8, 1);
        assert_eq!((lately.at(8), lately.at(7)), (1, 5));
        lately.count(20, 1);
        assert_eq!((lately.at(20), lately.at(19), lately.at(8)), (1, 0, 0));
    }

    #[test]
    fn outcomes_of_all_protocols_are_told_apart() {
        for refused in [Outcome::Status(404), Outcome::Refused("WRONGTYPE")] {
            assert!(refused.is_refused() && !refused.is_failed(), "{refused:?}");
        }
        for failed in [Outcome::Status(503), Outcome::Failed("LOADING")] {
            assert!(failed.is_failed() && !failed.is_refused(), "{failed:?}");
        }
        for fine in [Outcome::Status(304), Outcome::Ok] {
            assert!(!fine.is_failed() && !fine.is_refused(), "{fine:?}");
        }
        assert_eq!((Outcome::Ok.text(), Outcome::Status(201).text()), ("ok".into(), "201".into()));
    }
}
