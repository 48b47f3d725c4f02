//! What becomes of one batch, and the transaction that puts what is left of several in their places.

use std::collections::BTreeMap;

use bytes::Bytes;
use lazuli_engine::{Lsn, Result, Transaction, Tx};

use super::{KeyedRecord, ReadRecords};
use crate::hub::LogPlace;
use crate::limits::COMPACTION_BYTES;
use crate::rows::{Batch, Form, LogState, NewBatch};

/// Which records stay.
pub(super) struct Newest {
    /// The newest offset of each key of the part of the log that is new.
    pub(super) offsets: BTreeMap<Bytes, u64>,
    /// Tombstones in front of this offset may go.
    pub(super) ripe: u64,
}

impl Newest {
    fn stays(&self, record: &KeyedRecord) -> bool {
        let Some(key) = &record.key else { return true };
        if self.offsets.get(key).is_some_and(|newest| *newest > record.offset) {
            return false;
        }
        !(record.is_tombstone && record.offset < self.ripe)
    }
}

/// What becomes of a batch.
pub(super) enum Outcome {
    Stays,
    /// Rows, by the offset they begin at, in the place of its row. The first begins where it did.
    Becomes(Vec<(u64, Bytes)>),
    Goes,
}

/// Decides about a batch whose records were read. Answers also how many tombstones are left in it.
pub(super) fn decide(
    reader: &dyn ReadRecords,
    newest: &Newest,
    batch: &Batch,
    records: &[KeyedRecord],
    is_last: bool,
) -> (Outcome, u64) {
    let left: Vec<&KeyedRecord> = records.iter().filter(|record| newest.stays(record)).collect();
    let count = |records: &mut dyn Iterator<Item = &KeyedRecord>| {
        records.filter(|record| record.is_tombstone && record.key.is_some()).count() as u64
    };
    // The last batch of a log has to stay: whoever reads behind the last record that is left finds it there.
    if left.len() == records.len() || (left.is_empty() && is_last) {
        return (Outcome::Stays, count(&mut records.iter()));
    }
    if left.is_empty() {
        return (Outcome::Goes, 0);
    }
    let tombstones = count(&mut left.iter().copied());
    (Outcome::Becomes(rewrite(reader, batch, &left)), tombstones)
}

/// The rows of what is left of a batch. What was compressed may take several: none is much longer than a page of a pass.
fn rewrite(reader: &dyn ReadRecords, batch: &Batch, left: &[&KeyedRecord]) -> Vec<(u64, Bytes)> {
    let (mut starts, mut bytes) = (vec![0], 0_usize);
    for (at, record) in left.iter().enumerate() {
        if bytes > 0 && bytes.saturating_add(record.bytes) > COMPACTION_BYTES {
            starts.push(at);
            bytes = 0;
        }
        bytes = bytes.saturating_add(record.bytes);
    }
    let mut rows = Vec::with_capacity(starts.len());
    for (number, start) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied();
        let first = if number == 0 { batch.first } else { left[*start].offset };
        let behind = end.map_or(batch.end(), |end| left[end].offset);
        let part = &left[*start..end.unwrap_or(left.len())];
        let offsets: Vec<u64> = part.iter().map(|record| record.offset).collect();
        // Both lie in one batch, which takes less than 2^32 offsets.
        let span = u32::try_from(behind - first).unwrap_or(u32::MAX);
        let new = match batch.form {
            Form::Kafka => NewBatch::kafka(reader.write(batch, first, span, &offsets), span, None),
            Form::Amqp => {
                let is_left = |offset: &u64| offsets.binary_search(offset).is_ok();
                let messages = batch.messages().filter(|(offset, _)| is_left(offset));
                let delta = |offset: u64| u32::try_from(offset - first).unwrap_or(u32::MAX);
                let messages = messages.map(|(offset, message)| (delta(offset), message));
                NewBatch::sparse(messages.collect(), span)
            }
        };
        rows.push((first, new.encode(first, batch.enqueued_ms)));
    }
    rows
}

/// A batch that was looked at outside of the transaction, and what becomes of it.
#[derive(Clone)]
pub(super) struct Change {
    pub(super) first: u64,
    pub(super) version: Lsn,
    pub(super) rows: Vec<(u64, Bytes)>,
}

/// Changes batches, if all of them are still as they were.
pub(super) struct Rewrite {
    pub(super) place: LogPlace,
    pub(super) changes: Vec<Change>,
}

impl Transaction for Rewrite {
    type Output = bool;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<bool> {
        let place = &self.place;
        let mut found = Vec::with_capacity(self.changes.len());
        for change in &self.changes {
            match tx.get(&place.batch(change.first)).await? {
                Some(item) if item.version == change.version => found.push(item),
                // The retention was here, or another process.
                _ => return Ok(false),
            }
        }
        let Some(old) = tx.get(&place.state()).await? else { return Ok(false) };
        let mut state = LogState::decode(old.payload.clone())?;
        for (change, item) in self.changes.iter().zip(found) {
            let new: u64 = change.rows.iter().map(|(_, row)| row.len() as u64).sum();
            state.bytes = state.bytes.saturating_sub(item.payload.len() as u64) + new;
            state.batches = state.batches.saturating_sub(1) + change.rows.len() as u64;
            let key = place.batch(change.first);
            if change.rows.is_empty() {
                tx.remove(&key, &item)?;
            }
            for (first, row) in &change.rows {
                // No row but the first was ever at its offset: that lay inside of this batch.
                let old = (*first == change.first).then_some(&item);
                tx.replace(&place.batch(*first), old, row.clone(), None)?;
            }
        }
        tx.replace(&place.state(), Some(&old), state.encode(), None)?;
        Ok(true)
    }

    fn cost(&self) -> u32 {
        0
    }
}
