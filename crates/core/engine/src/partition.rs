//! A partition while it is in use: its lane, its budget, its counters.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lazuli_shardmap::PartitionId;
use lazuli_store::{Error, Kind, Result};

use crate::hot::{HotKey, HotKeys};
use crate::lane::Lane;
use crate::meter::Budget;
use crate::sample::{Asked, Sample};
use crate::stats::{Counts, PartitionStats, Size, Traffic};

/// Made on the first request, let go when many others are in use and this one is idle.
pub(crate) struct LivePartition {
    pub(crate) id: PartitionId,
    pub(crate) lane: Lane,
    traffic: Traffic,
    hot: Mutex<HotKeys>,
    budget: Mutex<Option<Budget>>,
    /// What it holds as of the last commit; none until one was made or its figures were read.
    size: Mutex<Option<Size>>,
    told: Mutex<Told>,
}

/// What samples have told so far.
#[derive(Default)]
struct Told {
    reads: u64,
    writes: u64,
    throttled: u64,
    size: Option<Size>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What these locks guard is whole after every statement, so a panic elsewhere does not spoil it.
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl LivePartition {
    pub(crate) fn new(id: PartitionId) -> Self {
        Self {
            id,
            lane: Lane::default(),
            traffic: Traffic::default(),
            hot: Mutex::default(),
            budget: Mutex::default(),
            size: Mutex::default(),
            told: Mutex::default(),
        }
    }

    pub(crate) fn count_read(&self, route: &[u8]) {
        Traffic::count(&self.traffic.reads);
        lock(&self.hot).count(route);
    }

    /// A read of many keys, none of which is hot for it.
    pub(crate) fn count_scan(&self) {
        Traffic::count(&self.traffic.reads);
    }

    pub(crate) fn count_write(&self, route: &[u8]) {
        Traffic::count(&self.traffic.writes);
        lock(&self.hot).count(route);
    }

    pub(crate) fn time_read(&self, took: Duration) {
        self.traffic.read_times.note(took);
    }

    pub(crate) fn time_write(&self, took: Duration) {
        self.traffic.write_times.note(took);
    }

    /// What it holds now.
    pub(crate) fn note_size(&self, size: Size) {
        *lock(&self.size) = Some(size);
    }

    /// What was asked of it since the last sample, if anything was.
    pub(crate) fn sample(&self) -> Option<Sample> {
        let mut told = lock(&self.told);
        let since = |counter: &AtomicU64, told: &mut u64| {
            let now = counter.load(Ordering::Relaxed);
            now.saturating_sub(std::mem::replace(told, now))
        };
        let reads = since(&self.traffic.reads, &mut told.reads);
        let writes = since(&self.traffic.writes, &mut told.writes);
        let throttled = since(&self.traffic.throttled, &mut told.throttled);
        let size = *lock(&self.size);
        let size = size.filter(|_| std::mem::replace(&mut told.size, size) != size);
        let read_times = self.traffic.read_times.take();
        let write_times = self.traffic.write_times.take();
        let is_quiet = reads + writes + throttled + read_times.count() + write_times.count() == 0;
        if is_quiet && size.is_none() {
            return None;
        }
        Some(Sample {
            partition: self.id,
            held: None,
            size,
            reads,
            writes,
            throttled,
            read_times,
            write_times,
        })
    }

    /// Takes the cost of a request from the budget, or refuses it with the time after which to come again.
    pub(crate) fn charge(&self, throughput: Option<u32>, cost: u32, now: Duration) -> Result<()> {
        let Some(per_second) = throughput else { return Ok(()) };
        let mut kept = lock(&self.budget);
        budget_of(&mut kept, per_second, now).charge(cost, now).map_err(|retry_after| {
            Traffic::count(&self.traffic.throttled);
            let message = format!("partition {} is over {per_second} units a second", self.id);
            Error::new(Kind::Throttled { retry_after }, "over-budget", message)
        })
    }

    /// Takes a cost that is known only now from the budget, whatever is left of it.
    pub(crate) fn take(&self, throughput: Option<u32>, cost: u32, now: Duration) {
        if let Some(per_second) = throughput {
            budget_of(&mut lock(&self.budget), per_second, now).take(cost);
        }
    }

    /// Everything that was asked of it since it was warmed up.
    pub(crate) fn asked(&self) -> Asked {
        let Traffic { reads, writes, throttled, .. } = &self.traffic;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Asked { reads: read(reads), writes: read(writes), throttled: read(throttled) }
    }

    /// Reads and writes since it was warmed up.
    pub(crate) fn requests(&self) -> u64 {
        let Traffic { reads, writes, .. } = &self.traffic;
        reads.load(Ordering::Relaxed) + writes.load(Ordering::Relaxed)
    }

    pub(crate) fn hot_keys(&self) -> Vec<HotKey> {
        lock(&self.hot).list()
    }

    pub(crate) fn stats(&self, counts: Counts) -> PartitionStats {
        PartitionStats {
            partition: self.id,
            counts: counts.shown(),
            reads: self.traffic.reads.load(Ordering::Relaxed),
            writes: self.traffic.writes.load(Ordering::Relaxed),
            throttled: self.traffic.throttled.load(Ordering::Relaxed),
            hot: self.hot_keys(),
        }
    }
}

/// The budget at this rate. A change of the rate begins a new one.
fn budget_of(kept: &mut Option<Budget>, per_second: u32, now: Duration) -> &mut Budget {
    let budget = kept.get_or_insert_with(|| Budget::new(per_second, now));
    if budget.per_second() != per_second {
        *budget = Budget::new(per_second, now);
    }
    budget
}
