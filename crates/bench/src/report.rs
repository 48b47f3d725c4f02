//! What a benchmark found: lines for people to read, and figures, some of them with a bound.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};

use crate::figures::{Latency, median, milliseconds};

#[derive(Clone, Debug, Default)]
pub struct Report {
    text: String,
    figures: BTreeMap<String, f64>,
    is_missed: bool,
}

impl Report {
    /// A line that has no bound.
    pub fn say(&mut self, line: impl Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{line}");
    }

    /// A line that says its bound itself.
    pub fn judge(&mut self, line: impl Display, is_met: bool) {
        self.is_missed |= !is_met;
        self.say(format_args!("{line} {}", if is_met { "ok" } else { "MISSED" }));
    }

    pub fn figure(&mut self, name: impl Into<String>, value: f64) {
        let line = self.line(name.into(), value);
        self.say(line);
    }

    pub fn at_most(&mut self, name: impl Into<String>, value: f64, most: f64) {
        let line = self.line(name.into(), value);
        self.judge(format_args!("{line}  at most {most:.2}"), value <= most);
    }

    pub fn at_least(&mut self, name: impl Into<String>, value: f64, least: f64) {
        let line = self.line(name.into(), value);
        self.judge(format_args!("{line}  at least {least:.2}"), value >= least);
    }

    fn line(&mut self, name: String, value: f64) -> String {
        let line = format!("{name:<44} {value:>12.2}");
        self.figures.insert(name, value);
        line
    }

    /// How long some requests took; the figure of this name is how many they were.
    pub fn latency(&mut self, name: &str, latency: Latency) {
        self.say(format_args!("{name:<30} {latency}"));
        self.figures.insert(name.to_owned(), latency.count as f64);
    }

    /// The figures whose names begin so.
    pub fn values(&self, name: &str) -> Vec<f64> {
        let named = self.figures.iter().filter(|(its, _)| its.starts_with(name));
        named.map(|(_, value)| *value).collect()
    }

    /// Whether all bounds are met.
    pub fn is_met(&self) -> bool {
        !self.is_missed
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.trim_end())
    }
}

impl Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99, longest] = [self.p50, self.p99, self.longest].map(milliseconds);
        let count = self.count;
        write!(f, "{count:>7}, p50 {p50:>7.2} ms, p99 {p99:>7.2} ms, longest {longest:>7.2} ms")
    }
}

/// Two that are measured in turns, so that other load on the machine affects both: the figure of each, round by round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    pub(crate) ours: Vec<f64>,
    pub(crate) theirs: Vec<f64>,
}

impl Turns {
    /// The median over the rounds of ours divided by theirs.
    pub(crate) fn share(&self) -> f64 {
        median(self.ours.iter().zip(&self.theirs).map(|(ours, theirs)| ours / theirs))
    }

    /// Of ours, and of theirs.
    pub(crate) fn medians(&self) -> [f64; 2] {
        [&self.ours, &self.theirs].map(|rounds| median(rounds.iter().copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_bound_is_named() {
        let mut report = Report::default();
        report.at_most("few", 10.0, 10.0);
        report.at_least("many", 10.0, 10.0);
        assert!(report.is_met() && !report.to_string().contains("MISSED"), "{report}");
        report.at_most("bytes", 1_000.0, 100.0);
        assert!(!report.is_met());
        assert!(report.to_string().ends_with("1000.00  at most 100.00 MISSED"), "{report}");
        assert_eq!(report.values("bytes"), [1_000.0]);
    }
}
