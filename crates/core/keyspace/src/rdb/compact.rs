//! The compact forms of Redis: flat lists of texts and integers in one string.

use super::reader::{BadPayload, Reader};
use crate::types::integer;

type Texts = Vec<Vec<u8>>;

fn number(value: i64) -> Vec<u8> {
    integer::text(value).to_vec()
}

/// A signed number of so many bytes, the lowest first.
fn signed(bytes: &[u8]) -> i64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let shift = 64 - 8 * bytes.len() as u32;
    i64::from_le_bytes(wide) << shift >> shift
}

/// The number that a text of a compact form stands for.
pub(super) fn parse(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// How many bytes say, behind an element of a listpack, how long it is. The bounds are those of the service, which leaves the
/// largest number of each width to the next one.
fn back_width(length: usize) -> usize {
    match length {
        0..128 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}

/// A listpack that is being written.
pub(super) struct Listpack {
    bytes: Vec<u8>,
    count: usize,
}

impl Listpack {
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; 6], count: 0 }
    }

    pub(super) fn number(&mut self, value: i64) {
        let start = self.bytes.len();
        let wide = value.to_le_bytes();
        match value {
            0..128 => self.bytes.push(value as u8),
            -4096..4096 => {
                let bits = (value as u16) & 0x1fff;
                self.bytes.extend_from_slice(&[0xc0 | (bits >> 8) as u8, bits as u8]);
            }
            -0x8000..0x8000 => self.tagged(0xf1, &wide[..2]),
            -0x80_0000..0x80_0000 => self.tagged(0xf2, &wide[..3]),
            -0x8000_0000..0x8000_0000 => self.tagged(0xf3, &wide[..4]),
            _ => self.tagged(0xf4, &wide),
        }
        self.end_element(start);
    }

    pub(super) fn text(&mut self, text: &[u8]) {
        let start = self.bytes.len();
        let length = text.len();
        match length {
            0..64 => self.tagged(0x80 | length as u8, text),
            64..4096 => {
                self.bytes.push(0xe0 | (length >> 8) as u8);
                self.tagged(length as u8, text);
            }
            _ => {
                self.tagged(0xf0, &(length as u32).to_le_bytes());
                self.bytes.extend_from_slice(text);
            }
        }
        self.end_element(start);
    }

    fn tagged(&mut self, tag: u8, bytes: &[u8]) {
        self.bytes.push(tag);
        self.bytes.extend_from_slice(bytes);
    }

    /// Behind each element stands its length, so that it can be read from behind: seven bits a byte, the highest first.
    fn end_element(&mut self, start: usize) {
        let length = self.bytes.len() - start;
        let width = back_width(length);
        for at in (0..width).rev() {
            let bits = (length >> (7 * at)) as u8 & 0x7f;
            self.bytes.push(if at + 1 == width { bits } else { bits | 0x80 });
        }
        self.count += 1;
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0xff);
        let bytes = self.bytes.len() as u32;
        // The largest number stands for a count that is not known.
        let count = u16::try_from(self.count).unwrap_or(u16::MAX);
        self.bytes[..4].copy_from_slice(&bytes.to_le_bytes());
        self.bytes[4..6].copy_from_slice(&count.to_le_bytes());
        self.bytes
    }
}

/// The texts of a listpack.
pub(super) fn listpack(bytes: &[u8]) -> Result<Texts, BadPayload> {
    let mut reader = Reader::new(bytes);
    reader.take(6)?;
    let mut texts = Texts::new();
    loop {
        let before = reader.at();
        let tag = reader.byte()?;
        texts.push(match tag {
            0xff => return Ok(texts),
            0..0x80 => number(i64::from(tag)),
            0x80..0xc0 => reader.take(usize::from(tag & 0x3f))?.to_vec(),
            0xc0..0xe0 => {
                let bits = i64::from(tag & 0x1f) << 8 | i64::from(reader.byte()?);
                number(bits << 51 >> 51)
            }
            0xe0..0xf0 => {
                let length = usize::from(tag & 0x0f) << 8 | usize::from(reader.byte()?);
                reader.take(length)?.to_vec()
            }
            0xf0 => {
                let length = u32::from_le_bytes(reader.array()?);
                reader.take(length as usize)?.to_vec()
            }
            0xf1 => number(signed(reader.take(2)?)),
            0xf2 => number(signed(reader.take(3)?)),
            0xf3 => number(signed(reader.take(4)?)),
            0xf4 => number(signed(reader.take(8)?)),
            _ => return Err(BadPayload::Format),
        });
        reader.take(back_width(reader.at() - before))?;
    }
}

/// The texts of a ziplist, the form before listpacks.
pub(super) fn ziplist(bytes: &[u8]) -> Result<Texts, BadPayload> {
    let mut reader = Reader::new(bytes);
    reader.take(10)?;
    let mut texts = Texts::new();
    loop {
        match reader.byte()? {
            0xff => return Ok(texts),
            0xfe => {
                reader.take(4)?;
            }
            _ => {}
        }
        let tag = reader.byte()?;
        texts.push(match tag {
            0..0x40 => reader.take(usize::from(tag))?.to_vec(),
            0x40..0x80 => {
                let length = usize::from(tag & 0x3f) << 8 | usize::from(reader.byte()?);
                reader.take(length)?.to_vec()
            }
            0x80 => {
                let length = u32::from_be_bytes(reader.array()?);
                reader.take(length as usize)?.to_vec()
            }
            0xc0 => number(signed(reader.take(2)?)),
            0xd0 => number(signed(reader.take(4)?)),
            0xe0 => number(signed(reader.take(8)?)),
            0xf0 => number(signed(reader.take(3)?)),
            0xfe => number(signed(reader.take(1)?)),
            0xf1..=0xfd => number(i64::from(tag & 0x0f) - 1),
            _ => return Err(BadPayload::Format),
        });
    }
}

/// The texts of a zipmap, the form of small hashes before ziplists.
pub(super) fn zipmap(bytes: &[u8]) -> Result<Texts, BadPayload> {
    let mut reader = Reader::new(bytes);
    reader.take(1)?;
    let mut texts = Texts::new();
    while let Some(length) = zipmap_length(&mut reader)? {
        texts.push(reader.take(length)?.to_vec());
        let length = zipmap_length(&mut reader)?.ok_or(BadPayload::Format)?;
        let unused = usize::from(reader.byte()?);
        texts.push(reader.take(length)?.to_vec());
        reader.take(unused)?;
    }
    Ok(texts)
}

/// A length of a zipmap; none at its end.
fn zipmap_length(reader: &mut Reader<'_>) -> Result<Option<usize>, BadPayload> {
    Ok(match reader.byte()? {
        0xff => None,
        0xfe => Some(u32::from_le_bytes(reader.array()?) as usize),
        short => Some(usize::from(short)),
    })
}

/// The members of a set of integers.
pub(super) fn intset(bytes: &[u8]) -> Result<Texts, BadPayload> {
    let mut reader = Reader::new(bytes);
    let width = u32::from_le_bytes(reader.array()?);
    let count = u32::from_le_bytes(reader.array()?);
    if ![2, 4, 8].contains(&width) || count as usize > bytes.len() {
        return Err(BadPayload::Format);
    }
    (0..count).map(|_| reader.take(width as usize).map(|it| number(signed(it)))).collect()
}

/// Expands a text that was compressed with LZF to the length that it must have.
pub(super) fn expand(bytes: &[u8], length: usize) -> Result<Vec<u8>, BadPayload> {
    let mut reader = Reader::new(bytes);
    let mut out: Vec<u8> = Vec::new();
    while reader.at() < bytes.len() {
        let control = usize::from(reader.byte()?);
        if control < 32 {
            out.extend_from_slice(reader.take(control + 1)?);
        } else {
            let mut run = control >> 5;
            if run == 7 {
                run += usize::from(reader.byte()?);
            }
            let back = (control & 0x1f) << 8 | usize::from(reader.byte()?);
            let from = out.len().checked_sub(back + 1).ok_or(BadPayload::Format)?;
            for at in from..from + run + 2 {
                out.push(out[at]);
            }
        }
        if out.len() > length {
            return Err(BadPayload::Format);
        }
    }
    if out.len() == length { Ok(out) } else { Err(BadPayload::Format) }
}
