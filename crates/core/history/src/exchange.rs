//! What is told to other nodes and heard from them: plain data that sees to it that each row counts once.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use lazuli_engine::{Id, Sample};

use crate::heat::Heat;
use crate::told::{decode, encode};

/// Rows of this node that are not in the catalog for certain. A row keeps its number and its content however often it is
/// written, so that one whose commit was not answered is not counted twice.
pub(crate) struct Outbox {
    last: u64,
    unsure: VecDeque<(u64, Bytes)>,
    rows_max: usize,
}

impl Outbox {
    pub(crate) fn new(rows_max: usize) -> Self {
        Self { last: 0, unsure: VecDeque::new(), rows_max }
    }

    /// Adds the samples of a step. The oldest ones are dropped while the catalog is away.
    pub(crate) fn add(&mut self, samples: &[Sample], heat: &Heat) {
        let Some(row) = encode(samples, heat) else { return };
        self.last += 1;
        self.unsure.push_back((self.last, row));
        while self.unsure.len() > self.rows_max {
            self.unsure.pop_front();
        }
    }

    pub(crate) fn rows(&self) -> Vec<(u64, Bytes)> {
        self.unsure.iter().cloned().collect()
    }

    /// All rows up to this number are in the catalog.
    pub(crate) fn done(&mut self, number: u64) {
        self.unsure.retain(|(other, _)| *other > number);
    }
}

/// The last row that was read of each other node, and what it knows of hot keys.
#[derive(Default)]
pub(crate) struct Inbox {
    seen: BTreeMap<Id, u64>,
    heat: BTreeMap<Id, Heat>,
    has_looked: bool,
}

impl Inbox {
    pub(crate) fn seen(&self) -> &BTreeMap<Id, u64> {
        &self.seen
    }

    /// What each other node knows of hot keys.
    pub(crate) fn heat(&self) -> Vec<Heat> {
        self.heat.values().cloned().collect()
    }

    /// The samples of rows that were not read before. Those of the first call are left out: nobody knows how old they are.
    /// Nodes that are not in the list are gone, and their rows with them.
    pub(crate) fn take(&mut self, told: Vec<(Id, Vec<(u64, Bytes)>)>) -> Vec<Sample> {
        let mut samples = Vec::new();
        let mut seen = BTreeMap::new();
        for (node, rows) in told {
            // Rows are numbered from one.
            let before = self.seen.get(&node).copied().unwrap_or(0);
            let newest = rows.iter().map(|(number, _)| *number).max();
            seen.insert(node, newest.unwrap_or(0).max(before));
            let new = rows.into_iter().filter(|(number, _)| *number > before && self.has_looked);
            // Rows of a version that this one does not know are left out.
            for (row, heat) in new.filter_map(|(_, row)| decode(row).ok()) {
                samples.extend(row);
                self.heat.entry(node).or_default().update(heat);
            }
        }
        self.heat.retain(|node, _| seen.contains_key(node));
        self.seen = seen;
        self.has_looked = true;
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lazuli_engine::{Latencies, PartitionId};

    const NODE: Id = Id::from_bytes([1; 16]);

    fn sample(writes: u64) -> Sample {
        Sample {
            partition: PartitionId(1),
            held: None,
            size: None,
            reads: 0,
            writes,
            throttled: 0,
            read_times: Latencies::default(),
            write_times: Latencies::default(),
        }
    }

    fn writes(samples: &[Sample]) -> Vec<u64> {
        samples.iter().map(|sample| sample.writes).collect()
    }

    #[test]
    fn each_row_counts_once_however_often_it_is_written_and_read() {
        let (mut outbox, mut inbox) = (Outbox::new(3), Inbox::default());
        outbox.add(&[sample(1)], &Heat::default());
        let first = outbox.rows();
        assert_eq!(writes(&inbox.take(vec![(NODE, first.clone())])), [0; 0], "of unknown age");
        // The first row was written, but nobody said so: it is written again, with the second one.
        outbox.add(&[sample(2)], &Heat::default());
        outbox.add(&[], &Heat::default());
        let both = outbox.rows();
        assert_eq!(both[..1], first);
        assert_eq!(writes(&inbox.take(vec![(NODE, both.clone())])), [2]);
        assert_eq!(writes(&inbox.take(vec![(NODE, both)])), [0; 0]);
        assert_eq!(inbox.seen()[&NODE], 2);
        outbox.done(2);
        outbox.add(&[sample(3)], &crate::heat::tests::heat());
        assert_eq!(writes(&inbox.take(vec![(NODE, outbox.rows())])), [3]);
        assert_eq!(inbox.heat(), [crate::heat::tests::heat()]);
        assert_eq!(writes(&inbox.take(vec![(NODE, Vec::new())])), [0; 0]);
        assert_eq!(inbox.seen()[&NODE], 3, "a node without news is not forgotten");
        inbox.take(Vec::new());
        assert!(inbox.seen().is_empty() && inbox.heat().is_empty(), "one that is gone is");
        let new = Id::from_bytes([2; 16]);
        assert_eq!(writes(&inbox.take(vec![(new, outbox.rows())])), [3], "all of a new node's");
    }

    #[test]
    fn the_newest_rows_are_kept_while_the_catalog_is_away_and_damaged_ones_left_out() {
        let (mut outbox, mut inbox) = (Outbox::new(3), Inbox::default());
        inbox.take(vec![(NODE, Vec::new())]);
        (1..=5).for_each(|n| outbox.add(&[sample(n)], &Heat::default()));
        let mut rows = outbox.rows();
        assert_eq!(rows.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [3, 4, 5]);
        rows[1].1 = Bytes::from_static(b"\xff");
        assert_eq!(writes(&inbox.take(vec![(NODE, rows)])), [3, 5]);
    }
}
