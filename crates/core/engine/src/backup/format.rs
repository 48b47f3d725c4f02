//! The bytes of a backup: what stands at its head, in its frames and at its end. `docs/formats/backup.md` draws them.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_shardmap::layout::{PREFIX_BYTES, Space};
use lazuli_shardmap::record::{Record, decode, encode};
use lazuli_shardmap::{Container, PartitionId};
use lazuli_store::blocks::{BlockFile, BlockId, PIECE_BYTES_MAX};
use lazuli_store::crc64::Crc64;
use lazuli_store::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use lazuli_store::{KeyRange, Result};

use super::damaged;
use crate::lsn::Lsn;

/// The format that this version writes and reads.
pub const BACKUP_FORMAT: u32 = 1;

/// What every backup begins with, before its format.
pub(super) const MAGIC: &[u8; 8] = b"lzbackup";
pub(super) const PREAMBLE_BYTES: usize = MAGIC.len() + 4;
/// Kind and length in front of a frame's body.
pub(super) const FRAME_HEAD_BYTES: usize = 5;
/// The sum behind it.
pub(super) const FRAME_SUM_BYTES: usize = 8;

/// A frame of rows ends before it gets longer than this, unless it has one row only.
pub(super) const ROWS_BYTES: usize = 1024 * 1024;
/// The longest head. What is long in it are the rules and attributes of the container.
const HEAD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What stands in a row beside its key and its value.
const ROW_EXTRA_BYTES: usize = 9;
const FILE_BYTES: usize = 32;
const FOOT_BYTES: usize = 40;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    Head = 1,
    Rows = 2,
    File = 3,
    Piece = 4,
    Foot = 5,
}

impl FrameKind {
    pub(super) fn read(byte: u8) -> Result<Self> {
        match byte {
            1 => Ok(Self::Head),
            2 => Ok(Self::Rows),
            3 => Ok(Self::File),
            4 => Ok(Self::Piece),
            5 => Ok(Self::Foot),
            other => Err(damaged(format!("there is no frame of kind {other}"))),
        }
    }

    /// The longest body.
    pub(super) fn bytes_max(self) -> usize {
        match self {
            Self::Head => HEAD_BYTES_MAX,
            Self::Rows => ROWS_BYTES.max(ROW_EXTRA_BYTES + KEY_BYTES_MAX + VALUE_BYTES_MAX),
            Self::File => FILE_BYTES + KEY_BYTES_MAX,
            Self::Piece => PIECE_BYTES_MAX,
            Self::Foot => FOOT_BYTES,
        }
    }
}

/// What a backup says of itself before anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupHead {
    /// The container as it was: name, kind, key types, schema, rules and policies.
    pub container: Container,
    /// The partition that it was taken of.
    pub partition: PartitionId,
    /// The routes that the partition held. All of them are in the backup.
    pub routes: KeyRange,
    /// Everything up to this number is in it, and nothing behind it.
    pub lsn: Lsn,
    /// When it was taken, in milliseconds since the Unix epoch.
    pub taken_ms: u64,
}

impl Record for BackupHead {
    fn write(&self, out: &mut BytesMut) {
        self.container.write(out);
        self.partition.write(out);
        self.routes.write(out);
        self.lsn.0.write(out);
        self.taken_ms.write(out);
    }

    fn read(input: &mut Bytes) -> Result<Self> {
        Ok(Self {
            container: Container::read(input)?,
            partition: PartitionId::read(input)?,
            routes: KeyRange::read(input)?,
            lsn: Lsn(u64::read(input)?),
            taken_ms: u64::read(input)?,
        })
    }
}

/// One row of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupRow {
    pub space: Space,
    /// The stored key behind container and space.
    pub key: Bytes,
    pub value: Bytes,
}

/// What all of a backup adds up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupTotals {
    pub rows: u64,
    /// Bytes of their keys and values.
    pub row_bytes: u64,
    pub files: u64,
    pub file_bytes: u64,
}

/// A file that is about to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileHead {
    pub(super) file: BlockFile,
    pub(super) route: Bytes,
}

/// A frame around a body.
pub(super) fn frame(kind: FrameKind, body: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(FRAME_HEAD_BYTES + body.len() + FRAME_SUM_BYTES);
    out.put_u8(kind as u8);
    out.put_u32(u32::try_from(body.len()).expect("bodies are bounded far below 4 GiB"));
    out.put_slice(body);
    let mut sum = Crc64::new();
    sum.update(&out);
    out.put_u64(sum.sum());
    out.freeze()
}

pub(super) fn preamble() -> Bytes {
    let mut out = BytesMut::with_capacity(PREAMBLE_BYTES);
    out.put_slice(MAGIC);
    out.put_u32(BACKUP_FORMAT);
    out.freeze()
}

pub(super) fn head_body(head: &BackupHead) -> Bytes {
    encode(head)
}

pub(super) fn read_head(body: Bytes) -> Result<BackupHead> {
    decode(body).map_err(|error| damaged(error.message()))
}

pub(super) fn put_row(body: &mut BytesMut, row: &BackupRow) {
    body.put_u8(row.space.0);
    row.key.write(body);
    row.value.write(body);
}

/// How long a row is in its frame.
pub(super) fn row_bytes(row: &BackupRow) -> usize {
    ROW_EXTRA_BYTES + row.key.len() + row.value.len()
}

pub(super) fn read_rows(mut body: Bytes) -> Result<Vec<BackupRow>> {
    let mut rows = Vec::new();
    let short = |_| damaged("a row ends early");
    while !body.is_empty() {
        let space = Space(u8::read(&mut body).map_err(short)?);
        let key = Bytes::read(&mut body).map_err(short)?;
        let value = Bytes::read(&mut body).map_err(short)?;
        if PREFIX_BYTES + key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
            return Err(damaged("a row is larger than any store takes"));
        }
        rows.push(BackupRow { space, key, value });
    }
    Ok(rows)
}

pub(super) fn file_body(head: &FileHead) -> Bytes {
    let BlockFile { id, length, crc64 } = head.file;
    let mut body = BytesMut::with_capacity(FILE_BYTES + head.route.len());
    for number in [id.generation, id.number, length, crc64] {
        body.put_u64(number);
    }
    body.put_slice(&head.route);
    body.freeze()
}

pub(super) fn read_file(mut body: Bytes) -> Result<FileHead> {
    if body.len() < FILE_BYTES {
        return Err(damaged("the head of a file ends early"));
    }
    let id = BlockId { generation: body.get_u64(), number: body.get_u64() };
    let file = BlockFile { id, length: body.get_u64(), crc64: body.get_u64() };
    Ok(FileHead { file, route: body })
}

/// The last body: what there was, and the sum of all bytes before its frame.
pub(super) fn foot_body(totals: &BackupTotals, sum: u64) -> Bytes {
    let BackupTotals { rows, row_bytes, files, file_bytes } = *totals;
    let mut body = BytesMut::with_capacity(FOOT_BYTES);
    for number in [rows, row_bytes, files, file_bytes, sum] {
        body.put_u64(number);
    }
    body.freeze()
}

pub(super) fn read_foot(mut body: Bytes) -> Result<(BackupTotals, u64)> {
    if body.len() != FOOT_BYTES {
        return Err(damaged("its end has another length"));
    }
    let (rows, row_bytes) = (body.get_u64(), body.get_u64());
    let (files, file_bytes) = (body.get_u64(), body.get_u64());
    Ok((BackupTotals { rows, row_bytes, files, file_bytes }, body.get_u64()))
}
