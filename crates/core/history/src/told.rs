//! What a node of a fleet tells the others: the samples of one step as a row of bounded size, and what it knows of hot keys.
//!
//! The row: a format (1), a count (4), and for each partition its id (8), reads, writes and requests over budget (8 each), a
//! flag and, if it is set, shard and container (4 each), a flag and, if it is set, items, bytes and bytes outside (8 each), and
//! the latencies of reads and of writes: the sum in microseconds (8), a bit for each bucket that has a count (4), and these
//! counts (4 each). Behind the partitions comes what `heat` writes. Numbers are big-endian.

use std::cmp::Reverse;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_engine::{
    ContainerId, Held, LATENCY_BUCKETS, Latencies, PartitionId, Sample, ShardId, Size,
};
use lazuli_store::{Error, Result};

use crate::heat::Heat;

const FORMAT: u8 = 2;
/// The partitions that a node tells of in one step, those with the most requests.
pub(crate) const PARTITIONS_TOLD_MAX: usize = 500;

const _: () = assert!(LATENCY_BUCKETS < 32, "a bit for each bucket");

fn requests(sample: &Sample) -> u64 {
    sample.reads.saturating_add(sample.writes).saturating_add(sample.throttled)
}

/// The row of these samples; none if nothing was asked for.
pub(crate) fn encode(samples: &[Sample], heat: &Heat) -> Option<Bytes> {
    let mut busy: Vec<&Sample> = samples.iter().filter(|one| requests(one) > 0).collect();
    busy.sort_by_key(|one| Reverse(requests(one)));
    busy.truncate(PARTITIONS_TOLD_MAX);
    if busy.is_empty() {
        return None;
    }
    let mut out = BytesMut::new();
    out.put_u8(FORMAT);
    out.put_u32(busy.len() as u32);
    busy.into_iter().for_each(|sample| write(&mut out, sample));
    heat.write(&mut out);
    Some(out.freeze())
}

fn write(out: &mut BytesMut, sample: &Sample) {
    let Sample { partition, held, size, reads, writes, throttled, read_times, write_times } =
        sample;
    for number in [partition.0, *reads, *writes, *throttled] {
        out.put_u64(number);
    }
    out.put_u8(u8::from(held.is_some()));
    if let Some(Held { shard, container }) = held {
        out.put_u32(shard.0);
        out.put_u32(container.0);
    }
    out.put_u8(u8::from(size.is_some()));
    if let Some(Size { items, bytes, outside }) = size {
        [items, bytes, outside].into_iter().for_each(|number| out.put_u64(*number));
    }
    for times in [read_times, write_times] {
        let (buckets, sum_us) = times.parts();
        let used = || buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        out.put_u64(sum_us);
        out.put_u32(used().fold(0, |bits, (at, _)| bits | 1 << at));
        used().for_each(|(_, count)| out.put_u32(*count));
    }
}

/// The samples of a row. One that is damaged, or of a format that this version does not know, is refused as a whole.
pub(crate) fn decode(row: Bytes) -> Result<(Vec<Sample>, Heat)> {
    let mut row = row;
    let damaged = || Error::corrupt("row-corrupt", "figures of a node cannot be read");
    let samples = read_all(&mut row).ok_or_else(damaged)?;
    let heat = Heat::read(&mut row).ok_or_else(damaged)?;
    if row.is_empty() { Ok((samples, heat)) } else { Err(damaged()) }
}

fn read_all(row: &mut Bytes) -> Option<Vec<Sample>> {
    if row.try_get_u8().ok()? != FORMAT {
        return None;
    }
    let count = row.try_get_u32().ok()? as usize;
    if count > PARTITIONS_TOLD_MAX {
        return None;
    }
    (0..count).map(|_| read(row)).collect()
}

fn read(row: &mut Bytes) -> Option<Sample> {
    let partition = PartitionId(row.try_get_u64().ok()?);
    let [reads, writes, throttled] = numbers(row)?;
    let held = match flag(row)? {
        true => Some(Held {
            shard: ShardId(row.try_get_u32().ok()?),
            container: ContainerId(row.try_get_u32().ok()?),
        }),
        false => None,
    };
    let size = match flag(row)? {
        true => numbers(row).map(|[items, bytes, outside]| Some(Size { items, bytes, outside }))?,
        false => None,
    };
    let (read_times, write_times) = (latencies(row)?, latencies(row)?);
    Some(Sample { partition, held, size, reads, writes, throttled, read_times, write_times })
}

fn numbers(row: &mut Bytes) -> Option<[u64; 3]> {
    let mut numbers = [0; 3];
    for number in &mut numbers {
        *number = row.try_get_u64().ok()?;
    }
    Some(numbers)
}

fn flag(row: &mut Bytes) -> Option<bool> {
    match row.try_get_u8().ok()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn latencies(row: &mut Bytes) -> Option<Latencies> {
    let sum_us = row.try_get_u64().ok()?;
    let used = row.try_get_u32().ok()?;
    if used >> LATENCY_BUCKETS != 0 {
        return None;
    }
    let mut buckets = [0; LATENCY_BUCKETS];
    for (at, count) in buckets.iter_mut().enumerate() {
        if used & 1 << at != 0 {
            *count = row.try_get_u32().ok()?;
        }
    }
    Some(Latencies::from_parts(buckets, sum_us))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::heat::tests::heat;

    fn sample(id: u64, reads: u64) -> Sample {
        let times = |us: u64| Latencies::of((0..reads).map(|n| Duration::from_micros(us << n)));
        Sample {
            partition: PartitionId(id),
            held: id
                .is_multiple_of(2)
                .then_some(Held { shard: ShardId(3), container: ContainerId(id as u32) }),
            size: id.is_multiple_of(3).then_some(Size { items: 1, bytes: 2 + id, outside: 3 }),
            reads,
            writes: id,
            throttled: 7,
            read_times: times(1),
            write_times: times(90),
        }
    }

    #[test]
    fn samples_read_back_as_they_were_told_and_the_busiest_come_first() {
        let samples: Vec<_> = (0..10).map(|id| sample(id, 10 - id)).collect();
        let (mut read, told) = decode(encode(&samples, &heat()).unwrap()).unwrap();
        assert_eq!(told, heat());
        read.sort_by_key(|one| one.partition);
        assert_eq!(read, samples);
        let many: Vec<_> = (0..2_000).map(|id| sample(id, 0)).collect();
        let row = encode(&many, &Heat::default()).unwrap();
        assert!(row.len() < PARTITIONS_TOLD_MAX * 256, "{} bytes", row.len());
        let read = decode(row).unwrap().0;
        assert_eq!((read.len(), read[0].partition), (PARTITIONS_TOLD_MAX, PartitionId(1_999)));
    }

    #[test]
    fn nothing_is_told_where_nothing_was_asked_for() {
        let sized = Sample { writes: 0, throttled: 0, ..sample(3, 0) };
        assert_eq!(encode(&[sized], &heat()), None);
        assert_eq!(encode(&[], &heat()), None);
    }

    #[test]
    fn a_row_that_is_cut_or_lengthened_or_of_another_format_is_refused() {
        let row = encode(&[sample(6, 4), sample(7, 2)], &heat()).unwrap();
        for length in 0..row.len() {
            assert!(decode(row.slice(..length)).is_err(), "{length} bytes of it");
        }
        assert!(decode([&row[..], b"x"].concat().into()).is_err());
        assert!(decode([&[1], &row[1..]].concat().into()).is_err());
        assert!(decode(Bytes::from_static(b"\x02\xff\xff\xff\xff")).is_err());
    }
}
