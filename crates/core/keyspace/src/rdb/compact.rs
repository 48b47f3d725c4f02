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
        let width = match reader.at() - before {
            0..128 => 1,
            128..16_384 => 2,
            16_384..2_097_152 => 3,
            2_097_152..268_435_456 => 4,
            _ => 5,
        };
        reader.take(width)?;
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
