//! The history of all partitions: samples in, series out.

use std::collections::BTreeMap;
use std::ops::Range;

use lazuli_engine::{Asked, ContainerId, Held, PartitionId, Sample, ShardId, Size};

use crate::point::{Point, Rates};
use crate::step::Step;
use crate::watch::Watch;

/// Default number of partitions.
pub const PARTITIONS_MAX: usize = 10_000;
/// Upper bound of a map entry's overhead beside its key and value.
const ENTRY_BYTES: usize = 16;

pub struct History {
    partitions_max: usize,
    watches: BTreeMap<PartitionId, Watch>,
    began_ms: u64,
    /// All samples up to this time were taken.
    now_ms: u64,
    /// How often a partition in use did not fit.
    unwatched: u64,
}

impl History {
    /// An empty history of at most this many partitions.
    pub fn new(partitions_max: usize, now_ms: u64) -> Self {
        let watches = BTreeMap::new();
        Self { partitions_max, watches, began_ms: now_ms, now_ms, unwatched: 0 }
    }

    /// Adds a sample: the requests since the last one.
    pub fn take(&mut self, now_ms: u64, samples: &[Sample]) {
        let now_ms = now_ms.max(self.now_ms);
        // A sample that is a little late belongs to the step in which most of its requests happened.
        let middle_ms = now_ms - (now_ms - self.now_ms).min(Step::TenSeconds.ms()) / 2;
        self.now_ms = now_ms;
        let mut new = Vec::new();
        for sample in samples {
            match self.watches.get_mut(&sample.partition) {
                Some(watch) => watch.take(middle_ms, sample),
                // A partition that has ended is not added.
                None => new.extend(sample.held.map(|held| (held, sample))),
            }
        }
        self.make_room(new.len(), middle_ms);
        for (held, sample) in new {
            match self.watch(sample.partition, held, middle_ms, sample.size) {
                Some(watch) => watch.take(middle_ms, sample),
                None => self.unwatched += 1,
            }
        }
        self.watches.values_mut().for_each(|watch| watch.close(now_ms));
        self.watches.retain(|_, watch| !watch.is_over());
    }

    /// Adds samples that other nodes took, as if they were taken now.
    pub fn hear(&mut self, now_ms: u64, samples: &[Sample]) {
        self.take(now_ms, samples);
        for sample in samples {
            let Sample { partition, reads, writes, throttled, .. } = *sample;
            if let Some(watch) = self.watches.get_mut(&partition) {
                watch.elsewhere.add(&Asked { reads, writes, throttled });
            }
        }
    }

    /// What other nodes were asked of a partition, as far as this one has heard.
    pub fn elsewhere(&self, id: PartitionId) -> Asked {
        self.watches.get(&id).map_or(Asked::default(), |watch| watch.elsewhere)
    }

    /// The same of all partitions that are on a shard now.
    pub fn elsewhere_on(&self, shard: ShardId) -> Asked {
        let here = |watch: &&Watch| watch.ended_ms.is_none() && watch.held.shard == shard;
        let mut sum = Asked::default();
        self.watches.values().filter(here).for_each(|watch| sum.add(&watch.elsewhere));
        sum
    }

    /// Adds sizes, also of partitions without requests. All of them are kept from now on, if there is room.
    pub fn resize(&mut self, sizes: impl IntoIterator<Item = (PartitionId, Held, Option<Size>)>) {
        let now_ms = self.now_ms;
        for (id, held, size) in sizes {
            let Some(watch) = self.watch(id, held, now_ms, size) else { continue };
            watch.held = held;
            watch.ended_ms = None;
            if let Some(size) = size {
                watch.resize(size);
            }
        }
    }

    /// Updates the shard of every partition. Partitions without a shard have ended. Returns whether there are any.
    pub fn find(&mut self, place: impl Fn(PartitionId, Held) -> Option<Held>) -> bool {
        let mut any = false;
        for (id, watch) in self.watches.iter_mut().filter(|(_, watch)| watch.ended_ms.is_none()) {
            match place(*id, watch.held) {
                Some(held) => watch.held = held,
                None => {
                    watch.ended_ms = Some(self.now_ms);
                    any = true;
                }
            }
        }
        any
    }

    /// The entry of a partition, a new one if there is room.
    fn watch(
        &mut self,
        id: PartitionId,
        held: Held,
        at_ms: u64,
        size: Option<Size>,
    ) -> Option<&mut Watch> {
        let is_full = self.watches.len() >= self.partitions_max;
        if is_full && !self.watches.contains_key(&id) {
            return None;
        }
        Some(self.watches.entry(id).or_insert_with(|| Watch::new(held, at_ms, size)))
    }

    /// Evicts the partitions that were idle for longest, to make room for this many.
    fn make_room(&mut self, wanted: usize, now_ms: u64) {
        let over = (self.watches.len() + wanted).saturating_sub(self.partitions_max);
        if over == 0 {
            return;
        }
        let quiet = self.watches.iter().filter(|(_, watch)| watch.heard_ms < now_ms);
        let mut quiet: Vec<_> = quiet.map(|(id, watch)| (watch.heard_ms, *id)).collect();
        quiet.sort_unstable();
        for (_, id) in quiet.into_iter().take(over) {
            self.watches.remove(&id);
        }
    }

    /// The series of one partition, oldest first, all finished steps; none if it is not in the history.
    pub fn partition(&self, id: PartitionId, step: Step) -> Option<Vec<Point>> {
        Some(self.watches.get(&id)?.series(step, &self.range(step)))
    }

    /// The sums over the partitions that pass the filter.
    pub fn sum(&self, step: Step, wanted: impl Fn(Held) -> bool) -> Vec<Point> {
        let range = self.range(step);
        let quiet = |number| Point { at_ms: step.begin_ms(number), ..Point::default() };
        let mut sums: Vec<Point> = range.clone().map(quiet).collect();
        for watch in self.watches.values().filter(|watch| wanted(watch.held)) {
            for point in watch.series(step, &range) {
                let at = step.number(point.at_ms) - range.start;
                sums[at as usize].add(&point);
            }
        }
        sums
    }

    /// The sums over all partitions of a container.
    pub fn container(&self, id: ContainerId, step: Step) -> Vec<Point> {
        self.sum(step, |held| held.container == id)
    }

    /// Requests per second of a partition over the last minutes, or since it is known; none if it is not in the history.
    pub fn rates(&self, id: PartitionId, minutes: u32) -> Option<Rates> {
        let watch = self.watches.get(&id)?;
        let (step, wanted) = match minutes {
            0..10 => (Step::TenSeconds, minutes.max(1) * 6),
            _ => (Step::Minute, minutes),
        };
        let series = watch.series(step, &self.range(step));
        let skipped = series.len().saturating_sub(wanted as usize);
        let mut all = Point::default();
        series[skipped..].iter().for_each(|point| all.add_traffic(point));
        let most = u64::from(wanted) * step.ms();
        let seconds = watch.known_ms(self.now_ms).clamp(step.ms(), most) as f64 / 1_000.0;
        let rate = |count: u64| count as f64 / seconds;
        Some(Rates {
            reads: rate(all.reads),
            writes: rate(all.writes),
            throttled: rate(all.throttled),
        })
    }

    /// The requests of a partition in the last minute, summed; none if it is not in the history.
    pub fn lately(&self, id: PartitionId) -> Option<Point> {
        let series = self.partition(id, Step::TenSeconds)?;
        let last = &series[series.len().saturating_sub(6)..];
        let mut all = *last.last()?;
        last[..last.len() - 1].iter().for_each(|point| all.add_traffic(point));
        Some(all)
    }

    /// How much time the history covers.
    pub fn age_ms(&self) -> u64 {
        self.now_ms - self.began_ms
    }

    pub fn is_watched(&self, id: PartitionId) -> bool {
        self.watches.contains_key(&id)
    }

    /// Partitions of unknown size, at most this many.
    pub fn unsized_partitions(&self, most: usize) -> Vec<(PartitionId, Held)> {
        let unknown = self.watches.iter().filter(|(_, watch)| watch.size.is_none());
        let alive = unknown.filter(|(_, watch)| watch.ended_ms.is_none());
        alive.map(|(id, watch)| (*id, watch.held)).take(most).collect()
    }

    /// How many partitions are in the history.
    pub fn partitions(&self) -> usize {
        self.watches.len()
    }

    /// How often a partition did not fit.
    pub fn unwatched(&self) -> u64 {
        self.unwatched
    }

    /// The memory of the whole history.
    pub fn bytes(&self) -> usize {
        let entry = size_of::<PartitionId>() + ENTRY_BYTES;
        self.watches.values().map(|watch| entry + watch.bytes()).sum()
    }

    /// The finished steps that are kept.
    fn range(&self, step: Step) -> Range<u32> {
        let end = step.number(self.now_ms);
        let oldest = end.saturating_sub(step.kept());
        oldest.max(step.number(self.began_ms)).min(end)..end
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
