//! What was measured, as a table with the bounds.

use std::fmt;

use super::load::Figure;
use crate::figures::{mebibytes, milliseconds};
use crate::report::{Report, Turns};

/// Memory is at most this share of the emulator's.
const MEMORY_SHARE_MAX: f64 = 1.0 / 6.0;
/// A request to a large table or queue costs at most so much of one to a small one.
pub(super) const GROWTH_MAX: f64 = 1.3;

/// At least this many times the emulator's; 0 for none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bound(pub(super) f64);

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) bound: Bound,
    pub(super) ours: Figure,
    pub(super) peer: Figure,
}

impl Row {
    pub(super) const HEAD: &str = "| operation | ours/s | peer/s | times | bound | ours/CPU s | peer/CPU s | times | \
         ours p50/p99 ms | peer p50/p99 ms |\n|---|---|---|---|---|---|---|---|---|---|";

    /// Adds a row, which is also shown as soon as it is measured: a run takes minutes.
    pub(super) fn measured(
        report: &mut Report,
        name: String,
        bound: Bound,
        ours: Figure,
        peer: Figure,
    ) {
        let row = Self { name, bound, ours, peer };
        eprintln!("{row}");
        match row.bound.0 == 0.0 && row.is_met() {
            true => report.say(row),
            false => report.judge(&row, row.is_met()),
        }
    }

    fn times(&self) -> f64 {
        self.ours.per_second / self.peer.per_second
    }

    fn times_cpu(&self) -> f64 {
        self.ours.per_cpu / self.peer.per_cpu
    }

    /// A server of ours that ends connections before it has answered meets nothing.
    fn is_met(&self) -> bool {
        self.times() >= self.bound.0 && self.ours.reopened == 0
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ours, peer) = (&self.ours, &self.peer);
        let latency = |figure: &Figure| {
            format!("{:.1}/{:.1}", milliseconds(figure.p50), milliseconds(figure.p99))
        };
        let bound = if self.bound.0 == 0.0 { String::new() } else { self.bound.0.to_string() };
        write!(
            f,
            "| {:<32} | {:>7.0} | {:>7.0} | {:>6.1} | {:>5} | {:>7.0} | {:>7.0} | {:>6.1} | {:>10} | {:>11} |",
            self.name,
            ours.per_second,
            peer.per_second,
            self.times(),
            bound,
            ours.per_cpu,
            peer.per_cpu,
            self.times_cpu(),
            latency(ours),
            latency(peer),
        )?;
        for (whose, figure) in [("ours", ours), ("peer", peer)] {
            if figure.reopened > 0 {
                write!(f, " {whose} ended {} connections unanswered", figure.reopened)?;
            }
        }
        Ok(())
    }
}

/// The figures of one operation with few entities and with many, which took turns, and how much more it may cost.
pub(super) fn growth(report: &mut Report, name: &str, most: f64, few: &[Figure], many: &[Figure]) {
    let turns = |of: fn(&Figure) -> f64| Turns {
        ours: few.iter().map(of).collect(),
        theirs: many.iter().map(of).collect(),
    };
    let times = turns(|figure| figure.per_second).share();
    report.at_most(format!("{name}, many entities / few"), times, most);
    let cpu = turns(|figure| figure.per_cpu).share();
    report.figure(format!("{name}, many entities / few, CPU"), cpu);
}

/// The memory of the two servers, in bytes.
pub(super) fn memory(report: &mut Report, name: &str, ours: u64, peer: u64) {
    let (ours, peer) = (mebibytes(ours), mebibytes(peer));
    let line = format!("{name}: {ours:.0} MiB, peer {peer:.0} MiB, 1/{:.1}", peer / ours);
    report.judge(line, ours / peer <= MEMORY_SHARE_MAX);
}
