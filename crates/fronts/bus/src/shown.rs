//! Messages and events as people see them, and messages that people write: for the admin API, which speaks no protocol of
//! messages itself.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use lazuli_amqp::{Body, Map, Properties, Sections, Symbol, Value, Writer};
use lazuli_bus_shape::{Message, NewMessage};
use lazuli_log::{Batch, NewBatch};

use crate::eventhubs::event;
use crate::message;

/// What a message says: a text where it is one, or else bytes in base64.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownBody {
    pub is_text: bool,
    pub text: String,
}

/// What stands in a message, without what the service knows of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    pub label: Option<String>,
    pub content_type: Option<String>,
    pub correlation_id: Option<String>,
    /// Properties of the application, by name.
    pub properties: Vec<(String, String)>,
    pub body: ShownBody,
}

/// An event of a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownEvent {
    pub offset: u64,
    pub enqueued_ms: u64,
    pub key: Option<String>,
    /// The bytes of its body.
    pub data: Bytes,
    pub shown: Shown,
}

/// A message as somebody writes it by hand.
#[derive(Clone, Debug, Default)]
pub struct Typed {
    pub text: String,
    pub id: Option<String>,
    pub label: Option<String>,
    pub session_id: Option<String>,
    pub partition_key: Option<String>,
    pub scheduled_ms: Option<u64>,
    pub properties: Vec<(String, String)>,
}

/// What a message says, with the properties that rules or settlements gave it.
pub fn message(message: &Message) -> Shown {
    sections(&message::write(message, None).joined())
}

/// The events of a batch from an offset on. Fails with a sentence where they cannot be read.
pub fn events(batch: &Batch, from: u64) -> Result<Vec<ShownEvent>, String> {
    let written = event::write(batch, from, usize::MAX, None).map_err(|fault| fault.description)?;
    let show = |one: event::Outbound| {
        let head = Sections::split(&one.head).unwrap_or_default();
        let annotations = head.message_annotations().unwrap_or_default();
        ShownEvent {
            offset: one.offset,
            enqueued_ms: batch.enqueued_ms,
            key: annotations.text(event::PARTITION_KEY).map(str::to_owned),
            data: data(&one.body),
            shown: sections(&one.body),
        }
    };
    Ok(written.into_iter().map(show).collect())
}

/// A message that somebody has written.
pub fn typed(typed: Typed) -> NewMessage {
    let body = encoded(&typed, None);
    NewMessage {
        message_id: typed.id,
        session_id: typed.session_id,
        partition_key: typed.partition_key,
        scheduled_ms: typed.scheduled_ms,
        ..NewMessage::new(body)
    }
}

/// An event that somebody has written.
pub fn typed_event(typed: &Typed) -> NewBatch {
    NewBatch::amqp(vec![encoded(typed, typed.partition_key.as_deref())], None)
}

fn encoded(typed: &Typed, key: Option<&str>) -> Bytes {
    let annotations = key.map(|key| Map::default().with(event::PARTITION_KEY, key));
    let properties = Properties {
        message_id: typed.id.clone().into(),
        subject: typed.label.clone(),
        group_id: typed.session_id.clone(),
        content_type: Some(Symbol("text/plain".to_owned())),
        ..Properties::default()
    };
    let own = typed
        .properties
        .iter()
        .fold(Map::default(), |map, (name, value)| map.with_text(name, value.as_str()));
    Writer::new()
        .message_annotations(&annotations.unwrap_or_default())
        .properties(&properties)
        .application_properties(&own)
        .data(typed.text.as_bytes())
        .finish()
}

/// A dead letter as it was before anybody changed it, to be sent again.
pub fn again(message: &Message) -> NewMessage {
    NewMessage {
        message_id: message.message_id.clone(),
        session_id: message.session_id.clone(),
        partition_key: message.partition_key.clone(),
        annotations: message.annotations.clone(),
        ..NewMessage::new(message.body.clone())
    }
}

fn sections(bytes: &Bytes) -> Shown {
    let Ok(sections) = Sections::split(bytes) else {
        return Shown { body: body_of(bytes), ..Shown::default() };
    };
    let properties = sections.properties().unwrap_or_default();
    let own = sections.application_properties().unwrap_or_default();
    let text = |value: &Value| (!value.is_null()).then(|| print(value));
    Shown {
        label: properties.subject,
        content_type: properties.content_type.map(|symbol| symbol.0),
        correlation_id: text(&properties.correlation_id),
        properties: own.0.iter().map(|(name, value)| (print(name), print(value))).collect(),
        body: match sections.body() {
            Ok(Body::Data(data)) => body_of(&data.concat()),
            Ok(Body::Value(value)) => ShownBody { is_text: true, text: print(&value) },
            Ok(Body::Sequences(values)) => {
                let values: Vec<String> = values.iter().map(print).collect();
                ShownBody { is_text: true, text: values.join(", ") }
            }
            Ok(Body::Empty) => ShownBody { is_text: true, text: String::new() },
            Err(_) => body_of(sections.body_bytes()),
        },
    }
}

/// The bytes of a body that is data; else those of its sections.
fn data(bytes: &Bytes) -> Bytes {
    let Ok(sections) = Sections::split(bytes) else { return bytes.clone() };
    match sections.body() {
        Ok(Body::Data(data)) => data.concat().into(),
        _ => sections.body_bytes().clone(),
    }
}

fn body_of(bytes: &[u8]) -> ShownBody {
    match std::str::from_utf8(bytes) {
        Ok(text) => ShownBody { is_text: true, text: text.to_owned() },
        Err(_) => ShownBody { is_text: false, text: STANDARD.encode(bytes) },
    }
}

/// A value for people: its text, its number, or what it consists of.
fn print(value: &Value) -> String {
    if let Some(text) = value.as_text() {
        return text.to_owned();
    }
    if let Some(number) = value.as_integer() {
        return number.to_string();
    }
    match value {
        Value::Null => String::new(),
        Value::Bool(is) => is.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Binary(bytes) => body_of(bytes).text,
        Value::Uuid(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        other => format!("{:?}", other.undescribed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_shown() {
        let wanted = Typed {
            text: "hello".into(),
            label: Some("greeting".into()),
            properties: vec![("colour".into(), "red".into())],
            partition_key: Some("k".into()),
            ..Typed::default()
        };
        let new = typed(wanted.clone());
        assert_eq!(new.partition_key.as_deref(), Some("k"));
        let shown = sections(&new.body);
        assert_eq!(shown.label.as_deref(), Some("greeting"));
        assert_eq!(shown.properties, [("colour".to_owned(), "red".to_owned())]);
        assert_eq!(shown.body, ShownBody { is_text: true, text: "hello".into() });
        let bytes = Writer::new().data(b"\xff\x00").finish();
        assert_eq!(sections(&bytes).body, ShownBody { is_text: false, text: "/wA=".into() });
        let junk = sections(&Bytes::from_static(b"\xff"));
        assert_eq!(junk.body.text, "/w==");
    }
}
