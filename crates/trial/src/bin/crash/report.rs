//! The figures of a run.

use std::fmt;
use std::time::Duration;

use crate::check::Doubts;
use crate::writers::Log;

#[derive(Default)]
pub(crate) struct Report {
    rounds: u64,
    starts: u32,
    start_total: Duration,
    start_max: Duration,
    life_total: Duration,
    inserts: usize,
    merges: usize,
    transactions: usize,
    /// The changes in those.
    transaction_changes: usize,
    in_doubt: usize,
    transactions_in_doubt: usize,
    doubts: Doubts,
}

impl Report {
    pub(crate) fn started(&mut self, took: Duration) {
        self.starts += 1;
        self.start_total += took;
        self.start_max = self.start_max.max(took);
    }

    pub(crate) fn round(&mut self, life: Duration, logs: &[Log]) {
        self.rounds += 1;
        self.life_total += life;
        for write in logs.iter().flat_map(|log| &log.answered) {
            match write.changes.as_slice() {
                changes if write.is_transaction => {
                    self.transactions += 1;
                    self.transaction_changes += changes.len();
                }
                [change] if change.value == 0 => self.inserts += 1,
                _ => self.merges += 1,
            }
        }
        for write in logs.iter().filter_map(|log| log.in_doubt.as_ref()) {
            self.in_doubt += 1;
            self.transactions_in_doubt += usize::from(write.is_transaction);
        }
    }

    pub(crate) fn settled(&mut self, doubts: &Doubts) {
        self.doubts.kept += doubts.kept;
        self.doubts.transactions_kept += doubts.transactions_kept;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answered = self.inserts + self.merges + self.transactions;
        let per_second = answered as f64 / self.life_total.as_secs_f64().max(0.001);
        let start_ms = self.start_total.as_millis() / u128::from(self.starts.max(1));
        writeln!(f, "{} rounds of kill -9 under {} connections", self.rounds, crate::WRITERS)?;
        writeln!(
            f,
            "{answered} writes answered ({per_second:.0}/s): {} inserts, {} merges, {} transactions of {} changes",
            self.inserts, self.merges, self.transactions, self.transaction_changes
        )?;
        writeln!(
            f,
            "{} in doubt, of which {} were kept; {} transactions among them, of which {} were kept",
            self.in_doubt,
            self.doubts.kept,
            self.transactions_in_doubt,
            self.doubts.transactions_kept
        )?;
        writeln!(
            f,
            "0 lost, 0 torn: every answered value is there, every transaction whole or absent"
        )?;
        writeln!(f, "start after a kill: {start_ms} ms on average, {:?} at most", self.start_max)?;
        write!(f, "fsck clean after every kill and after the last stop")
    }
}
