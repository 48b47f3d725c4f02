//! The series of one partition at one length of step: the steps with requests, and the open step.

use std::collections::VecDeque;

use lazuli_engine::{Latencies, Sample, Size};

use crate::packed::Packed;
use crate::point::{Latency, Point};
use crate::step::Step;

/// By how many points a full series grows. Small, so that little memory is unused.
const GROWTH: usize = 12;

#[derive(Default)]
pub(crate) struct Level {
    /// Ordered by step, without duplicates.
    points: VecDeque<Packed>,
    /// The size before the first of them, if that is known.
    before: Option<Size>,
    open: Option<Box<Open>>,
}

/// A step that has not ended.
#[derive(Default)]
struct Open {
    step: u32,
    reads: u64,
    writes: u64,
    throttled: u64,
    read_times: Latencies,
    write_times: Latencies,
}

impl Level {
    pub(crate) fn new(before: Option<Size>) -> Self {
        Self { before, ..Self::default() }
    }

    /// Adds the requests of a step. Steps come in order.
    pub(crate) fn take(&mut self, step: u32, sample: &Sample) {
        let open = self.open.get_or_insert_with(|| Box::new(Open { step, ..Open::default() }));
        open.reads += sample.reads;
        open.writes += sample.writes;
        open.throttled += sample.throttled;
        open.read_times.add(&sample.read_times);
        open.write_times.add(&sample.write_times);
    }

    /// Closes the open step if it is before `now`, and drops steps that are too old to be kept.
    pub(crate) fn close(&mut self, step: Step, now: u32, size: Option<Size>) {
        let oldest = now.saturating_sub(step.kept());
        while self.points.front().is_some_and(|point| point.step < oldest) {
            let old = self.points.pop_front();
            self.before = old.and_then(|point| point.size()).or(self.before);
        }
        if let Some(open) = self.open.take_if(|open| open.step < now) {
            if self.points.len() == self.points.capacity() {
                self.points.reserve_exact(GROWTH);
            }
            self.points.push_back(Packed::new(open.step, size, &open.traffic()));
        }
        if self.points.is_empty() {
            self.points.shrink_to_fit();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.points.is_empty() && self.open.is_none()
    }

    /// Every step of a range, including idle ones, with the known sizes; `first` is used before any is known.
    pub(crate) fn series(
        &self,
        step: Step,
        range: std::ops::Range<u32>,
        first: Option<Size>,
    ) -> Vec<Point> {
        let mut points = self.points.iter().peekable();
        let mut size = self.before;
        let mut series = Vec::with_capacity(range.len());
        for number in range {
            while let Some(old) = points.next_if(|point| point.step < number) {
                size = old.size().or(size);
            }
            let point = points.next_if(|point| point.step == number);
            size = point.and_then(Packed::size).or(size);
            let quiet = Point { at_ms: step.begin_ms(number), ..Point::default() };
            let traffic = point.map_or(quiet, |point| point.traffic(step));
            series.push(Point { size: size.or(first).unwrap_or_default(), ..traffic });
        }
        series
    }

    /// The bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        let open = if self.open.is_some() { size_of::<Open>() } else { 0 };
        self.points.capacity() * size_of::<Packed>() + open
    }
}

impl Open {
    fn traffic(&self) -> Point {
        Point {
            reads: self.reads,
            writes: self.writes,
            throttled: self.throttled,
            read: Latency::of(&self.read_times),
            write: Latency::of(&self.write_times),
            ..Point::default()
        }
    }
}
