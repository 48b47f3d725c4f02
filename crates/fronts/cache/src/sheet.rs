//! What the cache tells people of itself: memory, hits, commands, slots by shard, the biggest and the most used keys.
//!
//! Commands are too many to be counted one by one where all fronts count, so the sums of each second are handed over.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lazuli_keyspace::{Found, SLOTS, Shelf, Survey};
use lazuli_net::{Cell, Outcome, Section};

use crate::command::TABLE;
use crate::server::Server;

/// How many keys of each kind are named.
const KEYS_NAMED: usize = 20;
/// How old what is known of the keys may be before they are looked at again.
const SURVEY_AGE_MAX: Duration = Duration::from_secs(5);

/// What was handed over of one command.
#[derive(Debug, Default, Clone, Copy)]
struct Told {
    calls: u64,
    micros: u64,
    failed: u64,
}

type Surveyed = Option<(Instant, Arc<Survey>)>;

/// What is kept between one look and the next.
pub(crate) struct Sheet {
    told: Mutex<Vec<Told>>,
    surveyed: Mutex<Surveyed>,
}

impl Default for Sheet {
    fn default() -> Self {
        let told = Mutex::new(vec![Told::default(); TABLE.commands.len()]);
        Self { told, surveyed: Mutex::default() }
    }
}

impl Server {
    /// Hands over what commands have counted since the last time.
    pub(crate) fn tell_counts(&self) {
        let mut told = self.sheet.told.lock().unwrap_or_else(PoisonError::into_inner);
        let read = |it: &AtomicU64| it.load(Ordering::Relaxed);
        let counted = self.stats.by_command.iter().zip(&TABLE.commands).zip(told.iter_mut());
        for ((counts, command), told) in counted {
            // What was refused before it ran is counted apart from the calls.
            let rejected = read(&counts.rejected);
            let now = Told {
                calls: read(&counts.calls) + rejected,
                micros: read(&counts.micros),
                failed: read(&counts.failed) + rejected,
            };
            let calls = now.calls.saturating_sub(told.calls);
            if calls == 0 {
                continue;
            }
            let failed = now.failed.saturating_sub(told.failed).min(calls);
            let each = Duration::from_micros(now.micros.saturating_sub(told.micros) / calls);
            for (outcome, times) in
                [(Outcome::Ok, calls - failed), (Outcome::Refused("error"), failed)]
            {
                if times > 0 {
                    self.metrics.observe_many(command.name, outcome, times, each);
                }
            }
            *told = now;
        }
    }

    /// The sheet as it is now.
    pub(crate) async fn sheet(self: Arc<Self>) -> Vec<Section> {
        let survey = self.clone().survey().await;
        let mut sections = vec![self.memory(&survey), self.traffic()];
        sections.push(match self.shelf() {
            Some(shelf) => slots(shelf).await,
            None => {
                let figures = vec![
                    ("Slots", Cell::Count(u64::from(SLOTS))),
                    ("Where", Cell::text("in the memory of this process")),
                ];
                Section::Figures { title: "Slots", figures }
            }
        });
        sections.push(biggest(&survey));
        sections.push(hottest(&survey, self.keyspace.policy().is_by_frequency()));
        sections
    }

    fn shelf(&self) -> Option<&Arc<Shelf>> {
        let clustered = self.cluster.as_ref().map(crate::cluster::Cluster::shelf);
        clustered.or_else(|| self.keyspace.shelf())
    }

    /// What was found not long ago, or else now, on a thread of its own: there may be many keys.
    async fn survey(self: Arc<Self>) -> Arc<Survey> {
        let known = self.sheet.surveyed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((at, survey)) = known
            && at.elapsed() < SURVEY_AGE_MAX
        {
            return survey;
        }
        let keyspace = self.keyspace.clone();
        let looked = tokio::task::spawn_blocking(move || keyspace.survey(KEYS_NAMED)).await;
        let survey = Arc::new(looked.unwrap_or_default());
        let mut surveyed = self.sheet.surveyed.lock().unwrap_or_else(PoisonError::into_inner);
        *surveyed = Some((Instant::now(), survey.clone()));
        survey
    }

    fn memory(&self, survey: &Survey) -> Section {
        let keyspace = &self.keyspace;
        let (used, limit) = (keyspace.used_bytes(), keyspace.memory_max());
        let peak = self.stats.peak_bytes.load(Ordering::Relaxed).max(used);
        let figures = vec![
            ("Used", Cell::Bytes(used)),
            ("Peak", Cell::Bytes(peak)),
            ("Limit", if limit == 0 { Cell::text("none") } else { Cell::Bytes(limit) }),
            ("Used of the limit", of(used, limit)),
            ("Policy", Cell::text(keyspace.policy().name())),
            ("Persistence", Cell::text(keyspace.promise())),
            ("Keys", Cell::Count(survey.keys as u64)),
            ("With an expiry", Cell::Count(survey.expiring as u64)),
        ];
        Section::Figures { title: "Memory", figures }
    }

    fn traffic(&self) -> Section {
        let now_ms = self.keyspace.now_ms();
        let counts = self.keyspace.space_of_all(0, now_ms).totals();
        let read = |it: &AtomicU64| it.load(Ordering::Relaxed);
        let figures = vec![
            ("Commands", Cell::Count(read(&self.stats.commands))),
            ("Now", Cell::Rate(self.stats.commands_per_second() as f64)),
            ("Hit ratio", of(counts.hits, counts.hits + counts.misses)),
            ("Hits", Cell::Count(counts.hits)),
            ("Misses", Cell::Count(counts.misses)),
            ("Expired", Cell::Count(counts.expired)),
            ("Evicted", Cell::Count(counts.evicted)),
            ("Clients that wait", Cell::Count(self.waiters.count() as u64)),
        ];
        Section::Figures { title: "Commands", figures }
    }
}

/// A part of a whole; of nothing it is not known.
fn of(part: u64, whole: u64) -> Cell {
    if whole == 0 { Cell::None } else { Cell::Share(part as f64 / whole as f64) }
}

/// The slots that each shard has, in the order of the slots.
async fn slots(shelf: &Shelf) -> Section {
    let (map, note) = match shelf.map().await {
        Ok(map) => (map, String::new()),
        Err(error) => (Vec::new(), format!("The map cannot be read: {error}")),
    };
    let rows = map.into_iter().map(|(first, last, shard)| {
        let slots = u64::from(last - first) + 1;
        vec![
            Cell::text(format!("{first} to {last}")),
            Cell::Shard(u64::from(shard.0)),
            Cell::Count(slots),
            of(slots, u64::from(SLOTS)),
        ]
    });
    let columns = vec!["Slots", "Shard", "Number", "Share"];
    Section::Table { title: "Slots by shard", columns, rows: rows.collect(), note }
}

fn biggest(survey: &Survey) -> Section {
    let columns = vec!["Key", "Database", "Type", "Memory"];
    let row = |it: &Found| [named(it), vec![Cell::Bytes(it.bytes)]].concat();
    let rows = survey.biggest.iter().map(row).collect();
    Section::Table { title: "Biggest keys", columns, rows, note: looked(survey) }
}

fn hottest(survey: &Survey, are_counted: bool) -> Section {
    let columns = vec!["Key", "Database", "Type", "Uses, logarithmic"];
    let row = |it: &Found| [named(it), vec![Cell::Count(u64::from(it.uses))]].concat();
    let rows = survey.hottest.iter().map(row).collect();
    let note = match are_counted {
        true => looked(survey),
        false => "Uses of keys are counted under the policies by frequency: \
             CONFIG SET maxmemory-policy allkeys-lfu."
            .to_owned(),
    };
    Section::Table { title: "Hottest keys", columns, rows, note }
}

fn named(found: &Found) -> Vec<Cell> {
    vec![
        Cell::text(String::from_utf8_lossy(&found.key)),
        Cell::Count(found.database as u64),
        Cell::text(found.type_name),
    ]
}

fn looked(survey: &Survey) -> String {
    match survey.looked < survey.keys {
        true => format!("A sample: {} of {} keys were looked at.", survey.looked, survey.keys),
        false => String::new(),
    }
}
