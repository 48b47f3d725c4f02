//! What clients have compressed, made readable again, in bounded memory. Nothing is compressed here.

use std::io::Read;

use bytes::Bytes;

use crate::Malformed;
use crate::batch::Codec;

/// How far back a zstd frame may refer: what it takes to read one. Levels up to 19 need no more.
const ZSTD_WINDOW_MAX: u64 = 8 * 1024 * 1024;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// What clients in Java write in front of blocks of snappy, with a version and the least version that reads it.
const SNAPPY_BLOCKS: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const SNAPPY_HEAD_BYTES: usize = 16;
/// The head of a gzip member without its optional fields, and what stands behind its data.
const GZIP_HEAD_BYTES: usize = 10;
const GZIP_TAIL_BYTES: usize = 8;

/// The bytes that were compressed. What would be longer than `most` is malformed too.
pub fn decompress(codec: Codec, bytes: &Bytes, most: usize) -> Result<Bytes, Malformed> {
    let whole = match codec {
        Codec::None => return if bytes.len() > most { Err(Malformed) } else { Ok(bytes.clone()) },
        Codec::Gzip => gzip(bytes, most)?,
        Codec::Snappy => snappy(bytes, most)?,
        Codec::Lz4 => {
            let mut decoder = lz4_flex::frame::FrameDecoder::new(&bytes[..]);
            read(&mut decoder, most)?
        }
        Codec::Zstd => zstd(bytes, most)?,
    };
    Ok(whole.into())
}

fn read(from: &mut impl Read, most: usize) -> Result<Vec<u8>, Malformed> {
    let mut whole = Vec::new();
    let one_more = (most as u64).saturating_add(1);
    from.take(one_more).read_to_end(&mut whole).map_err(|_| Malformed)?;
    if whole.len() > most { Err(Malformed) } else { Ok(whole) }
}

fn gzip(bytes: &[u8], most: usize) -> Result<Vec<u8>, Malformed> {
    let (head, tail) = bytes.split_at_checked(GZIP_HEAD_BYTES).ok_or(Malformed)?;
    let is_gzip = head.starts_with(&[0x1f, 0x8b, 8]) && head[3] & 0xe0 == 0;
    let end = tail.len().checked_sub(GZIP_TAIL_BYTES).filter(|_| is_gzip).ok_or(Malformed)?;
    let (mut data, tail) = tail.split_at(end);
    let flags = head[3];
    if flags & 4 != 0 {
        let (length, rest) = data.split_first_chunk::<2>().ok_or(Malformed)?;
        data = rest.get(usize::from(u16::from_le_bytes(*length))..).ok_or(Malformed)?;
    }
    // A name and a remark, each with a zero at its end, and a checksum of the head.
    for flag in [8, 16] {
        if flags & flag != 0 {
            let end = data.iter().position(|byte| *byte == 0).ok_or(Malformed)?;
            data = &data[end + 1..];
        }
    }
    if flags & 2 != 0 {
        data = data.get(2..).ok_or(Malformed)?;
    }
    let whole = miniz_oxide::inflate::decompress_to_vec_with_limit(data, most);
    let whole = whole.map_err(|_| Malformed)?;
    // The checksum of the batch covers all of it, so the length is enough to tell that this was one whole member.
    let length = tail.last_chunk::<4>().map(|length| u32::from_le_bytes(*length));
    if length == Some(whole.len() as u32) { Ok(whole) } else { Err(Malformed) }
}

/// One block, as most clients write it, or several with their lengths, as those in Java do.
fn snappy(bytes: &[u8], most: usize) -> Result<Vec<u8>, Malformed> {
    let mut whole = Vec::new();
    if !bytes.starts_with(&SNAPPY_BLOCKS) {
        snappy_block(bytes, most, &mut whole)?;
        return Ok(whole);
    }
    let mut rest = bytes.get(SNAPPY_HEAD_BYTES..).ok_or(Malformed)?;
    while !rest.is_empty() {
        let (length, behind) = rest.split_first_chunk::<4>().ok_or(Malformed)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (block, behind) = behind.split_at_checked(length).ok_or(Malformed)?;
        snappy_block(block, most, &mut whole)?;
        rest = behind;
    }
    Ok(whole)
}

fn snappy_block(block: &[u8], most: usize, whole: &mut Vec<u8>) -> Result<(), Malformed> {
    let length = snap::raw::decompress_len(block).map_err(|_| Malformed)?;
    let start = whole.len();
    // No block is compressed to less than a hundredth, so a greater length lies.
    if length > most - start || length / 100 > block.len() {
        return Err(Malformed);
    }
    whole.resize(start + length, 0);
    let written = snap::raw::Decoder::new().decompress(block, &mut whole[start..]);
    if written == Ok(length) { Ok(()) } else { Err(Malformed) }
}

fn zstd(bytes: &[u8], most: usize) -> Result<Vec<u8>, Malformed> {
    let rest = bytes.strip_prefix(&ZSTD_MAGIC).ok_or(Malformed)?;
    let (flags, rest) = rest.split_first().ok_or(Malformed)?;
    // A frame of one segment names its length in the place of the window, and is read up to `most` in any case.
    if flags & 0x20 == 0 {
        let window = u64::from(*rest.first().ok_or(Malformed)?);
        let base = 1_u64 << (10 + (window >> 3));
        if base + base / 8 * (window & 7) > ZSTD_WINDOW_MAX {
            return Err(Malformed);
        }
    } else if single_segment_bytes(*flags, rest).is_none_or(|length| length > most as u64) {
        return Err(Malformed);
    }
    let decoder = ruzstd::decoding::StreamingDecoder::new(bytes).map_err(|_| Malformed);
    read(&mut decoder?, most)
}

/// The length of the contents of a frame of one segment, behind the flags.
fn single_segment_bytes(flags: u8, rest: &[u8]) -> Option<u64> {
    let dictionary = [0, 1, 2, 4][usize::from(flags & 3)];
    let rest = rest.get(dictionary..)?;
    Some(match flags >> 6 {
        0 => u64::from(*rest.first()?),
        1 => u64::from(u16::from_le_bytes(*rest.first_chunk()?)) + 256,
        2 => u64::from(u32::from_le_bytes(*rest.first_chunk()?)),
        _ => u64::from_le_bytes(*rest.first_chunk()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `hello, hello, hello, hello` as the usual programs compress it.
    const TEXT: &[u8] = b"hello, hello, hello, hello";
    const GZIP: &str = "1f8b0800000000000203cb48cdc9c9d751c8c0a40055a382771a000000";
    const ZSTD: &str = "28b52ffd04586d00003868656c6c6f2c2001004a8a118f995337";
    const SNAPPY: &str = "1a1868656c6c6f2c204a0700";
    const LZ4: &str = "04224d186440a7100000007a68656c6c6f2c2007005068656c6c6f000000000ff58605";

    fn bytes(hex: &str) -> Bytes {
        let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digit).collect()
    }

    #[test]
    fn what_other_programs_compress_is_read_up_to_a_length() {
        let mut blocks = SNAPPY_BLOCKS.to_vec();
        blocks.extend([0, 0, 0, 1, 0, 0, 0, 1]);
        for _ in 0..2 {
            blocks.extend((bytes(SNAPPY).len() as u32).to_be_bytes());
            blocks.extend_from_slice(&bytes(SNAPPY));
        }
        let twice = [TEXT, TEXT].concat();
        for (codec, compressed, text) in [
            (Codec::None, Bytes::from_static(TEXT), TEXT),
            (Codec::Gzip, bytes(GZIP), TEXT),
            (Codec::Zstd, bytes(ZSTD), TEXT),
            (Codec::Lz4, bytes(LZ4), TEXT),
            (Codec::Snappy, bytes(SNAPPY), TEXT),
            (Codec::Snappy, blocks.into(), &twice),
        ] {
            let length = text.len();
            assert_eq!(decompress(codec, &compressed, length).as_deref(), Ok(text), "{codec:?}");
            assert_eq!(decompress(codec, &compressed, length - 1), Err(Malformed), "{codec:?}");
            if codec != Codec::None {
                for cut in 0..compressed.len() {
                    // Whatever is cut is refused, or is the beginning: nothing panics.
                    let cut = decompress(codec, &compressed.slice(..cut), length);
                    assert!(cut.is_err() || cut.is_ok_and(|it| text.starts_with(&it)), "{codec:?}");
                }
                for at in 0..compressed.len() {
                    let mut changed = compressed.to_vec();
                    changed[at] ^= 0xff;
                    let read = decompress(codec, &changed.into(), 4_096);
                    assert!(read.is_err() || read.is_ok_and(|it| it.len() <= 4_096));
                }
            }
        }
    }

    #[test]
    fn a_window_that_takes_much_memory_is_refused() {
        let mut frame = ZSTD_MAGIC.to_vec();
        // 128 MiB, and an empty last block.
        frame.extend([0, 17 << 3, 1, 0, 0]);
        assert_eq!(decompress(Codec::Zstd, &frame.clone().into(), 1 << 30), Err(Malformed));
        frame[5] = 13 << 3;
        assert_eq!(decompress(Codec::Zstd, &frame.into(), 1 << 30).as_deref(), Ok(&b""[..]));
    }
}
