//! Pieces: what contents are made of. A piece is some bytes of a row, a cell or a file, and says from which block they came.
//!
//! Cells are the bytes of blocks that are too small for files. A cell is a row; it is named, shared and dropped as a file is,
//! so that a block list moves names and never bytes. Generations of files start at 1; cells have generation 0.
//!
//! Contents can be encrypted at rest with a key that the customer sends with every request; only its SHA-256 is stored. It is
//! AES-256 in counter mode with an initial counter per source of bytes, so that any range can be read by itself.

use std::fmt;

use aes::Aes256;
use bytes::{Bytes, BytesMut};
use ctr::Ctr128BE;
use ctr::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use lazuli_engine::{BlockFile, BlockId, Env, Error, Lsn, Result, View, crc64};

use super::BlobReason;
use super::address::BlobPlace;
use super::rows::{Reader, Writer, damaged};
use super::shardlet::Shardlet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Row(Bytes),
    File(BlockFile),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) length: u64,
    /// Where in its source it begins.
    pub(super) skip: u64,
    pub(super) source: Source,
    /// With which its source is encrypted, from the source's beginning on.
    pub(super) iv: Option<[u8; 16]>,
    /// Of blocks of a block list.
    pub(super) block: Bytes,
    /// Of pages: the write that put them there.
    pub(super) since: Lsn,
}

const FORMAT: u8 = 1;
const IN_ROW: u8 = 0;
const IN_FILE: u8 = 1;
const ENCRYPTED: u8 = 0x10;

impl Piece {
    pub(super) fn new(source: Source, iv: Option<[u8; 16]>) -> Self {
        let length = match &source {
            Source::Row(bytes) => bytes.len() as u64,
            Source::File(file) => file.length,
        };
        Self { length, skip: 0, source, iv, block: Bytes::new(), since: Lsn::ZERO }
    }

    /// The file, or the cell, that it names.
    pub(super) fn file(&self) -> Option<&BlockFile> {
        match &self.source {
            Source::Row(_) => None,
            Source::File(file) => Some(file),
        }
    }

    /// The part of it between two places counted from its own beginning.
    pub(super) fn part(&self, from: u64, to: u64) -> Self {
        let mut part = self.clone();
        part.skip += from;
        part.length = to - from;
        // Bytes of a row that no part needs are not written again; encrypted ones must stay in their places.
        if let (Source::Row(bytes), None) = (&self.source, &self.iv) {
            part.source =
                Source::Row(bytes.slice(part.skip as usize..(part.skip + part.length) as usize));
            part.skip = 0;
        }
        part
    }

    pub(super) fn write(&self, to: &mut Writer) {
        let encrypted = if self.iv.is_some() { ENCRYPTED } else { 0 };
        match &self.source {
            Source::Row(bytes) => {
                to.u8(IN_ROW | encrypted);
                to.bytes(bytes);
            }
            Source::File(file) => {
                to.u8(IN_FILE | encrypted);
                to.number(file.id.generation);
                to.number(file.id.number);
                to.number(file.length);
                to.u64(file.crc64);
            }
        }
        if let Some(iv) = &self.iv {
            to.raw(iv);
        }
        to.number(self.length);
        to.number(self.skip);
        to.bytes(&self.block);
        to.number(self.since.0);
    }

    pub(super) fn read(from: &mut Reader) -> Result<Self> {
        let code = from.u8()?;
        let (source, size) = match code & !ENCRYPTED {
            IN_ROW => {
                let bytes = from.bytes()?;
                let size = bytes.len() as u64;
                (Source::Row(bytes), size)
            }
            IN_FILE => {
                let id = BlockId { generation: from.number()?, number: from.number()? };
                let (length, crc64) = (from.number()?, from.u64()?);
                (Source::File(BlockFile { id, length, crc64 }), length)
            }
            _ => return Err(damaged()),
        };
        let iv = if code & ENCRYPTED == 0 { None } else { Some(from.array()?) };
        let (length, skip) = (from.number()?, from.number()?);
        let block = from.bytes()?;
        let since = Lsn(from.number()?);
        if skip.checked_add(length).is_none_or(|end| end > size) {
            return Err(damaged());
        }
        Ok(Self { length, skip, source, iv, block, since })
    }

    /// A row of this one piece.
    pub(super) fn encode(&self) -> Bytes {
        let mut to = Writer::new();
        to.u8(FORMAT);
        self.write(&mut to);
        to.finish()
    }
}

/// A row of pieces, one after another.
pub(super) fn encode_row(pieces: &[Piece]) -> Bytes {
    let mut to = Writer::new();
    to.u8(FORMAT);
    for piece in pieces {
        piece.write(&mut to);
    }
    to.finish()
}

pub(super) fn decode_row(bytes: Bytes) -> Result<Vec<Piece>> {
    let mut from = Reader::new(bytes);
    if from.u8()? != FORMAT {
        return Err(damaged());
    }
    let mut pieces = Vec::new();
    while !from.is_empty() {
        pieces.push(Piece::read(&mut from)?);
    }
    Ok(pieces)
}

pub(super) fn decode_one(bytes: Bytes) -> Result<Piece> {
    match <[Piece; 1]>::try_from(decode_row(bytes)?) {
        Ok([piece]) => Ok(piece),
        Err(_) => Err(damaged()),
    }
}

pub(super) const CELLS: u64 = 0;

pub(super) fn is_cell(id: BlockId) -> bool {
    id.generation == CELLS
}

/// The bytes of a cell.
pub(super) async fn read_cell(view: &View, place: &BlobPlace, file: &BlockFile) -> Result<Bytes> {
    let item = view.get(&place.cell(file.id.number)).await?.ok_or_else(damaged)?;
    if item.payload.len() as u64 == file.length && crc64(&item.payload) == file.crc64 {
        Ok(item.payload)
    } else {
        Err(damaged())
    }
}

impl Shardlet<'_, '_> {
    /// Keeps bytes in a cell. One transaction makes at most one.
    pub(super) async fn put_cell(&mut self, bytes: &Bytes) -> Result<BlockFile> {
        let number = self.lsn().0;
        self.tx.replace(&self.place.cell(number), None, bytes.clone(), None)?;
        let id = BlockId { generation: CELLS, number };
        Ok(BlockFile { id, length: bytes.len() as u64, crc64: crc64(bytes) })
    }
}

/// A key that came with a request. The front has checked that the sum is the key's.
#[derive(Clone)]
pub struct CustomerKey {
    pub key: [u8; 32],
    pub sha256: [u8; 32],
}

impl fmt::Debug for CustomerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomerKey")
    }
}

/// Whether a content written with one key, or none, may be touched by a request with another.
pub(super) fn check_key(written: Option<&[u8; 32]>, given: Option<&CustomerKey>) -> Result<()> {
    match (written, given) {
        (None, None) => Ok(()),
        (Some(written), Some(given)) if *written == given.sha256 => Ok(()),
        (Some(_), None) => {
            Err(Error::precondition(BlobReason::KeyRequired, "the blob needs its customer's key"))
        }
        _ => {
            Err(Error::precondition(BlobReason::KeyMismatch, "the blob has another customer's key"))
        }
    }
}

/// The stream of one source, anywhere in it. Encrypting and decrypting are the same.
pub(super) struct Cipher(Ctr128BE<Aes256>);

impl Cipher {
    pub(super) fn at(key: &CustomerKey, iv: &[u8; 16], position: u64) -> Self {
        let mut cipher = Ctr128BE::<Aes256>::new((&key.key).into(), iv.into());
        cipher.seek(position);
        Self(cipher)
    }

    pub(super) fn apply(&mut self, bytes: &Bytes) -> Bytes {
        let mut changed = BytesMut::from(&bytes[..]);
        self.0.apply_keystream(&mut changed);
        changed.freeze()
    }
}

/// An initial counter that no other source has.
pub(super) fn new_iv(env: &Env) -> [u8; 16] {
    let mut iv = [0; 16];
    iv[..8].copy_from_slice(&env.random.next_u64().to_be_bytes());
    // The lower half counts blocks; it begins at zero, so that it never carries into what is drawn.
    iv[8..12].copy_from_slice(&env.random.next_u64().to_be_bytes()[..4]);
    iv
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Piece> {
        let file =
            BlockFile { id: BlockId { generation: 3, number: 400 }, length: 1 << 33, crc64: 7 };
        let row = Piece::new(Source::Row("0123456789".into()), None);
        let mut page = Piece::new(Source::File(file), Some([9; 16]));
        page.since = Lsn(77);
        let mut block = row.clone();
        block.block = "id".into();
        vec![row, page, block]
    }

    #[test]
    fn pieces_survive_their_row_and_damage_is_an_error() {
        let row = encode_row(&samples());
        assert_eq!(decode_row(row.clone()).unwrap(), samples());
        for length in 0..row.len() {
            let _ = decode_row(row.slice(..length));
        }
        for at in 0..row.len() {
            let mut bytes = row.to_vec();
            bytes[at] ^= 0x81;
            let _ = decode_row(bytes.into());
        }
        assert!(decode_one(row).is_err());
    }

    #[test]
    fn a_part_of_a_piece_has_its_bytes_and_no_others() {
        let part = samples()[0].part(2, 5);
        assert_eq!((part.source, part.skip, part.length), (Source::Row("234".into()), 0, 3));
        let part = samples()[1].part(512, 1024).part(100, 200);
        assert_eq!((part.skip, part.length), (612, 100));
    }

    #[test]
    fn what_is_encrypted_as_a_whole_is_decrypted_from_anywhere() {
        let key = CustomerKey { key: [7; 32], sha256: [0; 32] };
        let iv = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 0];
        let plain: Bytes = (0..1000u32).map(|n| n as u8).collect();
        let hidden = Cipher::at(&key, &iv, 0).apply(&plain);
        assert_ne!(hidden, plain);
        for from in [0, 1, 15, 16, 17, 999] {
            let shown = Cipher::at(&key, &iv, from).apply(&hidden.slice(from as usize..));
            assert_eq!(shown, plain.slice(from as usize..));
        }
        let other = CustomerKey { key: [8; 32], sha256: [0; 32] };
        assert_ne!(Cipher::at(&other, &iv, 0).apply(&hidden), plain);
    }
}
