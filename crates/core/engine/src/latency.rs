//! How long requests took: counts in buckets, each twice as wide as the one before, so that a request costs two additions
//! and a partition little memory, and percentiles are still good to a factor of two.

use std::array::from_fn;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// How many buckets there are. The last one has everything that took over four seconds.
pub const LATENCY_BUCKETS: usize = 20;
/// The width of the first bucket, in microseconds, as a power of two.
const FIRST_US_LOG2: u32 = 4;

/// What is counted while requests run.
#[derive(Default)]
pub(crate) struct LatencyCounters {
    buckets: [AtomicU32; LATENCY_BUCKETS],
    sum_us: AtomicU64,
}

impl LatencyCounters {
    pub(crate) fn note(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.buckets[bucket(us)].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// What was counted since the last call.
    pub(crate) fn take(&self) -> Latencies {
        let take = |counter: &AtomicU32| match counter.load(Ordering::Relaxed) {
            // A look costs less than a change, and most are zero.
            0 => 0,
            _ => counter.swap(0, Ordering::Relaxed),
        };
        let buckets = from_fn(|at| take(&self.buckets[at]));
        Latencies { buckets, sum_us: self.sum_us.swap(0, Ordering::Relaxed) }
    }
}

fn bucket(us: u64) -> usize {
    let bits = u64::BITS - (us >> FIRST_US_LOG2).leading_zeros();
    (bits as usize).min(LATENCY_BUCKETS - 1)
}

/// Where a bucket begins, in microseconds.
fn begin_us(bucket: usize) -> u64 {
    if bucket == 0 { 0 } else { 1 << (FIRST_US_LOG2 as usize + bucket - 1) }
}

/// How long some requests took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    buckets: [u32; LATENCY_BUCKETS],
    sum_us: u64,
}

impl Latencies {
    /// Of requests that each took so long.
    pub fn of(times: impl IntoIterator<Item = Duration>) -> Self {
        let counters = LatencyCounters::default();
        times.into_iter().for_each(|took| counters.note(took));
        counters.take()
    }

    /// Of counts in buckets, and the sum of all times.
    pub fn from_parts(buckets: [u32; LATENCY_BUCKETS], sum_us: u64) -> Self {
        Self { buckets, sum_us }
    }

    /// The counts in buckets, and the sum of all times.
    pub fn parts(&self) -> (&[u32; LATENCY_BUCKETS], u64) {
        (&self.buckets, self.sum_us)
    }

    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(other.buckets) {
            *mine = mine.saturating_add(theirs);
        }
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
    }

    /// How many requests were timed.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|count| u64::from(*count)).sum()
    }

    /// Zero if there were none.
    pub fn mean_us(&self) -> u64 {
        self.sum_us.checked_div(self.count()).unwrap_or(0)
    }

    /// The time within which so many percent of the requests were done, as if those of a bucket were spread evenly over it.
    pub fn percentile_us(&self, percent: u64) -> u64 {
        let wanted = (self.count() * percent).div_ceil(100);
        let mut below = 0;
        for (at, count) in self.buckets.iter().map(|count| u64::from(*count)).enumerate() {
            if count > 0 && below + count >= wanted {
                let begin = begin_us(at);
                if at == LATENCY_BUCKETS - 1 {
                    return begin;
                }
                return begin + (begin_us(at + 1) - begin) * (wanted - below) / count;
            }
            below += count;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        for at in 1..LATENCY_BUCKETS {
            assert_eq!(bucket(begin_us(at)), at);
            assert_eq!(bucket(begin_us(at) - 1), at - 1);
        }
        assert_eq!((bucket(0), bucket(u64::MAX)), (0, LATENCY_BUCKETS - 1));
    }

    #[test]
    fn percentiles_are_good_to_a_factor_of_two() {
        let all = Latencies::of((1..=1_000).map(|n| Duration::from_micros(n * 10)));
        assert_eq!((all.count(), all.mean_us()), (1_000, 5_005));
        for (percent, exact) in [(50, 5_000), (90, 9_000), (99, 9_900)] {
            let found = all.percentile_us(percent);
            assert!(found <= exact * 2 && found * 2 >= exact, "{percent}: {found} for {exact}");
        }
        assert_eq!(Latencies::default().percentile_us(99), 0);
        assert_eq!(Latencies::default().mean_us(), 0);
    }

    #[test]
    fn what_was_taken_is_counted_once() {
        let counters = LatencyCounters::default();
        counters.note(Duration::from_millis(1));
        let mut both = counters.take();
        assert_eq!(counters.take(), Latencies::default());
        both.add(&Latencies::of([Duration::from_millis(3)]));
        assert_eq!((both.count(), both.mean_us()), (2, 2_000));
    }
}
