//! An entity from JSON text: one flat object whose members are properties or notes on them.
//!
//! Nested objects and arrays are refused where they begin, so the depth of the text is bounded by one.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};

use super::value::{DATE_TIME_TICKS_MIN, EdmType, Guid, Value};
use lazuli_http::date;

/// The most members of an entity's object: every property that the service takes with its note, and some to spare, so
/// that a client that sends a few too many gets the service's own error.
pub const ENTITY_MEMBERS_MAX: usize = 1024;

const TYPE_NOTE: &str = "@odata.type";

/// Why a text is no entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonError {
    /// Not one JSON object, or one with something nested in it.
    Syntax,
    TooManyMembers,
    /// The same name twice.
    Duplicate(String),
    /// A type note that names no type.
    UnknownType(String),
    /// The value is not one of the type that the note says.
    WrongValue(String),
    /// A date-time before the first one.
    OutOfRange(String),
}

/// The properties of an entity, in the order they came. A property whose value is `null` is left out, as the service
/// does; so are the notes of OData itself.
pub fn read_entity(text: &[u8]) -> Result<Vec<(Cow<'_, str>, Value<'_>)>, JsonError> {
    let mut members = Members(Vec::new());
    let mut json = serde_json::Deserializer::from_slice(text);
    let read = json.deserialize_map(&mut members).and_then(|()| json.end());
    if members.0.len() > ENTITY_MEMBERS_MAX {
        return Err(JsonError::TooManyMembers);
    }
    read.map_err(|_| JsonError::Syntax)?;
    let members = members.0;
    refuse_duplicates(&members)?;
    let has_notes = members.iter().any(|(name, _)| name.ends_with(TYPE_NOTE));
    let mut properties = Vec::with_capacity(members.len());
    for (at, (name, raw)) in members.iter().enumerate() {
        if name.contains('@') || name.starts_with("odata.") || matches!(raw, Raw::Null) {
            continue;
        }
        let kind = if has_notes { type_note(&members, at, name)? } else { None };
        properties.push((name.clone(), typed(name, raw, kind)?));
    }
    Ok(properties)
}

/// A JSON value that is not nested.
#[derive(Debug)]
enum Raw<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(Cow<'a, str>),
}

type Member<'a> = (Cow<'a, str>, Raw<'a>);

/// Up to here, comparing each with all others is quicker than sorting.
const COMPARED_MAX: usize = 16;

fn refuse_duplicates(members: &[Member<'_>]) -> Result<(), JsonError> {
    if members.len() <= COMPARED_MAX {
        let again = |at: usize| members[..at].iter().any(|(name, _)| *name == members[at].0);
        return match (0..members.len()).find(|at| again(*at)) {
            Some(at) => Err(JsonError::Duplicate(members[at].0.to_string())),
            None => Ok(()),
        };
    }
    let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_ref()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(JsonError::Duplicate(pair[0].to_owned())),
        None => Ok(()),
    }
}

/// The type that the note on this property names. It mostly stands right before the property.
fn type_note(members: &[Member<'_>], at: usize, name: &str) -> Result<Option<EdmType>, JsonError> {
    let is_note = |member: &&Member<'_>| {
        member.0.strip_suffix(TYPE_NOTE).is_some_and(|annotated| annotated == name)
    };
    let before = at.checked_sub(1).and_then(|at| members.get(at)).filter(is_note);
    match before.or_else(|| members.iter().find(is_note)) {
        None => Ok(None),
        Some((_, Raw::Text(note))) => match EdmType::parse(note) {
            Some(kind) => Ok(Some(kind)),
            None => Err(JsonError::UnknownType(note.to_string())),
        },
        Some(_) => Err(JsonError::UnknownType(name.to_owned())),
    }
}

fn typed<'a>(name: &str, raw: &Raw<'a>, kind: Option<EdmType>) -> Result<Value<'a>, JsonError> {
    let value = match kind {
        None => inferred(raw),
        Some(EdmType::Boolean) => match raw {
            Raw::Boolean(value) => Some(Value::Boolean(*value)),
            Raw::Text(text) => boolean(text).map(Value::Boolean),
            _ => None,
        },
        Some(EdmType::String) => match raw {
            Raw::Text(text) => Some(Value::String(text.clone())),
            _ => None,
        },
        Some(EdmType::Int32) => integer(raw).and_then(|v| v.try_into().ok()).map(Value::Int32),
        Some(EdmType::Int64) => integer(raw).map(Value::Int64),
        Some(EdmType::Double) => double(raw).map(Value::Double),
        Some(EdmType::Guid) => text(raw).and_then(Guid::parse).map(Value::Guid),
        Some(EdmType::Binary) => {
            text(raw).and_then(|t| STANDARD.decode(t).ok()).map(|b| Value::Binary(b.into()))
        }
        Some(EdmType::DateTime) => text(raw).and_then(date::parse_iso8601).map(Value::DateTime),
    };
    match value {
        Some(Value::DateTime(ticks)) if ticks < DATE_TIME_TICKS_MIN => {
            Err(JsonError::OutOfRange(name.to_owned()))
        }
        Some(value) => Ok(value),
        None => Err(JsonError::WrongValue(name.to_owned())),
    }
}

/// Without a note, a number is an Int32 if it can be one and a Double otherwise.
fn inferred<'a>(raw: &Raw<'a>) -> Option<Value<'a>> {
    Some(match raw {
        Raw::Null => return None,
        Raw::Boolean(value) => Value::Boolean(*value),
        Raw::Integer(value) => match i32::try_from(*value) {
            Ok(value) => Value::Int32(value),
            Err(_) => Value::Double(*value as f64),
        },
        Raw::Float(value) => Value::Double(*value),
        Raw::Text(text) => Value::String(text.clone()),
    })
}

/// `true` or `false` in whatever case: clients take it from command lines and other languages.
fn boolean(text: &str) -> Option<bool> {
    match text {
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

fn text<'t>(raw: &'t Raw<'_>) -> Option<&'t str> {
    match raw {
        Raw::Text(text) => Some(text),
        _ => None,
    }
}

fn integer(raw: &Raw<'_>) -> Option<i64> {
    match raw {
        Raw::Integer(value) => Some(*value),
        Raw::Text(text) => text.parse().ok(),
        _ => None,
    }
}

fn double(raw: &Raw<'_>) -> Option<f64> {
    match raw {
        Raw::Integer(value) => Some(*value as f64),
        Raw::Float(value) => Some(*value),
        Raw::Text(text) => match text.as_ref() {
            "NaN" => Some(f64::NAN),
            "Infinity" | "INF" => Some(f64::INFINITY),
            "-Infinity" | "-INF" => Some(f64::NEG_INFINITY),
            text => text.parse().ok().filter(|value: &f64| value.is_finite()),
        },
        _ => None,
    }
}

/// Fills itself with the members of an object, one over the limit at most.
struct Members<'a>(Vec<Member<'a>>);

impl<'a> Visitor<'a> for &mut Members<'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(name) = map.next_key_seed(Text)? {
            let value = map.next_value_seed(Scalar)?;
            self.0.push((name, value));
            if self.0.len() > ENTITY_MEMBERS_MAX {
                return Err(de::Error::custom("too many members"));
            }
        }
        Ok(())
    }
}

/// A name, borrowed from the text unless it has escapes in it.
struct Text;

impl<'a> DeserializeSeed<'a> for Text {
    type Value = Cow<'a, str>;

    fn deserialize<D: Deserializer<'a>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'a> Visitor<'a> for Text {
    type Value = Cow<'a, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, text: &'a str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

struct Scalar;

impl<'a> DeserializeSeed<'a> for Scalar {
    type Value = Raw<'a>;

    fn deserialize<D: Deserializer<'a>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Scalar {
    type Value = Raw<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that is not nested")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Raw::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Raw::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(value).map_or(Raw::Float(value as f64), Raw::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Raw::Float(value))
    }

    fn visit_borrowed_str<E>(self, text: &'a str) -> Result<Self::Value, E> {
        Ok(Raw::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Raw::Text(Cow::Owned(text.to_owned())))
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
