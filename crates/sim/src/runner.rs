//! Runs seeds on all cores, and prints for each failure how to replay it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use lazuli_env::{BoxFuture, Random};

use crate::executor::World;
use crate::lock;
use crate::random::Seeded;
use crate::scenario::{Found, Scenario};

/// The result of one seed of one scenario.
#[derive(Debug)]
pub struct Report {
    pub scenario: &'static str,
    pub seed: u64,
    /// The hash of every scheduling decision and every commit.
    pub trace: u64,
    pub failure: Option<String>,
    /// The log, if requested.
    pub log: Vec<String>,
}

impl Report {
    /// The command that runs exactly this again.
    pub fn replay(&self) -> String {
        format!("cargo xtask sim --scenario {} --seed {}", self.scenario, self.seed)
    }
}

/// Runs one seed of one scenario.
pub fn run_one(scenario: &Scenario, seed: u64, keep_log: bool) -> Report {
    run(scenario.name, seed, keep_log, scenario.run)
}

/// Runs one seed of anything that runs in a world.
pub fn run(
    name: &'static str,
    seed: u64,
    keep_log: bool,
    main: impl FnOnce(World) -> BoxFuture<'static, Found>,
) -> Report {
    // Each scenario derives its own seed, so that more settings are covered.
    let world = World::new(Seeded::new(seed).fork(name).next_u64());
    if keep_log {
        world.keep_log();
    }
    let main = main(world.clone());
    let failure = match catch_unwind(AssertUnwindSafe(|| world.run(main))) {
        Ok(Ok(Ok(()))) => None,
        Ok(Ok(Err(found))) => Some(found),
        Ok(Err(stuck)) => Some(stuck.to_string()),
        Err(panic) => Some(format!("panic: {}", text_of(&*panic))),
    };
    let (trace, log) = (world.trace_hash(), world.take_log());
    Report { scenario: name, seed, trace, failure, log }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}

/// Runs the seeds from `start` on, each on every scenario given, and returns the failures ordered by scenario and seed.
pub fn run_many(scenarios: &[&'static Scenario], start: u64, seeds: u64) -> Vec<Report> {
    let next = AtomicU64::new(0);
    let failures = Mutex::new(Vec::new());
    let kinds = scenarios.len() as u64;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let job = next.fetch_add(1, Ordering::Relaxed);
                    if job >= seeds * kinds {
                        return;
                    }
                    let kind = usize::try_from(job % kinds).unwrap_or(0);
                    let report = run_one(scenarios[kind], start + job / kinds, false);
                    if report.failure.is_some() {
                        lock(&failures).push(report);
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap_or_else(|e| e.into_inner());
    failures.sort_by_key(|report| (report.scenario, report.seed));
    failures
}
