//! Requests counted by front, operation and status, with a histogram of how long they took.
//!
//! Memory is bounded: operations are words of the fronts' own tables and statuses are those the fronts give.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use super::page::Page;
use super::recent::Recent;

/// The upper bounds of the histogram's buckets, in seconds.
const BUCKETS_S: [f64; 12] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 10.0];

/// What happened so far.
#[derive(Default)]
pub(crate) struct Requests {
    counts: Mutex<BTreeMap<(&'static str, &'static str, u16), u64>>,
    durations: Mutex<BTreeMap<(&'static str, &'static str), Durations>>,
    recent: Recent,
}

#[derive(Clone, Default)]
struct Durations {
    /// How many fell into each bucket, and beyond the last one.
    buckets: [u64; BUCKETS_S.len() + 1],
    sum_s: f64,
}

impl Requests {
    pub(crate) fn observe(
        &self,
        front: &'static str,
        operation: &'static str,
        status: u16,
        took: Duration,
    ) {
        let took_s = took.as_secs_f64();
        let bucket = BUCKETS_S.iter().position(|bound| took_s <= *bound).unwrap_or(BUCKETS_S.len());
        let mut counts = self.counts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *counts.entry((front, operation, status)).or_default() += 1;
        drop(counts);
        self.recent.count(front, status);
        let mut durations = self.durations.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let series = durations.entry((front, operation)).or_default();
        series.buckets[bucket] += 1;
        series.sum_s += took_s;
    }

    /// How many came lately.
    pub(crate) fn recent(&self) -> &Recent {
        &self.recent
    }

    /// What one front answered since the start, by status.
    pub(crate) fn totals(&self, front: &str) -> BTreeMap<u16, u64> {
        let counts = self.counts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut totals = BTreeMap::new();
        for ((_, _, status), count) in counts.iter().filter(|((one, _, _), _)| *one == front) {
            *totals.entry(*status).or_default() += count;
        }
        totals
    }

    pub(super) fn write(&self, page: &mut Page) {
        let counts = self.counts.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        let name = "lazuli_requests_total";
        page.family(name, "counter", "Requests answered.");
        for ((front, operation, status), count) in counts {
            let status = status.to_string();
            let labels = [("front", front), ("operation", operation), ("status", &status)];
            page.sample(name, &labels, count as f64);
        }
        let durations =
            self.durations.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        page.family("lazuli_request_seconds", "histogram", "How long requests took.");
        for ((front, operation), series) in durations {
            series.write(page, front, operation);
        }
    }
}

impl Durations {
    fn write(&self, page: &mut Page, front: &str, operation: &str) {
        let labels = [("front", front), ("operation", operation)];
        let mut below = 0;
        for (at, count) in self.buckets.iter().enumerate() {
            below += count;
            let bound = BUCKETS_S.get(at).map_or_else(|| "+Inf".to_owned(), f64::to_string);
            let labels = [labels[0], labels[1], ("le", &bound)];
            page.sample("lazuli_request_seconds_bucket", &labels, below as f64);
        }
        page.sample("lazuli_request_seconds_sum", &labels, self.sum_s);
        page.sample("lazuli_request_seconds_count", &labels, below as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_status_and_timed_by_operation() {
        let requests = Requests::default();
        requests.observe("tables", "get-entity", 200, Duration::from_millis(2));
        requests.observe("tables", "get-entity", 200, Duration::from_secs(60));
        requests.observe("tables", "get-entity", 404, Duration::from_micros(100));
        let mut page = Page::default();
        requests.write(&mut page);
        let text = page.text();
        for line in [
            "lazuli_requests_total{front=\"tables\",operation=\"get-entity\",status=\"200\"} 2",
            "lazuli_requests_total{front=\"tables\",operation=\"get-entity\",status=\"404\"} 1",
            "lazuli_request_seconds_bucket{front=\"tables\",operation=\"get-entity\",le=\"0.0005\"} 1",
            "lazuli_request_seconds_bucket{front=\"tables\",operation=\"get-entity\",le=\"10\"} 2",
            "lazuli_request_seconds_bucket{front=\"tables\",operation=\"get-entity\",le=\"+Inf\"} 3",
            "lazuli_request_seconds_count{front=\"tables\",operation=\"get-entity\"} 3",
        ] {
            assert!(text.lines().any(|have| have == line), "{line} in\n{text}");
        }
    }
}
