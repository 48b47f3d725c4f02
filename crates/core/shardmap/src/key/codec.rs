//! Order-preserving, prefix-free bytes.
//!
//! Two properties carry everything above. Order: encodings compare as the parts do, part by part.
//! Prefix-freeness: no encoding begins with another of the same schema, so what follows a key in a
//! longer key never disturbs its order, and nothing lies between a key and `after_prefix` of it.
//!
//! Decoding is strict: it takes exactly what encoding makes, so one key has one encoding.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_store::{Error, Result};

use super::{DATE_TIME_TICKS_MAX, ENCODED_KEY_BYTES_MAX, KeyPart, KeySchema, KeyType};

/// In bytes and text a zero byte is written as `00 ff`, and `00 01` ends the part. So the end sorts
/// below every byte that might go on.
const ESCAPE: u8 = 0x00;
const ESCAPED_ZERO: u8 = 0xff;
const END: u8 = 0x01;

impl KeySchema {
    /// The bytes of a key. Refuses a key that is not of this schema (`key-type`) or is too long
    /// (`key-too-large`).
    pub fn encode(&self, key: &[KeyPart]) -> Result<Bytes> {
        let mut out = BytesMut::with_capacity(encoded_bytes(key));
        self.encode_into(&mut out, key)?;
        Ok(out.freeze())
    }

    /// Appends the bytes of a key; on an error `out` holds rubbish.
    pub(crate) fn encode_into(&self, out: &mut BytesMut, key: &[KeyPart]) -> Result<()> {
        if key.len() != self.types().len() {
            let (want, have) = (self.types().len(), key.len());
            return Err(wrong_type(format!("a key of {want} parts is needed, not of {have}")));
        }
        let length = encoded_bytes(key);
        if length > ENCODED_KEY_BYTES_MAX {
            let message = format!("a key of {length} bytes, above {ENCODED_KEY_BYTES_MAX}");
            return Err(Error::too_large("key-too-large", message));
        }
        for (part, want) in key.iter().zip(self.types()) {
            if part.key_type() != *want {
                let (want, have) = (want.name(), part.key_type().name());
                return Err(wrong_type(format!("{want} is needed, not {have}")));
            }
            encode_part(out, part)?;
        }
        Ok(())
    }

    /// The key of these bytes, all of them. Fails with `key-corrupt` on what `encode` never makes.
    pub fn decode(&self, bytes: &[u8]) -> Result<Vec<KeyPart>> {
        let mut rest = bytes;
        let mut key = Vec::with_capacity(self.types().len());
        for key_type in self.types() {
            key.push(decode_part(*key_type, &mut rest).ok_or_else(|| corrupt(bytes))?);
        }
        if bytes.len() > ENCODED_KEY_BYTES_MAX || !rest.is_empty() {
            return Err(corrupt(bytes));
        }
        Ok(key)
    }

    /// Splits `key | rest`. It finds where the key ends and leaves it to `decode` to look inside.
    pub fn split<'a>(&self, bytes: &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
        let mut length = 0;
        for key_type in self.types() {
            length += part_bytes(*key_type, &bytes[length..]).ok_or_else(|| corrupt(bytes))?;
        }
        if length > ENCODED_KEY_BYTES_MAX {
            return Err(corrupt(bytes));
        }
        Ok(bytes.split_at(length))
    }

    /// The bytes of all parts but the last of an encoded key: what it shares with its neighbours. Nothing for keys of one
    /// part, and for what is no key.
    pub fn leading<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let mut length = 0;
        for key_type in &self.types()[..self.types().len() - 1] {
            match part_bytes(*key_type, &bytes[length..]) {
                Some(part) => length += part,
                None => return &[],
            }
        }
        &bytes[..length]
    }
}

fn wrong_type(message: String) -> Error {
    Error::invalid("key-type", message)
}

/// The first bytes of what could not be read, no more: keys may be long, and messages are for
/// people.
fn corrupt(bytes: &[u8]) -> Error {
    let shown = &bytes[..bytes.len().min(32)];
    Error::corrupt("key-corrupt", format!("not a key of its schema: {shown:02x?}"))
}

fn fixed_bytes(key_type: KeyType) -> Option<usize> {
    match key_type {
        KeyType::Bool => Some(1),
        KeyType::Int32 => Some(4),
        KeyType::Int64 | KeyType::DateTime => Some(8),
        KeyType::Uuid => Some(16),
        KeyType::Bytes | KeyType::Text => None,
    }
}

fn encoded_bytes(key: &[KeyPart]) -> usize {
    let escaped = |bytes: &[u8]| bytes.len() + zeros(bytes) + 2;
    let part_bytes = |part: &KeyPart| match part {
        KeyPart::Bytes(bytes) => escaped(bytes),
        KeyPart::Text(text) => escaped(text.as_bytes()),
        _ => fixed_bytes(part.key_type()).unwrap_or(0),
    };
    key.iter().map(part_bytes).sum()
}

fn zeros(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == ESCAPE).count()
}

fn encode_part(out: &mut BytesMut, part: &KeyPart) -> Result<()> {
    match part {
        // With the sign bit flipped, big-endian bytes of signed numbers sort as the numbers do.
        KeyPart::Int32(number) => out.put_u32(number.cast_unsigned() ^ (1 << 31)),
        KeyPart::Int64(number) => out.put_u64(number.cast_unsigned() ^ (1 << 63)),
        KeyPart::DateTime(ticks) => {
            if !(0..=DATE_TIME_TICKS_MAX).contains(ticks) {
                return Err(wrong_type(format!("{ticks} ticks are outside the years 1 to 9999")));
            }
            out.put_u64(ticks.cast_unsigned() ^ (1 << 63));
        }
        KeyPart::Uuid(uuid) => out.put_slice(uuid),
        KeyPart::Bool(yes) => out.put_u8(u8::from(*yes)),
        KeyPart::Bytes(bytes) => escape_into(out, bytes),
        KeyPart::Text(text) => escape_into(out, text.as_bytes()),
    }
    Ok(())
}

fn escape_into(out: &mut BytesMut, bytes: &[u8]) {
    let mut runs = bytes.split(|byte| *byte == ESCAPE);
    out.put_slice(runs.next().unwrap_or_default());
    for run in runs {
        out.put_slice(&[ESCAPE, ESCAPED_ZERO]);
        out.put_slice(run);
    }
    out.put_slice(&[ESCAPE, END]);
}

/// How many bytes the part at the front of `bytes` takes; none if there is no whole part.
fn part_bytes(key_type: KeyType, bytes: &[u8]) -> Option<usize> {
    if let Some(fixed) = fixed_bytes(key_type) {
        return (bytes.len() >= fixed).then_some(fixed);
    }
    let mut at = 0;
    loop {
        at += bytes[at..].iter().position(|byte| *byte == ESCAPE)?;
        match *bytes.get(at + 1)? {
            END => return Some(at + 2),
            ESCAPED_ZERO => at += 2,
            _ => return None,
        }
    }
}

fn decode_part(key_type: KeyType, rest: &mut &[u8]) -> Option<KeyPart> {
    let (mut part, after) = rest.split_at(part_bytes(key_type, rest)?);
    *rest = after;
    Some(match key_type {
        KeyType::Int32 => KeyPart::Int32((part.get_u32() ^ (1 << 31)).cast_signed()),
        KeyType::Int64 => KeyPart::Int64((part.get_u64() ^ (1 << 63)).cast_signed()),
        KeyType::DateTime => {
            let ticks = (part.get_u64() ^ (1 << 63)).cast_signed();
            (0..=DATE_TIME_TICKS_MAX).contains(&ticks).then_some(KeyPart::DateTime(ticks))?
        }
        KeyType::Uuid => KeyPart::Uuid(part.try_into().ok()?),
        KeyType::Bool => match part {
            [0] => KeyPart::Bool(false),
            [1] => KeyPart::Bool(true),
            _ => return None,
        },
        KeyType::Bytes => KeyPart::Bytes(unescape(part).into()),
        KeyType::Text => KeyPart::Text(String::from_utf8(unescape(part)).ok()?),
    })
}

/// The bytes of a whole part, as `part_bytes` found it.
fn unescape(part: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = &part[..part.len() - 2];
    while let Some(zero) = rest.iter().position(|byte| *byte == ESCAPE) {
        bytes.extend_from_slice(&rest[..=zero]);
        rest = &rest[zero + 2..];
    }
    bytes.extend_from_slice(rest);
    bytes
}
