//! What a run found, as tables with verdicts.

use std::fmt;
use std::time::Duration;

use lazuli_store::Error;

use crate::figures::{Latency, mebibytes, median, milliseconds, verdict};

use super::{P99_TIMES_MAX, PAUSE_MS_MAX, RATE_SHARE_LEAST, SPLIT_MS_MAX};

/// One move, with what was beside it and before it.
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// A plain copy of as many bytes, under the same writes.
    pub plain: Duration,
    /// Keys and values that were brought over.
    pub moved: u64,
    /// Since the move began: until all was copied, verified, and until the target owned the partition.
    pub copied: Duration,
    pub caught_up: Duration,
    pub arrived: Duration,
    /// From then on, until the source had deleted what was left.
    pub retired: Duration,
    /// For how long the fence stood, as the engine counts it, of all rounds so far.
    pub pause: Duration,
    /// What the process took of the cores until then, writers and all.
    pub processor: Duration,
    /// What the writers alone had taken of a core before.
    pub writing_share: f64,
    /// By how much the process grew.
    pub memory: u64,
    pub before: Latency,
    pub beside_plain: Latency,
    pub during: Latency,
    pub retiring: Latency,
    /// Beside a copy as gentle as can be, which is no faster than the move was: what the disk alone costs the writers.
    pub beside_gentle: Latency,
}

impl Round {
    pub fn rate_share(&self) -> f64 {
        self.plain.as_secs_f64() / self.arrived.as_secs_f64()
    }

    /// What the move itself took of the cores, about.
    fn processor(&self) -> f64 {
        self.processor.as_secs_f64() - self.writing_share * self.arrived.as_secs_f64()
    }

    fn times(&self, of: impl Fn(&Self) -> Latency) -> f64 {
        of(self).p99.as_secs_f64() / self.before.p99.as_secs_f64().max(1e-9)
    }
}

/// A partition that was cut in place.
#[derive(Clone, Copy, Debug, Default)]
pub struct Split {
    pub items: u64,
    /// Finding its middle, which blocks no request.
    pub middle: Duration,
    /// The slowest cut.
    pub cut: Duration,
}

#[derive(Clone, Debug, Default)]
pub struct Report {
    /// A plain copy without writers beside it.
    pub plain_alone: Duration,
    pub rounds: Vec<Round>,
    /// Writes that were refused, and why the last one was.
    pub refused: (u64, Option<Error>),
    pub splits: Vec<Split>,
}

impl Report {
    fn rate_share(&self) -> f64 {
        median(self.rounds.iter().map(Round::rate_share))
    }

    fn times(&self, of: impl Fn(&Round) -> Latency) -> f64 {
        median(self.rounds.iter().map(|round| round.times(&of)))
    }

    /// The longest wait of any write while the partition moved.
    fn pause(&self) -> Duration {
        let pauses = self.rounds.iter().map(|round| round.pause.max(round.during.longest));
        pauses.max().unwrap_or_default()
    }

    fn bounds(&self) -> Vec<(&'static str, f64, f64, bool)> {
        let mut bounds = Vec::new();
        if !self.rounds.is_empty() {
            let share = self.rate_share();
            bounds.push(("move / plain copy", share, RATE_SHARE_LEAST, share >= RATE_SHARE_LEAST));
            let mut at_most = |name, is: f64, most: f64| bounds.push((name, is, most, is <= most));
            at_most("p99 during / before", self.times(|it| it.during), P99_TIMES_MAX);
            at_most("p99 retiring / before", self.times(|it| it.retiring), P99_TIMES_MAX);
            at_most("writes refused", self.refused.0 as f64, 0.0);
            at_most("longest pause, ms", milliseconds(self.pause()), PAUSE_MS_MAX);
        }
        if let Some(cut) = self.splits.iter().map(|split| split.cut).max() {
            let cut = milliseconds(cut);
            bounds.push(("slowest split, ms", cut, SPLIT_MS_MAX, cut <= SPLIT_MS_MAX));
        }
        bounds
    }

    pub fn is_met(&self) -> bool {
        self.bounds().iter().all(|(.., is_met)| *is_met)
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |duration: Duration| duration.as_secs_f64();
        let rate = |took: Duration| mebibytes(self.moved) / took.as_secs_f64();
        let mib = mebibytes(self.moved);
        writeln!(
            f,
            "{mib:.0} MiB, move {:.2} s ({:.0} MiB/s), plain copy {:.2} s ({:.0} MiB/s), \
             share {:.2}",
            seconds(self.arrived),
            rate(self.arrived),
            seconds(self.plain),
            rate(self.plain),
            self.rate_share()
        )?;
        writeln!(
            f,
            "  copied after {:.2} s, verified after {:.2} s, arrived after {:.2} s, retired in {:.2} s; \
             fence {:.1} ms; processor time {:.1} s; memory +{} MiB",
            seconds(self.copied),
            seconds(self.caught_up),
            seconds(self.arrived),
            seconds(self.retired),
            milliseconds(self.pause),
            self.processor(),
            self.memory >> 20
        )?;
        let phases = [
            ("before", self.before),
            ("beside plain copy", self.beside_plain),
            ("during", self.during),
            ("retiring", self.retiring),
            ("beside gentle copy", self.beside_gentle),
        ];
        for (name, latency) in phases {
            writeln!(
                f,
                "  writes {name:<18} {:>7}, p50 {:>7.2} ms, p99 {:>7.2} ms, longest {:>7.2} ms",
                latency.count,
                milliseconds(latency.p50),
                milliseconds(latency.p99),
                milliseconds(latency.longest)
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (items, cut, middle) = (self.items, milliseconds(self.cut), milliseconds(self.middle));
        write!(f, "{items:>11} items: slowest cut {cut:.1} ms, middle found in {middle:.1} ms")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for round in &self.rounds {
            writeln!(f, "{round}")?;
        }
        if !self.rounds.is_empty() {
            writeln!(f, "plain copy alone: {:.2} s", self.plain_alone.as_secs_f64())?;
        }
        if let (refused, Some(error)) = &self.refused {
            writeln!(f, "{refused} writes were refused: {error}")?;
        }
        for split in &self.splits {
            writeln!(f, "{split}")?;
        }
        for (name, is, bound, is_met) in self.bounds() {
            let verdict = verdict(is_met);
            writeln!(f, "{name:<24} {is:>8.2}  bound {bound:>6.1}  {verdict}")?;
        }
        Ok(())
    }
}
