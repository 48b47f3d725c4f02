//! The points of a series.

use lazuli_engine::{Latencies, Size};

/// The figures of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// When the step began, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Items and bytes at the end of the step.
    pub size: Size,
    pub reads: u64,
    pub writes: u64,
    /// Requests refused because they were over budget.
    pub throttled: u64,
    pub read: Latency,
    pub write: Latency,
}

/// Latency of requests; zero without requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    pub mean_us: u64,
    pub p99_us: u64,
}

impl Latency {
    pub(crate) fn of(times: &Latencies) -> Self {
        Self { mean_us: times.mean_us(), p99_us: times.percentile_us(99) }
    }

    /// The mean of both, weighted by their numbers of requests, and the larger percentile: an exact one is not known
    /// for sums.
    fn joined(self, requests: u64, other: Self, other_requests: u64) -> Self {
        let all = requests + other_requests;
        let weighted = u128::from(self.mean_us) * u128::from(requests)
            + u128::from(other.mean_us) * u128::from(other_requests);
        let mean = weighted.checked_div(u128::from(all)).unwrap_or(0);
        Self {
            mean_us: u64::try_from(mean).unwrap_or(u64::MAX),
            p99_us: self.p99_us.max(other.p99_us),
        }
    }
}

impl Point {
    /// Adds the figures of another partition in the same step.
    pub(crate) fn add(&mut self, other: &Self) {
        self.size.items += other.size.items;
        self.size.bytes += other.size.bytes;
        self.add_traffic(other);
    }

    /// Adds the requests of another step or partition, not its size.
    pub(crate) fn add_traffic(&mut self, other: &Self) {
        self.read = self.read.joined(self.reads, other.read, other.reads);
        self.write = self.write.joined(self.writes, other.write, other.writes);
        self.reads += other.reads;
        self.writes += other.writes;
        self.throttled += other.throttled;
    }
}

/// Requests per second, over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    pub reads: f64,
    pub writes: f64,
    pub throttled: f64,
}
