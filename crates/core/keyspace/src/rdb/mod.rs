//! Values as bytes in the manner of RDB version 10: what DUMP gives and RESTORE takes, also from and for Redis.
//!
//! A payload is a byte for the type, the value, the version (2 bytes) and a checksum (8 bytes). Values are written in the
//! plain forms of their types; the compact ones of Redis (listpacks, ziplists, integer sets) are read as well.

mod checksum;
mod compact;
mod reader;
mod writer;

use crate::entry::Entry;
use crate::space::Space;
use crate::value::Value;

pub use reader::BadPayload;

const VERSION: u16 = 10;
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
    pub(super) const HASH_ZIPLIST: u8 = 13;
    pub(super) const LIST_QUICKLIST: u8 = 14;
    pub(super) const HASH_LISTPACK: u8 = 16;
    pub(super) const ZSET_LISTPACK: u8 = 17;
    pub(super) const LIST_QUICKLIST_2: u8 = 18;
    pub(super) const SET_LISTPACK: u8 = 20;
}

/// A value as a payload; none for streams, and for hashes with times to live of fields, which this version has no form for.
pub fn dump(value: &Value) -> Option<Vec<u8>> {
    let mut payload = writer::value(value)?;
    payload.extend_from_slice(&VERSION.to_le_bytes());
    let checksum = checksum::crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    Some(payload)
}

impl Space<'_> {
    /// The value of a key as a payload: none if there is no key, and none inside if its value has no form.
    pub fn dump(&mut self, key: &[u8]) -> Option<Option<Vec<u8>>> {
        let entry = self.look(key)?;
        Some(match (entry.string(), entry) {
            (Some(string), _) => dump(&Value::String(string.to_vec())),
            (None, Entry::Object(object)) => dump(&object.value),
            (None, Entry::Packed(_)) => None,
        })
    }
}

/// The value of a payload.
pub fn restore(payload: &[u8]) -> Result<Value, BadPayload> {
    let (rest, checksum) = payload.split_last_chunk::<8>().ok_or(BadPayload::Envelope)?;
    let (body, version) = rest.split_last_chunk::<2>().ok_or(BadPayload::Envelope)?;
    let checksum = u64::from_le_bytes(*checksum);
    // A checksum of zero stands for none.
    let is_right = checksum == 0 || checksum == checksum::crc64(rest);
    if u16::from_le_bytes(*version) > VERSION_MAX || !is_right {
        return Err(BadPayload::Envelope);
    }
    reader::value(body)
}

#[cfg(test)]
mod tests;
