//! `cargo xtask test`: everything that CI runs, one step after another.
//!
//! Cheap steps come first, so that small mistakes are told in seconds. The first failure ends the run; the summary says which
//! steps passed and how long each took, which one failed and which were not reached.

use std::process::Command;
use std::time::Instant;

use crate::arguments::Arguments;
use crate::chaos::{self, Fate, Target};
use crate::conformance::Sdk;
use crate::workspace::{Workspace, cargo};
use crate::{
    Failure, Result, azure_storage, beside, bullmq, cache_moving, conformance, crash, debian,
    differential_cache, dist, fuzz, portal, process, programs, python_programs, search_lucene, sim,
    tidy, tour,
};

/// Seeds of each scenario that the simulator runs in the test; `cargo xtask sim --seeds N` runs more.
const SIM_SEEDS: u64 = 40;

/// Rounds of kill -9 in the test; `cargo xtask crash --rounds N` does more.
const CRASH_ROUNDS: u64 = 5;

/// Seconds of chaos in the test, with kills and without; `cargo xtask chaos --minutes N` goes on for longer.
const CHAOS_SECONDS: u64 = 25;

/// The same with shards of both kinds.
const MIXED_SECONDS: u64 = 15;

/// Fuzzed requests in the test; `cargo xtask fuzz --requests N` sends more.
const FUZZED_REQUESTS: u64 = 3_000;

const POSTGRES_STORE: &str = "lazuli-store-postgres";
const SQL_CONTROL: &str = "lazuli-sql-control";

struct Step {
    name: &'static str,
    /// The front that it is about; empty if it is about all.
    front: &'static str,
    /// The seconds that it may take on two cores, from nothing: with what it compiles and fetches.
    budget: u64,
    proves: &'static str,
    run: fn() -> Result,
    /// Whether it mostly waits, so that others like it can run at the same time.
    waits: bool,
    /// Whether it runs only when it is asked for: it takes long, or has yet to show that it passes on a new machine.
    on_demand: bool,
}

impl Step {
    const fn waiting(self) -> Self {
        Self { waits: true, ..self }
    }

    const fn on_demand(self) -> Self {
        Self { on_demand: true, ..self }
    }
}

const fn step(
    name: &'static str,
    front: &'static str,
    budget: u64,
    proves: &'static str,
    run: fn() -> Result,
) -> Step {
    Step { name, front, budget, proves, run, waits: false, on_demand: false }
}

/// Name, front, budget in seconds, what it proves.
#[rustfmt::skip]
const STEPS: &[Step] = &[
    step("fmt", "", 10, "the code is laid out by rustfmt", fmt),
    step("clippy", "", 170, "no lint has anything to say", clippy),
    step("tidy", "", 10, "layers, sizes, names and documents are in order", tidy::check),
    step("postgres", "", 100, "a shard on PostgreSQL keeps the contract, through lost connections, crashes and failovers", postgres),
    step("cargo-test", "", 1150, "unit, property, store suite and integration tests pass", cargo_test),
    step("fuzz-targets", "", 40, "every target of cargo fuzz compiles, on stable", fuzz::targets),
    step("examples", "", 20, "the examples run to their end", examples),
    step("sim", "", 65, "no seed finds a lost, doubled or torn write", || sim::seeds(SIM_SEEDS)),
    step("tables-python", "tables", 40, "the official Python SDK works on Tables", || conformance::judge("tables", Sdk::Python, "ours")),
    step("tour", "", 10, "the tour of README.md prints what it says", tour::take),
    step("dist", "", 30, "archive and Debian package can be installed, used for the tour, and removed", dist::try_out),
    step("tables-js", "tables", 20, "the official JavaScript SDK works on Tables", || conformance::judge("tables", Sdk::Js, "ours")),
    step("tables-azurite", "tables", 25, "the same tests say the same of the emulator, but for the known gaps", || twins("tables")),
    step("queues-python", "queues", 15, "the official Python SDK works on Queues", || conformance::judge("queues", Sdk::Python, "ours")),
    step("queues-js", "queues", 10, "the official JavaScript SDK works on Queues", || conformance::judge("queues", Sdk::Js, "ours")),
    step("queues-azurite", "queues", 20, "the same tests say the same of the emulator, but for the known gaps", || twins("queues")),
    step("blobs-python", "blobs", 40, "the official Python SDK works on Blobs", || conformance::judge("blobs", Sdk::Python, "ours")),
    step("blobs-js", "blobs", 30, "the official JavaScript SDK works on Blobs", || conformance::judge("blobs", Sdk::Js, "ours")),
    step("blobs-azurite", "blobs", 40, "the same tests say the same of the emulator, but for the known gaps", || twins("blobs")),
    step("documents-python", "documents", 25, "the official Python SDK works on Documents", || conformance::judge("documents", Sdk::Python, "ours")),
    step("documents-js", "documents", 20, "the official JavaScript SDK works on Documents", || conformance::judge("documents", Sdk::Js, "ours")),
    step("kafka-python", "kafka", 25, "the usual Python client of Kafka works on hubs", || conformance::judge("kafka", Sdk::Python, "ours")).waiting(),
    step("kafka-js", "kafka", 65, "the usual JavaScript client of Kafka works on hubs", || conformance::judge("kafka", Sdk::Js, "ours")).waiting(),
    step("hub-python", "bus", 75, "the official Python SDK works on event hubs", || conformance::judge("hub", Sdk::Python, "ours")).waiting(),
    step("hub-js", "bus", 65, "the official JavaScript SDK works on event hubs", || conformance::judge("hub", Sdk::Js, "ours")).waiting(),
    step("bus-python", "bus", 100, "the official Python SDK works on the bus", || conformance::judge("bus", Sdk::Python, "ours")).waiting(),
    step("bus-js", "bus", 30, "the official JavaScript SDK works on the bus", || conformance::judge("bus", Sdk::Js, "ours")).waiting(),
    step("search-python", "search", 20, "the official Python SDK works on Search", || conformance::judge("search", Sdk::Python, "ours")).waiting(),
    step("search-js", "search", 15, "the official JavaScript SDK works on Search", || conformance::judge("search", Sdk::Js, "ours")).waiting(),
    step("search-lucene", "search", 60, "tokens, parsed queries and ranks of the search engine are those of Lucene, but for the listed differences", search_lucene::compare).on_demand(),
    step("crash", "tables", 15, "kill -9 loses no answered write and tears no transaction", || crash::rounds("tables", CRASH_ROUNDS)),
    step("crash-queues", "queues", 15, "kill -9 loses no message, and gives none to two or too late or out of order", || crash::rounds("queues", CRASH_ROUNDS)),
    step("crash-blobs", "blobs", 15, "kill -9 loses and tears no committed blob, and all garbage goes", || crash::rounds("blobs", CRASH_ROUNDS)),
    step("crash-bus", "bus", 30, "kill -9 loses no message, gives none to two, keeps sessions in order and transactions whole", || crash::rounds("bus", CRASH_ROUNDS)).on_demand(),
    step("crash-hub", "bus", 30, "kill -9 leaves logs without gap, repetition or change of order", || crash::rounds("hub", CRASH_ROUNDS)).on_demand(),
    step("cache-python", "cache", 15, "redis-py works on the cache", || conformance::judge("cache", Sdk::Python, "ours")).waiting(),
    step("cache-js", "cache", 15, "node-redis and ioredis work on the cache", || conformance::judge("cache", Sdk::Js, "ours")).waiting(),
    step("cache-bullmq", "cache", 40, "BullMQ's queues, which are Lua scripts, work on the cache", bullmq::run).waiting().on_demand(),
    step("cache-differential", "cache", 60, "random commands get the replies of Debian's redis-server", differential_cache::step).on_demand(),
    step("cache-moving", "cache", 60, "keys come from Debian's redis-server and go to it, by files and by replication under load", cache_moving::step).on_demand(),
    step("cache-crash", "cache", 15, "kill -9 loses no answered write of a cache that is written before it answers, and tears no transaction", || crash::rounds("cache", CRASH_ROUNDS)),
    step("cache-crash-everysec", "cache", 30, "kill -9 loses at most about a second of a cache that is written every second", || crash::rounds("cache-everysec", CRASH_ROUNDS)).on_demand(),
    step("crash-documents", "documents", 20, "kill -9 loses no item, tears no batch, and index and change feeds agree with the items", || crash::rounds("documents", CRASH_ROUNDS)),
    step("crash-search", "search", 25, "kill -9 loses no document of an index, doubles none, and counts stay exact while slices move", || crash::rounds("search", CRASH_ROUNDS)).on_demand(),
    step("chaos", "", 65, "splits, merges, moves and kill -9 lose, double and tear nothing of the SDKs' load", || chaos::go_on_for(CHAOS_SECONDS, Target::Alone, Fate::Killed, None)),
    step("chaos-unharmed", "", 60, "SDK clients need no retry while partitions are split, merged and moved", || chaos::go_on_for(CHAOS_SECONDS, Target::Alone, Fate::Unharmed, None)),
    step("fleet-sdks", "", 80, "the official SDKs work on a fleet, every request on another node", fleet_sdks),
    step("mixed-chaos", "", 45, "partitions that move between a folder and a database under kill -9 lose nothing", || chaos::go_on_for(MIXED_SECONDS, Target::Mixed, Fate::Killed, None)),
    step("fleet-chaos", "", 75, "killed and stopped nodes, failovers and cut networks lose, double and tear nothing of a fleet", || chaos::go_on_for(CHAOS_SECONDS, Target::Fleet, Fate::Killed, None)),
    step("object-store", "blobs", 50, "the Azure client of the object_store crate works on Blobs", programs::object_store),
    step("s3", "blobs", 20, "large blobs of a fleet are kept in a service that speaks S3", python_programs::s3).on_demand(),
    step("rclone", "blobs", 15, "rclone brings a tree of 5,000 files to Blobs and back", programs::rclone),
    step("azure-storage", "", 10, "the JavaScript SDK before today's works on Tables, Queues and Blobs", azure_storage::run),
    step("emulators", "", 20, "the connection strings of the emulators and the code of the services' pages work on the default ports", python_programs::emulators),
    step("adlfs", "blobs", 35, "pandas and pyarrow keep Parquet files on Blobs, through adlfs and pyarrow's own client", python_programs::adlfs),
    step("sql-moves", "sql", 90, "rows of sharded databases move under writers and kills without loss, and shards refuse rows of others", sql_moves).on_demand(),
    step("sql-drivers", "sql", 40, "psql, pgbench, psycopg, asyncpg, SQLAlchemy, Alembic and pg work on the SQL endpoint", python_programs::sql_drivers),
    step("sql-differential", "sql", 45, "random queries over three shards are answered as by one database, or refused", python_programs::sql_differential).on_demand(),
    step("sql-chaos", "sql", 120, "splits, moves, kills and crashes of shards lose, double and tear nothing of a sharded database", || chaos::sql(CHAOS_SECONDS, None)).on_demand(),
    step("portal", "", 120, "a browser gets through the portal, safely and with a screen reader", portal::all),
    step("fuzz", "", 15, "no request makes the server fail, panic or grow", || fuzz::requests(FUZZED_REQUESTS)),
];

pub(crate) fn run(mut arguments: Arguments) -> Result {
    let only = arguments.value("--only")?;
    let front = arguments.value("--front")?;
    let list = arguments.flag("--list");
    arguments.finish()?;
    let is_asked = only.is_some() || front.is_some();
    let is_chosen = |step: &&Step| {
        only.as_ref().is_none_or(|name| step.name == name)
            && front.as_ref().is_none_or(|front| step.front == front)
            && (is_asked || list || !step.on_demand)
    };
    let chosen: Vec<&Step> = STEPS.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        return Err(Failure::Usage(format!(
            "no such step or front; --only takes one of: {}; --front a front that some are about",
            names.join(", ")
        )));
    }
    if list {
        for step in chosen {
            println!("{:<15} {:<7} {:>4} s  {}", step.name, step.front, step.budget, step.proves);
        }
        return Ok(());
    }
    run_steps(&chosen)
}

/// Runs the steps up to the first failure. Neighbours that mostly wait run at the same time. A step over its budget is named at
/// the end and does not fail: budgets are estimates, and machines differ.
fn run_steps(steps: &[&Step]) -> Result {
    let mut report = Report::default();
    let begun = Instant::now();
    let mut rest = steps;
    while let Some((step, after)) = rest.split_first() {
        if report.failed.is_some() {
            report.summary.push(format!("  not run  {}", step.name));
            rest = after;
            continue;
        }
        let together = rest.iter().take_while(|step| step.waits).count();
        if together < 2 {
            println!("\n=== {}: {}", step.name, step.proves);
            let start = Instant::now();
            let result = (step.run)();
            report.add(step, start.elapsed().as_secs_f64(), result);
            rest = after;
            continue;
        }
        let (group, after) = rest.split_at(together);
        let names: Vec<&'static str> = group.iter().map(|step| step.name).collect();
        println!("\n=== {}, {} at once", names.join(", "), beside::AT_ONCE);
        for ended in beside::run(&names)? {
            let step = group.iter().find(|step| step.name == ended.name);
            if let Some(step) = step {
                report.add(step, ended.seconds, ended.result);
            }
        }
        rest = after;
    }
    report.print(begun.elapsed().as_secs_f64())
}

/// What became of the steps so far.
#[derive(Default)]
struct Report {
    summary: Vec<String>,
    passed: usize,
    /// The first one that failed.
    failed: Option<&'static str>,
    slow: Vec<(&'static str, f64, u64)>,
}

impl Report {
    fn add(&mut self, step: &Step, seconds: f64, result: Result) {
        let outcome = match result {
            Ok(()) => {
                self.passed += 1;
                println!("=== {} passed in {seconds:.1} s", step.name);
                "passed"
            }
            Err(Failure::Failed(message) | Failure::Usage(message)) => {
                println!("=== {} FAILED after {seconds:.1} s: {message}", step.name);
                self.failed.get_or_insert(step.name);
                "FAILED"
            }
        };
        let budget = step.budget;
        self.summary
            .push(format!("  {outcome}   {:<15} {seconds:>7.1} s of {budget:>4} s", step.name));
        if seconds > budget as f64 {
            self.slow.push((step.name, seconds, budget));
        }
    }

    fn print(self, seconds: f64) -> Result {
        println!("\n=== summary\n{}", self.summary.join("\n"));
        println!("  total    {:<15} {seconds:>7.1} s", "");
        for (name, seconds, budget) in &self.slow {
            println!("=== OVER BUDGET: {name} took {seconds:.1} s, its budget is {budget} s");
        }
        println!("{} passed, {} failed", self.passed, usize::from(self.failed.is_some()));
        match self.failed {
            Some(name) => Err(Failure::failed(format!("step {name}"))),
            None => Ok(()),
        }
    }
}

fn fmt() -> Result {
    process::run(cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Result {
    let words = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    process::run(cargo().args(words))
}

fn cargo_test() -> Result {
    // There are no tests in documentation; looking for them would take rustdoc through every crate.
    // Steps of their own have those of PostgreSQL and of sharded SQL.
    let words = ["test", "--workspace", "--locked", "--all-targets", "--exclude", POSTGRES_STORE];
    process::run(cargo().args(words).args(["--exclude", SQL_CONTROL]))
}

/// Comes before all other tests: some of them need a server too.
fn postgres() -> Result {
    // What is not there is skipped by the tests.
    debian::has_postgres()?;
    debian::has("pgbouncer", "--version")?;
    debian::has("openssl", "version")?;
    process::run(cargo().args(["test", "--locked", "--package", POSTGRES_STORE]))
}

/// Shards on a private PostgreSQL server; processes that lead moves are ended at every step.
fn sql_moves() -> Result {
    debian::has_postgres()?;
    process::run(cargo().args(["test", "--locked", "--package", SQL_CONTROL]))
}

/// Runs every example of every crate; one that ends with anything but exit code 0 fails.
fn examples() -> Result {
    let workspace = Workspace::load()?;
    for (package, example) in workspace.targets("example") {
        println!("--- example {} of {}", example.name, package.name);
        process::run(&mut Command::new(workspace.example(&example.name)?))?;
    }
    Ok(())
}

/// Each front by one SDK, Documents by both, on one fleet. What is Lazuli's own is judged by both SDKs on a server that is alone.
fn fleet_sdks() -> Result {
    let trials = [
        ("tables", Sdk::Js),
        ("queues", Sdk::Js),
        ("blobs", Sdk::Js),
        ("documents", Sdk::Js),
        ("documents", Sdk::Python),
    ];
    conformance::judge_each(&trials, "fleet")
}

/// Both SDKs on the emulator.
fn twins(front: &str) -> Result {
    conformance::judge(front, Sdk::Python, "azurite")?;
    conformance::judge(front, Sdk::Js, "azurite")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_ends_the_run() {
        let good = step("good", "", 1, "", || Ok(()));
        let bad = step("bad", "", 1, "", || Err(Failure::failed("broken")));
        let never = step("never", "", 1, "", || panic!("it must not be reached"));
        assert!(run_steps(&[&good, &good]).is_ok());
        let Err(Failure::Failed(message)) = run_steps(&[&good, &bad, &never]) else {
            panic!("a failed step must fail the run");
        };
        assert_eq!(message, "step bad");
    }

    #[test]
    fn a_step_over_its_budget_does_not_fail() {
        let slow = step("slow", "", 0, "", || Ok(()));
        assert!(run_steps(&[&slow]).is_ok());
    }

    /// The fronts that are planned, and what each may take: its compilation, its SDKs on both targets, its kills.
    const FRONTS_TO_COME: u64 = 2;
    const FRONT_SECONDS: u64 = 110;
    /// What everything on PostgreSQL may take beside.
    const FLEET_SECONDS: u64 = 6 * 60;

    #[test]
    fn the_budgets_leave_room_for_the_fronts_to_come() {
        let (waiting, working): (Vec<&Step>, Vec<&Step>) =
            STEPS.iter().filter(|step| !step.on_demand).partition(|step| step.waits);
        let sum = |steps: &[&Step]| -> u64 { steps.iter().map(|step| step.budget).sum() };
        // Steps that wait share their time; the last ones of a group have it to themselves.
        let sum = sum(&working) + sum(&waiting) / (beside::AT_ONCE as u64 - 1);
        let most = 45 * 60 + FLEET_SECONDS;
        assert!(sum + FRONTS_TO_COME * FRONT_SECONDS <= most, "{sum} s today");
        assert!(STEPS.iter().filter(|step| step.front == "blobs").count() > 3);
    }

    #[test]
    fn an_unknown_step_or_front_is_wrong_usage() {
        for option in ["--only", "--front"] {
            let words = [option, "no-such-thing"].map(String::from);
            assert!(matches!(run(Arguments::new(words.into_iter())), Err(Failure::Usage(_))));
        }
    }
}
