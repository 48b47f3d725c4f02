//! Moving and splitting partitions that are in use, on the embedded store, with every answered write on disk.
//!
//! A move is compared with a plain copy of the same bytes on the same disk, and those who write meanwhile with
//! themselves a moment before. Both happen in every round, so that other load on the machine affects both.

mod plain;
mod round;
mod splits;
mod world;
mod writers;

use lazuli_shardmap::MapReason;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lazuli_engine::{MoveOptions, Phase};
use lazuli_store::{Error, Result};

use crate::figures::{median, milliseconds, resident_bytes};
use crate::report::Report;
use round::Round;
use world::World;
use writers::Writers;

/// A move brings over at least this share of the bytes that a plain copy does in the same time.
pub const RATE_SHARE_LEAST: f64 = 0.5;
/// The slowest hundredth of the writes takes at most so many times as long as before the move.
pub const P99_TIMES_MAX: f64 = 2.0;
/// No write waits for longer.
pub const PAUSE_MS_MAX: f64 = 500.0;
/// A split in place takes at most this, however large the partition is.
pub const SPLIT_MS_MAX: f64 = 50.0;

/// How much is measured.
#[derive(Clone, Debug)]
pub struct Size {
    /// What the partition holds, in keys and values.
    pub bytes: u64,
    pub writes_per_second: u64,
    pub rounds: usize,
    /// How long all rests between two things that are measured.
    pub calm: Duration,
    /// How long writers are measured before a move: longer than one takes, so that what the machine does for a moment at
    /// times does not make for a high figure to be compared with.
    pub before: Duration,
    /// The items of the partitions that are split.
    pub splits: Vec<u64>,
    /// Whether a file may be a table of two shards.
    pub shares_tables: bool,
}

impl Size {
    /// What the bounds are for.
    pub fn full() -> Self {
        Self {
            bytes: 1 << 30,
            writes_per_second: 2_000,
            rounds: 5,
            calm: Duration::from_secs(5),
            before: Duration::from_secs(10),
            splits: vec![1_000_000, 10_000_000],
            shares_tables: true,
        }
    }

    /// With the largest partition of all too, which takes minutes to fill.
    pub fn huge(mut self) -> Self {
        self.splits.push(100_000_000);
        self
    }

    /// With shards that cannot share files, as on file systems of their own.
    pub fn apart(self) -> Self {
        Self { shares_tables: false, ..self }
    }

    /// One move, for those who want to see quickly what a change does.
    pub fn quick(self) -> Self {
        let calm = Duration::from_secs(2);
        Self { rounds: 1, calm, before: calm, splits: vec![], ..self }
    }

    /// No moves.
    pub fn only_splits(self) -> Self {
        Self { rounds: 0, ..self }
    }

    /// Enough to see that it runs.
    pub fn tiny() -> Self {
        Self {
            bytes: 1 << 20,
            writes_per_second: 200,
            rounds: 1,
            calm: Duration::from_millis(100),
            before: Duration::from_millis(100),
            splits: vec![1_000],
            shares_tables: true,
        }
    }
}

/// How often it is looked how far a move has come.
const LOOK: Duration = Duration::from_millis(5);
/// When a run is given up.
const MOVE_TIME_MAX: Duration = Duration::from_secs(600);

/// Runs everything in `folder`, which must be on the disk that counts.
pub async fn run(folder: &Path, size: Size) -> Result<Report> {
    let mut report = Report::default();
    let mut slowest = Duration::ZERO;
    for items in &size.splits {
        let split = splits::measure(&folder.join("split"), *items).await?;
        // A run takes minutes: this shows that it makes progress.
        eprintln!("{split}");
        slowest = slowest.max(split.cut);
        report.say(split);
    }
    if !size.splits.is_empty() {
        report.at_most("slowest split, ms", milliseconds(slowest), SPLIT_MS_MAX);
    }
    if size.rounds > 0 {
        moves(folder, &size, &mut report).await?;
    }
    Ok(report)
}

async fn moves(folder: &Path, size: &Size, report: &mut Report) -> Result<()> {
    let world =
        Arc::new(World::open(&folder.join("move"), size.rounds + 1, size.shares_tables).await?);
    world.fill(size.bytes).await?;
    world.engine.start();
    let file = folder.join("plain");
    plain::fill(&file, size.bytes)?;
    report.figure("plain copy alone, s", plain::copy(&file, "0").await?.as_secs_f64());
    let writers = Writers::start(&world, size.writes_per_second);
    let mut rounds = Vec::new();
    for number in 1..=size.rounds {
        let round = round(&world, &writers, (&file, number), size).await?;
        eprintln!("{round}");
        report.say(&round);
        rounds.push(round);
    }
    let (refused, error) = writers.stop();
    if let Some(error) = error {
        report.say(format_args!("writes were refused: {error}"));
    }
    let of = |figure: fn(&Round) -> f64| median(rounds.iter().map(figure));
    report.figure("bytes of a move", of(|round| round.moved as f64));
    report.figure("writes during a move", of(|round| round.during.count as f64));
    report.at_least("move / plain copy", of(Round::rate_share), RATE_SHARE_LEAST);
    report.at_most("p99 during / before", of(|it| it.times(it.during)), P99_TIMES_MAX);
    report.at_most("p99 retiring / before", of(|it| it.times(it.retiring)), P99_TIMES_MAX);
    report.at_most("writes refused", refused as f64, 0.0);
    // The longest wait of any write while the partition moved.
    let pauses = rounds.iter().map(|round| round.pause.max(round.during.longest));
    let longest = milliseconds(pauses.max().unwrap_or_default());
    report.at_most("longest pause, ms", longest, PAUSE_MS_MAX);
    Ok(())
}

async fn round(
    world: &Arc<World>,
    writers: &Writers,
    (file, number): (&Path, usize),
    size: &Size,
) -> Result<Round> {
    let mut round = Round::default();
    tokio::time::sleep(size.calm).await;
    let (start, processor) = (Instant::now(), processor_time());
    tokio::time::sleep(size.before).await;
    round.before = writers.since(start);
    round.writing_share = (processor_time() - processor).div_duration_f64(start.elapsed());

    let start = Instant::now();
    round.plain = plain::copy(file, &format!("{number}")).await?;
    round.beside_plain = writers.since(start);
    tokio::time::sleep(size.calm).await;

    let memory = resident_bytes().unwrap_or(0);
    let arrived = world.engine.move_stats().arrived;
    let (start, processor) = (Instant::now(), processor_time());
    let begun = world.begin_move(MoveOptions::default()).await?;
    let number = begun.number;
    while world.engine.move_stats().arrived == arrived {
        wait(start).await?;
        round.memory = round.memory.max(resident_bytes().unwrap_or(0).saturating_sub(memory));
        if let Ok(status) = world.engine.move_status(number).await {
            round.moved = round.moved.max(status.bytes);
            let now = start.elapsed();
            match status.phase {
                Phase::Copying => round.copied = now,
                Phase::CatchingUp | Phase::Verifying => round.caught_up = now,
                _ => {}
            }
        }
    }
    round.arrived = start.elapsed();
    round.processor = processor_time() - processor;
    round.during = writers.since(start);
    round.pause = world.engine.move_stats().pause_longest;

    let start = Instant::now();
    let finished = loop {
        match world.engine.move_finished(number).await {
            Err(error) if error.is(MapReason::MoveNotFound) => wait(start).await?,
            finished => break finished?,
        }
    };
    round.retired = start.elapsed();
    // The disk under what was deleted is freed behind it.
    tokio::time::sleep(size.calm.saturating_sub(round.retired)).await;
    round.retiring = writers.since(start);
    round.moved = round.moved.max(finished.bytes);

    tokio::time::sleep(size.calm).await;
    let start = Instant::now();
    plain::copy_gently(file, &format!("{number}-gentle"), round.arrived).await?;
    round.beside_gentle = writers.since(start);
    Ok(round)
}

async fn wait(since: Instant) -> Result<()> {
    tokio::time::sleep(LOOK).await;
    if since.elapsed() > MOVE_TIME_MAX {
        return Err(Error::internal("too-slow", "the move does not come to an end"));
    }
    Ok(())
}

/// What this process has taken of all cores so far; zero where the system does not say.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may hold anything, the twelfth and thirteenth are hundredths of seconds.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_tiny_run_measures_everything() {
        let folder = tempfile::tempdir().unwrap();
        let report = run(folder.path(), Size::tiny()).await.unwrap();
        assert!(report.values("bytes of a move")[0] >= Size::tiny().bytes as f64, "{report}");
        for name in ["move / plain copy", "writes during a move", "slowest split"] {
            assert!(report.values(name)[0] > 0.0, "{report}");
        }
    }
}
