//! What was measured, as a table with the bounds.

use std::fmt;
use std::time::Duration;

use super::load::Figure;
use crate::figures::{mebibytes, median, milliseconds, verdict};

/// A cold start takes at most this share of the emulator's.
const START_SHARE_MAX: f64 = 1.0 / 20.0;
/// Memory is at most this share of the emulator's.
const MEMORY_SHARE_MAX: f64 = 1.0 / 6.0;
/// A request to a large table costs at most so much of one to a small table.
const GROWTH_MAX: f64 = 1.3;

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
         ours p50/p99 ms | peer p50/p99 ms | |\n|---|---|---|---|---|---|---|---|---|---|---|";

    /// A row, which is shown as soon as it is measured: a run takes minutes.
    pub(super) fn measured(name: String, bound: Bound, ours: Figure, peer: Figure) -> Self {
        let row = Self { name, bound, ours, peer };
        eprintln!("{row}");
        row
    }

    fn times(&self) -> f64 {
        self.ours.per_second / self.peer.per_second
    }

    fn times_cpu(&self) -> f64 {
        self.ours.per_cpu / self.peer.per_cpu
    }

    /// A server of ours that ends connections before it has answered meets nothing.
    pub(super) fn is_met(&self) -> bool {
        self.times() >= self.bound.0 && self.ours.reopened == 0
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ours, peer) = (&self.ours, &self.peer);
        let verdict = if self.bound.0 == 0.0 { "" } else { verdict(self.is_met()) };
        let latency = |figure: &Figure| {
            format!("{:.1}/{:.1}", milliseconds(figure.p50), milliseconds(figure.p99))
        };
        let bound = if self.bound.0 == 0.0 { String::new() } else { self.bound.0.to_string() };
        write!(
            f,
            "| {:<32} | {:>7.0} | {:>7.0} | {:>6.1} | {:>5} | {:>7.0} | {:>7.0} | {:>6.1} | {:>10} | {:>11} | {:<6} |",
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
            verdict,
        )?;
        for (whose, figure) in [("ours", ours), ("peer", peer)] {
            if figure.reopened > 0 {
                write!(f, " {whose} ended {} connections unanswered", figure.reopened)?;
            }
        }
        Ok(())
    }
}

/// Resident bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    pub(super) ours: u64,
    pub(super) peer: u64,
}

/// The figures of one operation, with few entities and with many.
#[derive(Clone, Debug)]
pub(super) struct Growth {
    pub(super) name: String,
    pub(super) few: Vec<Figure>,
    pub(super) many: Vec<Figure>,
}

impl Growth {
    /// What a request to the large table costs, as a multiple of one to the small table.
    fn times(&self) -> f64 {
        median(self.few.iter().zip(&self.many).map(|(few, many)| few.per_second / many.per_second))
    }

    fn times_cpu(&self) -> f64 {
        median(self.few.iter().zip(&self.many).map(|(few, many)| few.per_cpu / many.per_cpu))
    }

    pub(super) fn is_met(&self) -> bool {
        self.times() <= GROWTH_MAX
    }
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (times, cpu) = (self.times(), self.times_cpu());
        let (name, met) = (&self.name, verdict(self.is_met()));
        write!(f, "{name}, many entities against few: {times:.2}x, CPU {cpu:.2}x {met}")
    }
}

#[derive(Clone, Debug, Default)]
pub struct Report {
    pub(super) rows: Vec<Row>,
    pub(super) first_ours: Duration,
    pub(super) first_peer: Duration,
    pub(super) starts_ours: Vec<Duration>,
    pub(super) starts_peer: Vec<Duration>,
    pub(super) memory_start: Memory,
    pub(super) memory_full: Memory,
    pub(super) entities: u64,
    /// How many entities the emulator got to in the time that it had.
    pub(super) entities_peer: u64,
    pub(super) growth: Vec<Growth>,
}

impl Report {
    fn start_share(&self) -> f64 {
        let seconds = |starts: &[Duration]| median(starts.iter().map(Duration::as_secs_f64));
        seconds(&self.starts_ours) / seconds(&self.starts_peer)
    }

    fn memories(&self) -> [(&'static str, Memory); 2] {
        [("memory after start", self.memory_start), ("memory when full", self.memory_full)]
    }

    pub fn is_met(&self) -> bool {
        self.rows.iter().all(Row::is_met)
            && self.start_share() <= START_SHARE_MAX
            && self.memories().iter().all(|(_, memory)| memory.is_met())
            && self.growth.iter().all(Growth::is_met)
    }
}

impl Memory {
    fn share(self) -> f64 {
        self.ours as f64 / self.peer as f64
    }

    fn is_met(self) -> bool {
        self.share() <= MEMORY_SHARE_MAX
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", Row::HEAD)?;
        for row in &self.rows {
            writeln!(f, "{row}")?;
        }
        let starts = |starts: &[Duration]| median(starts.iter().map(|it| milliseconds(*it)));
        let met = verdict(self.start_share() <= START_SHARE_MAX);
        let (ours, peer) = (starts(&self.starts_ours), starts(&self.starts_peer));
        writeln!(f, "\ncold start: {ours:.0} ms, peer {peer:.0} ms, 1/{:.0} {met}", peer / ours)?;
        let (ours, peer) = (milliseconds(self.first_ours), milliseconds(self.first_peer));
        writeln!(f, "first start, which creates the data: {ours:.0} ms, peer {peer:.0} ms")?;
        for (name, memory) in self.memories() {
            let (ours, peer) = (mebibytes(memory.ours), mebibytes(memory.peer));
            let met = verdict(memory.is_met());
            writeln!(f, "{name}: {ours:.0} MiB, peer {peer:.0} MiB, 1/{:.1} {met}", peer / ours)?;
        }
        writeln!(f, "full: {} entities, peer {}", self.entities, self.entities_peer)?;
        for growth in &self.growth {
            writeln!(f, "{growth}")?;
        }
        Ok(())
    }
}
