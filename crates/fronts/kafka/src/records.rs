//! Events that came over AMQP for clients of Kafka: the body is the value, the partition key the key, and application
//! properties are headers.

use bytes::{Bytes, BytesMut};
use lazuli_amqp::{Body, DecodeError, Map, Sections, Value};
use lazuli_kafka_wire::batch::{Record, build};
use lazuli_log::Batch;

const PARTITION_KEY: &str = "x-opt-partition-key";

/// A record batch with the events of a batch that came over AMQP.
pub(crate) fn as_record_batch(batch: &Batch) -> Bytes {
    let time = batch.enqueued_ms as i64;
    let records: Vec<Record> = batch
        .messages()
        .map(|(offset, message)| {
            // Both lie in one batch, which takes less than 2^32 offsets.
            let delta = u32::try_from(offset - batch.first).unwrap_or(u32::MAX);
            // Every message was read when it was published. One that cannot be read now is passed on as it is.
            let as_it_is = |_| Record { time, value: Some(message.clone()), ..Record::default() };
            Record { delta, ..record(&message, time).unwrap_or_else(as_it_is) }
        })
        .collect();
    build(batch.first, batch.records, &records)
}

/// An event as a record. One without content is one without value, which says that its key is gone.
pub(crate) fn record(message: &Bytes, time: i64) -> Result<Record, DecodeError> {
    let sections = Sections::split(message)?;
    let annotations = sections.message_annotations()?;
    let key = annotations.text(PARTITION_KEY).map(|key| Bytes::copy_from_slice(key.as_bytes()));
    let value = match sections.body()? {
        Body::Empty => None,
        Body::Data(parts) if parts.len() == 1 => parts.into_iter().next(),
        Body::Data(parts) => {
            let mut whole = BytesMut::new();
            parts.iter().for_each(|part| whole.extend_from_slice(part));
            Some(whole.freeze())
        }
        Body::Value(value) => Some(bytes_of(&value).unwrap_or_default()),
        // Lists have no form of their own in Kafka: readers get them as AMQP writes them.
        Body::Sequences(_) => Some(sections.body_bytes().clone()),
    };
    let headers = headers(&sections.application_properties()?);
    let value = value.filter(|value| !value.is_empty());
    Ok(Record { delta: 0, time, key, value, headers })
}

fn headers(properties: &Map) -> Vec<(String, Option<Bytes>)> {
    let named =
        |(name, value): &(Value, Value)| Some((name.as_text()?.to_owned(), bytes_of(value)));
    properties.0.iter().filter_map(named).collect()
}

/// A value as bytes: texts and bytes are themselves, numbers and the like are written out.
fn bytes_of(value: &Value) -> Option<Bytes> {
    let text = match value {
        Value::Null => return None,
        Value::Binary(bytes) => return Some(bytes.clone()),
        Value::Bool(is) => is.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Ulong(number) => number.to_string(),
        other => match (other.as_text(), other.as_integer()) {
            (Some(text), _) => text.to_owned(),
            (None, Some(number)) => number.to_string(),
            (None, None) => format!("{other:?}"),
        },
    };
    Some(Bytes::from(text))
}

#[cfg(test)]
mod tests {
    use lazuli_amqp::Writer;

    use super::*;

    #[test]
    fn an_event_becomes_a_record() {
        let message = Writer::new()
            .message_annotations(&Map::default().with(PARTITION_KEY, "k"))
            .application_properties(&Map::default().with_text("a", "x").with_text("n", 7))
            .data(b"hello ")
            .data(b"world")
            .finish();
        let record = record(&message, 5).unwrap();
        assert_eq!(record.key.as_deref(), Some(&b"k"[..]));
        assert_eq!(record.value.as_deref(), Some(&b"hello world"[..]));
        let header =
            |name: &str, value: &str| (name.to_owned(), Some(Bytes::from(value.to_owned())));
        assert_eq!(record.headers, [header("a", "x"), header("n", "7")]);
    }
}
