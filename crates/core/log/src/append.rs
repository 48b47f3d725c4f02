//! Appending: one batch, one transaction, a few rows.

use lazuli_engine::{Error, Result, Transaction, Tx};
use tokio::sync::oneshot;

use crate::hash::partition_of_key;
use crate::hub::{Hub, LogPlace};
use crate::limits::{LAYOUT_PAUSE, LAYOUT_TRIES_MAX, PRODUCER_LIFE};
use crate::rows::{LogState, NewBatch, Producer, ProducerRow, Sent};
use crate::{LogReason, Logs};

const DAY_MS: u64 = 24 * 3600 * 1000;

/// Where a batch went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    pub partition: u32,
    /// The offset of its first record.
    pub first: u64,
    pub enqueued_ms: u64,
    /// Where the log begins.
    pub log_start: u64,
    /// Whether an idempotent producer had sent it before: nothing was appended.
    pub is_repeat: bool,
}

struct Append {
    place: LogPlace,
    batch: NewBatch,
    /// By which layout a key was routed.
    layout: Option<u64>,
}

impl Transaction for Append {
    type Output = Appended;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Appended> {
        let key = self.place.state();
        let old = tx.get(&key).await?;
        let state = old.as_ref().map(|item| LogState::decode(item.payload.clone()));
        let mut state = state.transpose()?.unwrap_or_default();
        if self.layout.is_some_and(|layout| layout < state.layout) {
            let message = "the hub gets more partitions";
            return Err(Error::precondition(LogReason::LayoutChanged, message));
        }
        let (first, now) = (state.next, tx.now_ms());
        let (partition, log_start) = (self.place.partition, state.first);
        let appended = Appended { partition, first, enqueued_ms: now, log_start, is_repeat: false };
        if let Some(producer) = self.batch.producer
            && let Some(sent) = self.note_producer(tx, producer, first, now).await?
        {
            let Sent { first, enqueued_ms, .. } = sent;
            return Ok(Appended { first, enqueued_ms, is_repeat: true, ..appended });
        }
        let row = self.batch.encode(first, now);
        if state.is_empty() {
            state.first_ms = now;
        }
        state.bytes += row.len() as u64;
        state.batches += 1;
        state.next += u64::from(self.batch.records);
        state.last_ms = now;
        // No batch ever had this offset.
        tx.replace(&self.place.batch(first), None, row, None)?;
        tx.replace(&key, old.as_ref(), state.encode(), None)?;
        Ok(appended)
    }

    fn cost(&self) -> u32 {
        // A unit for each KiB, as records of a kibibyte are what people count.
        u32::try_from(self.batch.bytes().div_ceil(1024)).unwrap_or(u32::MAX)
    }
}

impl Append {
    /// Remembers the batch of an idempotent producer, or answers where it went if it came before.
    async fn note_producer(
        &self,
        tx: &mut Tx<'_>,
        producer: Producer,
        first: u64,
        now: u64,
    ) -> Result<Option<Sent>> {
        let key = self.place.producer(producer.id);
        let old = tx.get(&key).await?;
        let row = old.as_ref().map(|item| ProducerRow::decode(item.payload.clone())).transpose()?;
        let mut row = match row {
            Some(row) => match check_sequence(&row, producer, self.batch.records)? {
                Checked::Repeat(sent) => return Ok(Some(sent)),
                Checked::Next => row,
                Checked::NewEpoch => ProducerRow { epoch: producer.epoch, sent: Vec::new() },
            },
            None => ProducerRow { epoch: producer.epoch, sent: Vec::new() },
        };
        let records = self.batch.records;
        row.remember(Sent { sequence: producer.sequence, records, first, enqueued_ms: now });
        // The end of a day, so that most appends leave the expiry of the row as it is.
        let expires_ms = (now + PRODUCER_LIFE.as_millis() as u64).next_multiple_of(DAY_MS);
        tx.put_until(&key, row.encode(), Some(expires_ms)).await?;
        Ok(None)
    }
}

enum Checked {
    Next,
    NewEpoch,
    Repeat(Sent),
}

/// Whether a batch is the next one of its producer.
fn check_sequence(row: &ProducerRow, producer: Producer, records: u32) -> Result<Checked> {
    let refuse = |reason: LogReason, message: &str| Err(Error::precondition(reason, message));
    if producer.epoch < row.epoch {
        let message = "a newer instance of the producer has begun";
        return refuse(LogReason::ProducerFenced, message);
    }
    if producer.epoch > row.epoch {
        if producer.sequence == 0 {
            return Ok(Checked::NewEpoch);
        }
        return refuse(LogReason::OutOfSequence, "a new instance begins with number 0");
    }
    let same = |sent: &&Sent| sent.sequence == producer.sequence && sent.records == records;
    if let Some(sent) = row.sent.iter().find(same) {
        return Ok(Checked::Repeat(*sent));
    }
    let Some(last) = row.sent.last() else { return Ok(Checked::Next) };
    let expected = last.next_sequence();
    if producer.sequence == expected {
        return Ok(Checked::Next);
    }
    if producer.sequence < expected {
        return refuse(LogReason::DuplicateSequence, "the batch was appended before");
    }
    let message = format!("the producer's next number is {expected}, not {}", producer.sequence);
    refuse(LogReason::OutOfSequence, &message)
}

impl Logs {
    /// Appends a batch to a partition. Answered when it is on disk; readers that wait are woken then.
    pub async fn append(&self, hub: &Hub, partition: u32, batch: NewBatch) -> Result<Appended> {
        self.append_routed(hub, partition, batch, None).await
    }

    /// Appends a batch to the partition of a key. All its records are of this key.
    pub async fn append_by_key(
        &self,
        namespace: &str,
        hub: &str,
        key: &str,
        batch: NewBatch,
    ) -> Result<Appended> {
        let mut found = self.hub(namespace, hub).await?;
        let mut tries = 0;
        loop {
            let partition = partition_of_key(key, found.settings.partitions);
            let layout = Some(found.layout);
            match self.append_routed(&found, partition, batch.clone(), layout).await {
                Err(error) if error.is(LogReason::LayoutChanged) && tries < LAYOUT_TRIES_MAX => {
                    tries += 1;
                    found = self.finish_growth(namespace, hub).await?;
                    if Some(found.layout) == layout {
                        self.engine.env().clock.sleep(LAYOUT_PAUSE).await;
                    }
                }
                answer => return answer,
            }
        }
    }

    async fn append_routed(
        &self,
        hub: &Hub,
        partition: u32,
        batch: NewBatch,
        layout: Option<u64>,
    ) -> Result<Appended> {
        batch.check()?;
        let place = hub.log(partition)?;
        let (engine, wakes) = (self.engine.clone(), self.wakes.clone());
        let (container, route) = (place.container, place.route.clone());
        let append = Append { place, batch, layout };
        let (reply, answer) = oneshot::channel();
        // A task of its own: readers are woken also if the caller goes away before the commit.
        let task = async move {
            let appended = engine.write(container, &route, append).await;
            if appended.is_ok() {
                wakes.tell((container, partition));
            }
            let _ = reply.send(appended);
        };
        self.engine.env().spawn.spawn("append", Box::pin(task));
        let stopping = || Error::unavailable("stopping", "the append was not answered");
        answer.await.map_err(|_| stopping())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> ProducerRow {
        let mut row = ProducerRow { epoch: 3, sent: Vec::new() };
        for number in 0..7 {
            row.remember(Sent { sequence: 2 * number, records: 2, first: 9, enqueued_ms: 1 });
        }
        row
    }

    fn check(epoch: i16, sequence: i32, records: u32) -> Result<&'static str> {
        let producer = Producer { id: 1, epoch, sequence };
        Ok(match check_sequence(&row(), producer, records)? {
            Checked::Next => "next",
            Checked::NewEpoch => "new epoch",
            Checked::Repeat(_) => "repeat",
        })
    }

    #[test]
    fn a_producer_sends_each_batch_once_and_in_order() {
        assert_eq!(check(3, 14, 9).unwrap(), "next");
        assert_eq!(check(3, 12, 2).unwrap(), "repeat");
        assert_eq!(check(3, 4, 2).unwrap(), "repeat");
        assert_eq!(check(4, 0, 1).unwrap(), "new epoch");
        let refused = |epoch, sequence| check(epoch, sequence, 2).unwrap_err().reason();
        assert_eq!(refused(2, 14), Some(LogReason::ProducerFenced));
        assert_eq!(refused(4, 14), Some(LogReason::OutOfSequence));
        assert_eq!(refused(3, 15), Some(LogReason::OutOfSequence));
        assert_eq!(refused(3, 0), Some(LogReason::DuplicateSequence));
    }
}
