//! Frames: eight bytes of size, offset, type and channel, then a performative, then payload.

use bytes::{BufMut, BytesMut};

use crate::decode::{DecodeError, Decoder};
use crate::performative::Performative;

pub const HEADER_BYTES: usize = 8;

/// What a frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Amqp,
    Sasl,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Self::Amqp => 0,
            Self::Sasl => 1,
        }
    }
}

/// The protocol header of a connection and of its SASL layer.
pub const AMQP_HEADER: [u8; 8] = *b"AMQP\x00\x01\x00\x00";
pub const SASL_HEADER: [u8; 8] = *b"AMQP\x03\x01\x00\x00";

/// One frame as it lies in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub kind: Kind,
    pub channel: u16,
    /// Empty in frames that only say that the peer lives.
    pub body: &'a [u8],
    /// How many bytes the whole frame takes.
    pub size: usize,
}

/// Why bytes are no frame. The connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    TooLarge(usize),
    /// The header contradicts itself, or is of a type that there is not.
    Malformed,
}

/// The frame at the beginning of the bytes; none if not all of it is there.
pub fn split(bytes: &[u8], size_max: usize) -> Result<Option<Frame<'_>>, FrameError> {
    let Some((header, _)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let [a, b, c, d, offset, kind, high, low] = *header;
    let size = u32::from_be_bytes([a, b, c, d]) as usize;
    let offset = usize::from(offset) * 4;
    if size > size_max {
        return Err(FrameError::TooLarge(size));
    }
    let kind = match kind {
        0 => Kind::Amqp,
        1 => Kind::Sasl,
        _ => return Err(FrameError::Malformed),
    };
    if offset < HEADER_BYTES || offset > size {
        return Err(FrameError::Malformed);
    }
    let Some(frame) = bytes.get(..size) else { return Ok(None) };
    Ok(Some(Frame { kind, channel: u16::from_be_bytes([high, low]), body: &frame[offset..], size }))
}

impl<'a> Frame<'a> {
    /// The performative and the payload; none if the frame is empty.
    pub fn read(&self) -> Result<Option<(Performative, &'a [u8])>, DecodeError> {
        if self.body.is_empty() {
            return Ok(None);
        }
        let mut decoder = Decoder::new(self.body);
        let performative = Performative::read(&mut decoder)?;
        Ok(Some((performative, decoder.rest())))
    }
}

/// Begins a frame. [`finish`] closes it.
pub(crate) fn begin(out: &mut BytesMut, kind: Kind, channel: u16) -> usize {
    let at = out.len();
    out.put_u32(0);
    out.put_slice(&[2, kind.code()]);
    out.put_u16(channel);
    at
}

/// Writes the size of the frame that began at this place.
pub(crate) fn finish(out: &mut BytesMut, at: usize) {
    // Frames end at the size that the peer takes, and those without payload are small.
    let size = u32::try_from(out.len() - at).unwrap_or(u32::MAX);
    out[at..at + 4].copy_from_slice(&size.to_be_bytes());
}

/// Writes a frame without payload.
pub fn write(out: &mut BytesMut, kind: Kind, channel: u16, performative: &Performative) {
    let at = begin(out, kind, channel);
    performative.write(out);
    finish(out, at);
}

/// Writes a frame that only says that we live.
pub fn write_empty(out: &mut BytesMut) {
    let at = begin(out, Kind::Amqp, 0);
    finish(out, at);
}
