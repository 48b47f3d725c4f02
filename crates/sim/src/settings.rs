//! What differs from seed to seed, so that settings meet in combinations that no one would have written down.

use std::time::Duration;

use lazuli_engine::Settings as EngineSettings;
use lazuli_engine::lease::Leasing;

use crate::clock::ClockFaults;
use crate::faults::{Planted, StoreFaults};
use crate::points::{POINTS, RULE_POINTS, Sabotage};
use crate::random::Seeded;

#[derive(Clone, Debug)]
pub struct Settings {
    /// How many serve the shards at the same time.
    pub processes: u64,
    pub shards: u64,
    /// Of each table, at the start.
    pub partitions: u64,
    /// Of each workload.
    pub clients: u64,
    /// Requests of each client.
    pub rounds: u64,
    /// The longest pause of a client between two requests.
    pub think_micros: u64,
    /// The mean time between two crashes of a process; none means that it never crashes.
    pub crash_every: Option<Duration>,
    /// The mean time between two pauses of a process; none means that it is never paused.
    pub pause_every: Option<Duration>,
    /// How many requests in a thousand are cut off by their client.
    pub hang_up_per_mille: u64,
    pub clock: ClockFaults,
    /// Whether stores have faults besides crashes.
    pub store_faults: bool,
    /// Whether stores can hand over whole ranges.
    pub handover: bool,
    /// A bug in the stores of shards that must be found.
    pub planted: Planted,
    /// A point at which work is stopped.
    pub sabotage: Option<Sabotage>,
    pub engine: EngineSettings,
}

impl Settings {
    pub fn draw(random: &Seeded) -> Self {
        let skew_ms_max = *random.pick(&[0, 5, 1_000]);
        let jump_every = random.chance(300).then_some(Duration::from_secs(1));
        let crash_millis = *random.pick(&[0, 20, 100, 1_000]);
        let pause_millis = *random.pick(&[0, 0, 200, 5_000]);
        Self {
            processes: *random.pick(&[2, 2, 3]),
            shards: random.between(1, 4),
            partitions: random.between(1, 8),
            clients: random.between(1, 4),
            rounds: random.between(5, 25),
            think_micros: *random.pick(&[0, 1_000, 20_000]),
            crash_every: (crash_millis > 0).then(|| Duration::from_millis(crash_millis)),
            pause_every: (pause_millis > 0).then(|| Duration::from_millis(pause_millis)),
            hang_up_per_mille: *random.pick(&[0, 0, 30]),
            clock: ClockFaults { skew_ms_max, jump_every },
            store_faults: random.chance(700),
            handover: random.chance(500),
            planted: Planted::Nothing,
            sabotage: None,
            engine: EngineSettings {
                deriving: Default::default(),
                batch_transactions: *random.pick(&[1, 2, 512]),
                fan_out_parallel: random.between(1, 4) as usize,
                sweep_interval: Duration::from_millis(*random.pick(&[10, 1_000])),
                sweep_items: *random.pick(&[1, 1_000]),
                job_interval: Duration::from_millis(*random.pick(&[10, 1_000])),
                moves_at_once: random.between(1, 4) as usize,
                reconcile_interval: Duration::from_millis(*random.pick(&[50, 30_000])),
                latencies: true,
                outside: lazuli_shapes::blob::outside(),
                // Under leases all processes do background work, otherwise the first one alone does. A lease is of use
                // only to processes that live for some heartbeats.
                leasing: match crash_millis {
                    0 | 1_000 => *random.pick(&[Leasing::Alone, Leasing::Shared]),
                    _ => Leasing::Alone,
                },
                heartbeat: Duration::from_millis(match crash_millis {
                    0 => *random.pick(&[5, 100, 2_000]),
                    _ => *random.pick(&[5, 50]),
                }),
            },
        }
    }

    /// The same, but all clients use the same few keys at the same time.
    #[must_use]
    pub fn crowded(self) -> Self {
        Self { shards: 1, partitions: 1, clients: 6, rounds: 30, think_micros: 0, ..self }
    }

    /// The same on several shards, so that partitions can move.
    #[must_use]
    pub fn spread(self) -> Self {
        Self { shards: self.shards.max(2), ..self }
    }

    /// The same with many partitions that leave each of several shards together, under many clients.
    #[must_use]
    pub fn drained(self) -> Self {
        let engine = EngineSettings { moves_at_once: 8, ..self.engine.clone() };
        let (partitions, clients) = (self.partitions.max(4), self.clients.max(3));
        Self { partitions, clients, engine, ..self.spread() }
    }

    /// The same on several shards, with a point at which work is stopped.
    #[must_use]
    pub fn sabotaged(self, random: &Seeded) -> Self {
        Self { sabotage: Some(Sabotage::draw(random)), ..self.spread() }
    }

    /// The same, mostly with a point of a change of rules.
    #[must_use]
    pub fn stopped_in_rules(self, random: &Seeded) -> Self {
        let points = if random.chance(700) { RULE_POINTS } else { POINTS };
        Self { sabotage: Some(Sabotage::draw_of(random, points)), ..self.spread() }
    }

    /// One process that has its stores to itself: they have no locks, as the embedded store.
    #[must_use]
    pub fn alone(self) -> Self {
        let engine = EngineSettings { leasing: Leasing::Alone, ..self.engine.clone() };
        Self { processes: 1, engine, ..self }
    }

    /// Several processes on several shards, under leases, and no faults.
    #[must_use]
    pub fn quiet(self) -> Self {
        let heartbeat = Duration::from_millis(100);
        let engine = EngineSettings { leasing: Leasing::Shared, heartbeat, ..self.engine.clone() };
        Self {
            crash_every: None,
            pause_every: None,
            hang_up_per_mille: 0,
            store_faults: false,
            engine,
            ..self.spread()
        }
    }

    #[must_use]
    pub fn with_bug(self, planted: Planted) -> Self {
        let engine = match planted {
            Planted::NoLeases => EngineSettings { leasing: Leasing::Alone, ..self.engine },
            _ => self.engine,
        };
        Self { planted, engine, ..self }
    }

    /// Whether all processes do background work, or only the first.
    pub fn all_work(&self) -> bool {
        self.engine.leasing == Leasing::Shared || self.planted == Planted::NoLeases
    }

    /// The faults of the next store that is opened.
    pub fn store_faults(&self, random: &Seeded) -> StoreFaults {
        let drawn = StoreFaults::draw(random);
        let faults = if self.store_faults { drawn } else { StoreFaults::default() };
        let is_alone = self.processes == 1;
        let late = faults.late && !is_alone;
        StoreFaults { planted: self.planted, handover: self.handover, is_alone, late, ..faults }
    }
}
