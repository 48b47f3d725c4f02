//! From bytes to values. Total: any bytes give a value or an error, in a bounded depth and with a bounded count.

use std::fmt;

use bytes::Bytes;

use crate::limits::{DEPTH_MAX, VALUES_MAX};
use crate::value::{Map, Symbol, Value};

/// Why bytes are no value, or not the one that was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// They end too early.
    Short,
    /// There is no type of this code.
    UnknownType(u8),
    /// Something of another type was expected; this names it.
    Expected(&'static str),
    /// A mandatory field is missing.
    Missing(&'static str),
    /// Values are nested too deeply.
    TooDeep,
    /// There are too many values.
    TooMany,
    /// A string is not UTF-8, a symbol not ASCII, or a character not one of Unicode.
    NotText,
    /// A map has a key without a value, or a size does not fit what it encloses.
    Uneven,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("the bytes end too early"),
            Self::UnknownType(code) => write!(f, "there is no type of code {code:#04x}"),
            Self::Expected(what) => write!(f, "{what} was expected"),
            Self::Missing(field) => write!(f, "the mandatory field {field} is missing"),
            Self::TooDeep => f.write_str("values are nested too deeply"),
            Self::TooMany => f.write_str("there are too many values"),
            Self::NotText => f.write_str("a text is not valid"),
            Self::Uneven => f.write_str("a size or count does not fit"),
        }
    }
}

impl std::error::Error for DecodeError {}

pub type Result<T> = std::result::Result<T, DecodeError>;

/// Reads values from bytes, one after another.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
    depth: u32,
    /// How many values may still be made.
    values: u32,
}

/// What encloses a list, a map or an array: its elements as bytes, and how many there are.
struct Enclosed<'a> {
    inside: &'a [u8],
    count: u32,
}

impl<'a> Decoder<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, depth: 0, values: VALUES_MAX }
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The code of the next value, which stays to be read.
    pub fn peek(&self) -> Result<u8> {
        self.rest.first().copied().ok_or(DecodeError::Short)
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        let (first, rest) = self.rest.split_first().ok_or(DecodeError::Short)?;
        self.rest = rest;
        Ok(*first)
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(DecodeError::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(DecodeError::Short)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// A length of one byte or of four.
    fn length(&mut self, wide: bool) -> Result<usize> {
        Ok(if wide { self.u32()? as usize } else { usize::from(self.byte()?) })
    }

    fn enclosed(&mut self, wide: bool) -> Result<Enclosed<'a>> {
        let size = self.length(wide)?;
        let mut inside = Decoder { rest: self.take(size)?, ..*self };
        let count = inside.length(wide)?;
        let count = u32::try_from(count).map_err(|_| DecodeError::TooMany)?;
        Ok(Enclosed { inside: inside.rest, count })
    }

    /// Any value.
    pub fn value(&mut self) -> Result<Value> {
        let code = self.byte()?;
        self.nested(|this| this.of_code(code))
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH_MAX {
            return Err(DecodeError::TooDeep);
        }
        self.values = self.values.checked_sub(1).ok_or(DecodeError::TooMany)?;
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn of_code(&mut self, code: u8) -> Result<Value> {
        Ok(match code {
            0x00 => {
                let descriptor = self.value()?;
                Value::Described(Box::new((descriptor, self.value()?)))
            }
            0x40 => Value::Null,
            0x41 => Value::Bool(true),
            0x42 => Value::Bool(false),
            0x56 => Value::Bool(self.byte()? != 0),
            0x50 => Value::Ubyte(self.byte()?),
            0x51 => Value::Byte(self.byte()?.cast_signed()),
            0x60 => Value::Ushort(u16::from_be_bytes(self.array()?)),
            0x61 => Value::Short(i16::from_be_bytes(self.array()?)),
            0x43 => Value::Uint(0),
            0x52 => Value::Uint(self.byte()?.into()),
            0x70 => Value::Uint(self.u32()?),
            0x44 => Value::Ulong(0),
            0x53 => Value::Ulong(self.byte()?.into()),
            0x80 => Value::Ulong(u64::from_be_bytes(self.array()?)),
            0x54 => Value::Int(self.byte()?.cast_signed().into()),
            0x71 => Value::Int(i32::from_be_bytes(self.array()?)),
            0x55 => Value::Long(self.byte()?.cast_signed().into()),
            0x81 => Value::Long(i64::from_be_bytes(self.array()?)),
            0x72 => Value::Float(f32::from_be_bytes(self.array()?)),
            0x82 => Value::Double(f64::from_be_bytes(self.array()?)),
            0x74 => Value::Decimal32(self.array()?),
            0x84 => Value::Decimal64(self.array()?),
            0x94 => Value::Decimal128(self.array()?),
            0x73 => Value::Char(char::from_u32(self.u32()?).ok_or(DecodeError::NotText)?),
            0x83 => Value::Timestamp(i64::from_be_bytes(self.array()?)),
            0x98 => Value::Uuid(self.array()?),
            0xa0 | 0xb0 => Value::Binary(Bytes::copy_from_slice(self.variable(code)?)),
            0xa1 | 0xb1 => Value::String(text(self.variable(code)?)?.to_owned()),
            0xa3 | 0xb3 => Value::Symbol(Symbol(symbol(self.variable(code)?)?.to_owned())),
            0x45 => Value::List(Vec::new()),
            0xc0 | 0xd0 => {
                let enclosed = self.enclosed(code == 0xd0)?;
                Value::List(self.elements(&enclosed)?)
            }
            0xc1 | 0xd1 => {
                let enclosed = self.enclosed(code == 0xd1)?;
                Value::Map(self.pairs(&enclosed)?)
            }
            0xe0 | 0xf0 => {
                let enclosed = self.enclosed(code == 0xf0)?;
                Value::Array(self.of_one_type(&enclosed)?)
            }
            other => return Err(DecodeError::UnknownType(other)),
        })
    }

    fn variable(&mut self, code: u8) -> Result<&'a [u8]> {
        let length = self.length(code >= 0xb0)?;
        self.take(length)
    }

    /// Runs on the inside of something and takes over how many values were made.
    fn inside<T>(
        &mut self,
        enclosed: &Enclosed<'a>,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let mut inside = Decoder { rest: enclosed.inside, ..*self };
        let read = read(&mut inside)?;
        self.values = inside.values;
        if inside.is_empty() { Ok(read) } else { Err(DecodeError::Uneven) }
    }

    fn elements(&mut self, enclosed: &Enclosed<'a>) -> Result<Vec<Value>> {
        self.inside(enclosed, |inside| {
            // No element is shorter than a byte, so the capacity is bounded by what was sent.
            let mut elements = Vec::with_capacity(room(enclosed));
            for _ in 0..enclosed.count {
                elements.push(inside.value()?);
            }
            Ok(elements)
        })
    }

    fn pairs(&mut self, enclosed: &Enclosed<'a>) -> Result<Map> {
        if !enclosed.count.is_multiple_of(2) {
            return Err(DecodeError::Uneven);
        }
        self.inside(enclosed, |inside| {
            let mut pairs = Vec::with_capacity(room(enclosed) / 2);
            for _ in 0..enclosed.count / 2 {
                pairs.push((inside.value()?, inside.value()?));
            }
            Ok(Map(pairs))
        })
    }

    /// The elements of an array: the code, perhaps behind a descriptor, stands once before all of them.
    fn of_one_type(&mut self, enclosed: &Enclosed<'a>) -> Result<Vec<Value>> {
        self.inside(enclosed, |inside| {
            let mut code = inside.byte()?;
            let mut descriptor = None;
            if code == 0 {
                descriptor = Some(inside.value()?);
                code = inside.byte()?;
            }
            let mut elements = Vec::new();
            for _ in 0..enclosed.count {
                let element = inside.nested(|this| this.of_code(code))?;
                elements.push(match &descriptor {
                    Some(descriptor) => Value::described(descriptor.clone(), element),
                    None => element,
                });
            }
            Ok(elements)
        })
    }

    /// Passes over one value and makes nothing of it.
    pub fn skip(&mut self) -> Result<()> {
        for _ in 0..=DEPTH_MAX {
            let code = self.byte()?;
            let wide = code & 0x10 != 0;
            let count = match code {
                0x00 => {
                    self.nested(Self::skip)?;
                    continue;
                }
                0x40..=0x45 => 0,
                0x50..=0x56 => 1,
                0x60 | 0x61 => 2,
                0x70..=0x74 => 4,
                0x80..=0x84 => 8,
                0x94 | 0x98 => 16,
                0xa0 | 0xa1 | 0xa3 | 0xb0 | 0xb1 | 0xb3 => self.length(wide)?,
                0xc0 | 0xc1 | 0xd0 | 0xd1 | 0xe0 | 0xf0 => self.length(wide)?,
                other => return Err(DecodeError::UnknownType(other)),
            };
            return self.take(count).map(drop);
        }
        Err(DecodeError::TooDeep)
    }

    /// The numeric descriptor of a described value, which is to be read next.
    pub fn descriptor(&mut self) -> Result<u64> {
        if self.byte()? != 0 {
            return Err(DecodeError::Expected("a described value"));
        }
        match self.byte()? {
            0x53 => Ok(self.byte()?.into()),
            0x80 => Ok(u64::from_be_bytes(self.array()?)),
            0x44 => Ok(0),
            _ => Err(DecodeError::Expected("a numeric descriptor")),
        }
    }

    /// A list: what reads its elements, and how many there are.
    pub(crate) fn list(&mut self) -> Result<(Self, u32)> {
        let enclosed = match self.byte()? {
            0x45 => Enclosed { inside: &[], count: 0 },
            code @ (0xc0 | 0xd0) => self.enclosed(code == 0xd0)?,
            _ => return Err(DecodeError::Expected("a list")),
        };
        if self.depth >= DEPTH_MAX {
            return Err(DecodeError::TooDeep);
        }
        let depth = self.depth + 1;
        Ok((Decoder { rest: enclosed.inside, depth, values: self.values }, enclosed.count))
    }

    pub(crate) fn bool(&mut self) -> Result<bool> {
        match self.byte()? {
            0x41 => Ok(true),
            0x42 => Ok(false),
            0x56 => Ok(self.byte()? != 0),
            _ => Err(DecodeError::Expected("a boolean")),
        }
    }

    pub(crate) fn ubyte(&mut self) -> Result<u8> {
        match self.byte()? {
            0x50 => self.byte(),
            _ => Err(DecodeError::Expected("an ubyte")),
        }
    }

    pub(crate) fn ushort(&mut self) -> Result<u16> {
        match self.byte()? {
            0x60 => Ok(u16::from_be_bytes(self.array()?)),
            _ => Err(DecodeError::Expected("an ushort")),
        }
    }

    pub(crate) fn uint(&mut self) -> Result<u32> {
        match self.byte()? {
            0x43 => Ok(0),
            0x52 => Ok(self.byte()?.into()),
            0x70 => self.u32(),
            _ => Err(DecodeError::Expected("an uint")),
        }
    }

    pub(crate) fn ulong(&mut self) -> Result<u64> {
        match self.byte()? {
            0x44 => Ok(0),
            0x53 => Ok(self.byte()?.into()),
            0x80 => Ok(u64::from_be_bytes(self.array()?)),
            _ => Err(DecodeError::Expected("an ulong")),
        }
    }

    pub(crate) fn timestamp(&mut self) -> Result<i64> {
        match self.byte()? {
            0x83 => Ok(i64::from_be_bytes(self.array()?)),
            _ => Err(DecodeError::Expected("a timestamp")),
        }
    }

    pub(crate) fn binary(&mut self) -> Result<&'a [u8]> {
        match self.byte()? {
            code @ (0xa0 | 0xb0) => self.variable(code),
            _ => Err(DecodeError::Expected("a binary")),
        }
    }

    pub(crate) fn string(&mut self) -> Result<&'a str> {
        match self.byte()? {
            code @ (0xa1 | 0xb1) => text(self.variable(code)?),
            _ => Err(DecodeError::Expected("a string")),
        }
    }

    pub(crate) fn symbol(&mut self) -> Result<&'a str> {
        match self.byte()? {
            code @ (0xa3 | 0xb3) => symbol(self.variable(code)?),
            _ => Err(DecodeError::Expected("a symbol")),
        }
    }
}

fn room(enclosed: &Enclosed<'_>) -> usize {
    (enclosed.count as usize).min(enclosed.inside.len()).min(VALUES_MAX as usize)
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| DecodeError::NotText)
}

fn symbol(bytes: &[u8]) -> Result<&str> {
    text(bytes).ok().filter(|text| text.is_ascii()).ok_or(DecodeError::NotText)
}
