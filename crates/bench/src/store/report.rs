//! What a run found, as a table with a verdict.

use std::fmt;
use std::time::{Duration, Instant};

use super::OPEN_MS_MAX;
use crate::figures::{cpu_time, median, milliseconds, verdict};

pub(super) type Count = u32;

/// How much was done in one round, and at what cost.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub per_second: f64,
    count: Count,
    cpu: Duration,
}

impl Round {
    pub(super) fn measure(work: &impl Fn() -> Count) -> Self {
        let (start, cpu) = (Instant::now(), cpu_time());
        let count = work();
        let per_second = f64::from(count) / start.elapsed().as_secs_f64();
        Self { per_second, count, cpu: cpu_time().saturating_sub(cpu) }
    }
}

/// One figure: the rounds of both.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub name: String,
    pub share_least: f64,
    pub ours: Vec<Round>,
    pub raw: Vec<Round>,
}

impl Row {
    /// The median over the rounds of ours divided by theirs.
    pub fn share(&self) -> f64 {
        let pairs = self.ours.iter().zip(&self.raw);
        median(pairs.map(|(ours, raw)| ours.per_second / raw.per_second))
    }

    fn is_met(&self) -> bool {
        self.share() >= self.share_least
    }
}

/// Processor time per piece of work, in microseconds.
fn cost(rounds: &[Round]) -> f64 {
    let cpu: Duration = rounds.iter().map(|round| round.cpu).sum();
    let count: f64 = rounds.iter().map(|round| f64::from(round.count)).sum();
    cpu.as_secs_f64() * 1e6 / count.max(1.0)
}

#[derive(Clone, Debug, Default)]
pub struct Report {
    pub rows: Vec<Row>,
    /// Opening after a clean stop, and after one in the middle of writing.
    pub open_clean: Duration,
    pub open_unclean: Duration,
}

impl Report {
    pub fn is_met(&self) -> bool {
        self.rows.iter().all(Row::is_met) && milliseconds(self.open_clean) <= OPEN_MS_MAX
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<28} {:>9} {:>9} {:>7} {:>6} {:>7} {:>11}",
            "per second, median", "store", "engine", "share", "bound", "", "CPU us each"
        )?;
        for row in &self.rows {
            let rate = |rounds: &[Round]| median(rounds.iter().map(|round| round.per_second));
            let (ours, raw) = (rate(&row.ours), rate(&row.raw));
            let (share, least, met) = (row.share(), row.share_least, verdict(row.is_met()));
            let cost = format!("{:.1} / {:.1}", cost(&row.ours), cost(&row.raw));
            let name = &row.name;
            writeln!(
                f,
                "{name:<28} {ours:>9.0} {raw:>9.0} {share:>7.3} {least:>6.2} {met:>7} {cost:>11}"
            )?;
        }
        let clean = milliseconds(self.open_clean);
        let met = verdict(clean <= OPEN_MS_MAX);
        writeln!(f, "open after a clean stop: {clean:.0} ms, at most {OPEN_MS_MAX:.0} {met}")?;
        write!(f, "open after any other stop: {:.0} ms", milliseconds(self.open_unclean))
    }
}
