//! Messages between AMQP and the shape. The bare message is kept as it came; what changes with each delivery is written
//! before it, and properties that rules or settlements changed are written anew.

use bytes::{Bytes, BytesMut};
use lazuli_amqp::{Decoder, Header, Map, Properties, Sections, Symbol, Value, Writer, encode};
use lazuli_bus_shape::filter::Value as FilterValue;
use lazuli_bus_shape::{
    Delivery, Message, MessageState, NewMessage, Override, PropertyName, ReadMessage,
    SystemProperty,
};

use crate::error::{Fault, Result};

/// A transfer of this format holds messages, each in a data section.
pub(crate) const BATCH_FORMAT: u32 = 0x8001_3700;

const PARTITION_KEY: &str = "x-opt-partition-key";
const VIA_PARTITION_KEY: &str = "x-opt-via-partition-key";
const SCHEDULED: &str = "x-opt-scheduled-enqueue-time";
/// Annotations that we write ourselves; what a client sends under these names counts for nothing.
const OWN: [&str; 8] = [
    "x-opt-sequence-number",
    "x-opt-enqueued-time",
    "x-opt-enqueue-sequence-number",
    "x-opt-locked-until",
    "x-opt-deadletter-source",
    "x-opt-message-state",
    SCHEDULED,
    PARTITION_KEY,
];

/// The messages of a delivery: one, or those of a batch.
pub(crate) fn read(payload: &Bytes, format: u32) -> Result<Vec<NewMessage>> {
    if format != BATCH_FORMAT {
        return Ok(vec![read_one(payload)?]);
    }
    match Sections::split(payload)?.body()? {
        lazuli_amqp::Body::Data(messages) => messages.iter().map(read_one).collect(),
        _ => Err(Fault::argument("A batch must consist of data sections.")),
    }
}

/// One message.
pub(crate) fn read_one(payload: &Bytes) -> Result<NewMessage> {
    let sections = Sections::split(payload)?;
    let header = sections.header()?;
    let mut annotations = sections.message_annotations()?;
    let mut properties = sections.properties()?;
    let (message_id, body) = match id_text(&properties.message_id) {
        Some(id) => (id, whole(&sections)),
        None => {
            let id = new_id();
            properties.message_id = id.as_str().into();
            let writer = Writer::with_capacity(payload.len() + 64).properties(&properties);
            let rest = sections.bare_after_properties();
            (id, writer.bytes(&rest).bytes(sections.footer_bytes()).finish())
        }
    };
    let text = |map: &Map, name| map.text(name).map(str::to_owned);
    let message = NewMessage {
        message_id: Some(message_id),
        session_id: properties.group_id,
        partition_key: text(&annotations, PARTITION_KEY),
        lives_ms: header.ttl.filter(|ttl| *ttl != u32::MAX).map(u64::from),
        scheduled_ms: annotations.integer(SCHEDULED).and_then(|ms| u64::try_from(ms).ok()),
        annotations: Bytes::new(),
        body,
    };
    OWN.iter().for_each(|name| annotations.remove(name));
    let annotations = kept(&header, annotations);
    Ok(NewMessage { annotations, ..message })
}

fn whole(sections: &Sections) -> Bytes {
    match sections.footer_bytes().is_empty() {
        true => sections.bare().clone(),
        false => Writer::new().bytes(sections.bare()).bytes(sections.footer_bytes()).finish(),
    }
}

/// The text of a message id: whatever type it has.
pub(crate) fn id_text(id: &Value) -> Option<String> {
    match id {
        Value::Ulong(number) => Some(number.to_string()),
        Value::Uuid(bytes) => Some(uuid_text(bytes)),
        Value::Binary(bytes) => Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        other => other.as_text().map(str::to_owned),
    }
}

fn uuid_text(bytes: &[u8; 16]) -> String {
    lazuli_http::RequestId(u128::from_be_bytes(*bytes)).to_string()
}

/// An id that no other message has.
fn new_id() -> String {
    use std::hash::{BuildHasher, Hasher};
    let random = || std::collections::hash_map::RandomState::new().build_hasher().finish();
    let number = u128::from(random()) << 64 | u128::from(random());
    format!("{number:032x}")
}

/// What is kept of header and annotations: nothing in most cases.
fn kept(header: &Header, annotations: Map) -> Bytes {
    let is_plain = header.priority.is_none() && header.ttl.is_none() && annotations.is_empty();
    if is_plain {
        return Bytes::new();
    }
    let fields = [header.priority.into(), header.ttl.into(), Value::Map(annotations)];
    let mut out = BytesMut::new();
    encode::value(&mut out, &Value::List(fields.to_vec()));
    out.freeze()
}

/// The header and the annotations that were kept.
fn restored(kept: &[u8]) -> (Header, Map) {
    let read = Decoder::new(kept).value().ok();
    let Some(Value::List(mut fields)) = read.filter(|_| !kept.is_empty()) else {
        return (Header::default(), Map::default());
    };
    let annotations = match fields.pop() {
        Some(Value::Map(map)) => map,
        _ => Map::default(),
    };
    let number = |at: usize| fields.get(at).and_then(Value::as_integer);
    let header = Header {
        priority: number(0).and_then(|number| u8::try_from(number).ok()),
        ttl: number(1).and_then(|number| u32::try_from(number).ok()),
        ..Header::default()
    };
    (header, annotations)
}

/// A message as it goes out: what stands before the stored bytes, and those.
pub(crate) struct Written {
    pub(crate) head: Bytes,
    pub(crate) body: Bytes,
}

impl Written {
    pub(crate) fn joined(&self) -> Bytes {
        Writer::with_capacity(self.head.len() + self.body.len())
            .bytes(&self.head)
            .bytes(&self.body)
            .finish()
    }
}

pub(crate) fn write_delivery(delivery: &Delivery) -> Written {
    write(&delivery.message, delivery.lock.map(|lock| lock.until_ms))
}

/// A message with its header and annotations.
pub(crate) fn write(message: &Message, locked_until_ms: Option<u64>) -> Written {
    let (header, mut annotations) = restored(&message.annotations);
    let lives = message.expires_ms.map(|end| end.saturating_sub(message.enqueued_ms));
    let header = Header {
        durable: Some(true),
        ttl: lives.and_then(|ms| u32::try_from(ms).ok()).or(header.ttl),
        delivery_count: Some(message.delivery_count),
        ..header
    };
    let stamp = |ms: u64| Value::Timestamp(i64::try_from(ms).unwrap_or(i64::MAX));
    let long = |number: u64| Value::Long(number.cast_signed());
    let mut put = |name, value| annotations.0.push((Value::symbol(name), value));
    put("x-opt-enqueued-time", stamp(message.enqueued_ms));
    put("x-opt-sequence-number", long(message.sequence_number));
    put("x-opt-enqueue-sequence-number", long(message.enqueued_sequence_number));
    if let Some(until) = locked_until_ms {
        put("x-opt-locked-until", stamp(until));
    }
    if let Some(key) = &message.partition_key {
        put(PARTITION_KEY, key.as_str().into());
    }
    if let Some(due) = message.scheduled_ms {
        put(SCHEDULED, stamp(due));
    }
    if let Some(source) = &message.dead_letter_source {
        put("x-opt-deadletter-source", source.as_str().into());
    }
    let state = match message.state {
        MessageState::Active => 0,
        MessageState::Deferred => 1,
        MessageState::Scheduled => 2,
    };
    put("x-opt-message-state", Value::Int(state));
    let head = Writer::with_capacity(256).header(&header).message_annotations(&annotations);
    let body = match message.overrides.is_empty() {
        true => message.body.clone(),
        false => changed(&message.body, &message.overrides),
    };
    Written { head: head.finish(), body }
}

/// The bare message with some properties changed. One that does not decode is left as it is.
fn changed(body: &Bytes, overrides: &[Override]) -> Bytes {
    let write = || -> Result<Bytes> {
        let sections = Sections::split(body)?;
        let mut properties = sections.properties()?;
        let mut user = sections.application_properties()?;
        for change in overrides {
            match &change.name {
                PropertyName::User(name) => match &change.value {
                    Some(value) => {
                        user.remove(name);
                        user.0.push((name.as_str().into(), to_amqp(value)));
                    }
                    None => user.remove(name),
                },
                PropertyName::System(name) => set_system(&mut properties, *name, &change.value),
            }
        }
        Ok(Writer::with_capacity(body.len() + 256)
            .properties(&properties)
            .application_properties(&user)
            .bytes(sections.body_bytes())
            .bytes(sections.footer_bytes())
            .finish())
    };
    write().unwrap_or_else(|_| body.clone())
}

fn set_system(properties: &mut Properties, name: SystemProperty, value: &Option<FilterValue>) {
    let text = match value {
        Some(FilterValue::Text(text)) => Some(text.clone()),
        Some(other) => id_text(&to_amqp(other)),
        None => None,
    };
    match name {
        SystemProperty::ContentType => properties.content_type = text.map(Symbol),
        SystemProperty::CorrelationId => properties.correlation_id = text.into(),
        SystemProperty::Label => properties.subject = text,
        SystemProperty::MessageId => properties.message_id = text.into(),
        SystemProperty::ReplyTo => properties.reply_to = text.into(),
        SystemProperty::ReplyToSessionId => properties.reply_to_group_id = text,
        SystemProperty::SessionId => properties.group_id = text,
        SystemProperty::To => properties.to = text.into(),
        // It is an annotation, and rules that change it are refused.
        SystemProperty::PartitionKey => {}
    }
}

/// A value of a property as filters and actions know it.
pub(crate) fn to_amqp(value: &FilterValue) -> Value {
    match value {
        FilterValue::Boolean(is) => Value::Bool(*is),
        FilterValue::Integer(number) => Value::Long(*number),
        FilterValue::Double(number) => Value::Double(*number),
        FilterValue::Text(text) => Value::String(text.clone()),
        FilterValue::DateTime(ms) => Value::Timestamp(*ms),
        FilterValue::Duration(ticks) => {
            Value::described(Value::symbol("com.microsoft:timespan"), Value::Long(*ticks))
        }
        FilterValue::Uuid(bytes) => Value::Uuid(*bytes),
        FilterValue::Binary(bytes) => Value::Binary(Bytes::copy_from_slice(bytes)),
    }
}

/// The same in the other direction; none for null and for what filters don't know.
pub(crate) fn from_amqp(value: &Value) -> Option<FilterValue> {
    Some(match value {
        Value::Bool(is) => FilterValue::Boolean(*is),
        Value::Float(number) => FilterValue::Double((*number).into()),
        Value::Double(number) => FilterValue::Double(*number),
        Value::Ulong(number) => match i64::try_from(*number) {
            Ok(number) => FilterValue::Integer(number),
            Err(_) => FilterValue::Double(*number as f64),
        },
        Value::Timestamp(ms) => FilterValue::DateTime(*ms),
        Value::Uuid(bytes) => FilterValue::Uuid(*bytes),
        Value::Binary(bytes) => FilterValue::Binary(bytes.to_vec()),
        Value::Char(sign) => FilterValue::Text(sign.to_string()),
        Value::Described(pair) => return described(&pair.0, &pair.1),
        other => match (other.as_text(), other.as_integer()) {
            (Some(text), _) => FilterValue::text(text),
            (None, number) => FilterValue::Integer(number?),
        },
    })
}

/// Types of the services' own: a span of time in ticks, a moment in ticks since the year 1, an address.
fn described(descriptor: &Value, value: &Value) -> Option<FilterValue> {
    const UNIX_EPOCH_TICKS: i64 = 621_355_968_000_000_000;
    match (descriptor.as_text()?, value) {
        ("com.microsoft:timespan", Value::Long(ticks)) => Some(FilterValue::Duration(*ticks)),
        ("com.microsoft:datetime-offset", Value::Long(ticks)) => {
            Some(FilterValue::DateTime(ticks.saturating_sub(UNIX_EPOCH_TICKS) / 10_000))
        }
        ("com.microsoft:uri", other) => from_amqp(other),
        _ => None,
    }
}

/// Properties that a client wants changed, by name.
pub(crate) fn overrides(map: &Map) -> Vec<Override> {
    let pairs = map.0.iter().filter_map(|(name, value)| Some((name.as_text()?, value)));
    pairs
        .map(|(name, value)| Override {
            name: PropertyName::User(name.to_owned()),
            value: from_amqp(value),
        })
        .collect()
}

/// Reads what filters ask for.
pub struct MessageReader;

impl ReadMessage for MessageReader {
    fn system(&self, body: &[u8], property: SystemProperty) -> Option<String> {
        let sections = Sections::split(&Bytes::copy_from_slice(body)).ok()?;
        let properties = sections.properties().ok()?;
        match property {
            SystemProperty::ContentType => properties.content_type.map(|it| it.0),
            SystemProperty::CorrelationId => id_text(&properties.correlation_id),
            SystemProperty::Label => properties.subject,
            SystemProperty::MessageId => id_text(&properties.message_id),
            SystemProperty::ReplyTo => id_text(&properties.reply_to),
            SystemProperty::ReplyToSessionId => properties.reply_to_group_id,
            SystemProperty::SessionId => properties.group_id,
            SystemProperty::To => id_text(&properties.to),
            SystemProperty::PartitionKey => None,
        }
    }

    fn user(&self, body: &[u8]) -> lazuli_engine::Result<Vec<(String, FilterValue)>> {
        let bad = |error| lazuli_engine::Error::invalid("unreadable-message", error);
        let sections = Sections::split(&Bytes::copy_from_slice(body)).map_err(bad)?;
        let properties = sections.application_properties().map_err(bad)?;
        let read =
            |(name, value): &(Value, Value)| Some((name.as_text()?.to_owned(), from_amqp(value)?));
        Ok(properties.0.iter().filter_map(read).collect())
    }
}

/// The message with nothing but its properties. One that does not decode is left as it is.
pub(crate) fn without_body(body: &Bytes) -> Bytes {
    let Ok(sections) = Sections::split(body) else { return body.clone() };
    let count = sections.bare().len() - sections.body_bytes().len();
    sections.bare().slice(..count)
}

/// The key by which a transaction on another entity sends.
pub(crate) fn via_partition_key(payload: &Bytes) -> Option<String> {
    let annotations = Sections::split(payload).ok()?.message_annotations().ok()?;
    annotations.text(VIA_PARTITION_KEY).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(new: &NewMessage) -> Message {
        Message {
            sequence_number: 7,
            enqueued_sequence_number: 7,
            enqueued_ms: 1_000,
            expires_ms: None,
            scheduled_ms: None,
            state: MessageState::Active,
            delivery_count: 2,
            message_id: new.message_id.clone(),
            session_id: None,
            partition_key: new.partition_key.clone(),
            dead_letter_source: None,
            overrides: Vec::new(),
            annotations: new.annotations.clone(),
            body: new.body.clone(),
        }
    }

    fn sent() -> Bytes {
        let annotations =
            Map::default().with(PARTITION_KEY, "k").with("x-own", 5).with(OWN[0], 9i64);
        let properties = Properties { message_id: "id".into(), ..Properties::default() };
        Writer::new()
            .header(&Header { ttl: Some(60_000), priority: Some(3), ..Header::default() })
            .message_annotations(&annotations)
            .properties(&properties)
            .application_properties(&Map::default().with_text("colour", "red"))
            .data(b"body")
            .finish()
    }

    #[test]
    fn the_bare_message_comes_back_as_it_was_sent() {
        let new = read_one(&sent()).unwrap();
        assert_eq!(new.message_id.as_deref(), Some("id"));
        assert_eq!((new.partition_key.as_deref(), new.lives_ms), (Some("k"), Some(60_000)));
        let written = write(&message(&new), Some(5_000)).joined();
        let sections = Sections::split(&written).unwrap();
        assert_eq!(sections.bare(), Sections::split(&sent()).unwrap().bare());
        let header = sections.header().unwrap();
        assert_eq!(
            (header.delivery_count, header.priority, header.ttl),
            (Some(2), Some(3), Some(60_000))
        );
        let annotations = sections.message_annotations().unwrap();
        assert_eq!(annotations.integer("x-own"), Some(5));
        assert_eq!(annotations.get("x-opt-sequence-number"), Some(&Value::Long(7)));
        assert_eq!(annotations.get("x-opt-locked-until"), Some(&Value::Timestamp(5_000)));
        assert_eq!(annotations.text(PARTITION_KEY), Some("k"));
    }

    #[test]
    fn a_message_without_an_id_gets_one_and_stays_as_it_is_otherwise() {
        let bare =
            Writer::new().application_properties(&Map::default().with_text("a", 1)).data(b"x");
        let new = read_one(&bare.finish()).unwrap();
        let sections = Sections::split(&new.body).unwrap();
        let id = id_text(&sections.properties().unwrap().message_id);
        assert!(id.is_some() && id == new.message_id);
        assert_eq!(sections.application_properties().unwrap().integer("a"), Some(1));
        assert_eq!(
            sections.body().unwrap(),
            lazuli_amqp::Body::Data(vec![Bytes::from_static(b"x")])
        );
    }

    #[test]
    fn changed_properties_are_written_and_the_body_stays() {
        let mut message = message(&read_one(&sent()).unwrap());
        let user = |name: &str, value| Override { name: PropertyName::User(name.into()), value };
        message.overrides = vec![
            user("DeadLetterReason", Some(FilterValue::text("why"))),
            user("colour", None),
            Override {
                name: PropertyName::System(SystemProperty::Label),
                value: Some(FilterValue::text("new")),
            },
        ];
        let sections = Sections::split(&write(&message, None).joined()).unwrap();
        let user = sections.application_properties().unwrap();
        assert_eq!((user.text("DeadLetterReason"), user.get("colour")), (Some("why"), None));
        assert_eq!(sections.properties().unwrap().subject.as_deref(), Some("new"));
        assert_eq!(sections.body_bytes(), Sections::split(&sent()).unwrap().body_bytes());
    }

    #[test]
    fn a_batch_holds_messages() {
        let batch = Writer::new().data(&sent()).data(&sent()).finish();
        assert_eq!(read(&batch, BATCH_FORMAT).unwrap().len(), 2);
        assert!(read(&Writer::new().value(&Value::Null).finish(), BATCH_FORMAT).is_err());
    }

    #[test]
    fn filters_read_properties() {
        let new = read_one(&sent()).unwrap();
        let reader = MessageReader;
        assert_eq!(reader.system(&new.body, SystemProperty::MessageId).as_deref(), Some("id"));
        let user = reader.user(&new.body).unwrap();
        assert_eq!(user, [("colour".to_owned(), FilterValue::text("red"))]);
        assert!(reader.user(b"\xff").is_err());
    }
}
