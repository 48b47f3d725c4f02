//! Prints one line for each step, and the load of shards before and after.

use lazuli_balance::{Fleet, Goal, Left, Load, Note, Settings, ShardFigures, ShardState};
use serde_json::{Value, json};

use super::course::{Course, Done};
use lazuli_console::output;

/// Up to so many shards get a bar each; more are counted by level.
const SHARDS_LISTED: usize = 24;
/// The longest bar, in characters.
const BAR: usize = 24;
/// Where levels are cut to count shards, in parts of the mean.
const LEVELS: [f64; 10] = [0.5, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.5, 2.0];
const GOALS: [Goal; 2] = [Goal::Bytes, Goal::Requests];
/// How many partitions without an action are named.
const NOTES_NAMED: usize = 5;

/// The columns of a step with their widths.
const COLUMNS: [(&str, usize); 9] = [
    ("time", 9),
    ("bytes", 8),
    ("requests", 8),
    ("under way", 9),
    ("moves", 9),
    ("moved", 10),
    ("splits", 7),
    ("merges", 7),
    ("partitions", 10),
];

pub(super) struct Report {
    json: bool,
    band: f64,
    before: Vec<Load>,
    steps: Vec<Value>,
}

impl Report {
    /// Prints the fleet at the start.
    pub(super) fn new(json: bool, settings: &Settings, fleet: &Fleet) -> Self {
        let before = fleet.loads();
        let mut report =
            Self { json, band: settings.band, before: before.clone(), steps: Vec::new() };
        if !json {
            let total = before.iter().fold(Load::default(), |sum, load| sum + *load);
            output::line(&format!(
                "{} shards, {} partitions, {}, {:.0} requests/s",
                fleet.shards.len(),
                fleet.partitions.len(),
                output::size(total.bytes),
                total.requests
            ));
            output::line("bytes and requests: the fullest shard as a multiple of the mean");
            output::line("");
            line(&COLUMNS.map(|(name, _)| name.to_uppercase()));
        }
        report.row(0, fleet, &before, 0, Done::default());
        report
    }

    pub(super) fn step(&mut self, course: &Course) {
        let loads = course.loads();
        self.row(course.now_ms(), course.fleet(), &loads, course.underway(), course.done());
    }

    fn row(&mut self, now_ms: u64, fleet: &Fleet, loads: &[Load], underway: usize, done: Done) {
        let [bytes, requests] = GOALS.map(|goal| fleet.peak(loads, goal));
        let partitions = fleet.partitions.len();
        if self.json {
            self.steps.push(json!({
                "time_ms": now_ms,
                "bytes_peak": bytes,
                "requests_peak": requests,
                "underway": underway,
                "moves": done.moves,
                "bytes_moved": done.bytes,
                "splits": done.splits,
                "merges": done.merges,
                "partitions": partitions,
            }));
            return;
        }
        line(&[
            time(now_ms),
            format!("{bytes:.2}"),
            format!("{requests:.2}"),
            underway.to_string(),
            done.moves.to_string(),
            output::size(done.bytes),
            done.splits.to_string(),
            done.merges.to_string(),
            partitions.to_string(),
        ]);
    }

    pub(super) fn end(&mut self, course: &Course) {
        let after = course.loads();
        let (notes, count) = course.notes();
        if self.json {
            let list = |loads: &[Load]| shards(course.fleet(), loads);
            output::json(&json!({
                "steps": self.steps,
                "settled": course.is_settled(),
                "plans": course.done().plans,
                "left": { "count": count, "partitions": notes.iter().map(note).collect::<Vec<_>>() },
                "before": list(&self.before),
                "after": list(&after),
            }));
            return;
        }
        for goal in GOALS {
            output::line("");
            self.chart(course.fleet(), &after, goal);
        }
        output::line("");
        let end = if course.is_settled() {
            "nothing more to do".to_owned()
        } else {
            "time is over, and there is more to do".to_owned()
        };
        output::line(&format!("{end}; {} plans were made", course.done().plans));
        for text in left(notes, count) {
            output::line(&text);
        }
    }

    /// The load of shards before and after, by one goal.
    fn chart(&self, fleet: &Fleet, after: &[Load], goal: Goal) {
        let [before, after] = [&self.before, after].map(|loads| fleet.levels(loads, goal));
        let name = goal.name().to_uppercase();
        if fleet.shards.len() <= SHARDS_LISTED {
            output::line(&format!("{:<14}{:<w$}  AFTER", name, "BEFORE", w = BAR + 6));
            let most = before.iter().chain(&after).copied().fold(1.0, f64::max);
            for (at, shard) in fleet.shards.iter().enumerate() {
                let text = |level: f64| format!("{level:>5.2} {}", bar(level / most));
                let (before, after) = (text(before[at]), text(after[at]));
                let label = format!("shard {}{}", shard.id, mark(shard));
                output::line(format!("{label:<14}{before:<w$}  {after}", w = BAR + 6).trim_end());
            }
            return;
        }
        output::line(&format!("{:<14}{:<w$}  AFTER", name, "BEFORE", w = BAR + 8));
        let [before, after] = [before, after].map(|levels| counts(&levels));
        let most = before.iter().chain(&after).copied().max().unwrap_or(1).max(1) as f64;
        for at in 0..=LEVELS.len() {
            let text = |count: usize| format!("{count:>7} {}", bar(count as f64 / most));
            let (before, after) = (text(before[at]), text(after[at]));
            let label = self.label(at);
            output::line(format!("{label:<14}{before:<w$}  {after}", w = BAR + 8).trim_end());
        }
    }

    /// A range of levels, with a mark on those within the band.
    fn label(&self, at: usize) -> String {
        let from = at.checked_sub(1).map_or(0.0, |before| LEVELS[before]);
        let Some(to) = LEVELS.get(at) else { return format!("{from:.2} and up") };
        // Sums like 1 + 0.1 are not exact.
        let slack = 1e-9;
        let within = from >= 1.0 - self.band - slack && *to <= 1.0 + self.band + slack;
        format!("{from:.2}-{to:.2}{}", if within { " =" } else { "" })
    }
}

fn counts(levels: &[f64]) -> Vec<usize> {
    let mut counts = vec![0; LEVELS.len() + 1];
    for level in levels {
        counts[LEVELS.iter().take_while(|bound| *level >= **bound).count()] += 1;
    }
    counts
}

fn shards(fleet: &Fleet, loads: &[Load]) -> Vec<Value> {
    let both = fleet.shards.iter().zip(loads);
    both.map(|(shard, load)| {
        json!({
            "shard": shard.id.0,
            "bytes": load.bytes,
            "requests": load.requests,
            "items": load.items,
        })
    })
    .collect()
}

fn note(note: &Note) -> Value {
    json!({ "partition": note.partition.0, "why": reason(note.left) })
}

fn reason(left: Left) -> &'static str {
    match left {
        Left::OneShardlet => "too large, but one shardlet",
        Left::HotShardlet => "too busy, but one hot shardlet",
        Left::NoPlace => "has to leave its shard, but may go nowhere",
    }
}

/// Partitions without an action, by reason, with a few of each named.
fn left(notes: &[Note], count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for kind in [Left::HotShardlet, Left::OneShardlet, Left::NoPlace] {
        let of_kind: Vec<_> = notes.iter().filter(|note| note.left == kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        let named = of_kind.iter().take(NOTES_NAMED).map(|note| note.partition.to_string());
        let named = named.collect::<Vec<_>>().join(", ");
        let more = if of_kind.len() > NOTES_NAMED { ", …" } else { "" };
        lines.push(format!("left: {} partitions: {} ({named}{more})", of_kind.len(), reason(kind)));
    }
    if count > notes.len() {
        lines.push(format!("left: {} more", count - notes.len()));
    }
    lines
}

fn mark(shard: &ShardFigures) -> &'static str {
    match shard.state {
        ShardState::Online => "",
        ShardState::Draining => " drain",
        ShardState::Away => " away",
    }
}

fn bar(part: f64) -> String {
    let length = (part * BAR as f64).round() as usize;
    // Every load above 0 has a visible bar.
    "#".repeat(if part > 0.0 { length.clamp(1, BAR) } else { 0 })
}

fn line(cells: &[String; COLUMNS.len()]) {
    let cells = cells.iter().zip(COLUMNS).map(|(cell, (_, width))| format!("{cell:>width$}"));
    output::line(&cells.collect::<Vec<_>>().join(" "));
}

/// Hours and minutes, and seconds where there are any.
fn time(ms: u64) -> String {
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    match seconds {
        0 => format!("{hours}:{minutes:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}
