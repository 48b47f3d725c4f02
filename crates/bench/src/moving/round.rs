//! What is measured of one move and of one split.

use std::fmt;
use std::time::Duration;

use crate::figures::{Latency, mebibytes, milliseconds};

/// One move, with what was beside it and before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    /// A plain copy of as many bytes, under the same writes.
    pub(super) plain: Duration,
    /// Keys and values that were brought over.
    pub(super) moved: u64,
    /// Since the move began: until all was copied, verified, and until the target owned the partition.
    pub(super) copied: Duration,
    pub(super) caught_up: Duration,
    pub(super) arrived: Duration,
    /// From then on, until the source had deleted what was left.
    pub(super) retired: Duration,
    /// For how long the fence stood, as the engine counts it, of all rounds so far.
    pub(super) pause: Duration,
    /// What the process took of the cores until then, writers and all.
    pub(super) processor: Duration,
    /// What the writers alone had taken of a core before.
    pub(super) writing_share: f64,
    /// By how much the process grew.
    pub(super) memory: u64,
    pub(super) before: Latency,
    pub(super) beside_plain: Latency,
    pub(super) during: Latency,
    pub(super) retiring: Latency,
    /// Beside a copy as gentle as can be, which is no faster than the move was: what the disk alone costs the writers.
    pub(super) beside_gentle: Latency,
}

impl Round {
    pub(super) fn rate_share(&self) -> f64 {
        self.plain.as_secs_f64() / self.arrived.as_secs_f64()
    }

    /// What the move itself took of the cores, about.
    fn processor(&self) -> f64 {
        self.processor.as_secs_f64() - self.writing_share * self.arrived.as_secs_f64()
    }

    /// What the slowest hundredth of some writes took, as a multiple of what it took before the move.
    pub(super) fn times(&self, writes: Latency) -> f64 {
        writes.p99.as_secs_f64() / self.before.p99.as_secs_f64().max(1e-9)
    }
}

/// A partition that was cut in place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Split {
    pub(super) items: u64,
    /// Finding its middle, which blocks no request.
    pub(super) middle: Duration,
    /// The slowest cut.
    pub(super) cut: Duration,
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
            writeln!(f, "  writes {name:<18} {latency}")?;
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
