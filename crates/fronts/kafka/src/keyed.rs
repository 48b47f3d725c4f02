//! What the compaction of logs has to know of records: their keys, and which of them say that a key is gone.

use std::sync::Arc;

use bytes::Bytes;
use lazuli_kafka_wire::batch::{self, Record, build};
use lazuli_log::{Batch, Form, KeyedRecord, ReadRecords};

use crate::limits::{COMPACTED_RECORD_BYTES_MAX, DECOMPRESSED_BYTES_MAX};
use crate::records::record;

/// What a record takes besides its key and its value, about.
const RECORD_COST: usize = 32;

/// What reads records for the compaction of logs.
pub fn reader() -> Arc<dyn ReadRecords> {
    Arc::new(Records)
}

struct Records;

fn keyed(offset: u64, record: Record) -> KeyedRecord {
    let length = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
    let of_header = |header: &(String, Option<Bytes>)| header.0.len() + length(&header.1);
    let headers: usize = record.headers.iter().map(of_header).sum();
    let bytes = RECORD_COST + length(&record.key) + length(&record.value) + headers;
    KeyedRecord { offset, is_tombstone: record.value.is_none(), key: record.key, bytes }
}

impl ReadRecords for Records {
    fn read(&self, batch: &Batch) -> Option<Vec<KeyedRecord>> {
        let records: Vec<KeyedRecord> = match batch.form {
            Form::Kafka => {
                let records = batch::read(&batch.body, DECOMPRESSED_BYTES_MAX).ok()?;
                let offset = |record: &Record| batch.first + u64::from(record.delta);
                records.into_iter().map(|record| keyed(offset(&record), record)).collect()
            }
            Form::Amqp => {
                let read = |(offset, message): (u64, Bytes)| match record(&message, 0) {
                    Ok(record) => keyed(offset, record),
                    // It has no key that anybody could know.
                    Err(_) => keyed(offset, Record { value: Some(message), ..Record::default() }),
                };
                batch.messages().map(read).collect()
            }
        };
        // One that would not fit in a row of its own once it is no longer compressed.
        let fits = records.iter().all(|record| record.bytes <= COMPACTED_RECORD_BYTES_MAX);
        fits.then_some(records)
    }

    fn write(&self, batch: &Batch, first: u64, span: u32, offsets: &[u64]) -> Bytes {
        // It was read before, so it can be read again.
        let records = batch::read(&batch.body, DECOMPRESSED_BYTES_MAX).unwrap_or_default();
        let left = records.into_iter().filter_map(|mut record| {
            let offset = batch.first + u64::from(record.delta);
            offsets.binary_search(&offset).ok()?;
            record.delta = u32::try_from(offset - first).ok()?;
            Some(record)
        });
        build(first, span, &left.collect::<Vec<_>>())
    }
}
