//! The figures of a run.

use std::fmt;
use std::time::Duration;

use crate::check::Found;
use crate::writers::Written;

#[derive(Default)]
pub(crate) struct Report {
    rounds: u64,
    starts: u32,
    start_total: Duration,
    start_max: Duration,
    life_total: Duration,
    answered: usize,
    in_doubt: usize,
    /// What the last look at everything found.
    pub(crate) found: Found,
}

impl Report {
    pub(crate) fn started(&mut self, took: Duration) {
        self.starts += 1;
        self.start_total += took;
        self.start_max = self.start_max.max(took);
    }

    pub(crate) fn round(&mut self, life: Duration, written: &Written) {
        let answered = written.keys.iter().filter(|key| key.answered).count();
        self.rounds += 1;
        self.life_total += life;
        self.answered += answered;
        self.in_doubt += written.keys.len() - answered;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_second = self.answered as f64 / self.life_total.as_secs_f64().max(0.001);
        let start_ms = self.start_total.as_millis() / u128::from(self.starts.max(1));
        writeln!(f, "{} rounds of kill -9 under {} writers", self.rounds, crate::WRITERS)?;
        writeln!(f, "{} writes answered ({per_second:.0}/s), all found, all whole", self.answered)?;
        let kept = self.found.in_doubt;
        writeln!(f, "{} in doubt, of which {kept} were kept, all whole", self.in_doubt)?;
        writeln!(f, "start after a kill: {start_ms} ms on average, {:?} at most", self.start_max)?;
        write!(f, "fsck clean after every kill and after the last stop")
    }
}
