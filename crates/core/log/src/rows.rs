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
    /// Whether records of it are gone, so that the index says which are left.
    is_sparse: bool,
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
        let mut start = 0;
        // The ends were checked when the row was decoded.
        index(&self.index, self.is_sparse).map(move |(delta, end)| {
            let message = self.body.slice(start..end);
            start = end;
            (self.first + delta, message)
        })
    }

    pub(crate) fn decode(first: u64, mut row: Bytes) -> Result<Self> {
        let damaged = || damaged("a batch of a log");
        if row.len() < BATCH_HEAD_BYTES || row.get_u8() != FORMAT {
            return Err(damaged());
        }
        let (form, is_sparse) = match row.get_u8() {
            1 => (Form::Kafka, false),
            2 => (Form::Amqp, false),
            3 => (Form::Amqp, true),
            _ => return Err(damaged()),
        };
        let (records, enqueued_ms) = (row.get_u32(), row.get_u64());
        let ends = usize::try_from(row.get_u32()).map_err(|_| damaged())?;
        let most = if form == Form::Amqp { records as usize } else { 0 };
        let fits = ends == most || (is_sparse && ends < most);
        let length = ends.checked_mul(entry_bytes(is_sparse)).filter(|it| *it <= row.len());
        let index_row = row.split_to(length.filter(|_| fits).ok_or_else(damaged)?);
        let (mut last, mut least) = (0, 0);
        for (delta, end) in index(&index_row, is_sparse) {
            if end < last || end > row.len() || delta < least || delta >= u64::from(records) {
                return Err(damaged());
            }
            (last, least) = (end, delta + 1);
        }
        Ok(Self { first, form, records, enqueued_ms, is_sparse, index: index_row, body: row })
    }
}

fn entry_bytes(is_sparse: bool) -> usize {
    if is_sparse { 8 } else { 4 }
}

/// Of each message: how far it is from the first offset of its batch, and where it ends.
fn index(row: &[u8], is_sparse: bool) -> impl Iterator<Item = (u64, usize)> {
    let number = |bytes: &[u8]| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    row.chunks_exact(entry_bytes(is_sparse)).enumerate().map(move |(at, entry)| match is_sparse {
        true => (u64::from(number(entry)), number(&entry[4..]) as usize),
        false => (at as u64, number(entry) as usize),
    })
}

/// A batch to append.
#[derive(Clone, Debug)]
pub struct NewBatch {
    pub(crate) form: Form,
    pub(crate) records: u32,
    pub(crate) ends: Vec<u32>,
    /// Which of its offsets its messages have, if not all of them.
    pub(crate) deltas: Vec<u32>,
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
        let (ends, deltas) = (Vec::new(), Vec::new());
        Self { form: Form::Kafka, records, ends, deltas, body: vec![body], producer }
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
        let deltas = Vec::new();
        Self { form: Form::Amqp, records, ends, deltas, body: messages, producer }
    }

    /// Messages of AMQP that are left of a batch: so far from its first offset each, and as many offsets in all.
    pub(crate) fn sparse(messages: Vec<(u32, Bytes)>, records: u32) -> Self {
        let (deltas, messages): (Vec<u32>, Vec<Bytes>) = messages.into_iter().unzip();
        let dense = Self::amqp(messages, None);
        Self { records, deltas, ..dense }
    }

    pub(crate) fn bytes(&self) -> usize {
        let body: usize = self.body.iter().map(Bytes::len).sum();
        BATCH_HEAD_BYTES + 4 * (self.ends.len() + self.deltas.len()) + body
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
            Form::Amqp if self.deltas.is_empty() => 2,
            Form::Amqp => 3,
        });
        row.put_u32(self.records);
        row.put_u64(enqueued_ms);
        row.put_u32(u32::try_from(self.ends.len()).unwrap_or(u32::MAX));
        for (at, end) in self.ends.iter().enumerate() {
            if let Some(delta) = self.deltas.get(at) {
                row.put_u32(*delta);
            }
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
    fn what_is_left_of_a_batch_keeps_its_offsets() {
        let left = vec![(1, Bytes::from("one")), (4, Bytes::new()), (5, Bytes::from("five"))];
        let row = NewBatch::sparse(left.clone(), 8).encode(40, 7);
        let batch = Batch::decode(40, row.clone()).unwrap();
        assert_eq!(batch.end(), 48);
        let found: Vec<_> = batch.messages().collect();
        let expected: Vec<_> =
            left.into_iter().map(|(delta, it)| (40 + u64::from(delta), it)).collect();
        assert_eq!(found, expected);
        // An offset that is not behind the one before it, and one behind the end.
        for (at, value) in [(BATCH_HEAD_BYTES + 11, 1), (BATCH_HEAD_BYTES + 19, 8)] {
            let mut bytes = row.to_vec();
            bytes[at] = value;
            assert!(Batch::decode(40, bytes.into()).is_err(), "{at}");
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
