//! Documents: no answered write may be lost, no batch torn; the index has what the items have; the change feeds go on
//! without a gap or a repeat.

mod check;
mod feeds;
mod writers;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;

use lazuli_trial::Result;
use lazuli_trial::documents::{Container, DocumentClient, create_database};

use super::{Load, read_all};
use check::Expected;
use feeds::{FeedLog, Position};
use writers::{Act, WriterLog};

const CONTAINER: Container<'_> = Container { database: "crash", name: "items" };

/// Connections that write; the others each follow the change feed of one range.
const ITEM_WRITERS: usize = 13;
const RANGES: usize = 3;
/// The service makes a range of each 6,000 units.
const THROUGHPUT: u32 = 6_000 * RANGES as u32;

#[derive(Default)]
pub(crate) struct Documents {
    expected: Expected,
    /// Where each feed was when the last round was settled.
    positions: Vec<Position>,
    answered: BTreeMap<&'static str, usize>,
    /// The changes in batches.
    batch_changes: usize,
    in_doubt: Doubts,
    /// Of those, the writes that were made.
    kept: Doubts,
    /// Changes that the feeds showed: while others wrote, and after the restart.
    followed: usize,
    read_on: usize,
    /// Rows that the index answered with.
    rows: usize,
}

/// Writes that the server died over.
#[derive(Default)]
struct Doubts {
    all: usize,
    batches: usize,
}

impl Doubts {
    fn add(&mut self, write: &writers::Write) {
        self.all += 1;
        self.batches += usize::from(write.is_batch);
    }
}

/// What one connection of a round leaves.
pub(crate) enum Log {
    Writer(WriterLog),
    Reader(FeedLog),
}

impl Load for Documents {
    type Log = Log;
    const FRONT: &str = "documents";
    const WRITERS: usize = ITEM_WRITERS + RANGES;
    const LIFE_MS: Range<u64> = 50..900;

    fn create(&self, address: SocketAddr) -> Result {
        let mut client = DocumentClient::connect(address)?;
        client.expect(&create_database(CONTAINER.database), &[201])?;
        client.expect(&CONTAINER.create(THROUGHPUT), &[201]).map(drop)
    }

    fn write(&self, address: SocketAddr, round: u64, writer: usize) -> Result<Log> {
        match writer.checked_sub(ITEM_WRITERS) {
            None => writers::write(address, round, writer).map(Log::Writer),
            Some(reader) => {
                let position = self.positions.get(reader).ok_or("there are too few ranges")?;
                feeds::follow(address, position.clone()).map(Log::Reader)
            }
        }
    }

    fn settle(&mut self, address: SocketAddr, logs: Vec<Log>) -> Result {
        if logs.is_empty() {
            self.positions = feeds::beginnings(address)?;
            return Ok(());
        }
        let (mut written, mut followed) = (Vec::new(), Vec::new());
        for log in logs {
            match log {
                Log::Writer(log) => written.push(log),
                Log::Reader(log) => followed.push(log),
            }
        }
        written.iter().for_each(|log| self.count(log));
        let mut of_round = Expected::new();
        for (items, kept) in read_all(address, written, check::read)? {
            of_round.extend(items);
            kept.iter().for_each(|write| self.kept.add(write));
        }
        let seen = |logs: &[FeedLog]| logs.iter().map(|log| log.seen.len()).sum::<usize>();
        let before = seen(&followed);
        let followed = read_all(address, followed, feeds::read_on)?;
        self.followed += before;
        self.read_on += seen(&followed) - before;
        feeds::compare(&followed, &of_round)?;
        self.positions = followed.into_iter().map(|log| log.position).collect();
        let round = of_round.values().next().map(|item| item.round);
        if round.is_some() {
            self.rows += check::index(address, &of_round, round)?;
        }
        self.expected.extend(of_round);
        Ok(())
    }

    fn check_all(&self, address: SocketAddr) -> Result {
        check::everything(address, &self.expected)?;
        check::index(address, &self.expected, None)?;
        let feeds = feeds::read_from(address, feeds::beginnings(address)?)?;
        feeds::compare(&feeds, &self.expected)
    }
}

impl Documents {
    fn count(&mut self, log: &WriterLog) {
        for write in &log.answered {
            let name = match write.changes.as_slice() {
                changes if write.is_batch => {
                    self.batch_changes += changes.len();
                    "batches"
                }
                changes => match changes.first().map(|change| change.act) {
                    Some(Act::Create) | None => "creations",
                    Some(Act::Replace) => "replacements by etag",
                    Some(Act::Upsert) => "upserts",
                    Some(Act::Patch) => "patches",
                    Some(Act::Delete) => "deletions",
                },
            };
            *self.answered.entry(name).or_default() += 1;
        }
        log.in_doubt.iter().for_each(|write| self.in_doubt.add(write));
    }
}

impl fmt::Display for Documents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.answered.iter().map(|(kind, count)| format!("{count} {kind}"));
        let (kinds, all) =
            (kinds.collect::<Vec<_>>().join(", "), self.answered.values().sum::<usize>());
        writeln!(f, "{all} writes answered: {kinds}; {} changes in batches", self.batch_changes)?;
        let Self { in_doubt, kept, .. } = self;
        writeln!(
            f,
            "{} in doubt, of which {} were kept; {} batches among them, of which {} were kept",
            in_doubt.all, kept.all, in_doubt.batches, kept.batches
        )?;
        writeln!(
            f,
            "{} changes followed by {RANGES} feeds, {} read on from before the kill: no gap, no repeat",
            self.followed, self.read_on
        )?;
        writeln!(f, "{} rows of indexed queries: index and items are the same", self.rows)?;
        write!(f, "0 lost, 0 torn: {} items ever written", self.expected.len())
    }
}
