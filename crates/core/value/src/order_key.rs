//! Order keys: bytes that sort as values do and say where they end, for index entries and continuations.
//!
//! Keys of values that [`compare`](crate::compare) as equal are equal. Keys sort as their values do, with one exception:
//! of a string of more than [`KEY_PREFIX_BYTES_MAX`] bytes the key has the first bytes and a hash of all, so two such
//! strings with the same beginning are told apart, but their order is that of their hashes. The same holds for arrays and
//! objects whose canonical form is longer. ORDER BY is defined as the order of these keys, so that an index and a sort in
//! memory cannot disagree.

use std::cmp::Ordering;

use xxhash_rust::xxh3::xxh3_128;

use crate::Kind;
use crate::limits::KEY_PREFIX_BYTES_MAX;
use crate::node::{Node, ValueRef};
use crate::number::{Digits, Number};
use crate::order::sorted;

/// The first byte of a key. Zero is free: it ends arrays and objects inside of their canonical form.
mod tag {
    pub(super) const UNDEFINED: u8 = 0x10;
    pub(super) const MIN_KEY: u8 = 0x14;
    pub(super) const NULL: u8 = 0x18;
    pub(super) const FALSE: u8 = 0x1c;
    pub(super) const TRUE: u8 = 0x1d;
    pub(super) const NUMBER: u8 = 0x20;
    pub(super) const STRING: u8 = 0x30;
    pub(super) const ARRAY: u8 = 0x40;
    pub(super) const OBJECT: u8 = 0x50;
    pub(super) const BINARY: u8 = 0x58;
    pub(super) const OBJECT_ID: u8 = 0x5a;
    pub(super) const DATE_TIME: u8 = 0x5c;
    pub(super) const TIMESTAMP: u8 = 0x5e;
    pub(super) const REGEX: u8 = 0x60;
    pub(super) const JAVASCRIPT: u8 = 0x62;
    pub(super) const MAX_KEY: u8 = 0x70;
}

/// Follows the bytes of a string: it is complete, or it was cut and 16 bytes of hash follow. A zero inside of the string
/// is followed by 0xff.
const COMPLETE: u8 = 1;
const CUT: u8 = 2;
const ZERO_INSIDE: u8 = 0xff;
const HASH_BYTES: usize = 16;

/// Follows the nearest double of a number: where the number is in relation to it.
const BELOW: u8 = 1;
const EXACT: u8 = 2;
const ABOVE: u8 = 3;

/// Appends the order key of a value.
pub fn order_key(value: ValueRef<'_>, out: &mut Vec<u8>) {
    write(value, Some(KEY_PREFIX_BYTES_MAX), out);
}

/// Appends the order key of an absent value, which is before all others.
pub fn undefined_key(out: &mut Vec<u8>) {
    out.push(tag::UNDEFINED);
}

/// Appends what the keys of all strings with this beginning begin with. Of a beginning longer than the keys hold, it is
/// what they hold.
pub fn string_prefix_key(prefix: &str, out: &mut Vec<u8>) {
    out.push(tag::STRING);
    escape(&prefix.as_bytes()[..prefix.len().min(KEY_PREFIX_BYTES_MAX)], out);
}

/// The first bytes of the least keys of a kind, and of the least keys above that kind.
pub fn kind_bounds(kind: Kind) -> (u8, u8) {
    match kind {
        Kind::MinKey => (tag::MIN_KEY, tag::MIN_KEY + 1),
        Kind::Null => (tag::NULL, tag::NULL + 1),
        Kind::Bool => (tag::FALSE, tag::TRUE + 1),
        Kind::Number => (tag::NUMBER, tag::NUMBER + 1),
        Kind::String => (tag::STRING, tag::STRING + 1),
        Kind::Array => (tag::ARRAY, tag::ARRAY + 1),
        Kind::Object => (tag::OBJECT, tag::OBJECT + 1),
        Kind::Binary => (tag::BINARY, tag::BINARY + 1),
        Kind::ObjectId => (tag::OBJECT_ID, tag::OBJECT_ID + 1),
        Kind::DateTime => (tag::DATE_TIME, tag::DATE_TIME + 1),
        Kind::Timestamp => (tag::TIMESTAMP, tag::TIMESTAMP + 1),
        Kind::Regex => (tag::REGEX, tag::REGEX + 1),
        Kind::JavaScript => (tag::JAVASCRIPT, tag::JAVASCRIPT + 1),
        Kind::MaxKey => (tag::MAX_KEY, tag::MAX_KEY + 1),
    }
}

/// Whether an order key stands for a longer value that was cut, so that only the value itself can tell its place among
/// values with the same beginning.
pub fn key_is_cut(key: &[u8]) -> bool {
    match key.first() {
        Some(&(tag::STRING | tag::ARRAY | tag::OBJECT | tag::REGEX | tag::JAVASCRIPT)) => {
            block_length(&key[1..]).is_some_and(|(_, cut)| cut)
        }
        Some(&tag::BINARY) => key.get(2..).and_then(block_length).is_some_and(|(_, cut)| cut),
        _ => false,
    }
}

/// The length of the order key at the start of some bytes, if there is one.
pub fn order_key_length(bytes: &[u8]) -> Option<usize> {
    let (tag, rest) = bytes.split_first()?;
    let length = match *tag {
        tag::UNDEFINED | tag::MIN_KEY | tag::NULL | tag::FALSE | tag::TRUE | tag::MAX_KEY => 0,
        tag::NUMBER => number_length(rest)?,
        tag::STRING | tag::ARRAY | tag::OBJECT | tag::JAVASCRIPT => block_length(rest)?.0,
        tag::REGEX => {
            let pattern = block_length(rest)?.0;
            pattern + block_length(rest.get(pattern..)?)?.0
        }
        tag::BINARY => 1 + block_length(rest.get(1..)?)?.0,
        tag::OBJECT_ID => 12,
        tag::DATE_TIME | tag::TIMESTAMP => 8,
        _ => return None,
    };
    (length <= rest.len()).then_some(length + 1)
}

/// Appends a form of the value that is the same for equal values only, whatever its length: an order key that is not cut.
pub fn canonical(value: ValueRef<'_>, out: &mut Vec<u8>) {
    write(value, None, out);
}

/// A hash that is the same for equal values, and of 128 bits, so that it can stand for the value in sets.
pub fn canonical_hash(value: ValueRef<'_>) -> u128 {
    let mut bytes = Vec::new();
    canonical(value, &mut bytes);
    xxh3_128(&bytes)
}

fn write(value: ValueRef<'_>, limit: Option<usize>, out: &mut Vec<u8>) {
    let node = value.node();
    if let Some(number) = node.as_number() {
        return write_number(number, out);
    }
    match node {
        Node::Null => out.push(tag::NULL),
        Node::Bool(value) => out.push(if value { tag::TRUE } else { tag::FALSE }),
        Node::String(text) | Node::Symbol(text) => {
            out.push(tag::STRING);
            block(text.as_bytes(), limit, out);
        }
        Node::Array(_) | Node::Object(_) => match limit {
            None => nested(value, out),
            Some(_) => {
                let mut body = Vec::new();
                nested(value, &mut body);
                out.push(body[0]);
                block(&body[1..], limit, out);
            }
        },
        Node::Binary { subtype, bytes } => {
            out.extend([tag::BINARY, subtype]);
            block(bytes, limit, out);
        }
        Node::ObjectId(id) => {
            out.push(tag::OBJECT_ID);
            out.extend_from_slice(id);
        }
        Node::DateTime(time) => {
            out.push(tag::DATE_TIME);
            out.extend_from_slice(&((time as u64) ^ (1 << 63)).to_be_bytes());
        }
        Node::Timestamp(time) => {
            out.push(tag::TIMESTAMP);
            out.extend_from_slice(&time.to_be_bytes());
        }
        Node::Regex { pattern, options } => {
            out.push(tag::REGEX);
            block(pattern.as_bytes(), limit, out);
            block(options.as_bytes(), limit, out);
        }
        Node::JavaScript(text) => {
            out.push(tag::JAVASCRIPT);
            block(text.as_bytes(), limit, out);
        }
        Node::MinKey => out.push(tag::MIN_KEY),
        Node::MaxKey => out.push(tag::MAX_KEY),
        Node::Int64(_) | Node::Double(_) | Node::Int32(_) | Node::Decimal128(_) => {}
    }
}

/// The canonical form of an array or object: its parts, one after another, and a zero.
fn nested(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value.node() {
        Node::Array(array) => {
            out.push(tag::ARRAY);
            array.iter().for_each(|element| write(element, None, out));
        }
        Node::Object(object) => {
            out.push(tag::OBJECT);
            for (name, value) in sorted(object) {
                out.push(tag::STRING);
                block(name.as_bytes(), None, out);
                write(value, None, out);
            }
        }
        _ => return write(value, None, out),
    }
    out.push(0);
}

fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    for part in bytes.split_inclusive(|byte| *byte == 0) {
        out.extend_from_slice(part);
        if part.ends_with(&[0]) {
            out.push(ZERO_INSIDE);
        }
    }
}

fn block(bytes: &[u8], limit: Option<usize>, out: &mut Vec<u8>) {
    match limit {
        Some(limit) if bytes.len() > limit => {
            escape(&bytes[..limit], out);
            out.extend([0, CUT]);
            out.extend_from_slice(&xxh3_128(bytes).to_be_bytes());
        }
        _ => {
            escape(bytes, out);
            out.extend([0, COMPLETE]);
        }
    }
}

/// The length of a block with its end, and whether it was cut.
fn block_length(bytes: &[u8]) -> Option<(usize, bool)> {
    let mut at = 0;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == 0)?;
        match *bytes.get(at + 1)? {
            ZERO_INSIDE => at += 2,
            COMPLETE => return Some((at + 2, false)),
            CUT => return Some((at + 2 + HASH_BYTES, true)),
            _ => return None,
        }
    }
}

fn write_number(number: Number<'_>, out: &mut Vec<u8>) {
    let nearest = number.nearest();
    out.push(tag::NUMBER);
    out.extend_from_slice(&sortable(nearest).to_be_bytes());
    if number.is_double() {
        return out.push(EXACT);
    }
    let above = number.compare(Number::Double(nearest)) == Ordering::Greater;
    out.push(if above { ABOVE } else { BELOW });
    // The digits tell apart the numbers that share a nearest double, all of one sign.
    if let Digits::Finite { negative, exponent, digits } = number.digits() {
        let mask = if negative { 0xff } else { 0 };
        let exponent = (exponent + 0x8000) as u16;
        out.extend(exponent.to_be_bytes().map(|byte| byte ^ mask));
        out.extend(digits.iter().map(|digit| (digit + 1) ^ mask));
        out.push(mask);
    }
}

/// The bits of a double, so that they sort as the numbers do: NaN first, both zeros the same.
fn sortable(number: f64) -> u64 {
    if number.is_nan() {
        return 0;
    }
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    if bits >> 63 == 1 { !bits } else { bits | (1 << 63) }
}

fn number_length(bytes: &[u8]) -> Option<usize> {
    match *bytes.get(8)? {
        EXACT => Some(9),
        BELOW | ABOVE => {
            // Digits are 1 to 10, or inverted; the end is what no digit can be.
            let digits = bytes.get(11..)?;
            let end = digits.iter().position(|byte| *byte == 0 || *byte == 0xff)?;
            Some(11 + end + 1)
        }
        _ => None,
    }
}
