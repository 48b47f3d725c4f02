//! Record batches of version 2: what their heads say, and their records.
//!
//! Head, 61 bytes: `offset (8) | length (4) | leader epoch (4) | version (1) | CRC-32C (4) | attributes (2) | last offset
//! delta (4) | first time (8) | last time (8) | producer id (8) | producer epoch (2) | first number (4) | records (4)`. The
//! checksum covers what stands behind it, so offset and leader epoch can be filled in.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::Malformed;
use crate::compress::decompress;

/// Bytes in front of the first record.
pub const HEAD_BYTES: usize = 61;
const VERSION: i8 = 2;
/// What the length leaves out: the offset and itself.
const BEFORE_LENGTH: usize = 12;
const CHECKED_FROM: usize = 21;
const IS_TRANSACTIONAL: i16 = 1 << 4;
const IS_CONTROL: i16 = 1 << 5;
const CODEC: i16 = 7;
/// The most headers of a record that is written or read here.
const HEADERS_MAX: usize = 10_000;

/// How the records of a batch are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

/// The head of a batch that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub codec: Codec,
    pub is_transactional: bool,
    pub first_time: i64,
    pub last_time: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub first_sequence: i32,
    pub records: u32,
    /// How many offsets it takes: more than it has records where some of them are gone.
    pub span: u32,
}

/// Why a batch is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not one whole batch of version 2, or its checksum is wrong.
    Corrupt,
    /// Of an older version.
    OldVersion,
    /// What only brokers write.
    Control,
}

impl Head {
    /// The head of exactly one batch of a producer, whose checksum is right.
    pub fn check(batch: &Bytes) -> Result<Self, Fault> {
        // Producers number without gaps. Whoever lies about it would make readers lose their place.
        Self::read(batch).and_then(|head| match head.span == head.records {
            true => Ok(head),
            false => Err(Fault::Corrupt),
        })
    }

    /// The head of exactly one batch, of which records may be gone, and whose checksum is right.
    pub fn read(batch: &Bytes) -> Result<Self, Fault> {
        if batch.len() < 17 {
            return Err(Fault::Corrupt);
        }
        // The version stands at the same place in all versions.
        if batch[16] != VERSION as u8 {
            return Err(if batch[16] < VERSION as u8 { Fault::OldVersion } else { Fault::Corrupt });
        }
        if batch.len() < HEAD_BYTES {
            return Err(Fault::Corrupt);
        }
        let mut head = batch.clone();
        head.advance(8);
        let length = usize::try_from(head.get_i32()).map_err(|_| Fault::Corrupt)?;
        head.advance(5);
        let checksum = head.get_u32();
        if length + BEFORE_LENGTH != batch.len()
            || checksum != crc32c::crc32c(&batch[CHECKED_FROM..])
        {
            return Err(Fault::Corrupt);
        }
        let attributes = head.get_i16();
        let last_delta = head.get_i32();
        let (first_time, last_time) = (head.get_i64(), head.get_i64());
        let (producer_id, producer_epoch) = (head.get_i64(), head.get_i16());
        let (first_sequence, count) = (head.get_i32(), head.get_i32());
        if attributes & IS_CONTROL != 0 {
            return Err(Fault::Control);
        }
        let codec = match attributes & CODEC {
            0 => Codec::None,
            1 => Codec::Gzip,
            2 => Codec::Snappy,
            3 => Codec::Lz4,
            4 => Codec::Zstd,
            _ => return Err(Fault::Corrupt),
        };
        let records = u32::try_from(count).map_err(|_| Fault::Corrupt)?;
        let span = u32::try_from(i64::from(last_delta) + 1).map_err(|_| Fault::Corrupt)?;
        if records == 0 || span < records {
            return Err(Fault::Corrupt);
        }
        let is_transactional = attributes & IS_TRANSACTIONAL != 0;
        Ok(Self {
            codec,
            is_transactional,
            first_time,
            last_time,
            producer_id,
            producer_epoch,
            first_sequence,
            records,
            span,
        })
    }
}

/// One record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// How far its offset is from that of the batch.
    pub delta: u32,
    pub time: i64,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    pub headers: Vec<(String, Option<Bytes>)>,
}

/// The records of a whole batch. What is longer than `most` once it is decompressed is malformed too.
pub fn read(batch: &Bytes, most: usize) -> Result<Vec<Record>, Malformed> {
    let head = Head::read(batch).map_err(|_| Malformed)?;
    records(&head, decompress(head.codec, &batch.slice(HEAD_BYTES..), most)?)
}

/// The records of a batch, given what stands behind its head once it is decompressed. Slices, not copies.
pub fn records(head: &Head, mut rest: Bytes) -> Result<Vec<Record>, Malformed> {
    let mut records = Vec::new();
    let mut least = 0;
    for position in 0..head.records {
        let length = length(varint(&mut rest)?)?;
        if length > rest.len() {
            return Err(Malformed);
        }
        let mut one = rest.split_to(length);
        one.try_get_i8().map_err(|_| Malformed)?;
        let time = head.first_time.wrapping_add(varint(&mut one)?);
        let delta = varint(&mut one)?;
        // What producers write here counts for nothing: their records have no gaps.
        let delta = match head.span == head.records {
            true => position,
            false => u32::try_from(delta).map_err(|_| Malformed)?,
        };
        if delta < least || delta >= head.span {
            return Err(Malformed);
        }
        least = delta + 1;
        let (key, value) = (nullable(&mut one)?, nullable(&mut one)?);
        let count = length_of(&mut one)?;
        if count > one.len() || count > HEADERS_MAX {
            return Err(Malformed);
        }
        let mut headers = Vec::new();
        for _ in 0..count {
            let name = nullable(&mut one)?.ok_or(Malformed)?;
            let name = std::str::from_utf8(&name).map_err(|_| Malformed)?.to_owned();
            headers.push((name, nullable(&mut one)?));
        }
        records.push(Record { delta, time, key, value, headers });
    }
    if rest.is_empty() { Ok(records) } else { Err(Malformed) }
}

/// A batch of these records, not compressed, that takes so many offsets from this one on.
pub fn build(first: u64, span: u32, records: &[Record]) -> Bytes {
    let first_time = records.first().map_or(0, |record| record.time);
    let last_time = records.iter().map(|record| record.time).max().unwrap_or(first_time);
    let count = records.len() as i32;
    let mut batch = BytesMut::new();
    batch.put_u64(first);
    batch.put_i32(0);
    batch.put_i32(0);
    batch.put_i8(VERSION);
    batch.put_u32(0);
    batch.put_i16(0);
    batch.put_i32(span.wrapping_sub(1) as i32);
    batch.put_i64(first_time);
    batch.put_i64(last_time);
    batch.put_i64(-1);
    batch.put_i16(-1);
    batch.put_i32(-1);
    batch.put_i32(count);
    let mut one = BytesMut::new();
    for record in records {
        one.put_i8(0);
        put_varint(&mut one, record.time.wrapping_sub(first_time));
        put_varint(&mut one, i64::from(record.delta));
        put_nullable(&mut one, record.key.as_ref());
        put_nullable(&mut one, record.value.as_ref());
        put_varint(&mut one, record.headers.len() as i64);
        for (name, value) in &record.headers {
            put_varint(&mut one, name.len() as i64);
            one.put_slice(name.as_bytes());
            put_nullable(&mut one, value.as_ref());
        }
        put_varint(&mut batch, one.len() as i64);
        batch.put_slice(&one);
        one.clear();
    }
    let length = (batch.len() - BEFORE_LENGTH) as i32;
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    let checksum = crc32c::crc32c(&batch[CHECKED_FROM..]);
    batch[17..21].copy_from_slice(&checksum.to_be_bytes());
    batch.freeze()
}

/// A signed number in groups of seven bits, in zigzag order.
fn varint(bytes: &mut Bytes) -> Result<i64, Malformed> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = bytes.try_get_u8().map_err(|_| Malformed)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok((number >> 1) as i64 ^ -((number & 1) as i64));
        }
    }
    Err(Malformed)
}

fn put_varint(bytes: &mut BytesMut, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    while rest >= 0x80 {
        bytes.put_u8(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.put_u8(rest as u8);
}

fn length(number: i64) -> Result<usize, Malformed> {
    usize::try_from(number).map_err(|_| Malformed)
}

fn length_of(bytes: &mut Bytes) -> Result<usize, Malformed> {
    length(varint(bytes)?)
}

fn nullable(bytes: &mut Bytes) -> Result<Option<Bytes>, Malformed> {
    let number = varint(bytes)?;
    if number == -1 {
        return Ok(None);
    }
    let length = length(number)?;
    if length > bytes.len() {
        return Err(Malformed);
    }
    Ok(Some(bytes.split_to(length)))
}

fn put_nullable(bytes: &mut BytesMut, value: Option<&Bytes>) {
    match value {
        Some(value) => {
            put_varint(bytes, value.len() as i64);
            bytes.put_slice(value);
        }
        None => put_varint(bytes, -1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Vec<Record> {
        let header = ("name".to_owned(), Some(Bytes::from_static(b"value")));
        let value = Some(Bytes::from_static(b"hello"));
        vec![
            Record {
                delta: 0,
                time: 1_000,
                key: None,
                value: value.clone(),
                headers: vec![header],
            },
            Record {
                delta: 1,
                time: 900,
                key: value,
                value: None,
                headers: vec![("n".into(), None)],
            },
        ]
    }

    #[test]
    fn records_survive_their_batch() {
        let batch = build(7, 2, &some());
        let head = Head::check(&batch).unwrap();
        assert_eq!((head.records, head.codec, head.producer_id), (2, Codec::None, -1));
        assert_eq!((head.first_time, head.last_time), (1_000, 1_000));
        assert_eq!(records(&head, batch.slice(HEAD_BYTES..)).unwrap(), some());
    }

    #[test]
    fn records_that_are_left_keep_their_places() {
        let mut left = some();
        (left[0].delta, left[1].delta) = (1, 5);
        let batch = build(7, 8, &left);
        assert_eq!(read(&batch, usize::MAX), Ok(left.clone()));
        assert_eq!(Head::check(&batch), Err(Fault::Corrupt));
        for deltas in [(1, 8), (5, 5), (5, 1)] {
            (left[0].delta, left[1].delta) = deltas;
            assert_eq!(read(&build(7, 8, &left), usize::MAX), Err(Malformed), "{deltas:?}");
        }
    }

    #[test]
    fn every_changed_byte_behind_the_checksum_is_noticed_and_offsets_may_change() {
        let whole = build(7, 2, &some());
        for at in 0..whole.len() {
            let mut bytes = whole.to_vec();
            bytes[at] ^= 1;
            let free = at < 8 || (12..16).contains(&at);
            assert_eq!(Head::check(&bytes.into()).is_ok(), free, "{at}");
        }
        for length in 0..whole.len() {
            assert!(Head::check(&whole.slice(..length)).is_err(), "{length}");
        }
    }
}
