//! Partition keys: typed parts, and bytes that sort as the parts do.
//!
//! `codec` turns parts into bytes and back, `text` reads and writes them as people do, `date`
//! counts days. `docs/formats/keys.md` draws the bytes.

mod codec;
mod date;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod text;

#[cfg(test)]
mod tests;

use bytes::Bytes;
use lazuli_store::{Error, Result, limits};

/// The most parts of a composite key.
pub const KEY_PARTS_MAX: usize = 8;
/// The longest encoded key: enough for four bytes for each of the 1,024 characters of a blob's
/// name.
pub const ENCODED_KEY_BYTES_MAX: usize = 6 * 1024;
/// The last instant that a date-time key can name, 9999-12-31T23:59:59.9999999Z.
pub const DATE_TIME_TICKS_MAX: i64 = 3_155_378_975_999_999_999;

// A partition key, a row key of the same size and all that stands in front of them fit in a store's
// key.
const _: () = assert!(2 * ENCODED_KEY_BYTES_MAX + 1024 <= limits::KEY_BYTES_MAX);

/// The type of one part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    Int32,
    Int64,
    Uuid,
    Bytes,
    Text,
    /// An instant in ticks of 100 ns since 0001-01-01T00:00:00Z.
    DateTime,
    Bool,
}

impl KeyType {
    pub const ALL: [Self; 7] =
        [Self::Int32, Self::Int64, Self::Uuid, Self::Bytes, Self::Text, Self::DateTime, Self::Bool];

    pub fn name(self) -> &'static str {
        match self {
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uuid => "uuid",
            Self::Bytes => "bytes",
            Self::Text => "text",
            Self::DateTime => "datetime",
            Self::Bool => "bool",
        }
    }
}

/// One part of a key. Parts of one type compare as their encodings do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyPart {
    Int32(i32),
    Int64(i64),
    Uuid([u8; 16]),
    Bytes(Bytes),
    Text(String),
    DateTime(i64),
    Bool(bool),
}

impl KeyPart {
    pub fn key_type(&self) -> KeyType {
        match self {
            Self::Int32(_) => KeyType::Int32,
            Self::Int64(_) => KeyType::Int64,
            Self::Uuid(_) => KeyType::Uuid,
            Self::Bytes(_) => KeyType::Bytes,
            Self::Text(_) => KeyType::Text,
            Self::DateTime(_) => KeyType::DateTime,
            Self::Bool(_) => KeyType::Bool,
        }
    }
}

impl From<&str> for KeyPart {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// The types of a key's parts, in order; more than one makes a composite key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySchema(Vec<KeyType>);

impl KeySchema {
    /// Refuses no parts at all, and more than [`KEY_PARTS_MAX`].
    pub fn new(types: impl Into<Vec<KeyType>>) -> Result<Self> {
        let types = types.into();
        if types.is_empty() || types.len() > KEY_PARTS_MAX {
            let count = types.len();
            let message = format!("a key has 1 to {KEY_PARTS_MAX} parts, not {count}");
            return Err(Error::invalid("key-schema", message));
        }
        Ok(Self(types))
    }

    /// The schema of a key of one part.
    pub fn one(key_type: KeyType) -> Self {
        Self(vec![key_type])
    }

    pub fn types(&self) -> &[KeyType] {
        &self.0
    }
}
