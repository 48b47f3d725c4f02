//! Reads the fields of one message. Every read checks what is left, so no message can make it panic.

use std::fmt;

use bytes::{Buf, Bytes};

/// A message that ends too early, or holds what it must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid message format: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

pub struct Reader {
    rest: Bytes,
}

impl Reader {
    pub fn new(body: Bytes) -> Self {
        Self { rest: body }
    }

    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    fn need(&self, count: usize) -> Result<(), Malformed> {
        if self.rest.len() < count { Err(Malformed("too short")) } else { Ok(()) }
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.need(1)?;
        Ok(self.rest.get_u8())
    }

    pub fn i16(&mut self) -> Result<i16, Malformed> {
        self.need(2)?;
        Ok(self.rest.get_i16())
    }

    pub fn i32(&mut self) -> Result<i32, Malformed> {
        self.need(4)?;
        Ok(self.rest.get_i32())
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.need(4)?;
        Ok(self.rest.get_u32())
    }

    /// A count of things of which each takes at least `least` bytes, so that no count makes us reserve more than was sent.
    pub fn count(&mut self, least: usize) -> Result<usize, Malformed> {
        let count = usize::from(self.i16()? as u16);
        if count * least > self.rest.len() {
            Err(Malformed("a count is too high"))
        } else {
            Ok(count)
        }
    }

    pub fn bytes(&mut self, count: usize) -> Result<Bytes, Malformed> {
        self.need(count)?;
        Ok(self.rest.split_to(count))
    }

    /// A value with its length in front; a length of -1 is NULL.
    pub fn value(&mut self) -> Result<Option<Bytes>, Malformed> {
        match self.i32()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length).map_err(|_| Malformed("a negative length"))?;
                self.bytes(length).map(Some)
            }
        }
    }

    /// A text that ends with a zero byte.
    pub fn text(&mut self) -> Result<String, Malformed> {
        let raw = self.raw_text()?;
        let text = std::str::from_utf8(&raw).map_err(|_| Malformed("a text is not UTF-8"))?;
        Ok(text.to_owned())
    }

    /// The same without looking whether it is UTF-8.
    pub fn raw_text(&mut self) -> Result<Bytes, Malformed> {
        let end = self.rest.iter().position(|byte| *byte == 0);
        let end = end.ok_or(Malformed("a text has no end"))?;
        let text = self.rest.split_to(end);
        self.rest.advance(1);
        Ok(text)
    }

    pub fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.rest)
    }

    /// The message must be over.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed("too long")) }
    }
}
