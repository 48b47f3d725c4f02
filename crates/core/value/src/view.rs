//! Views: values read from their encoded bytes, nothing copied and nothing decoded but what is asked for.

use crate::error::ReadError;
use crate::limits::{ENCODED_BYTES_MAX, ENCODED_DEPTH_MAX};
use crate::node::{ArrayRef, Node, ObjectRef, ValueRef};
use crate::{Kind, Value};

/// The first byte of every encoded value. Another format gets another number.
pub(crate) const FORMAT: u8 = 1;

/// The first byte of a value: its type.
pub(crate) mod tag {
    pub(crate) const NULL: u8 = 0;
    pub(crate) const FALSE: u8 = 1;
    pub(crate) const TRUE: u8 = 2;
    pub(crate) const INT64: u8 = 3;
    pub(crate) const DOUBLE: u8 = 4;
    pub(crate) const STRING: u8 = 5;
    pub(crate) const ARRAY: u8 = 6;
    pub(crate) const OBJECT: u8 = 7;
    pub(crate) const INT32: u8 = 8;
    pub(crate) const DECIMAL128: u8 = 9;
    pub(crate) const DATE_TIME: u8 = 10;
    pub(crate) const OBJECT_ID: u8 = 11;
    pub(crate) const BINARY: u8 = 12;
    pub(crate) const TIMESTAMP: u8 = 13;
    pub(crate) const REGEX: u8 = 14;
    pub(crate) const JAVASCRIPT: u8 = 15;
    pub(crate) const SYMBOL: u8 = 16;
    pub(crate) const MIN_KEY: u8 = 17;
    pub(crate) const MAX_KEY: u8 = 18;
}

/// The bytes of one value, from its type to its end. They were checked when the view was made.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    bytes: &'a [u8],
}

impl<'a> View<'a> {
    /// Checks bytes as [`Value::encode`] makes them, all of them, and gives the view of their value.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ReadError> {
        if bytes.len() > ENCODED_BYTES_MAX {
            return Err(ReadError::new(0, "the value is too large"));
        }
        let value = match bytes.split_first() {
            Some((&FORMAT, value)) => value,
            _ => return Err(ReadError::new(0, "the format of the value is unknown")),
        };
        match check(value, 0) {
            Some(length) if length == value.len() => Ok(Self { bytes: value }),
            _ => Err(ReadError::new(1, "the bytes are not a value")),
        }
    }

    /// The view of bytes that an [`Encoder`](crate::Encoder) of this process has made, which are not checked once more.
    /// Other bytes do no harm, but read as anything: [`View::parse`] is for those.
    pub fn trusted(bytes: &'a [u8]) -> Self {
        debug_assert!(Self::parse(bytes).is_ok(), "an encoder makes well-formed bytes");
        Self { bytes: bytes.get(1..).unwrap_or_default() }
    }

    pub fn node(self) -> Node<'a> {
        // A view exists only over checked bytes, so the default is never seen.
        self.decode().unwrap_or(Node::Null)
    }

    pub fn kind(self) -> Kind {
        self.node().kind()
    }

    /// The value of an object's property. The other properties are skipped by their lengths.
    pub fn get(self, name: &str) -> Option<View<'a>> {
        let mut body = self.body(tag::OBJECT)?;
        while !body.is_empty() {
            let (key, rest) = take_block(body)?;
            let length = span(rest)?;
            if key == name.as_bytes() {
                return Some(Self { bytes: rest.get(..length)? });
            }
            body = rest.get(length..)?;
        }
        None
    }

    /// The element of an array at a place, the first one at 0.
    pub fn at(self, place: usize) -> Option<View<'a>> {
        self.elements().nth(place)
    }

    /// The elements of an array; none of anything else.
    pub fn elements(self) -> ViewElements<'a> {
        ViewElements { body: self.body(tag::ARRAY).unwrap_or_default() }
    }

    /// The properties of an object in their order; none of anything else.
    pub fn properties(self) -> ViewProperties<'a> {
        ViewProperties { body: self.body(tag::OBJECT).unwrap_or_default() }
    }

    pub fn as_str(self) -> Option<&'a str> {
        match self.node() {
            Node::String(text) => Some(text),
            _ => None,
        }
    }

    /// The number nearest to the value's, if it is a number of any type.
    pub fn as_f64(self) -> Option<f64> {
        ValueRef::from(self).as_f64()
    }

    pub fn to_value(self) -> Value {
        ValueRef::from(self).to_value()
    }

    pub fn to_json(self) -> String {
        ValueRef::from(self).to_json()
    }

    /// The bytes of the value without the format byte in front.
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes of all properties of an object; none of anything else.
    pub(crate) fn property_bytes(self) -> &'a [u8] {
        self.body(tag::OBJECT).unwrap_or_default()
    }

    fn body(self, wanted: u8) -> Option<&'a [u8]> {
        match self.bytes.split_first()? {
            (tag, rest) if *tag == wanted => rest.get(4..),
            _ => None,
        }
    }

    fn decode(self) -> Option<Node<'a>> {
        let (tag, rest) = self.bytes.split_first()?;
        Some(match *tag {
            tag::NULL => Node::Null,
            tag::FALSE => Node::Bool(false),
            tag::TRUE => Node::Bool(true),
            tag::INT64 => Node::Int64(unzigzag(take_varint(rest)?.0)),
            tag::DOUBLE => Node::Double(f64::from_le_bytes(rest.try_into().ok()?)),
            tag::STRING => Node::String(text(take_block(rest)?.0)?),
            tag::ARRAY => Node::Array(ArrayRef::Stored(self)),
            tag::OBJECT => Node::Object(ObjectRef::Stored(self)),
            tag::INT32 => Node::Int32(i32::from_le_bytes(rest.try_into().ok()?)),
            tag::DECIMAL128 => Node::Decimal128(rest.try_into().ok()?),
            tag::DATE_TIME => Node::DateTime(i64::from_le_bytes(rest.try_into().ok()?)),
            tag::OBJECT_ID => Node::ObjectId(rest.try_into().ok()?),
            tag::BINARY => {
                let (subtype, rest) = rest.split_first()?;
                Node::Binary { subtype: *subtype, bytes: take_block(rest)?.0 }
            }
            tag::TIMESTAMP => Node::Timestamp(u64::from_le_bytes(rest.try_into().ok()?)),
            tag::REGEX => {
                let (pattern, rest) = take_block(rest)?;
                Node::Regex { pattern: text(pattern)?, options: text(take_block(rest)?.0)? }
            }
            tag::JAVASCRIPT => Node::JavaScript(text(take_block(rest)?.0)?),
            tag::SYMBOL => Node::Symbol(text(take_block(rest)?.0)?),
            tag::MIN_KEY => Node::MinKey,
            tag::MAX_KEY => Node::MaxKey,
            _ => return None,
        })
    }
}

impl PartialEq for View<'_> {
    /// The same value in every detail: types of numbers and the order of properties count.
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

/// The elements of an encoded array.
#[derive(Clone, Debug)]
pub struct ViewElements<'a> {
    body: &'a [u8],
}

impl<'a> Iterator for ViewElements<'a> {
    type Item = View<'a>;

    fn next(&mut self) -> Option<View<'a>> {
        let (bytes, rest) = self.body.split_at_checked(span(self.body)?)?;
        self.body = rest;
        Some(View { bytes })
    }
}

/// The properties of an encoded object.
#[derive(Clone, Debug)]
pub struct ViewProperties<'a> {
    body: &'a [u8],
}

impl<'a> Iterator for ViewProperties<'a> {
    type Item = (&'a str, View<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, rest) = take_block(self.body)?;
        let (bytes, rest) = rest.split_at_checked(span(rest)?)?;
        self.body = rest;
        Some((text(name)?, View { bytes }))
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// A number of seven bits per byte, lowest first, in as few bytes as possible.
fn take_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0_u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        let part = u64::from(byte & 0x7f);
        if at == 9 && part > 1 {
            return None;
        }
        number |= part << (7 * at);
        if byte & 0x80 == 0 {
            let shortest = at == 0 || *byte != 0;
            return shortest.then(|| (number, &bytes[at + 1..]));
        }
    }
    None
}

/// A length and so many bytes.
fn take_block(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    // Nearly all names and most strings have less than 128 bytes.
    if let Some((&length @ 0..=0x7f, rest)) = bytes.split_first() {
        return rest.split_at_checked(usize::from(length));
    }
    let (length, rest) = take_varint(bytes)?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Bytes that the value at the start takes, by its type and lengths alone.
fn span(bytes: &[u8]) -> Option<usize> {
    let (tag, rest) = bytes.split_first()?;
    let left = match *tag {
        tag::NULL | tag::FALSE | tag::TRUE | tag::MIN_KEY | tag::MAX_KEY => rest,
        tag::INT64 => take_varint(rest)?.1,
        tag::DOUBLE | tag::DATE_TIME | tag::TIMESTAMP => rest.get(8..)?,
        tag::STRING | tag::JAVASCRIPT | tag::SYMBOL => take_block(rest)?.1,
        tag::ARRAY | tag::OBJECT => {
            let (length, rest) = rest.split_first_chunk::<4>()?;
            rest.get(u32::from_le_bytes(*length) as usize..)?
        }
        tag::INT32 => rest.get(4..)?,
        tag::DECIMAL128 => rest.get(16..)?,
        tag::OBJECT_ID => rest.get(12..)?,
        tag::BINARY => take_block(rest.get(1..)?)?.1,
        tag::REGEX => take_block(take_block(rest)?.1)?.1,
        _ => return None,
    };
    Some(bytes.len() - left.len())
}

/// Bytes that the value at the start takes, if it and everything in it is well formed.
fn check(bytes: &[u8], depth: usize) -> Option<usize> {
    let length = span(bytes)?;
    let value = bytes.get(..length)?;
    match *value.first()? {
        tag::STRING | tag::JAVASCRIPT | tag::SYMBOL => {
            text(take_block(&value[1..])?.0)?;
        }
        tag::REGEX => {
            let (pattern, rest) = take_block(&value[1..])?;
            text(pattern)?;
            text(take_block(rest)?.0)?;
        }
        kind @ (tag::ARRAY | tag::OBJECT) => {
            if depth >= ENCODED_DEPTH_MAX {
                return None;
            }
            let mut body = value.get(5..)?;
            while !body.is_empty() {
                if kind == tag::OBJECT {
                    let (name, rest) = take_block(body)?;
                    text(name)?;
                    body = rest;
                }
                body = body.get(check(body, depth + 1)?..)?;
            }
        }
        _ => {}
    }
    Some(length)
}
