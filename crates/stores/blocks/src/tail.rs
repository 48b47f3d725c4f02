//! The tail of a block file: its id, owner, length and checksum.
//!
//! ```text
//! content | the owner's route | tail, 64 bytes:
//!   "lzblock" 1 | generation (8) | number (8) | length of the content (8) | CRC-64/NVME of the content (8)
//!   CRC-64/NVME of the route (8) | the owner's container (4) | length of the route (4) | CRC-64/NVME of all these (8)
//! ```
//!
//! The content begins at offset 0, so a range of the content is a range of the file. Opening a file reads the tail: a
//! file that was truncated, lengthened or swapped is detected before a byte of it is used.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bytes::Bytes;
use lazuli_store::blocks::{BlockFile, BlockId, Owner};
use lazuli_store::crc64::crc64;
use lazuli_store::limits::KEY_BYTES_MAX;

const MAGIC: [u8; 8] = *b"lzblock\x01";
const TAIL_BYTES: usize = 64;
/// The longest route: that of the longest key.
const ROUTE_BYTES_MAX: u32 = KEY_BYTES_MAX as u32;

/// The data after the content of a file.
pub(crate) fn encode(file: &BlockFile, owner: &Owner) -> Vec<u8> {
    let route = &owner.route;
    let mut bytes = Vec::with_capacity(route.len() + TAIL_BYTES);
    bytes.extend_from_slice(route);
    bytes.extend(MAGIC);
    bytes.extend(file.id.generation.to_be_bytes());
    bytes.extend(file.id.number.to_be_bytes());
    bytes.extend(file.length.to_be_bytes());
    bytes.extend(file.crc64.to_be_bytes());
    bytes.extend(crc64(route).to_be_bytes());
    bytes.extend(owner.container.to_be_bytes());
    bytes.extend((route.len() as u32).to_be_bytes());
    let sum = crc64(&bytes[route.len()..]);
    bytes.extend(sum.to_be_bytes());
    bytes
}

/// The tail of a file whose length and tail are consistent.
pub(crate) struct Tail {
    pub(crate) file: BlockFile,
    container: u32,
    route_bytes: u32,
    route_sum: u64,
}

/// Reads the tail of a file. An invalid one is `InvalidData`.
pub(crate) fn read(file: &File) -> io::Result<Tail> {
    let size = file.metadata()?.len();
    let Some(start) = size.checked_sub(TAIL_BYTES as u64) else {
        return Err(damaged("is too short for its tail"));
    };
    let mut bytes = [0; TAIL_BYTES];
    file.read_exact_at(&mut bytes, start)?;
    let tail = decode(&bytes).ok_or_else(|| damaged("has no whole tail"))?;
    if tail.file.length.checked_add(u64::from(tail.route_bytes)) != Some(start) {
        return Err(damaged("has another length than its tail says"));
    }
    Ok(tail)
}

fn decode(bytes: &[u8; TAIL_BYTES]) -> Option<Tail> {
    let number = |at: usize| {
        let part: Option<&[u8; 8]> = bytes[at..].first_chunk();
        part.map(|part| u64::from_be_bytes(*part))
    };
    if bytes[..8] != MAGIC || number(56)? != crc64(&bytes[..56]) {
        return None;
    }
    let (container, route_bytes) = ((number(48)? >> 32) as u32, number(48)? as u32);
    let id = BlockId { generation: number(8)?, number: number(16)? };
    let file = BlockFile { id, length: number(24)?, crc64: number(32)? };
    let tail = Tail { file, container, route_bytes, route_sum: number(40)? };
    (route_bytes <= ROUTE_BYTES_MAX).then_some(tail)
}

impl Tail {
    /// Reads the owner of the file.
    pub(crate) fn owner(&self, file: &File) -> io::Result<Owner> {
        let mut route = vec![0; self.route_bytes as usize];
        file.read_exact_at(&mut route, self.file.length)?;
        if crc64(&route) != self.route_sum {
            return Err(damaged("names an owner that does not match its sum"));
        }
        Ok(Owner { container: self.container, route: Bytes::from(route) })
    }
}

pub(crate) fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn write(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn a_tail_survives_the_round_trip_and_no_flipped_or_missing_byte() {
        let content = b"the content";
        let id = BlockId { generation: 3, number: 1 << 40 };
        let file = BlockFile { id, length: content.len() as u64, crc64: crc64(content) };
        let owner = Owner { container: 9, route: Bytes::from_static(b"account|container|name") };
        let bytes = [&content[..], &encode(&file, &owner)].concat();
        let kept = write(&bytes);
        let tail = read(&kept).unwrap();
        assert_eq!((tail.file, tail.owner(&kept).unwrap()), (file, owner));
        for at in content.len()..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            let kept = write(&flipped);
            let outcome = read(&kept).and_then(|tail| tail.owner(&kept));
            assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::InvalidData, "{at}");
        }
        for end in 0..bytes.len() {
            assert!(read(&write(&bytes[..end])).is_err(), "{end}");
        }
        assert!(read(&write(&[&bytes[..], b"x"].concat())).is_err());
    }
}
