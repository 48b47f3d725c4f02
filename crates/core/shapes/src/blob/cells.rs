//! Cells: the bytes of blocks that are too small for files. A cell is a row, and is named, shared and dropped as a file
//! is, so that a block list moves names and never bytes. The keepers of files number their generations from 1 on; cells
//! are 0.

use bytes::Bytes;
use lazuli_engine::{BlockFile, BlockId, Result, View, crc64};

use super::address::Place;
use super::codec::damaged;
use super::shardlet::Shardlet;

pub(super) const CELLS: u64 = 0;

pub(super) fn is_cell(id: BlockId) -> bool {
    id.generation == CELLS
}

/// The bytes of a cell.
pub(super) async fn read_cell(view: &View, place: &Place, file: &BlockFile) -> Result<Bytes> {
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
