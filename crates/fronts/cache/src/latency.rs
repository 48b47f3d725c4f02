//! What took long, and how long commands take: the events of LATENCY, and a histogram for each command.
//!
//! Events are kept only while a threshold is set (`latency-monitor-threshold`, in milliseconds): the longest of each second,
//! for the last 160 seconds that had one. Histograms count always, unless `latency-tracking` is off.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::command::TABLE;

/// How many seconds of an event are kept.
const SAMPLES_MAX: usize = 160;
/// The first bucket ends at 2^10 nanoseconds, each other at about twice the one before; the last one has all that took longer.
const FIRST_BITS: u32 = 10;
const BUCKETS: usize = 22;

/// One event: its samples, the newest last, and the longest ever.
#[derive(Default)]
pub(crate) struct Event {
    /// A second, and the longest in it in milliseconds.
    pub(crate) samples: VecDeque<(u64, u64)>,
    pub(crate) longest_ms: u64,
}

pub(crate) struct Latency {
    threshold_ms: AtomicU64,
    is_tracking: AtomicBool,
    events: Mutex<BTreeMap<&'static str, Event>>,
    histograms: Vec<[AtomicU64; BUCKETS]>,
}

impl Default for Latency {
    fn default() -> Self {
        let histogram = |_| std::array::from_fn(|_| AtomicU64::new(0));
        Self {
            threshold_ms: AtomicU64::new(0),
            is_tracking: AtomicBool::new(true),
            events: Mutex::default(),
            histograms: TABLE.commands.iter().map(histogram).collect(),
        }
    }
}

/// Where a bucket ends, in nanoseconds: the service's histograms have seven bits of precision.
fn end_nanos(bucket: usize) -> u64 {
    let bits = FIRST_BITS + bucket as u32;
    (1 << bits) + (1 << (bits - 7)) - 1
}

impl Latency {
    pub(crate) fn set_threshold(&self, milliseconds: u64) {
        self.threshold_ms.store(milliseconds, Ordering::Relaxed);
    }

    pub(crate) fn set_tracking(&self, is_on: bool) {
        self.is_tracking.store(is_on, Ordering::Relaxed);
    }

    pub(crate) fn events(&self) -> MutexGuard<'_, BTreeMap<&'static str, Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something took so long. Remembered if it is over the threshold.
    #[inline]
    pub(crate) fn took(&self, event: &'static str, time: Duration, now_ms: u64) {
        let threshold = self.threshold_ms.load(Ordering::Relaxed);
        if threshold > 0 && time.as_millis() >= u128::from(threshold) {
            self.remember(event, u64::try_from(time.as_millis()).unwrap_or(u64::MAX), now_ms);
        }
    }

    fn remember(&self, event: &'static str, took_ms: u64, now_ms: u64) {
        let mut events = self.events();
        let event = events.entry(event).or_default();
        event.longest_ms = event.longest_ms.max(took_ms);
        let second = now_ms / 1000;
        match event.samples.back_mut() {
            Some((at, longest)) if *at == second => *longest = took_ms.max(*longest),
            _ => event.samples.push_back((second, took_ms)),
        }
        if event.samples.len() > SAMPLES_MAX {
            event.samples.pop_front();
        }
    }

    /// A command took so long, by its place in the table.
    #[inline]
    pub(crate) fn count(&self, command: usize, time: Duration) {
        if self.is_tracking.load(Ordering::Relaxed) {
            let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            let bits = (u64::BITS - nanos.leading_zeros()).max(FIRST_BITS + 1);
            // The power of two below, or the next one if its end is before this time.
            let below = (bits - 1 - FIRST_BITS) as usize;
            let bucket = below + usize::from(below < BUCKETS && nanos > end_nanos(below));
            self.histograms[command][bucket.min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The buckets of a command that have something: where each ends in microseconds, and how many calls took up to that.
    pub(crate) fn histogram(&self, command: usize) -> Vec<(u64, u64)> {
        let (mut found, mut total) = (Vec::new(), 0);
        for (bucket, count) in self.histograms[command].iter().enumerate() {
            let count = count.load(Ordering::Relaxed);
            total += count;
            if count > 0 {
                found.push((end_nanos(bucket) / 1000, total));
            }
        }
        found
    }

    pub(crate) fn reset_histograms(&self) {
        let all = self.histograms.iter().flatten();
        all.for_each(|bucket| bucket.store(0, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_end_where_those_of_the_service_do() {
        let ends: Vec<u64> = (0..14).map(|it| end_nanos(it) / 1000).collect();
        assert_eq!(ends, [1, 2, 4, 8, 16, 33, 66, 132, 264, 528, 1056, 2113, 4227, 8454]);
    }

    #[test]
    fn a_time_is_in_the_first_bucket_that_reaches_it() {
        for nanos in [0, 1, 1023, 1031, 1032, 2063, 2064, 5_000, 999_999, u64::MAX] {
            let latency = Latency::default();
            latency.count(0, Duration::from_nanos(nanos));
            let [(end, 1)] = latency.histogram(0)[..] else { panic!("{nanos}") };
            let first = (0..BUCKETS).find(|it| nanos <= end_nanos(*it)).unwrap_or(BUCKETS - 1);
            assert_eq!(end, end_nanos(first) / 1000, "{nanos}");
        }
    }

    #[test]
    fn the_longest_of_each_second_is_kept_and_short_times_are_not() {
        let latency = Latency::default();
        latency.took("command", Duration::from_millis(500), 1_000);
        assert!(latency.events().is_empty());
        latency.set_threshold(10);
        for (at, millis) in [(1_000, 20), (1_500, 30), (1_900, 25), (1_950, 9), (2_000, 11)] {
            latency.took("command", Duration::from_millis(millis), at);
        }
        let events = latency.events();
        assert_eq!(events["command"].samples, [(1, 30), (2, 11)]);
        assert_eq!(events["command"].longest_ms, 30);
    }
}
