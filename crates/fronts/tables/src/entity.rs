//! An entity: from the client's JSON to the bytes that are stored, and back property by property.
//!
//! Stored form: a format byte, then for each property the length of its name (varint), the name, a type byte and the
//! value: fixed width big-endian, or length (varint) and bytes. Filters and answers read it in place. Keys and timestamp
//! are not in it: they are the record's own.

use std::borrow::Cow;

use bytes::Bytes;
use lazuli_azure::odata::{Guid, Value, read_entity};

use crate::address::{check_key, check_property, utf16_units};
use crate::error::{Code, Common, Fault, Result, from_json};
use crate::limits::Limits;

pub(crate) const PARTITION_KEY: &str = "PartitionKey";
pub(crate) const ROW_KEY: &str = "RowKey";
pub(crate) const TIMESTAMP: &str = "Timestamp";

const FORMAT: u8 = 1;

const BINARY: u8 = 1;
const FALSE: u8 = 2;
const TRUE: u8 = 3;
const DATE_TIME: u8 = 4;
const DOUBLE: u8 = 5;
const GUID: u8 = 6;
const INT32: u8 = 7;
const INT64: u8 = 8;
const STRING: u8 = 9;

/// What a client sent: the keys, if it sent them, and the properties beside them.
#[derive(Debug, PartialEq)]
pub(crate) struct Entity<'a> {
    pub(crate) partition_key: Option<Cow<'a, str>>,
    pub(crate) row_key: Option<Cow<'a, str>>,
    pub(crate) properties: Vec<(Cow<'a, str>, Value<'a>)>,
}

impl<'a> Entity<'a> {
    /// Reads the JSON of an entity and holds it against the limits of the service. A timestamp is the server's to set,
    /// so one from the client is dropped.
    pub(crate) fn parse(json: &'a [u8], limits: &Limits) -> Result<Self> {
        let mut entity = Self { partition_key: None, row_key: None, properties: Vec::new() };
        for (name, value) in read_entity(json).map_err(from_json)? {
            match name.as_ref() {
                PARTITION_KEY => entity.partition_key = Some(key(PARTITION_KEY, value, limits)?),
                ROW_KEY => entity.row_key = Some(key(ROW_KEY, value, limits)?),
                TIMESTAMP => {}
                _ => {
                    check_property(&name, limits)?;
                    if value_bytes(&value) > limits.value_bytes_max {
                        return Err(Fault::new(Code::PropertyValueTooLarge));
                    }
                    entity.properties.push((name, value));
                }
            }
        }
        Ok(entity)
    }

    /// Both keys, for operations that take them from the body.
    pub(crate) fn keys(&self) -> Result<(&str, &str)> {
        match (&self.partition_key, &self.row_key) {
            (Some(partition_key), Some(row_key)) => Ok((partition_key, row_key)),
            _ => Err(Fault::new(Code::PropertiesNeedValue)),
        }
    }

    /// The stored form, if the entity with these keys is no larger than the service takes.
    pub(crate) fn encode(
        &self,
        partition_key: &str,
        row_key: &str,
        limits: &Limits,
    ) -> Result<Bytes> {
        encode_checked(partition_key, row_key, &self.properties, limits)
    }
}

/// What is stored with what was sent over it: a property that was not sent stays as it is.
pub(crate) fn merge(
    stored: &[u8],
    sent: &[u8],
    partition_key: &str,
    row_key: &str,
    limits: &Limits,
) -> Result<Bytes> {
    let sent = Properties::open(sent)?;
    let mut properties = Vec::new();
    for property in Properties::open(stored)? {
        let (name, value) = property?;
        properties.push((Cow::Borrowed(name), sent.find(name).unwrap_or(value)));
    }
    let before = properties.len();
    for property in sent {
        let (name, value) = property?;
        if !properties[..before].iter().any(|(known, _)| known == name) {
            properties.push((Cow::Borrowed(name), value));
        }
    }
    encode_checked(partition_key, row_key, &properties, limits)
}

fn encode_checked(
    partition_key: &str,
    row_key: &str,
    properties: &[(Cow<'_, str>, Value<'_>)],
    limits: &Limits,
) -> Result<Bytes> {
    if properties.len() > limits.property_count_max {
        return Err(Fault::new(Code::TooManyProperties));
    }
    // The service's own formula: 4 bytes, the keys as UTF-16, and 8 bytes with name and value for each property.
    let bytes = properties.iter().map(|(name, value)| 8 + utf16_bytes(name) + value_bytes(value));
    let bytes = 4 + utf16_bytes(partition_key) + utf16_bytes(row_key) + bytes.sum::<usize>();
    if bytes > limits.entity_bytes_max {
        return Err(Fault::new(Code::EntityTooLarge));
    }
    Ok(encode(properties))
}

fn key<'a>(name: &str, value: Value<'a>, limits: &Limits) -> Result<Cow<'a, str>> {
    let Value::String(key) = value else {
        return Err(Fault::new(Common::InvalidInput).say(format!("The '{name}' must be a string.")));
    };
    check_key(name, &key, limits)?;
    Ok(key)
}

fn utf16_bytes(text: &str) -> usize {
    utf16_units(text) * 2
}

/// The size of a value as the service counts it.
fn value_bytes(value: &Value<'_>) -> usize {
    match value {
        Value::Binary(bytes) => bytes.len(),
        Value::Boolean(_) => 1,
        Value::DateTime(_) | Value::Double(_) | Value::Int64(_) => 8,
        Value::Guid(_) => 16,
        Value::Int32(_) => 4,
        Value::String(text) => utf16_bytes(text),
    }
}

fn encode(properties: &[(Cow<'_, str>, Value<'_>)]) -> Bytes {
    let bytes = properties.iter().map(|(name, value)| name.len() + value_bytes(value) + 4);
    let mut out = Vec::with_capacity(1 + bytes.sum::<usize>());
    out.push(FORMAT);
    for (name, value) in properties {
        put_bytes(&mut out, name.as_bytes());
        match value {
            Value::Binary(bytes) => {
                out.push(BINARY);
                put_bytes(&mut out, bytes);
            }
            Value::Boolean(value) => out.push(if *value { TRUE } else { FALSE }),
            Value::DateTime(ticks) => put_fixed(&mut out, DATE_TIME, &ticks.to_be_bytes()),
            Value::Double(value) => put_fixed(&mut out, DOUBLE, &value.to_bits().to_be_bytes()),
            Value::Guid(guid) => put_fixed(&mut out, GUID, &guid.0),
            Value::Int32(value) => put_fixed(&mut out, INT32, &value.to_be_bytes()),
            Value::Int64(value) => put_fixed(&mut out, INT64, &value.to_be_bytes()),
            Value::String(text) => {
                out.push(STRING);
                put_bytes(&mut out, text.as_bytes());
            }
        }
    }
    out.into()
}

fn put_fixed(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    out.extend_from_slice(bytes);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
}

/// The stored bytes are not what this program writes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

impl From<Damaged> for Fault {
    fn from(Damaged: Damaged) -> Self {
        Fault::new(Common::InternalError).because("a stored entity can't be read")
    }
}

/// The stored properties of an entity, read in place. Ends after the first damage.
#[derive(Clone)]
pub(crate) struct Properties<'a>(&'a [u8]);

impl<'a> Properties<'a> {
    pub(crate) fn open(stored: &'a [u8]) -> std::result::Result<Self, Damaged> {
        match stored {
            [FORMAT, rest @ ..] => Ok(Self(rest)),
            _ => Err(Damaged),
        }
    }

    /// A property by name. What stands in front of it is passed over unread.
    pub(crate) fn find(&self, name: &str) -> Option<Value<'a>> {
        let mut rest = self.clone();
        loop {
            let (found, value) = rest.stored()?;
            if found == name.as_bytes() {
                return value.read();
            }
        }
    }

    fn property(&mut self) -> Option<(&'a str, Value<'a>)> {
        let (name, value) = self.stored()?;
        Some((text(name)?, value.read()?))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next property as it stands.
    #[inline]
    pub(crate) fn stored(&mut self) -> Option<(&'a [u8], Stored<'a>)> {
        let name = self.bytes()?;
        let value = match self.take(1)?[0] {
            BINARY => Value::Binary(Cow::Borrowed(self.bytes()?)),
            FALSE => Value::Boolean(false),
            TRUE => Value::Boolean(true),
            DATE_TIME => Value::DateTime(i64::from_be_bytes(self.fixed()?)),
            DOUBLE => Value::Double(f64::from_bits(u64::from_be_bytes(self.fixed()?))),
            GUID => Value::Guid(Guid(self.fixed()?)),
            INT32 => Value::Int32(i32::from_be_bytes(self.fixed()?)),
            INT64 => Value::Int64(i64::from_be_bytes(self.fixed()?)),
            STRING => return Some((name, Stored::Text(self.bytes()?))),
            _ => return None,
        };
        Some((name, Stored::Value(value)))
    }

    #[inline]
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    #[inline]
    fn bytes(&mut self) -> Option<&'a [u8]> {
        if let [length @ 0..0x80, rest @ ..] = self.0 {
            self.0 = rest;
            return self.take(usize::from(*length));
        }
        let mut length = 0usize;
        for shift in [0, 7, 14, 21] {
            let byte = self.take(1)?[0];
            length |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return self.take(length);
            }
        }
        None
    }
}

/// A stored value whose text has not been looked at.
pub(crate) enum Stored<'a> {
    Text(&'a [u8]),
    Value(Value<'a>),
}

impl<'a> Stored<'a> {
    fn read(self) -> Option<Value<'a>> {
        match self {
            Self::Text(bytes) => Some(Value::String(Cow::Borrowed(text(bytes)?))),
            Self::Value(value) => Some(value),
        }
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

impl<'a> Iterator for Properties<'a> {
    type Item = std::result::Result<(&'a str, Value<'a>), Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let property = self.property();
        if property.is_none() {
            self.0 = &[];
        }
        Some(property.ok_or(Damaged))
    }
}

#[cfg(test)]
#[path = "entity_tests.rs"]
mod tests;
