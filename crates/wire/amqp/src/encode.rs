//! From values to bytes, each in its shortest form; lists of performatives with a size of four bytes, so that they can be
//! written in one pass.

use bytes::{BufMut, BytesMut};

use crate::value::{Map, Value};

/// Where a list, a map or an array of four-byte size begins; closed by [`end`].
pub(crate) struct Open {
    at: usize,
}

/// Begins something that encloses others: its code, room for its size, and the count.
pub(crate) fn begin(out: &mut BytesMut, code: u8, count: u32) -> Open {
    out.put_u8(code);
    let at = out.len();
    out.put_u32(0);
    out.put_u32(count);
    Open { at }
}

/// Writes the size of what was begun, now that it is known.
pub(crate) fn end(out: &mut BytesMut, open: &Open) {
    let size = out.len() - open.at - 4;
    // Everything that is written here is far below 4 GiB: frames and messages have limits.
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    out[open.at..open.at + 4].copy_from_slice(&size.to_be_bytes());
}

/// The descriptor of a performative or a section.
pub(crate) fn descriptor(out: &mut BytesMut, code: u64) {
    out.put_u8(0x00);
    ulong(out, code);
}

pub(crate) fn bool(out: &mut BytesMut, is: bool) {
    out.put_u8(if is { 0x41 } else { 0x42 });
}

pub(crate) fn uint(out: &mut BytesMut, number: u32) {
    match u8::try_from(number) {
        Ok(0) => out.put_u8(0x43),
        Ok(small) => out.put_slice(&[0x52, small]),
        Err(_) => {
            out.put_u8(0x70);
            out.put_u32(number);
        }
    }
}

pub(crate) fn ulong(out: &mut BytesMut, number: u64) {
    match u8::try_from(number) {
        Ok(0) => out.put_u8(0x44),
        Ok(small) => out.put_slice(&[0x53, small]),
        Err(_) => {
            out.put_u8(0x80);
            out.put_u64(number);
        }
    }
}

/// Bytes of variable length: the code for a short one, and above it by 0x10 the code for a long one.
pub(crate) fn variable(out: &mut BytesMut, code: u8, bytes: &[u8]) {
    match u8::try_from(bytes.len()) {
        Ok(short) => out.put_slice(&[code, short]),
        Err(_) => {
            out.put_u8(code + 0x10);
            out.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        }
    }
    out.put_slice(bytes);
}

pub(crate) fn binary(out: &mut BytesMut, bytes: &[u8]) {
    variable(out, 0xa0, bytes);
}

pub(crate) fn string(out: &mut BytesMut, text: &str) {
    variable(out, 0xa1, text.as_bytes());
}

pub(crate) fn symbol(out: &mut BytesMut, text: &str) {
    variable(out, 0xa3, text.as_bytes());
}

pub(crate) fn map(out: &mut BytesMut, map: &Map) {
    let count = u32::try_from(map.0.len() * 2).unwrap_or(u32::MAX);
    let open = begin(out, 0xd1, count);
    for (key, of_key) in &map.0 {
        value(out, key);
        value(out, of_key);
    }
    end(out, &open);
}

/// Any value.
pub fn value(out: &mut BytesMut, it: &Value) {
    match it {
        Value::Null => out.put_u8(0x40),
        Value::Bool(is) => bool(out, *is),
        Value::Uint(number) => uint(out, *number),
        Value::Ulong(number) => ulong(out, *number),
        Value::Int(number) => match i8::try_from(*number) {
            Ok(small) => out.put_slice(&[0x54, small.cast_unsigned()]),
            Err(_) => whole(out, it),
        },
        Value::Long(number) => match i8::try_from(*number) {
            Ok(small) => out.put_slice(&[0x55, small.cast_unsigned()]),
            Err(_) => whole(out, it),
        },
        Value::Binary(bytes) => binary(out, bytes),
        Value::String(text) => string(out, text),
        Value::Symbol(word) => symbol(out, &word.0),
        Value::List(elements) if elements.is_empty() => out.put_u8(0x45),
        Value::Described(pair) => {
            out.put_u8(0x00);
            value(out, &pair.0);
            value(out, &pair.1);
        }
        other => whole(out, other),
    }
}

/// A value in the widest form of its type: its code, then what elements of an array have.
fn whole(out: &mut BytesMut, it: &Value) {
    out.put_u8(widest(it));
    content(out, it);
}

/// The code of the form that every value of a type fits in.
fn widest(it: &Value) -> u8 {
    match it {
        Value::Null => 0x40,
        Value::Bool(_) => 0x56,
        Value::Ubyte(_) => 0x50,
        Value::Ushort(_) => 0x60,
        Value::Uint(_) => 0x70,
        Value::Ulong(_) => 0x80,
        Value::Byte(_) => 0x51,
        Value::Short(_) => 0x61,
        Value::Int(_) => 0x71,
        Value::Long(_) => 0x81,
        Value::Float(_) => 0x72,
        Value::Double(_) => 0x82,
        Value::Decimal32(_) => 0x74,
        Value::Decimal64(_) => 0x84,
        Value::Decimal128(_) => 0x94,
        Value::Char(_) => 0x73,
        Value::Timestamp(_) => 0x83,
        Value::Uuid(_) => 0x98,
        Value::Binary(_) => 0xb0,
        Value::String(_) => 0xb1,
        Value::Symbol(_) => 0xb3,
        Value::List(_) => 0xd0,
        Value::Map(_) => 0xd1,
        Value::Array(_) => 0xf0,
        Value::Described(_) => 0x00,
    }
}

/// What follows the code of [`widest`].
fn content(out: &mut BytesMut, it: &Value) {
    match it {
        Value::Null => {}
        Value::Bool(is) => out.put_u8(u8::from(*is)),
        Value::Ubyte(number) => out.put_u8(*number),
        Value::Ushort(number) => out.put_u16(*number),
        Value::Uint(number) => out.put_u32(*number),
        Value::Ulong(number) => out.put_u64(*number),
        Value::Byte(number) => out.put_i8(*number),
        Value::Short(number) => out.put_i16(*number),
        Value::Int(number) => out.put_i32(*number),
        Value::Long(number) | Value::Timestamp(number) => out.put_i64(*number),
        Value::Float(number) => out.put_f32(*number),
        Value::Double(number) => out.put_f64(*number),
        Value::Decimal32(bytes) => out.put_slice(bytes),
        Value::Decimal64(bytes) => out.put_slice(bytes),
        Value::Decimal128(bytes) | Value::Uuid(bytes) => out.put_slice(bytes),
        Value::Char(sign) => out.put_u32(u32::from(*sign)),
        Value::Binary(bytes) => long(out, bytes),
        Value::String(text) => long(out, text.as_bytes()),
        Value::Symbol(word) => long(out, word.0.as_bytes()),
        Value::List(elements) => enclose(out, elements.len(), |out| {
            elements.iter().for_each(|element| value(out, element));
        }),
        Value::Map(map) => enclose(out, map.0.len() * 2, |out| {
            for (key, of_key) in &map.0 {
                value(out, key);
                value(out, of_key);
            }
        }),
        Value::Array(elements) => enclose(out, elements.len(), |out| array(out, elements)),
        Value::Described(pair) => content(out, &pair.1),
    }
}

fn long(out: &mut BytesMut, bytes: &[u8]) {
    out.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    out.put_slice(bytes);
}

fn enclose(out: &mut BytesMut, count: usize, write: impl FnOnce(&mut BytesMut)) {
    let at = out.len();
    out.put_u32(0);
    out.put_u32(u32::try_from(count).unwrap_or(u32::MAX));
    write(out);
    end(out, &Open { at });
}

/// The one code of all elements, then the elements. Elements of another type than the first would make nonsense; the
/// types of this crate never mix them, and a decoded array cannot.
fn array(out: &mut BytesMut, elements: &[Value]) {
    let Some(first) = elements.first() else {
        out.put_u8(0x40);
        return;
    };
    let mut inner = first;
    if let Value::Described(pair) = inner {
        out.put_u8(0x00);
        value(out, &pair.0);
        inner = &pair.1;
    }
    out.put_u8(widest(inner));
    for element in elements {
        content(out, element);
    }
}
