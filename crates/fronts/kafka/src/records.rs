//! Records of AMQP's form for clients of Kafka: the body is the value, the partition key the key, and application
//! properties are headers.

use bytes::Bytes;
use lazuli_kafka_wire::batch::{Record, build};
use lazuli_log::Batch;

/// A record batch with the records of a batch that came over AMQP.
pub(crate) fn as_record_batch(batch: &Batch) -> Bytes {
    let records: Vec<Record> = batch
        .messages()
        .map(|(_, message)| Record {
            time: batch.enqueued_ms as i64,
            key: None,
            value: Some(message),
            headers: Vec::new(),
        })
        .collect();
    build(batch.first, &records)
}
