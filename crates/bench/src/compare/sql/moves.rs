//! A range moves from shard to shard under writes: how fast beside `pg_dump | pg_restore` of the same rows, how long writers
//! wait, and how fast it catches up with a burst of changes.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::{Options, Result};
use super::is_quick;
use super::world::{ROLE, World, shard};
use super::writers::Writers;
use crate::figures::{Latency, median, milliseconds};
use crate::report::Report;

const NAME: &str = "parcels";
const TABLE: &str = "CREATE TABLE parcel (id bigint PRIMARY KEY, n bigint NOT NULL, body text)";
/// Rows of about 1,050 bytes on disk: a GiB, and a tenth of it.
const ROWS: u64 = 1_000_000;
const ROWS_QUICK: u64 = 100_000;
const WRITES: u64 = 1_000;
/// How long writers are alone.
const ALONE: Duration = Duration::from_secs(10);
const ROUNDS: usize = 3;
/// How often a move is looked at.
const LOOK: Duration = Duration::from_millis(20);

const CAUGHT_UP_LEAST: f64 = 20_000.0;
const PAUSE_MS_MAX: f64 = 500.0;
const P99_SHARE_MAX: f64 = 2.0;

/// What one move was.
struct Moved {
    time: Duration,
    rows: u64,
    changes: u64,
    pause_ms: f64,
    retreats: u64,
    /// When changes were brought, and how many by then.
    seen: Vec<(Instant, u64)>,
}

pub(super) fn run(world: &World, options: &Options, report: &mut Report) -> Result {
    let rows = if is_quick(options) { ROWS_QUICK } else { ROWS };
    world.make_sharded(NAME, 2, TABLE)?;
    let map = json!({ "name": "parcels", "kind": "range", "key": ["bigint"], "on": "s1" });
    world.act(NAME, "add-map", &map)?;
    world.make_table(NAME, "parcel", "parcels", "id")?;
    let fill = format!(
        "INSERT INTO parcel SELECT n, 0, repeat(md5(n::text), 30) FROM generate_series(1, {rows}) n"
    );
    world.load(&shard(NAME, 1), &fill)?;
    world.load(&shard(NAME, 1), "VACUUM ANALYZE")?;
    let size = "SELECT pg_table_size('parcel') / 1048576";
    let size = world.postgres.psql(&shard(NAME, 1), size).map_err(|error| error.to_string())?;
    report.say(format_args!(
        "\nmoves of {rows} rows, {size} MiB, under {WRITES} writes a second through the endpoint"
    ));
    let update = "UPDATE parcel SET n = n + 1 WHERE id = $1";
    let writers = Writers::start(world.endpoint(), NAME, update, rows, WRITES);
    // Connections are opened, plans are made.
    std::thread::sleep(Duration::from_secs(2));
    let mut rounds = Rounds::default();
    let count = if is_quick(options) { 1 } else { ROUNDS };
    for round in 0..count {
        rounds.one(world, round, rows, &writers, report)?;
    }
    let (from, to) = if count % 2 == 0 { (1, 2) } else { (2, 1) };
    burst(world, from, to, rows, report)?;
    let (refused, why) = writers.stop()?;
    report.judge(format_args!("writes refused: {refused} {why}"), refused == 0);
    rounds.judge(report);
    Ok(())
}

/// The figures of all rounds.
#[derive(Default)]
struct Rounds {
    shares: Vec<f64>,
    slower: Vec<f64>,
    pauses: Vec<f64>,
}

impl Rounds {
    /// The writers alone, beside `pg_dump | pg_restore`, and beside the move.
    fn one(
        &mut self,
        world: &World,
        round: usize,
        rows: u64,
        writers: &Writers,
        report: &mut Report,
    ) -> Result {
        let (from, to) = if round.is_multiple_of(2) { (1, 2) } else { (2, 1) };
        let begun = Instant::now();
        std::thread::sleep(ALONE);
        let alone = writers.between(begun, Instant::now());
        let begun = Instant::now();
        let copied = dump(world, from, round)?;
        let beside = writers.between(begun, Instant::now());
        std::thread::sleep(Duration::from_secs(1));
        let begun = Instant::now();
        let moved = moved(world, to, || Ok(()))?;
        let during = writers.between(begun, Instant::now());
        if moved.rows < rows {
            return Err(format!("{} rows of {rows} were moved", moved.rows));
        }
        let rate = |time: Duration| rows as f64 / time.as_secs_f64();
        let (ours, theirs) = (rate(moved.time), rate(copied));
        report.say(format_args!(
            "round {}: moved in {:.1} s ({ours:.0} rows/s, {} changes, {} retreats), pause {:.0} ms; \
             pg_dump | pg_restore in {:.1} s ({theirs:.0} rows/s)",
            round + 1,
            moved.time.as_secs_f64(),
            moved.changes,
            moved.retreats,
            moved.pause_ms,
            copied.as_secs_f64(),
        ));
        for (name, latency) in
            [("alone", alone), ("beside pg_dump", beside), ("during the move", during)]
        {
            report.latency(&format!("writes {name}, round {}", round + 1), latency);
        }
        let p99 = |latency: Latency| milliseconds(latency.p99);
        self.shares.push(ours / theirs);
        self.slower.push(p99(during) / p99(alone));
        self.pauses.push(moved.pause_ms.max(0.0));
        Ok(())
    }

    fn judge(self, report: &mut Report) {
        let middle = |values: &[f64]| median(values.iter().copied());
        report.figure("rows/s, move / pg_dump | pg_restore", middle(&self.shares));
        report.at_most("writers' p99, during / alone", middle(&self.slower), P99_SHARE_MAX);
        let longest = self.pauses.iter().copied().fold(0.0, f64::max);
        report.at_most("pause, longest, ms", longest, PAUSE_MS_MAX);
    }
}

/// Moves everything, and does something once rows are being copied.
fn moved(world: &World, to: u32, meanwhile: impl FnOnce() -> Result) -> Result<Moved> {
    let body = json!({ "map": "parcels", "key": "1", "to": format!("s{to}") });
    let begun = Instant::now();
    let job = world.act(NAME, "move", &body)?["job"].as_u64().unwrap_or(0);
    let mut meanwhile = Some(meanwhile);
    let (mut seen, mut opened) = (Vec::new(), None);
    loop {
        let shown = world.job(NAME, job)?;
        let step = shown["step"].as_str().unwrap_or_default().to_owned();
        seen.push((Instant::now(), number(&shown, "changes")));
        if step != "prepare"
            && let Some(meanwhile) = meanwhile.take()
        {
            meanwhile()?;
        }
        // From here on the target has the range; deleting the source's rows keeps nobody waiting.
        if step == "retire" && opened.is_none() {
            opened = Some(Instant::now());
        }
        match shown["outcome"].as_str() {
            Some("done") => {
                return Ok(Moved {
                    time: opened.unwrap_or_else(Instant::now) - begun,
                    rows: number(&shown, "rows"),
                    changes: number(&shown, "changes"),
                    pause_ms: number(&shown, "pause_us") as f64 / 1e3,
                    retreats: number(&shown, "retreats"),
                    seen,
                });
            }
            Some(_) => return Err(format!("the move failed: {shown}")),
            None => std::thread::sleep(LOOK),
        }
    }
}

fn number(job: &Value, name: &str) -> u64 {
    job[name].as_u64().unwrap_or(0)
}

/// How fast a move catches up: a fifth of all rows is changed by one statement on the source while they are copied.
fn burst(world: &World, from: u32, to: u32, rows: u64, report: &mut Report) -> Result {
    let changes = rows / 5;
    let change = || {
        let update = format!("SET ROLE {ROLE}; UPDATE parcel SET n = n + 1 WHERE id <= {changes}");
        world.load(&shard(NAME, from), &update)
    };
    let moved = moved(world, to, change)?;
    // Between the first and the last look at which the number has grown by much, it grew as fast as it can.
    let growing = moved.seen.windows(2).filter(|two| two[1].1 > two[0].1);
    let times: Vec<(Instant, Instant)> = growing.map(|two| (two[0].0, two[1].0)).collect();
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return Err("the burst left no changes".to_owned());
    };
    let took = (last.1 - first.0).as_secs_f64();
    report.say(format_args!(
        "a burst of {changes} changes: {} caught up in {took:.1} s, {} retreats, pause {:.0} ms",
        moved.changes, moved.retreats, moved.pause_ms
    ));
    report.at_least("changes caught up a second", moved.changes as f64 / took, CAUGHT_UP_LEAST);
    report.at_most("pause after the burst, ms", moved.pause_ms, PAUSE_MS_MAX);
    Ok(())
}

/// Dumps the rows of a shard into a new database, as an operator would move them.
fn dump(world: &World, from: u32, round: usize) -> Result<Duration> {
    let text = |error: std::io::Error| error.to_string();
    let target = format!("restored_{round}");
    world.postgres.psql("postgres", &format!("CREATE DATABASE {target}")).map_err(text)?;
    world.postgres.psql(&target, TABLE).map_err(text)?;
    let port = world.postgres.port().to_string();
    let login = ["-h", "127.0.0.1", "-U", "postgres", "-p", &port];
    let begun = Instant::now();
    let mut dump = world.postgres.program("pg_dump");
    dump.args(login).args(["-Fc", "-Z0", "--data-only", "-t", "parcel"]).arg(shard(NAME, from));
    let mut dump = dump.stdout(Stdio::piped()).spawn().map_err(text)?;
    let mut restore = world.postgres.program("pg_restore");
    restore.args(login).args(["-d", &target]);
    let restore = restore.stdin(dump.stdout.take().map_or(Stdio::null(), Stdio::from));
    let restored = restore.status().map_err(text)?;
    let dumped = dump.wait().map_err(text)?;
    let took = begun.elapsed();
    world.postgres.psql("postgres", &format!("DROP DATABASE {target}")).map_err(text)?;
    match dumped.success() && restored.success() {
        true => Ok(took),
        false => Err("pg_dump | pg_restore failed".to_owned()),
    }
}
