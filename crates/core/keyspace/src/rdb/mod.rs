//! Values and whole files in the manner of RDB version 10: what DUMP gives and RESTORE takes, what a primary sends to a new
//! replica, and files of Redis.
//!
//! A payload is a byte for the type, the value, the version (2 bytes) and a checksum (8 bytes). Values are written in the
//! plain forms of their types; the compact ones of Redis (listpacks, ziplists, integer sets) are read as well. `file` reads
//! and writes files record by record, `extent` finds where a value ends without making it.

mod checksum;
mod compact;
mod extent;
pub mod file;
mod reader;
mod stream;
mod writer;

use crate::entry::Entry;
use crate::space::Space;
use crate::value::Value;

pub use reader::BadPayload;

pub const VERSION: u16 = 10;
/// The version that has a form for hashes with fields that expire; Redis reads it from 7.4 on.
pub const VERSION_TIMES: u16 = 12;
/// Versions up to this one are read: what newer ones added are types that are refused by their numbers.
const VERSION_MAX: u16 = 12;

/// The types of values, by their numbers in payloads.
mod types {
    pub(super) const STRING: u8 = 0;
    pub(super) const LIST: u8 = 1;
    pub(super) const SET: u8 = 2;
    pub(super) const ZSET: u8 = 3;
    pub(super) const HASH: u8 = 4;
    pub(super) const ZSET_2: u8 = 5;
    pub(super) const LIST_ZIPLIST: u8 = 10;
    pub(super) const SET_INTSET: u8 = 11;
    pub(super) const ZSET_ZIPLIST: u8 = 12;
    /// What only a module of Redis can read.
    pub(super) const MODULE: u8 = 6;
    pub(super) const MODULE_2: u8 = 7;
    pub(super) const HASH_ZIPMAP: u8 = 9;
    pub(super) const HASH_ZIPLIST: u8 = 13;
    pub(super) const LIST_QUICKLIST: u8 = 14;
    pub(super) const HASH_LISTPACK: u8 = 16;
    pub(super) const ZSET_LISTPACK: u8 = 17;
    pub(super) const LIST_QUICKLIST_2: u8 = 18;
    pub(super) const SET_LISTPACK: u8 = 20;
    pub(super) const STREAM: u8 = 15;
    pub(super) const STREAM_2: u8 = 19;
    pub(super) const STREAM_3: u8 = 21;
    pub(super) const HASH_TIMES: u8 = 24;
    pub(super) const HASH_LISTPACK_TIMES: u8 = 25;

    /// Whether values of this type can be read.
    pub(super) fn is_known(kind: u8) -> bool {
        matches!(kind, 0..=5 | 9..=21 | HASH_TIMES | HASH_LISTPACK_TIMES)
    }
}

/// A value as a payload. Hashes with fields that expire take a version that Redis has from 7.4 on, and older ones refuse.
pub fn dump(value: &Value) -> Vec<u8> {
    let body = writer::value(value);
    let version = if body[0] == types::HASH_TIMES { VERSION_TIMES } else { VERSION };
    sealed(body, version)
}

/// Bytes with the version and the checksum behind them.
fn sealed(mut body: Vec<u8>, version: u16) -> Vec<u8> {
    body.extend_from_slice(&version.to_le_bytes());
    let checksum = checksum::crc64(&body);
    body.extend_from_slice(&checksum.to_le_bytes());
    body
}

/// What stands in front of version and checksum, if both are right, and the version.
pub fn unseal(payload: &[u8]) -> Result<(&[u8], u16), BadPayload> {
    let (rest, checksum) = payload.split_last_chunk::<8>().ok_or(BadPayload::Envelope)?;
    let (body, version) = rest.split_last_chunk::<2>().ok_or(BadPayload::Envelope)?;
    let (checksum, version) = (u64::from_le_bytes(*checksum), u16::from_le_bytes(*version));
    // A checksum of zero stands for none.
    let is_right = checksum == 0 || checksum == checksum::crc64(rest);
    if version > VERSION_MAX || !is_right {
        return Err(BadPayload::Envelope);
    }
    Ok((body, version))
}

impl Space<'_> {
    /// The value of a key as a payload, if there is such a key.
    pub fn dump(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        Some(match self.look(key)? {
            Entry::Object(object) => dump(&object.value),
            entry @ Entry::Packed(_) => {
                dump(&Value::String(entry.string().unwrap_or_default().to_vec()))
            }
        })
    }
}

/// The value of a payload.
pub fn restore(payload: &[u8]) -> Result<Value, BadPayload> {
    let (body, _) = unseal(payload)?;
    let (kind, value) = body.split_first().ok_or(BadPayload::Format)?;
    made(*kind, value)
}

/// The longest row that a value takes in the store.
pub fn longest_row(value: &Value) -> usize {
    let mut longest = if let Value::String(text) = value { text.len() } else { 0 };
    value.rows(&mut |element, row| longest = longest.max(element.len() + row.len()));
    longest
}

/// The value of a type and its bytes, which must be whole.
fn made(kind: u8, value: &[u8]) -> Result<Value, BadPayload> {
    reader::value(kind, value).map_err(|bad| match bad {
        BadPayload::Short => BadPayload::Format,
        other => other,
    })
}

#[cfg(test)]
mod tests;
