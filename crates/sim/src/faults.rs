//! Latency, errors and outages of a store.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;

use crate::executor::World;
use crate::lock;
use crate::random::Seeded;

/// How often in a thousand times a store postpones optional work.
const BUSY_PER_MILLE: u64 = 300;

/// A bug planted into a store, for canaries: the checks must find it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planted {
    #[default]
    Nothing,
    /// Transactions do not look at their guards.
    NoGuards,
    /// Snapshots do not look at their guards.
    NoSnapshotGuards,
    /// Transactions of different processes share guards at the same time.
    NoExclusiveBegin,
    /// Processes that do no background work keep no indexes.
    NoEntries,
    /// Copies of a text index do not look whether deletions were forgotten that they lack.
    StaleCopies,
    /// Every process does all the background work.
    NoLeases,
    /// The cache answers before its rows are in the store.
    EarlyReplies,
    /// Commits are answered before they are synced.
    EarlyAnswers,
    /// A crash may keep a part of a transaction.
    TornTransactions,
}

/// The faults of one store. The default is perfect.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreFaults {
    /// The longest that a read takes.
    pub read_max: Duration,
    /// The longest that a group takes to be synced.
    pub sync_max: Duration,
    /// The longest that an answer takes after that.
    pub answer_max: Duration,
    /// How many commits in a thousand fail and write nothing.
    pub refused_per_mille: u64,
    /// How many commits in a thousand are written and yet reported as failed.
    pub lost_answer_per_mille: u64,
    /// How many reads in a thousand fail.
    pub failed_read_per_mille: u64,
    /// The mean time between two outages, in which everything fails; none means that there are none.
    pub outage_every: Option<Duration>,
    /// The longest outage.
    pub outage_max: Duration,
    /// Whether a commit that is reported as failed may be made later.
    pub late: bool,
    /// How many long snapshots in a thousand are refused.
    pub refused_long_per_mille: u64,
    /// Whether one process has the store to itself: then transactions lock nothing, and no commit comes late.
    pub is_alone: bool,
    /// Whether the store can hand over whole ranges.
    pub handover: bool,
    /// The most transactions of one group; 0 means any number.
    pub group_max: usize,
    pub planted: Planted,
}

impl StoreFaults {
    /// Random faults: for some seeds none at all, so that each kind is also seen alone.
    pub fn draw(random: &Seeded) -> Self {
        let micros = |longest: u64| Duration::from_micros(random.between(0, longest));
        let some = |most: u64| if random.chance(500) { random.between(0, most) } else { 0 };
        Self {
            is_alone: false,
            read_max: micros(*random.pick(&[50, 500, 20_000])),
            sync_max: micros(*random.pick(&[100, 2_000, 20_000])),
            answer_max: micros(1_000),
            refused_per_mille: some(30),
            lost_answer_per_mille: some(30),
            failed_read_per_mille: some(20),
            outage_every: random.chance(200).then(|| Duration::from_secs(1) + micros(5_000_000)),
            outage_max: micros(500_000),
            late: random.chance(500),
            refused_long_per_mille: some(500),
            handover: false,
            group_max: random.index(5),
            planted: Planted::Nothing,
        }
    }
}

/// The current faults of one store.
pub(crate) struct Weather {
    pub(crate) faults: StoreFaults,
    world: World,
    random: Seeded,
    /// When the next outage begins and ends.
    outage: Mutex<Option<(Duration, Duration)>>,
    /// Until when the disk does not answer, by a sabotage.
    out_until: Arc<Mutex<Duration>>,
}

impl Weather {
    pub(crate) fn new(world: &World, faults: StoreFaults, out_until: Arc<Mutex<Duration>>) -> Self {
        let random = world.random("weather");
        let outage = Mutex::default();
        let weather = Self { faults, world: world.clone(), random, outage, out_until };
        *weather.outage() = weather.next_outage();
        weather
    }

    fn outage(&self) -> std::sync::MutexGuard<'_, Option<(Duration, Duration)>> {
        lock(&self.outage)
    }

    fn next_outage(&self) -> Option<(Duration, Duration)> {
        let begin = self.world.now() + self.up_to(2 * self.faults.outage_every?);
        Some((begin, begin + self.up_to(self.faults.outage_max)))
    }

    pub(crate) fn is_out(&self) -> bool {
        let now = self.world.now();
        let mut outage = self.outage();
        if outage.is_some_and(|(_, end)| now >= end) {
            *outage = self.next_outage();
        }
        let forced = *lock(&self.out_until);
        now < forced || outage.is_some_and(|(begin, _)| now >= begin)
    }

    pub(crate) fn up_to(&self, longest: Duration) -> Duration {
        let micros = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX - 1);
        Duration::from_micros(self.random.between(0, micros))
    }

    /// Whether the store postpones optional work now.
    pub(crate) fn is_busy(&self) -> bool {
        self.random.chance(BUSY_PER_MILLE)
    }

    /// Those of a transaction that are looked at.
    pub(crate) fn guards(&self, guards: Vec<Bytes>) -> Vec<Bytes> {
        if self.faults.planted == Planted::NoGuards { Vec::new() } else { guards }
    }

    pub(crate) fn refuses_long(&self) -> bool {
        self.random.chance(self.faults.refused_long_per_mille)
    }

    pub(crate) fn fails_read(&self) -> bool {
        self.is_out() || self.random.chance(self.faults.failed_read_per_mille)
    }
}
