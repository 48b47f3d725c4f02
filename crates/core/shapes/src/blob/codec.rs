//! How rows of blobs are written: bytes, varints, texts, one after another (`docs/formats/blobs.md`).

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_engine::{Error, Result};

/// A row in the making.
#[derive(Default)]
pub(super) struct Writer(BytesMut);

impl Writer {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.0.put_u8(value);
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.0.put_u64(value);
    }

    /// Seven bits per byte, lowest first, the top bit set on all but the last.
    pub(super) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.put_u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.put_u8(value as u8);
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.0.put_slice(bytes);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.put_slice(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(super) fn pairs(&mut self, pairs: &[(String, String)]) {
        self.number(pairs.len() as u64);
        for (name, value) in pairs {
            self.text(name);
            self.text(value);
        }
    }

    /// A field that is written only if it is there: its tag, then what the function writes.
    pub(super) fn field<T>(
        &mut self,
        tag: u8,
        value: Option<&T>,
        write: impl FnOnce(&mut Self, &T),
    ) {
        if let Some(value) = value {
            self.u8(tag);
            write(self, value);
        }
    }

    pub(super) fn finish(self) -> Bytes {
        self.0.freeze()
    }
}

/// A row as it is read. Whatever the bytes are, the worst that happens is an error.
pub(super) struct Reader(Bytes);

impl Reader {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        self.0.try_get_u8().map_err(|_| damaged())
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        self.0.try_get_u64().map_err(|_| damaged())
    }

    pub(super) fn number(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(damaged())
    }

    pub(super) fn small(&mut self) -> Result<u32> {
        u32::try_from(self.number()?).map_err(|_| damaged())
    }

    pub(super) fn raw(&mut self, length: usize) -> Result<Bytes> {
        if length > self.0.len() {
            return Err(damaged());
        }
        Ok(self.0.split_to(length))
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.raw(N)?;
        <[u8; N]>::try_from(&bytes[..]).map_err(|_| damaged())
    }

    pub(super) fn bytes(&mut self) -> Result<Bytes> {
        let length = usize::try_from(self.number()?).map_err(|_| damaged())?;
        self.raw(length)
    }

    pub(super) fn text(&mut self) -> Result<String> {
        let bytes = self.bytes()?;
        std::str::from_utf8(&bytes).map(str::to_owned).map_err(|_| damaged())
    }

    pub(super) fn pairs(&mut self) -> Result<Vec<(String, String)>> {
        let count = self.number()?;
        let mut pairs = Vec::new();
        for _ in 0..count {
            pairs.push((self.text()?, self.text()?));
        }
        Ok(pairs)
    }
}

pub(super) fn damaged() -> Error {
    Error::corrupt("bad-blob-row", "a row of a blob does not decode")
}
