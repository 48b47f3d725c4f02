//! Effective partition keys: how clients of document databases place keys by themselves.
//!
//! Clients compute the hash of a key and compare it with the bounds of partitions that the server has told them. So the
//! hash, and what stands in front of a route, are theirs: `effective key | encoded key`. A part of such a key is one
//! component: a tag, and behind it a number or a text. Three recipes exist:
//!
//! - V1: MurmurHash3 of 32 bits, written as a number that sorts; then the component itself, shortened.
//! - V2: MurmurHash3 of 128 bits of the component, upper two bits cleared.
//! - Multi: as V2, one hash for each component, so that the first components alone are a range.

use bytes::{BufMut, Bytes, BytesMut};
use lazuli_store::{Error, KeyRange, Result};

use crate::key::KeyPart;
use crate::murmur::{murmur3_32, murmur3_128};

/// Bytes of one hash of the recipes V2 and Multi.
pub const EPK_BYTES: usize = 16;
/// The most components of a key.
pub const EPK_LEVELS_MAX: usize = 3;
/// The greatest first byte of a hash: the upper two bits are cleared.
const FIRST_BYTE_MAX: u8 = 0x3f;
/// How much of a text V1 hashes, in UTF-16 code units, and how much of it stands behind the hash, in bytes.
const V1_TEXT_UNITS_MAX: usize = 100;
const V1_TEXT_BYTES_MAX: usize = 100;

/// One component of a partition key.
#[derive(Clone, Debug, PartialEq)]
pub enum Component {
    /// The item has no such property.
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
}

const UNDEFINED: u8 = 0x00;
const NULL: u8 = 0x01;
const FALSE: u8 = 0x02;
const TRUE: u8 = 0x03;
const NUMBER: u8 = 0x05;
const TEXT: u8 = 0x08;
const TEXT_END: u8 = 0xff;

impl Component {
    /// As a part of a key: what V2 hashes.
    pub fn part(&self) -> KeyPart {
        let mut bytes = BytesMut::new();
        self.write(&mut bytes, TEXT_END);
        KeyPart::Bytes(bytes.freeze())
    }

    fn write(&self, out: &mut impl BufMut, text_end: u8) {
        match self {
            Self::Undefined => out.put_u8(UNDEFINED),
            Self::Null => out.put_u8(NULL),
            Self::Bool(false) => out.put_u8(FALSE),
            Self::Bool(true) => out.put_u8(TRUE),
            Self::Number(number) => {
                out.put_u8(NUMBER);
                out.put_f64_le(*number);
            }
            Self::Text(text) => {
                out.put_u8(TEXT);
                out.put_slice(text.as_bytes());
                out.put_u8(text_end);
            }
        }
    }

    /// The component of a part. None for what [`Component::part`] never makes.
    pub fn of(part: &KeyPart) -> Option<Self> {
        let KeyPart::Bytes(bytes) = part else { return None };
        match &bytes[..] {
            [UNDEFINED] => Some(Self::Undefined),
            [NULL] => Some(Self::Null),
            [FALSE] => Some(Self::Bool(false)),
            [TRUE] => Some(Self::Bool(true)),
            [NUMBER, number @ ..] => {
                Some(Self::Number(f64::from_le_bytes(number.try_into().ok()?)))
            }
            [TEXT, text @ .., TEXT_END] => {
                Some(Self::Text(std::str::from_utf8(text).ok()?.to_owned()))
            }
            _ => None,
        }
    }
}

/// The hash of one part by the recipe V2. No key at all, an empty part, comes first of all.
pub(crate) fn hash_v2(part: &[u8]) -> [u8; EPK_BYTES] {
    if part.is_empty() {
        return [0; EPK_BYTES];
    }
    let mut hash = murmur3_128(part).to_be_bytes();
    hash[0] &= FIRST_BYTE_MAX;
    hash
}

/// What stands in front of the key in a route of the recipe V1.
pub(crate) fn epk_v1(part: &[u8]) -> Result<Vec<u8>> {
    let bad = || Error::invalid("key-type", "a part of a key must be a component");
    let mut epk = Vec::new();
    if part.is_empty() {
        write_number(&mut epk, 0.0);
        return Ok(epk);
    }
    let whole = Component::of(&KeyPart::Bytes(Bytes::copy_from_slice(part))).ok_or_else(bad)?;
    let component = match whole {
        Component::Text(text) => Component::Text(cut_text(&text)),
        other => other,
    };
    let mut hashed = Vec::new();
    component.write(&mut hashed, 0);
    write_number(&mut epk, f64::from(murmur3_32(&hashed)));
    match &component {
        Component::Number(number) => write_number(&mut epk, *number),
        Component::Text(text) => write_text(&mut epk, text.as_bytes()),
        other => other.write(&mut epk, 0),
    }
    Ok(epk)
}

/// The first code units of a text; half a character becomes the character that stands for what cannot be read.
fn cut_text(text: &str) -> String {
    let units: Vec<u16> = text.encode_utf16().take(V1_TEXT_UNITS_MAX).collect();
    String::from_utf16_lossy(&units)
}

/// A number that sorts: its upper eight bits, then seven bits in each byte, whose lowest bit says whether more follow.
fn write_number(out: &mut Vec<u8>, number: f64) {
    let bits = number.to_bits();
    let sign = 1 << 63;
    let mut rest = if bits & sign == 0 { bits | sign } else { bits.wrapping_neg() };
    out.extend([NUMBER, (rest >> 56) as u8]);
    rest <<= 8;
    loop {
        let byte = (rest >> 56) as u8;
        rest <<= 7;
        if rest == 0 {
            return out.push(byte & 0xfe);
        }
        out.push(byte | 1);
    }
}

fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    let is_short = text.len() <= V1_TEXT_BYTES_MAX;
    out.push(TEXT);
    out.extend(text.iter().take(V1_TEXT_BYTES_MAX + 1).map(|byte| byte.saturating_add(1)));
    if is_short {
        out.push(0);
    }
}

/// How many bytes at the front are an effective key of the recipe V1; none if there is no whole one.
pub(crate) fn v1_bytes(bytes: &[u8]) -> Option<usize> {
    let hash = number_bytes(bytes)?;
    let rest = &bytes[hash..];
    // Behind the hash of no key at all the empty key itself follows, and no component begins like it.
    if rest.starts_with(&[0, 1]) {
        return Some(hash);
    }
    let component = match rest.first()? {
        &UNDEFINED | &NULL | &FALSE | &TRUE => 1,
        &NUMBER => number_bytes(rest)?,
        &TEXT => {
            let text = &rest[1..];
            let most = &text[..text.len().min(V1_TEXT_BYTES_MAX + 1)];
            match most.iter().position(|byte| *byte == 0) {
                Some(end) => 1 + end + 1,
                None if most.len() == V1_TEXT_BYTES_MAX + 1 => 1 + most.len(),
                None => return None,
            }
        }
        _ => return None,
    };
    Some(hash + component)
}

fn number_bytes(bytes: &[u8]) -> Option<usize> {
    if bytes.first() != Some(&NUMBER) {
        return None;
    }
    let last = bytes.get(2..)?.iter().position(|byte| byte & 1 == 0)?;
    Some(2 + last + 1)
}

/// Cuts all effective keys into so many ranges of hashes that are equally wide, as clients expect them.
pub(crate) fn cut(parts: u16, is_v1: bool) -> Result<Vec<KeyRange>> {
    if parts == 0 {
        return Err(Error::invalid("cuts-unfit", "a map has at least one partition"));
    }
    let bound = |nth: u16| -> Bytes {
        let (nth, parts) = (u128::from(nth), u128::from(parts));
        if is_v1 {
            let mut bound = Vec::new();
            write_number(&mut bound, (u128::from(u32::MAX) * nth / parts) as f64);
            return bound.into();
        }
        // The last hash times nth / parts, without an overflow.
        let last = u128::MAX >> 2;
        let at = last / parts * nth + last % parts * nth / parts;
        Bytes::copy_from_slice(&at.to_be_bytes())
    };
    let start = |nth| if nth == 0 { Bytes::new() } else { bound(nth) };
    let end = |nth| if nth == parts { None } else { Some(bound(nth)) };
    Ok((0..parts).map(|nth| KeyRange::new(start(nth), end(nth + 1))).collect())
}

#[cfg(test)]
mod tests;
