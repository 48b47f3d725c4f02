//! What the rows of a log look like (`docs/formats/log.md`).

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_engine::{Error, Result};

use crate::limits::{BATCH_BYTES_MAX, BATCH_RECORDS_MAX, PRODUCER_BATCHES};

const FORMAT: u8 = 1;
/// `format | body (1) | records (4) | enqueued (8) | ends (4)` in front of the index of a batch.
const BATCH_HEAD_BYTES: usize = 18;

/// Where a log begins and ends. A log without this row is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogState {
    /// The offset of the first record that is still there; [`LogState::next`] if there is none.
    pub first: u64,
    /// The offset of the next record.
    pub next: u64,
    /// The bytes of all batches that are still there.
    pub bytes: u64,
    pub batches: u64,
    /// When the first batch that is still there came.
    pub first_ms: u64,
    /// When the last record came; zero if none ever did.
    pub last_ms: u64,
    /// Appends by key that were routed by an older layout of the hub are refused.
    pub(crate) layout: u64,
}

impl LogState {
    pub fn is_empty(&self) -> bool {
        self.first == self.next
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(1 + 7 * 8);
        bytes.put_u8(FORMAT);
        let Self { first, next, bytes: size, batches, first_ms, last_ms, layout } = *self;
        for number in [first, next, size, batches, first_ms, last_ms, layout] {
            bytes.put_u64(number);
        }
        bytes.freeze()
    }

    pub(crate) fn decode(mut row: Bytes) -> Result<Self> {
        if row.len() != 1 + 7 * 8 || row.get_u8() != FORMAT {
            return Err(damaged("the state of a log"));
        }
        let (first, next) = (row.get_u64(), row.get_u64());
        let (bytes, batches) = (row.get_u64(), row.get_u64());
        let (first_ms, last_ms) = (row.get_u64(), row.get_u64());
        if first > next {
            return Err(damaged("the state of a log"));
        }
        Ok(Self { first, next, bytes, batches, first_ms, last_ms, layout: row.get_u64() })
    }
}

/// In which form the records of a batch are kept. A front writes its own form and reads both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A record batch of Kafka's, version 2, as it came. Its first eight bytes, which no checksum covers, are the offset
    /// of its first record, and are filled in when it is appended.
    Kafka,
    /// Messages of AMQP, one behind another; the index says where each ends.
    Amqp,
}

/// Records that were appended together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The offset of its first record.
    pub first: u64,
    pub form: Form,
    /// How many offsets it takes.
    pub records: u32,
    pub enqueued_ms: u64,
    index: Bytes,
    pub body: Bytes,
}

impl Batch {
    /// The offset behind its last record.
    pub fn end(&self) -> u64 {
        self.first + u64::from(self.records)
    }

    /// The messages of a batch in the form [`Form::Amqp`], with their offsets. Slices, not copies.
    pub fn messages(&self) -> impl Iterator<Item = (u64, Bytes)> {
        let ends = self.index.chunks_exact(4);
        let ends = ends.map(|end| u32::from_be_bytes([end[0], end[1], end[2], end[3]]) as usize);
        let starts = std::iter::once(0).chain(ends.clone());
        // The ends were checked when the row was decoded.
        let slices = starts.zip(ends).map(|(start, end)| self.body.slice(start..end));
        (self.first..).zip(slices)
    }

    pub(crate) fn decode(first: u64, mut row: Bytes) -> Result<Self> {
        let damaged = || damaged("a batch of a log");
        if row.len() < BATCH_HEAD_BYTES || row.get_u8() != FORMAT {
            return Err(damaged());
        }
        let form = match row.get_u8() {
            1 => Form::Kafka,
            2 => Form::Amqp,
            _ => return Err(damaged()),
        };
        let (records, enqueued_ms) = (row.get_u32(), row.get_u64());
        let ends = usize::try_from(row.get_u32()).map_err(|_| damaged())?;
        let expected = if form == Form::Amqp { records as usize } else { 0 };
        let length = ends.checked_mul(4).filter(|length| *length <= row.len());
        let index = row.split_to(length.filter(|_| ends == expected).ok_or_else(damaged)?);
        let batch = Self { first, form, records, enqueued_ms, index, body: row };
        let mut last = 0;
        for end in batch.index.chunks_exact(4) {
            let end = u32::from_be_bytes([end[0], end[1], end[2], end[3]]) as usize;
            if end < last || end > batch.body.len() {
                return Err(damaged());
            }
            last = end;
        }
        Ok(batch)
    }
}

/// A batch to append.
#[derive(Clone, Debug)]
pub struct NewBatch {
    pub(crate) form: Form,
    pub(crate) records: u32,
    pub(crate) ends: Vec<u32>,
    pub(crate) body: Vec<Bytes>,
    pub(crate) producer: Option<Producer>,
}

/// Which batch of an idempotent producer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Producer {
    pub id: i64,
    pub epoch: i16,
    /// The number of the first record.
    pub sequence: i32,
}

impl NewBatch {
    /// A record batch of Kafka's, whose checksum the front has checked.
    pub fn kafka(body: Bytes, records: u32, producer: Option<Producer>) -> Self {
        Self { form: Form::Kafka, records, ends: Vec::new(), body: vec![body], producer }
    }

    /// Messages of AMQP.
    pub fn amqp(messages: Vec<Bytes>, producer: Option<Producer>) -> Self {
        let mut end = 0_usize;
        let ends = messages.iter().map(|message| {
            end = end.saturating_add(message.len());
            u32::try_from(end).unwrap_or(u32::MAX)
        });
        let ends = ends.collect();
        let records = u32::try_from(messages.len()).unwrap_or(u32::MAX);
        Self { form: Form::Amqp, records, ends, body: messages, producer }
    }

    pub(crate) fn bytes(&self) -> usize {
        let body: usize = self.body.iter().map(Bytes::len).sum();
        BATCH_HEAD_BYTES + 4 * self.ends.len() + body
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.records == 0 || self.records > BATCH_RECORDS_MAX {
            let message = format!("a batch has 1 to {BATCH_RECORDS_MAX} records");
            return Err(Error::invalid("batch-records", message));
        }
        if self.form == Form::Kafka && self.body.first().is_none_or(|body| body.len() < 8) {
            return Err(Error::invalid("batch-too-short", "a record batch begins with its offset"));
        }
        if self.bytes() > BATCH_BYTES_MAX {
            let message = format!("a batch of {} bytes; {BATCH_BYTES_MAX} fit", self.bytes());
            return Err(Error::too_large(crate::LogReason::BatchTooLarge, message));
        }
        Ok(())
    }

    /// The row of the batch, once its first offset is known.
    pub(crate) fn encode(&self, first: u64, enqueued_ms: u64) -> Bytes {
        let mut row = BytesMut::with_capacity(self.bytes());
        row.put_u8(FORMAT);
        row.put_u8(match self.form {
            Form::Kafka => 1,
            Form::Amqp => 2,
        });
        row.put_u32(self.records);
        row.put_u64(enqueued_ms);
        row.put_u32(u32::try_from(self.ends.len()).unwrap_or(u32::MAX));
        for end in &self.ends {
            row.put_u32(*end);
        }
        let start = row.len();
        for part in &self.body {
            row.put_slice(part);
        }
        if self.form == Form::Kafka {
            row[start..start + 8].copy_from_slice(&first.to_be_bytes());
        }
        row.freeze()
    }
}

/// What a producer sent last, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProducerRow {
    pub(crate) epoch: i16,
    pub(crate) sent: Vec<Sent>,
}

/// A batch that a producer sent, and where it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) sequence: i32,
    pub(crate) records: u32,
    pub(crate) first: u64,
    pub(crate) enqueued_ms: u64,
}

impl Sent {
    /// The number of the record behind its last one. Numbers begin anew behind the greatest.
    pub(crate) fn next_sequence(&self) -> i32 {
        let next = i64::from(self.sequence) + i64::from(self.records);
        (next % (i64::from(i32::MAX) + 1)) as i32
    }
}

impl ProducerRow {
    pub(crate) fn encode(&self) -> Bytes {
        let mut row = BytesMut::with_capacity(3 + 24 * self.sent.len());
        row.put_u8(FORMAT);
        row.put_i16(self.epoch);
        for sent in &self.sent {
            row.put_i32(sent.sequence);
            row.put_u32(sent.records);
            row.put_u64(sent.first);
            row.put_u64(sent.enqueued_ms);
        }
        row.freeze()
    }

    pub(crate) fn decode(mut row: Bytes) -> Result<Self> {
        if row.len() < 3 || !(row.len() - 3).is_multiple_of(24) || row.get_u8() != FORMAT {
            return Err(damaged("what is known of a producer"));
        }
        let mut producer = Self { epoch: row.get_i16(), sent: Vec::new() };
        while !row.is_empty() {
            let (sequence, records) = (row.get_i32(), row.get_u32());
            let (first, enqueued_ms) = (row.get_u64(), row.get_u64());
            producer.sent.push(Sent { sequence, records, first, enqueued_ms });
        }
        Ok(producer)
    }

    pub(crate) fn remember(&mut self, sent: Sent) {
        if self.sent.len() >= PRODUCER_BATCHES {
            self.sent.remove(0);
        }
        self.sent.push(sent);
    }
}

pub(crate) fn damaged(what: &str) -> Error {
    Error::corrupt("bad-log-row", format!("{what} does not decode"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_survives_its_row_and_knows_where_its_messages_end() {
        let messages = vec![Bytes::from("one"), Bytes::new(), Bytes::from("three")];
        let new = NewBatch::amqp(messages.clone(), None);
        new.check().unwrap();
        let row = new.encode(40, 7);
        assert_eq!(row.len(), new.bytes());
        let batch = Batch::decode(40, row.clone()).unwrap();
        assert_eq!((batch.end(), batch.enqueued_ms, batch.form), (43, 7, Form::Amqp));
        let found: Vec<_> = batch.messages().collect();
        let expected: Vec<_> = (40..).zip(messages).collect();
        assert_eq!(found, expected);
        for length in 0..row.len() - 8 {
            assert!(Batch::decode(40, row.slice(..length)).is_err(), "{length}");
        }
    }

    #[test]
    fn a_record_batch_gets_its_offset_and_keeps_the_rest() {
        let new = NewBatch::kafka(Bytes::from_static(b"00000000rest"), 2, None);
        let batch = Batch::decode(9, new.encode(9, 1)).unwrap();
        assert_eq!(&batch.body[..], b"\0\0\0\0\0\0\0\x09rest");
        assert!(NewBatch::kafka(Bytes::from_static(b"short"), 1, None).check().is_err());
    }

    #[test]
    fn states_and_producers_survive_their_rows_and_damage_is_corrupt() {
        let state = LogState { first: 3, next: 9, bytes: 70, batches: 2, ..LogState::default() };
        assert_eq!(LogState::decode(state.encode()).unwrap(), state);
        let mut row = ProducerRow { epoch: 4, sent: Vec::new() };
        for number in 0..9 {
            row.remember(Sent { sequence: number, records: 1, first: 5, enqueued_ms: 6 });
        }
        assert_eq!(row.sent.len(), PRODUCER_BATCHES);
        assert_eq!(row.sent[0].sequence, 4);
        assert_eq!(ProducerRow::decode(row.encode()).unwrap(), row);
        for row in [state.encode(), row.encode()] {
            let cut = row.slice(..row.len() - 1);
            assert!(LogState::decode(cut.clone()).is_err() && ProducerRow::decode(cut).is_err());
        }
    }

    #[test]
    fn numbers_of_records_begin_anew_behind_the_greatest() {
        let sent = |sequence, records| Sent { sequence, records, first: 0, enqueued_ms: 0 };
        assert_eq!(sent(0, 3).next_sequence(), 3);
        assert_eq!(sent(i32::MAX, 1).next_sequence(), 0);
        assert_eq!(sent(i32::MAX - 1, 4).next_sequence(), 2);
    }
}
