//! Reads requests. Whatever does not fit is [`Malformed`]; nothing is reserved for what has not come.

use bytes::{Buf, Bytes};

/// The bytes are no request of the version that they claim to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// What is left of a request.
pub struct Reader {
    rest: Bytes,
}

impl Reader {
    pub fn new(bytes: Bytes) -> Self {
        Self { rest: bytes }
    }

    pub fn left(&self) -> usize {
        self.rest.len()
    }

    pub fn bool(&mut self) -> Result<bool, Malformed> {
        Ok(self.i8()? != 0)
    }

    pub fn i8(&mut self) -> Result<i8, Malformed> {
        self.rest.try_get_i8().map_err(|_| Malformed)
    }

    pub fn i16(&mut self) -> Result<i16, Malformed> {
        self.rest.try_get_i16().map_err(|_| Malformed)
    }

    pub fn i32(&mut self) -> Result<i32, Malformed> {
        self.rest.try_get_i32().map_err(|_| Malformed)
    }

    pub fn i64(&mut self) -> Result<i64, Malformed> {
        self.rest.try_get_i64().map_err(|_| Malformed)
    }

    /// A number in groups of seven bits, the lowest first.
    pub fn unsigned_varint(&mut self) -> Result<u32, Malformed> {
        let mut number = 0_u32;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.rest.try_get_u8().map_err(|_| Malformed)?;
            number |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed)
    }

    fn take(&mut self, length: usize) -> Result<Bytes, Malformed> {
        if length > self.rest.len() {
            return Err(Malformed);
        }
        Ok(self.rest.split_to(length))
    }

    pub fn text(&mut self) -> Result<String, Malformed> {
        self.nullable_text()?.ok_or(Malformed)
    }

    pub fn nullable_text(&mut self) -> Result<Option<String>, Malformed> {
        let length = self.i16()?;
        let Ok(length) = usize::try_from(length) else {
            return if length == -1 { Ok(None) } else { Err(Malformed) };
        };
        let bytes = self.take(length)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| Malformed)?;
        Ok(Some(text.to_owned()))
    }

    pub fn bytes(&mut self) -> Result<Bytes, Malformed> {
        self.nullable_bytes()?.ok_or(Malformed)
    }

    pub fn nullable_bytes(&mut self) -> Result<Option<Bytes>, Malformed> {
        let length = self.i32()?;
        match usize::try_from(length) {
            Ok(length) => self.take(length).map(Some),
            Err(_) if length == -1 => Ok(None),
            Err(_) => Err(Malformed),
        }
    }

    pub fn array<T>(
        &mut self,
        item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        self.nullable_array(item)?.ok_or(Malformed)
    }

    pub fn nullable_array<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<Vec<T>>, Malformed> {
        let count = self.i32()?;
        let Ok(count) = usize::try_from(count) else {
            return if count == -1 { Ok(None) } else { Err(Malformed) };
        };
        // No item is shorter than two bytes, so a count beyond this lies.
        if count > self.rest.len() / 2 {
            return Err(Malformed);
        }
        // It grows with what is read: an item in memory may be many times as long as it is here.
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(Some(items))
    }

    /// The tagged fields behind the header of a flexible version, which are passed over.
    pub fn skip_tags(&mut self) -> Result<(), Malformed> {
        for _ in 0..self.unsigned_varint()? {
            self.unsigned_varint()?;
            let length = self.unsigned_varint()? as usize;
            self.take(length)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(bytes: &'static [u8]) -> Reader {
        Reader::new(Bytes::from_static(bytes))
    }

    #[test]
    fn what_is_claimed_and_did_not_come_is_malformed_at_once() {
        assert_eq!(reader(b"\x7f\xff\xff\xff").array(|it| it.i64()), Err(Malformed));
        assert_eq!(reader(b"\x7f\xff\xff\xff").bytes(), Err(Malformed));
        assert_eq!(reader(b"\x7f\xff").text(), Err(Malformed));
        assert_eq!(reader(b"\xff\xfe").nullable_text(), Err(Malformed));
        assert_eq!(reader(b"\x00\x01\xff").text(), Err(Malformed));
        assert_eq!(reader(b"\xff\xff\xff\xff\x7f").skip_tags(), Err(Malformed));
        assert_eq!(reader(b"\xff\xff\xff\xff\xff\x01").unsigned_varint(), Err(Malformed));
    }

    #[test]
    fn primitive_types_read_as_the_protocol_writes_them() {
        let mut it = reader(b"\x00\x02hi\xff\xff\x00\x00\x00\x01\x00\x07\xff\xff\xff\xff\xac\x02");
        assert_eq!(it.text().unwrap(), "hi");
        assert_eq!(it.nullable_text().unwrap(), None);
        assert_eq!(it.array(|it| it.i16()).unwrap(), [7]);
        assert_eq!(it.nullable_bytes().unwrap(), None);
        assert_eq!(it.unsigned_varint().unwrap(), 300);
        assert_eq!(it.left(), 0);
    }
}
