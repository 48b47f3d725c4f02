//! One key with its value.
//!
//! A string lies with its key, its clock and its expiry in one block, so that the common key costs one allocation and one
//! cache miss. Everything else, and strings that are changed in place, is an object of its own.

use crate::dict::Keyed;
use crate::slot::slot_of;
use crate::value::Value;

/// Strings from this size on are objects: they may grow in place, and their blocks are not copied with their expiry.
pub(crate) const PACKED_BYTES_MAX: usize = 16 * 1024;

/// The bits of a position below those of the slot.
pub(crate) const POSITION_HASH_BITS: u32 = 50;

const HAS_EXPIRY: u8 = 1;
const HAS_LONG_KEY: u8 = 2;
const CLOCK: std::ops::Range<usize> = 1..4;
/// Flags, clock, and one byte for the length of the key.
const HEAD_BYTES: usize = 5;

/// Either form has the size of two words.
pub enum Entry {
    /// Flags (1), clock (3), length of the key (1, or 5 for long ones), expiry (8 if there is one), key, string.
    Packed(Box<[u8]>),
    Object(Box<Object>),
}

pub struct Object {
    key: Box<[u8]>,
    /// Zero if it stays.
    expires_at_ms: u64,
    /// When it was used, or how often, as the policy of eviction has it; 24 bits.
    pub(crate) clock: u32,
    /// Which of the rows under its key are its own.
    pub generation: u64,
    pub value: Value,
}

impl Keyed for Entry {
    #[inline]
    fn key(&self) -> &[u8] {
        match self {
            Self::Packed(block) => {
                let (start, length) = key_range(block);
                &block[start..start + length]
            }
            Self::Object(object) => &object.key,
        }
    }

    /// The slot first, so that the keys of a slot lie together.
    #[inline]
    fn position(key: &[u8], hash: u64) -> u64 {
        position(slot_of(key), hash)
    }

    fn hash_at(position: u64) -> u64 {
        position << (64 - POSITION_HASH_BITS)
    }
}

#[inline]
pub(crate) fn position(slot: u16, hash: u64) -> u64 {
    u64::from(slot) << POSITION_HASH_BITS | hash >> (64 - POSITION_HASH_BITS)
}

/// Where the key begins, and its length.
#[inline]
fn key_range(block: &[u8]) -> (usize, usize) {
    let flags = block[0];
    let expiry = if flags & HAS_EXPIRY != 0 { 8 } else { 0 };
    if flags & HAS_LONG_KEY == 0 {
        return (HEAD_BYTES + expiry, usize::from(block[4]));
    }
    let length = u32::from_le_bytes([block[5], block[6], block[7], block[8]]);
    (HEAD_BYTES + 4 + expiry, length as usize)
}

impl Entry {
    pub fn string_of(key: &[u8], value: &[u8], expires_at_ms: Option<u64>, clock: u32) -> Self {
        if value.len() > PACKED_BYTES_MAX {
            let value = Value::String(value.to_vec());
            return Self::object(key, value, expires_at_ms, clock, 0);
        }
        let is_long = key.len() > usize::from(u8::MAX);
        let head = HEAD_BYTES + if is_long { 4 } else { 0 } + expires_at_ms.map_or(0, |_| 8);
        let mut block = Vec::with_capacity(head + key.len() + value.len());
        let expiry = if expires_at_ms.is_some() { HAS_EXPIRY } else { 0 };
        block.push(expiry | if is_long { HAS_LONG_KEY } else { 0 });
        block.extend_from_slice(&clock.to_le_bytes()[..3]);
        if is_long {
            block.push(u8::MAX);
            block.extend_from_slice(&(key.len() as u32).to_le_bytes());
        } else {
            block.push(key.len() as u8);
        }
        if let Some(at) = expires_at_ms {
            block.extend_from_slice(&at.to_le_bytes());
        }
        block.extend_from_slice(key);
        block.extend_from_slice(value);
        Self::Packed(block.into_boxed_slice())
    }

    pub fn object(
        key: &[u8],
        value: Value,
        expires_at_ms: Option<u64>,
        clock: u32,
        generation: u64,
    ) -> Self {
        let expires_at_ms = expires_at_ms.unwrap_or_default();
        Self::Object(Box::new(Object { key: key.into(), expires_at_ms, clock, generation, value }))
    }

    #[inline]
    pub fn expires_at_ms(&self) -> Option<u64> {
        match self {
            Self::Packed(block) if block[0] & HAS_EXPIRY == 0 => None,
            Self::Packed(block) => {
                let (start, _) = key_range(block);
                let bytes = block[start - 8..start].try_into().ok();
                bytes.map(u64::from_le_bytes)
            }
            Self::Object(object) => Some(object.expires_at_ms).filter(|at| *at != 0),
        }
    }

    pub(crate) fn set_expiry(&mut self, expires_at_ms: Option<u64>) {
        match self {
            Self::Object(object) => object.expires_at_ms = expires_at_ms.unwrap_or_default(),
            Self::Packed(block) => match (expires_at_ms, block[0] & HAS_EXPIRY != 0) {
                (None, false) => {}
                (Some(at), true) => {
                    let (start, _) = key_range(block);
                    block[start - 8..start].copy_from_slice(&at.to_le_bytes());
                }
                _ => {
                    let string = self.string().unwrap_or_default();
                    *self = Self::string_of(self.key(), string, expires_at_ms, self.clock());
                }
            },
        }
    }

    /// The string, if it is one.
    #[inline]
    pub fn string(&self) -> Option<&[u8]> {
        match self {
            Self::Packed(block) => {
                let (start, length) = key_range(block);
                Some(&block[start + length..])
            }
            Self::Object(object) => match &object.value {
                Value::String(string) => Some(string),
                _ => None,
            },
        }
    }

    /// Puts a string in the place of whatever it is, and keeps key, expiry and clock.
    pub(crate) fn set_string(&mut self, value: &[u8], expires_at_ms: Option<u64>) {
        if let Self::Packed(block) = self {
            let (start, length) = key_range(block);
            let had_expiry = block[0] & HAS_EXPIRY != 0;
            if block.len() == start + length + value.len() && had_expiry == expires_at_ms.is_some()
            {
                block[start + length..].copy_from_slice(value);
                if let Some(at) = expires_at_ms {
                    block[start - 8..start].copy_from_slice(&at.to_le_bytes());
                }
                return;
            }
        }
        *self = Self::string_of(self.key(), value, expires_at_ms, self.clock());
    }

    /// Has it as a string that can grow in place; none if it is no string.
    pub(crate) fn string_mut(&mut self) -> Option<&mut Vec<u8>> {
        if let Self::Packed(_) = self {
            let value = Value::String(self.string().unwrap_or_default().to_vec());
            *self = Self::object(self.key(), value, self.expires_at_ms(), self.clock(), 0);
        }
        match self {
            Self::Object(object) => match &mut object.value {
                Value::String(string) => Some(string),
                _ => None,
            },
            Self::Packed(_) => None,
        }
    }

    #[inline]
    pub fn clock(&self) -> u32 {
        match self {
            Self::Packed(block) => u32::from_le_bytes([block[1], block[2], block[3], 0]),
            Self::Object(object) => object.clock,
        }
    }

    #[inline]
    pub(crate) fn set_clock(&mut self, clock: u32) {
        match self {
            Self::Packed(block) => block[CLOCK].copy_from_slice(&clock.to_le_bytes()[..3]),
            Self::Object(object) => object.clock = clock,
        }
    }

    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Packed(_) => "string",
            Self::Object(object) => object.value.type_name(),
        }
    }

    pub fn encoding(&self) -> &'static str {
        match self {
            Self::Packed(_) => string_encoding(self.string().unwrap_or_default()),
            Self::Object(object) => object.value.encoding(),
        }
    }

    /// What it takes in memory, its place in the table included.
    #[inline]
    pub fn bytes(&self) -> usize {
        let place = size_of::<Self>() * 3 / 2;
        match self {
            Self::Packed(block) => place + block.len(),
            Self::Object(object) => {
                place + size_of::<Object>() + object.key.len() + object.value.bytes()
            }
        }
    }

    /// Its row in the store: type, expiry, generation, and what the type keeps beside its elements.
    pub(crate) fn head(&self) -> Vec<u8> {
        let tag = match self {
            Self::Packed(_) => 0,
            Self::Object(object) => object.value.tag(),
        };
        let mut head = vec![tag];
        head.extend_from_slice(&self.expires_at_ms().unwrap_or_default().to_le_bytes());
        head.extend_from_slice(&self.generation().to_le_bytes());
        match self {
            Self::Packed(_) => head.extend_from_slice(self.string().unwrap_or_default()),
            Self::Object(object) => object.value.head(&mut head),
        }
        head
    }

    pub(crate) fn generation(&self) -> u64 {
        match self {
            Self::Packed(_) => 0,
            Self::Object(object) => object.generation,
        }
    }

    /// A copy of the value.
    pub fn copy_value(&self) -> Value {
        match self {
            Self::Packed(_) => Value::String(self.string().unwrap_or_default().to_vec()),
            Self::Object(object) => object.value.copy(),
        }
    }

    /// The value on its own.
    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Packed(_) => Value::String(self.string().unwrap_or_default().to_vec()),
            Self::Object(object) => object.value,
        }
    }
}

/// How the service says that it keeps a string that was set at once.
fn string_encoding(string: &[u8]) -> &'static str {
    match string.len() {
        0..=20 if is_canonical_integer(string) => "int",
        0..=44 => "embstr",
        _ => "raw",
    }
}

pub(crate) fn is_canonical_integer(text: &[u8]) -> bool {
    let parsed = std::str::from_utf8(text).ok().and_then(|it| it.parse::<i64>().ok());
    parsed.is_some_and(|it| it.to_string().as_bytes() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_size_of_two_words() {
        assert_eq!(size_of::<Entry>(), 16);
    }

    #[test]
    fn a_packed_entry_keeps_all_its_parts_through_every_change() {
        for key in [&b"k"[..], &[b'x'; 300]] {
            let mut entry = Entry::string_of(key, b"value", None, 77);
            let check = |entry: &Entry, string: &[u8], expiry| {
                assert_eq!((entry.key(), entry.string()), (key, Some(string)));
                assert_eq!((entry.expires_at_ms(), entry.clock()), (expiry, 77));
            };
            check(&entry, b"value", None);
            entry.set_expiry(Some(5));
            check(&entry, b"value", Some(5));
            entry.set_expiry(Some(6));
            entry.set_string(b"other", Some(7));
            check(&entry, b"other", Some(7));
            entry.set_string(b"longer than before", None);
            check(&entry, b"longer than before", None);
            entry.string_mut().unwrap().push(b'!');
            check(&entry, b"longer than before!", None);
            entry.set_expiry(Some(8));
            check(&entry, b"longer than before!", Some(8));
            entry.set_string(&[0; PACKED_BYTES_MAX + 1], None);
            check(&entry, &[0; PACKED_BYTES_MAX + 1], None);
        }
    }

    #[test]
    fn encodings_are_those_that_clients_see() {
        let of = |string: &[u8]| Entry::string_of(b"k", string, None, 0).encoding();
        assert_eq!(
            (of(b"12"), of(b"012"), of(&[b'a'; 44]), of(&[b'a'; 45])),
            ("int", "embstr", "embstr", "raw")
        );
        let mut entry = Entry::string_of(b"k", b"1", None, 0);
        entry.string_mut();
        assert_eq!(entry.encoding(), "raw");
    }
}
