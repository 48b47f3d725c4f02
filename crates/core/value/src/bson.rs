//! BSON: documents as MongoDB's protocol carries them, in and out without a loss.
//!
//! The deprecated types undefined, database pointer and code with scope are refused: no value of ours stands for them.

use crate::limits::{DEPTH_MAX, ENCODED_BYTES_MAX};
use crate::node::{Node, ObjectRef};
use crate::{Object, ReadError, Value};

/// The first byte of an element: its type.
mod element {
    pub(super) const DOUBLE: u8 = 0x01;
    pub(super) const STRING: u8 = 0x02;
    pub(super) const DOCUMENT: u8 = 0x03;
    pub(super) const ARRAY: u8 = 0x04;
    pub(super) const BINARY: u8 = 0x05;
    pub(super) const OBJECT_ID: u8 = 0x07;
    pub(super) const BOOL: u8 = 0x08;
    pub(super) const DATE_TIME: u8 = 0x09;
    pub(super) const NULL: u8 = 0x0a;
    pub(super) const REGEX: u8 = 0x0b;
    pub(super) const JAVASCRIPT: u8 = 0x0d;
    pub(super) const SYMBOL: u8 = 0x0e;
    pub(super) const INT32: u8 = 0x10;
    pub(super) const TIMESTAMP: u8 = 0x11;
    pub(super) const INT64: u8 = 0x12;
    pub(super) const DECIMAL128: u8 = 0x13;
    pub(super) const MAX_KEY: u8 = 0x7f;
    pub(super) const MIN_KEY: u8 = 0xff;
}

/// The old binary subtype, whose bytes begin with their length once more.
const BINARY_OLD: u8 = 2;

/// Reads one document that fills the bytes.
pub fn read(bytes: &[u8]) -> Result<Object, ReadError> {
    if bytes.len() > ENCODED_BYTES_MAX {
        return Err(ReadError::new(0, "the document is too large"));
    }
    let mut reader = Reader { bytes, at: 0 };
    let object = reader.document(0)?;
    if reader.at == bytes.len() { Ok(object) } else { reader.fail("more bytes after the document") }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn fail<T>(&self, reason: &'static str) -> Result<T, ReadError> {
        Err(ReadError::new(self.at, reason))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ReadError> {
        let end = self.at.checked_add(length);
        match end.and_then(|end| self.bytes.get(self.at..end)) {
            Some(bytes) => {
                self.at += length;
                Ok(bytes)
            }
            None => self.fail("the document ends too early"),
        }
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    fn length(&mut self) -> Result<usize, ReadError> {
        let length = i32::from_le_bytes(self.fixed()?);
        usize::try_from(length).or_else(|_| self.fail("a negative length"))
    }

    /// Text up to a zero.
    fn name(&mut self) -> Result<String, ReadError> {
        let rest = &self.bytes[self.at..];
        let Some(length) = rest.iter().position(|byte| *byte == 0) else {
            return self.fail("a name without an end");
        };
        let name = self.text(length)?;
        self.at += 1;
        Ok(name)
    }

    fn text(&mut self, length: usize) -> Result<String, ReadError> {
        let bytes = self.take(length)?;
        String::from_utf8(bytes.to_vec()).or_else(|_| self.fail("a text that is not UTF-8"))
    }

    /// Text with its length, which counts a zero at the end.
    fn string(&mut self) -> Result<String, ReadError> {
        let Some(length) = self.length()?.checked_sub(1) else {
            return self.fail("a string without its end");
        };
        let text = self.text(length)?;
        if self.take(1)? == [0] { Ok(text) } else { self.fail("a string without its end") }
    }

    fn document(&mut self, depth: usize) -> Result<Object, ReadError> {
        if depth > DEPTH_MAX {
            return self.fail("the document is nested too deeply");
        }
        let start = self.at;
        let length = self.length()?;
        let mut properties = Vec::new();
        loop {
            let [kind] = self.fixed()?;
            if kind == 0 {
                break;
            }
            let name = self.name()?;
            properties.push((name, self.value(kind, depth)?));
        }
        if self.at - start != length {
            return self.fail("a document of another length than it says");
        }
        Ok(Object::from_properties(properties))
    }

    fn value(&mut self, kind: u8, depth: usize) -> Result<Value, ReadError> {
        Ok(match kind {
            element::DOUBLE => Value::Double(f64::from_le_bytes(self.fixed()?)),
            element::STRING => Value::String(self.string()?),
            element::DOCUMENT => Value::Object(self.document(depth + 1)?),
            element::ARRAY => {
                let elements = self.document(depth + 1)?;
                Value::Array(elements.into_iter().map(|(_, value)| value).collect())
            }
            element::BINARY => self.binary()?,
            element::OBJECT_ID => Value::ObjectId(self.fixed()?),
            element::BOOL => match self.fixed()? {
                [0] => Value::Bool(false),
                [1] => Value::Bool(true),
                _ => return self.fail("neither false nor true"),
            },
            element::DATE_TIME => Value::DateTime(i64::from_le_bytes(self.fixed()?)),
            element::NULL => Value::Null,
            element::REGEX => Value::Regex { pattern: self.name()?, options: self.name()? },
            element::JAVASCRIPT => Value::JavaScript(self.string()?),
            element::SYMBOL => Value::Symbol(self.string()?),
            element::INT32 => Value::Int32(i32::from_le_bytes(self.fixed()?)),
            element::TIMESTAMP => Value::Timestamp(u64::from_le_bytes(self.fixed()?)),
            element::INT64 => Value::Int64(i64::from_le_bytes(self.fixed()?)),
            element::DECIMAL128 => Value::Decimal128(self.fixed()?),
            element::MIN_KEY => Value::MinKey,
            element::MAX_KEY => Value::MaxKey,
            _ => return self.fail("a type that is not supported"),
        })
    }

    fn binary(&mut self) -> Result<Value, ReadError> {
        let length = self.length()?;
        let [subtype] = self.fixed()?;
        let mut bytes = self.take(length)?;
        if subtype == BINARY_OLD {
            match bytes.split_first_chunk::<4>() {
                Some((inner, rest)) if i32::from_le_bytes(*inner) as usize == rest.len() => {
                    bytes = rest;
                }
                _ => return self.fail("a binary of another length than it says"),
            }
        }
        Ok(Value::Binary { subtype, bytes: bytes.to_vec() })
    }
}

/// Appends the document of an object.
///
/// Names end with a zero in BSON, so a name or pattern with a zero inside of it is an error.
pub fn write(object: ObjectRef<'_>, out: &mut Vec<u8>) -> Result<(), ReadError> {
    let start = begin(out);
    for (name, value) in object.iter() {
        write_element(name, value.node(), out)?;
    }
    end(start, out);
    Ok(())
}

fn begin(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend([0; 4]);
    start
}

fn end(start: usize, out: &mut Vec<u8>) {
    out.push(0);
    let length = ((out.len() - start) as i32).to_le_bytes();
    out[start..start + 4].copy_from_slice(&length);
}

fn write_name(name: &str, out: &mut Vec<u8>) -> Result<(), ReadError> {
    if name.as_bytes().contains(&0) {
        return Err(ReadError::new(0, "a name with a zero inside"));
    }
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    Ok(())
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as i32 + 1).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

fn write_element(name: &str, node: Node<'_>, out: &mut Vec<u8>) -> Result<(), ReadError> {
    out.push(match node {
        Node::Null => element::NULL,
        Node::Bool(_) => element::BOOL,
        Node::Int64(_) => element::INT64,
        Node::Double(_) => element::DOUBLE,
        Node::String(_) => element::STRING,
        Node::Array(_) => element::ARRAY,
        Node::Object(_) => element::DOCUMENT,
        Node::Int32(_) => element::INT32,
        Node::Decimal128(_) => element::DECIMAL128,
        Node::DateTime(_) => element::DATE_TIME,
        Node::ObjectId(_) => element::OBJECT_ID,
        Node::Binary { .. } => element::BINARY,
        Node::Timestamp(_) => element::TIMESTAMP,
        Node::Regex { .. } => element::REGEX,
        Node::JavaScript(_) => element::JAVASCRIPT,
        Node::Symbol(_) => element::SYMBOL,
        Node::MinKey => element::MIN_KEY,
        Node::MaxKey => element::MAX_KEY,
    });
    write_name(name, out)?;
    match node {
        Node::Null | Node::MinKey | Node::MaxKey => {}
        Node::Bool(value) => out.push(u8::from(value)),
        Node::Int64(number) | Node::DateTime(number) => out.extend(number.to_le_bytes()),
        Node::Timestamp(time) => out.extend(time.to_le_bytes()),
        Node::Double(number) => out.extend(number.to_le_bytes()),
        Node::String(text) | Node::JavaScript(text) | Node::Symbol(text) => write_string(text, out),
        Node::Int32(number) => out.extend(number.to_le_bytes()),
        Node::Decimal128(bytes) => out.extend_from_slice(bytes),
        Node::ObjectId(id) => out.extend_from_slice(id),
        Node::Binary { subtype, bytes } => {
            let old = subtype == BINARY_OLD;
            let length = bytes.len() as i32;
            out.extend((if old { length + 4 } else { length }).to_le_bytes());
            out.push(subtype);
            if old {
                out.extend(length.to_le_bytes());
            }
            out.extend_from_slice(bytes);
        }
        Node::Regex { pattern, options } => {
            write_name(pattern, out)?;
            write_name(options, out)?;
        }
        Node::Object(object) => write(object, out)?,
        Node::Array(array) => {
            let start = begin(out);
            for (place, element) in array.iter().enumerate() {
                write_element(&place.to_string(), element.node(), out)?;
            }
            end(start, out);
        }
    }
    Ok(())
}
