//! Events as messages: what publishers send, and what readers get.

use bytes::Bytes;
use lazuli_amqp::{Body, Map, Sections, Value, Writer};
use lazuli_kafka_wire::batch::{self, Record};
use lazuli_log::{Batch, Form, LogState};

use crate::error::{Fault, Result};
use crate::limits::DECOMPRESSED_BYTES_MAX;
use crate::message::BATCH_FORMAT;

pub(crate) const PARTITION_KEY: &str = "x-opt-partition-key";
/// Annotations that we write ourselves; what a client sends under these names counts for nothing.
const OWN: [&str; 3] = ["x-opt-sequence-number", "x-opt-offset", "x-opt-enqueued-time"];
pub(super) const PRODUCER_EPOCH: &str = "com.microsoft:producer-epoch";
pub(super) const PRODUCER_ID: &str = "com.microsoft:producer-id";
pub(super) const PRODUCER_SEQUENCE: &str = "com.microsoft:producer-sequence-number";

/// Events of one delivery, which go to one partition together.
pub(super) struct Events {
    pub(super) messages: Vec<Bytes>,
    pub(super) key: Option<String>,
    /// Number of the first event of an idempotent producer.
    pub(super) sequence: Option<i64>,
}

/// Reads a delivery: one event, or a batch of them.
pub(super) fn read(payload: &Bytes, format: u32) -> Result<Events> {
    let envelope = Sections::split(payload)?;
    let annotations = envelope.message_annotations()?;
    let mut key = annotations.text(PARTITION_KEY).map(str::to_owned);
    let mut sequence = annotations.integer(PRODUCER_SEQUENCE);
    if format != BATCH_FORMAT {
        return Ok(Events { messages: vec![payload.clone()], key, sequence });
    }
    let Body::Data(messages) = envelope.body()? else {
        return Err(Fault::argument("A batch must consist of data sections."));
    };
    for (number, message) in messages.iter().enumerate() {
        let inner = Sections::split(message)?.message_annotations()?;
        if number == 0 {
            key = key.or_else(|| inner.text(PARTITION_KEY).map(str::to_owned));
            sequence = sequence.or_else(|| inner.integer(PRODUCER_SEQUENCE));
        }
        if inner.text(PARTITION_KEY).is_some_and(|one| key.as_deref() != Some(one)) {
            return Err(Fault::argument("All events of a batch must have one partition key."));
        }
    }
    if messages.is_empty() {
        return Err(Fault::argument("A batch has at least one event."));
    }
    Ok(Events { messages, key, sequence })
}

/// An event on its way to a reader: what stands before the stored bytes, and those.
pub(crate) struct Outbound {
    pub(crate) offset: u64,
    pub(crate) head: Bytes,
    pub(crate) body: Bytes,
}

/// The events of a batch from an offset on, at most so many.
pub(crate) fn write(
    batch: &Batch,
    from: u64,
    most: usize,
    metrics: Option<&LogState>,
) -> Result<Vec<Outbound>> {
    let mut events = Vec::new();
    match batch.form {
        Form::Amqp => {
            let wanted = batch.messages().filter(|(offset, _)| *offset >= from);
            for (offset, message) in wanted.take(most) {
                let sections = Sections::split(&message)?;
                let mut annotations = sections.message_annotations()?;
                OWN.iter().for_each(|name| annotations.remove(name));
                let head = head(batch, offset, annotations, metrics);
                let body = match sections.footer_bytes().is_empty() {
                    true => sections.bare().clone(),
                    false => {
                        Writer::new().bytes(sections.bare()).bytes(sections.footer_bytes()).finish()
                    }
                };
                events.push(Outbound { offset, head, body });
            }
        }
        Form::Kafka => {
            let records = batch::read(&batch.body, DECOMPRESSED_BYTES_MAX).map_err(|_| {
                let text = "A batch of the hub cannot be read, or is too long once decompressed.";
                Fault::new(500, lazuli_amqp::condition::INTERNAL_ERROR, text)
            })?;
            let offset = |record: &Record| batch.first + u64::from(record.delta);
            let wanted = records.into_iter().map(|record| (offset(&record), record));
            for (offset, record) in wanted.filter(|(offset, _)| *offset >= from).take(most) {
                let mut annotations = Map::default();
                let key = record.key.as_ref().and_then(|key| std::str::from_utf8(key).ok());
                if let Some(key) = key {
                    annotations.set(PARTITION_KEY, key);
                }
                let head = head(batch, offset, annotations, metrics);
                events.push(Outbound { offset, head, body: body_of(&record) });
            }
        }
    }
    Ok(events)
}

fn head(batch: &Batch, offset: u64, annotations: Map, metrics: Option<&LogState>) -> Bytes {
    let annotations = annotations
        .with("x-opt-sequence-number", Value::Long(offset as i64))
        .with("x-opt-offset", Value::String(offset.to_string()))
        .with("x-opt-enqueued-time", Value::Timestamp(batch.enqueued_ms as i64));
    let mut writer = Writer::with_capacity(160);
    if let Some(state) = metrics {
        let last = state.next as i64 - 1;
        let delivery = Map::default()
            .with("last_enqueued_sequence_number", Value::Long(last))
            .with("last_enqueued_offset", Value::String(last.to_string()))
            .with("last_enqueued_time_utc", Value::Timestamp(state.last_ms as i64))
            .with("runtime_info_retrieval_time_utc", Value::Timestamp(crate::now_ms() as i64));
        writer = writer.delivery_annotations(&delivery);
    }
    writer.message_annotations(&annotations).finish()
}

/// The bare message of a record: headers are application properties, the value is the body.
fn body_of(record: &Record) -> Bytes {
    let mut properties = Map::default();
    for (name, value) in &record.headers {
        properties = properties.with_text(name, value_of(value.as_ref()));
    }
    let value = record.value.clone().unwrap_or_default();
    Writer::new().application_properties(&properties).data(&value).finish()
}

/// The value of a header: a text where it is one, because most are, and clients show bytes in many ways.
fn value_of(header: Option<&Bytes>) -> Value {
    match header.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
        None => Value::Null,
        Some((_, Ok(text))) => Value::String(text.to_owned()),
        Some((bytes, Err(_))) => Value::Binary(bytes.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_of_events_has_one_key() {
        let event = |key: &str| {
            let annotations = Map::default().with(PARTITION_KEY, key);
            Writer::new().message_annotations(&annotations).data(b"x").finish()
        };
        let batch =
            |keys: [&str; 2]| Writer::new().data(&event(keys[0])).data(&event(keys[1])).finish();
        let read_one = read(&batch(["a", "a"]), BATCH_FORMAT).unwrap_or_else(|_| panic!("good"));
        assert_eq!((read_one.messages.len(), read_one.key.as_deref()), (2, Some("a")));
        assert!(read(&batch(["a", "b"]), BATCH_FORMAT).is_err());
        let single = read(&event("k"), 0).unwrap_or_else(|_| panic!("good"));
        assert_eq!((single.messages.len(), single.key.as_deref()), (1, Some("k")));
        assert!(read(&Writer::new().finish(), BATCH_FORMAT).is_err());
    }
}
