//! Tables: no answered write may be lost, no transaction torn.

mod check;
mod writers;

use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;

use lazuli_trial::Result;
use lazuli_trial::client::Client;

use super::{Load, read_all};
use check::Expected;
use writers::{Log, Write};

const TABLE: &str = "crash";

#[derive(Default)]
pub(crate) struct Tables {
    expected: Expected,
    inserts: usize,
    merges: usize,
    transactions: usize,
    /// The changes in those.
    transaction_changes: usize,
    in_doubt: Doubts,
    /// Of those, the writes that were made.
    kept: Doubts,
}

/// Writes that the server died over.
#[derive(Default)]
struct Doubts {
    all: usize,
    transactions: usize,
}

impl Doubts {
    fn add(&mut self, write: &Write) {
        self.all += 1;
        self.transactions += usize::from(write.is_transaction);
    }
}

impl Load for Tables {
    type Log = Log;
    const FRONT: &str = "tables";
    const WRITERS: usize = 16;
    const LIFE_MS: Range<u64> = 30..700;

    fn create(&self, address: SocketAddr) -> Result {
        Client::connect(address)?.create_table(TABLE)
    }

    fn write(&self, address: SocketAddr, round: u64, writer: usize) -> Result<Log> {
        writers::write(address, round, writer)
    }

    fn settle(&mut self, address: SocketAddr, logs: Vec<Log>) -> Result {
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
        logs.iter().filter_map(|log| log.in_doubt.as_ref()).for_each(|it| self.in_doubt.add(it));
        for (rows, kept) in read_all(address, logs, check::read)? {
            self.expected.extend(rows);
            kept.iter().for_each(|write| self.kept.add(write));
        }
        Ok(())
    }

    fn check_all(&self, address: SocketAddr) -> Result {
        check::everything(address, &self.expected)
    }
}

impl fmt::Display for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inserts, merges, transactions, transaction_changes, in_doubt, kept, .. } = self;
        let answered = inserts + merges + transactions;
        writeln!(
            f,
            "{answered} writes answered: {inserts} inserts, {merges} merges, \
             {transactions} transactions of {transaction_changes} changes"
        )?;
        writeln!(
            f,
            "{} in doubt, of which {} were kept; {} transactions among them, of which {} were kept",
            in_doubt.all, kept.all, in_doubt.transactions, kept.transactions
        )?;
        write!(
            f,
            "0 lost, 0 torn: every answered value is there, every transaction whole or absent"
        )
    }
}
