//! Writes responses. What is long already, such as batches from the store, is passed on and not copied.

use bytes::{BufMut, Bytes, BytesMut};

/// From which size on bytes are passed on as they are.
const PASS_ON_BYTES: usize = 1024;

/// A response that grows.
#[derive(Default)]
pub struct Writer {
    done: Vec<Bytes>,
    open: BytesMut,
}

impl Writer {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn bool(&mut self, it: bool) {
        self.open.put_u8(u8::from(it));
    }

    pub fn i8(&mut self, it: i8) {
        self.open.put_i8(it);
    }

    pub fn i16(&mut self, it: i16) {
        self.open.put_i16(it);
    }

    pub fn i32(&mut self, it: i32) {
        self.open.put_i32(it);
    }

    pub fn i64(&mut self, it: i64) {
        self.open.put_i64(it);
    }

    pub fn unsigned_varint(&mut self, mut it: u32) {
        while it >= 0x80 {
            self.open.put_u8(it as u8 | 0x80);
            it >>= 7;
        }
        self.open.put_u8(it as u8);
    }

    /// A text, which is cut where the protocol could not say its length.
    pub fn text(&mut self, it: &str) {
        let mut end = it.len().min(i16::MAX as usize);
        while !it.is_char_boundary(end) {
            end -= 1;
        }
        self.open.put_i16(end as i16);
        self.open.put_slice(&it.as_bytes()[..end]);
    }

    pub fn nullable_text(&mut self, it: Option<&str>) {
        match it {
            Some(it) => self.text(it),
            None => self.open.put_i16(-1),
        }
    }

    pub fn bytes(&mut self, it: &Bytes) {
        self.open.put_i32(it.len() as i32);
        self.raw(it);
    }

    /// Several pieces as one value of bytes.
    pub fn pieces(&mut self, pieces: &[Bytes]) {
        let length: usize = pieces.iter().map(Bytes::len).sum();
        self.open.put_i32(length as i32);
        pieces.iter().for_each(|piece| self.raw(piece));
    }

    fn raw(&mut self, it: &Bytes) {
        if it.len() < PASS_ON_BYTES {
            return self.open.put_slice(it);
        }
        self.done.push(self.open.split().freeze());
        self.done.push(it.clone());
    }

    /// The number of items of an array, which follow.
    pub fn count(&mut self, it: usize) {
        self.open.put_i32(it as i32);
    }

    pub fn array<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        self.count(items.len());
        items.iter().for_each(|it| item(self, it));
    }

    /// All of it behind its length, in pieces.
    pub fn frame(mut self) -> Vec<Bytes> {
        self.done.push(self.open.freeze());
        let length: usize = self.done.iter().map(Bytes::len).sum();
        let mut first = BytesMut::with_capacity(4 + self.done[0].len());
        first.put_i32(length as i32);
        first.put_slice(&self.done[0]);
        self.done[0] = first.freeze();
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_bytes_are_passed_on_and_the_frame_counts_them() {
        let mut writer = Writer::new();
        let long = Bytes::from(vec![7; PASS_ON_BYTES]);
        writer.text("hi");
        writer.pieces(&[Bytes::from_static(b"a"), long.clone()]);
        writer.unsigned_varint(300);
        let frame = writer.frame();
        let whole = frame.concat();
        assert_eq!(i32::from_be_bytes(whole[..4].try_into().unwrap()) as usize, whole.len() - 4);
        assert_eq!(&whole[4..12], b"\x00\x02hi\x00\x00\x04\x01");
        assert!(frame.iter().any(|piece| piece.as_ptr() == long.as_ptr()));
        assert_eq!(&whole[whole.len() - 2..], b"\xac\x02");
    }
}
