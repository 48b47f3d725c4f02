//! Cuts a stream of bytes into messages: a tag, a length that counts itself, a body.

use bytes::{Buf, Bytes, BytesMut};

use crate::reader::Malformed;

/// The tag and the length.
pub const HEADER_BYTES: usize = 5;

/// One message. `whole` holds tag and length too, so that it can be sent on as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub tag: u8,
    pub whole: Bytes,
}

impl Frame {
    pub fn body(&self) -> Bytes {
        self.whole.slice(HEADER_BYTES..)
    }
}

/// Bytes that have come in, and the messages in them.
#[derive(Default)]
pub struct Frames {
    buffer: BytesMut,
}

impl Frames {
    /// Where a socket reads to.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The length of the next message with its header, if so much has come in that it is known.
    fn next_bytes(&self, bytes_max: usize) -> Result<Option<usize>, Malformed> {
        let Some(length) = self.buffer.get(1..HEADER_BYTES) else { return Ok(None) };
        let length =
            length.try_into().map(u32::from_be_bytes).map_err(|_| Malformed("no length"))?;
        let length = length as usize;
        if length < 4 || length > bytes_max {
            return Err(Malformed("a message length is out of range"));
        }
        Ok(Some(length + 1))
    }

    /// The next message, if it has come in whole.
    pub fn next(&mut self, bytes_max: usize) -> Result<Option<Frame>, Malformed> {
        let Some(bytes) = self.next_bytes(bytes_max)? else { return Ok(None) };
        if self.buffer.len() < bytes {
            return Ok(None);
        }
        let whole = self.buffer.split_to(bytes).freeze();
        Ok(Some(Frame { tag: whole[0], whole }))
    }

    /// The tag of the next message, if any byte of it has come in.
    pub fn next_tag(&self) -> Option<u8> {
        self.buffer.first().copied()
    }

    /// As many whole messages with one of these tags as have come in, as one piece of bytes: rows that are sent on without
    /// being looked at. Empty if the next message has another tag, or has not come in whole.
    pub fn run(&mut self, tag: u8, bytes_max: usize) -> Result<(Bytes, u64), Malformed> {
        let (mut end, mut count) = (0, 0);
        while let Some(header) = self.buffer.get(end..end + HEADER_BYTES) {
            if header[0] != tag {
                break;
            }
            let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
            if length < 4 || length > bytes_max {
                return Err(Malformed("a message length is out of range"));
            }
            if self.buffer.len() < end + length + 1 {
                break;
            }
            end += length + 1;
            count += 1;
        }
        Ok((self.buffer.split_to(end).freeze(), count))
    }

    /// Drops everything that has come in, as before a TLS handshake.
    pub fn clear(&mut self) {
        let length = self.buffer.len();
        self.buffer.advance(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(bytes: &[u8]) -> Frames {
        let mut frames = Frames::default();
        frames.buffer().extend_from_slice(bytes);
        frames
    }

    #[test]
    fn messages_are_cut_where_their_lengths_say() {
        let mut cut = frames(b"S\0\0\0\x04Q\0\0\0\x06ab");
        assert_eq!(cut.next(100).unwrap().unwrap().tag, b'S');
        let query = cut.next(100).unwrap().unwrap();
        assert_eq!((query.tag, query.body().as_ref()), (b'Q', &b"ab"[..]));
        assert_eq!(cut.next(100), Ok(None));
        assert_eq!(frames(b"Q\0\0\0\x06a").next(100), Ok(None));
    }

    #[test]
    fn a_length_out_of_range_is_refused_before_its_bytes_come() {
        assert!(frames(b"Q\x7f\0\0\0").next(100).is_err());
        assert!(frames(b"Q\0\0\0\x03").next(100).is_err());
    }

    #[test]
    fn a_run_of_rows_is_taken_in_one_piece() {
        let mut cut = frames(b"D\0\0\0\x05aD\0\0\0\x05bC\0\0\0\x04D");
        let (rows, count) = cut.run(b'D', 100).unwrap();
        assert_eq!((rows.len(), count), (12, 2));
        assert_eq!(cut.next_tag(), Some(b'C'));
        assert_eq!(cut.run(b'D', 100).unwrap().1, 0);
    }
}
