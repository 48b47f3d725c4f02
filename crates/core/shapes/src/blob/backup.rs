//! What backups have to know of blobs: which rows name block files, and how they are named anew when they are restored.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::backup::{Filed, Hold};
use lazuli_engine::{BlockFile, BlockId, Blocks, KeyRange, Result, Space};

use super::address::number_at;
use super::cells::is_cell;
use super::codec::damaged;
use super::files::{files_in, ids_in};
use super::garbage::Garbage;
use super::pieces::{Piece, Source, decode_row, encode_row};
use super::pins::Pins;
use super::{BLOBS_SCHEMA, Blobs};

/// The length of row keys that name a file: those of files that have several names.
const FILE_ROW_BYTES: usize = 16;
/// The length of row keys that have a number and nothing else. What they hold is no list of pieces.
const NUMBER_BYTES: usize = 8;

struct BlobFiles {
    blocks: Arc<dyn Blocks>,
    pins: Arc<Pins>,
}

impl Blobs {
    /// Speaks for the rows of blobs in backups.
    pub(super) fn tend_backups(&self) {
        let (blocks, pins) = (self.blocks.clone(), self.pins.clone());
        self.engine.on_files(BLOBS_SCHEMA, Arc::new(BlobFiles { blocks, pins }));
    }
}

impl Filed for BlobFiles {
    fn blocks(&self) -> &Arc<dyn Blocks> {
        &self.blocks
    }

    fn spaces(&self) -> &'static [Space] {
        &[Space::BLOB_BLOCKS, Space::BLOB_PIECES, Space::BLOB_GARBAGE]
    }

    fn hold(&self, routes: &KeyRange) -> Hold {
        Box::new(self.pins.pin_range(routes))
    }

    fn files(&self, space: Space, row: &[u8], payload: Bytes) -> Result<Vec<BlockFile>> {
        match space {
            Space::BLOB_BLOCKS | Space::BLOB_PIECES => files_in(space, row, payload),
            // What is garbage may be gone already, and nobody needs it.
            _ => Ok(Vec::new()),
        }
    }

    fn ids(&self, space: Space, row: &[u8], payload: Bytes) -> Result<Vec<BlockId>> {
        match space {
            Space::BLOB_BLOCKS | Space::BLOB_PIECES | Space::BLOB_GARBAGE => {
                let ids = ids_in(space, row, payload)?;
                Ok(ids.into_iter().filter(|id| !is_cell(*id)).collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    fn renamed(
        &self,
        space: Space,
        row: Bytes,
        payload: Bytes,
        names: &BTreeMap<BlockId, BlockFile>,
    ) -> Result<Option<(Bytes, Bytes)>> {
        match space {
            Space::BLOB_BLOCKS | Space::BLOB_PIECES if row.len() != NUMBER_BYTES => {
                let mut pieces = decode_row(payload)?;
                for piece in &mut pieces {
                    rename(piece, names)?;
                }
                Ok(Some((row, encode_row(&pieces))))
            }
            Space::BLOB_SHARED if row.len() == FILE_ROW_BYTES => {
                let part = |at| number_at(&row, at).ok_or_else(damaged);
                let id = BlockId { generation: part(0)?, number: part(8)? };
                if is_cell(id) {
                    return Ok(Some((row, payload)));
                }
                let id = names.get(&id).ok_or_else(damaged)?.id;
                let numbers = [id.generation.to_be_bytes(), id.number.to_be_bytes()];
                Ok(Some((Bytes::from(numbers.concat()), payload)))
            }
            Space::BLOB_GARBAGE => Ok(match Garbage::decode(payload.clone())? {
                Garbage::Files(ids) => {
                    // Files that nobody named were left out; the cells among them are rows, and came along.
                    let cells: Vec<_> = ids.into_iter().filter(|id| is_cell(*id)).collect();
                    (!cells.is_empty()).then(|| (row, Garbage::Files(cells).encode()))
                }
                _ => Some((row, payload)),
            }),
            _ => Ok(Some((row, payload))),
        }
    }
}

fn rename(piece: &mut Piece, names: &BTreeMap<BlockId, BlockFile>) -> Result<()> {
    if let Source::File(file) = &mut piece.source
        && !is_cell(file.id)
    {
        file.id = names.get(&file.id).ok_or_else(damaged)?.id;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_get_the_new_names_and_dead_files_are_left_out() {
        let id = |generation, number| BlockId { generation, number };
        let file = |id| BlockFile { id, length: 9, crc64: 7 };
        let blocks: Arc<dyn Blocks> = Arc::new(lazuli_store::mem_blocks::MemBlocks::default());
        let files = BlobFiles { blocks, pins: Arc::default() };
        let names = [(id(1, 2), file(id(5, 6)))].into();
        let renamed = |space, row: &[u8], payload| {
            files.renamed(space, Bytes::copy_from_slice(row), payload, &names)
        };
        let row = |it| encode_row(&[Piece::new(Source::File(file(it)), None)]);
        let (key, payload) = renamed(Space::BLOB_PIECES, &[0; 16], row(id(1, 2))).unwrap().unwrap();
        assert_eq!((&key[..], payload), (&[0; 16][..], row(id(5, 6))));
        assert!(renamed(Space::BLOB_PIECES, &[0; 16], row(id(1, 3))).is_err());
        let cell = renamed(Space::BLOB_PIECES, &[0; 16], row(id(0, 3))).unwrap().unwrap();
        assert_eq!(cell.1, row(id(0, 3)), "cells are rows and keep their names");
        let shared = |it: BlockId| [it.generation.to_be_bytes(), it.number.to_be_bytes()].concat();
        let count = Bytes::from_static(&[1]);
        let (key, _) =
            renamed(Space::BLOB_SHARED, &shared(id(1, 2)), count.clone()).unwrap().unwrap();
        assert_eq!(key, shared(id(5, 6)));
        let content = renamed(Space::BLOB_SHARED, &[7; 8], count).unwrap().unwrap();
        assert_eq!(&content.0[..], &[7; 8]);
        let garbage = |ids: &[BlockId]| Garbage::Files(ids.to_vec()).encode();
        let dead = renamed(Space::BLOB_GARBAGE, &[0; 12], garbage(&[id(1, 9), id(0, 4)]));
        assert_eq!(dead.unwrap().unwrap().1, garbage(&[id(0, 4)]));
        assert!(renamed(Space::BLOB_GARBAGE, &[0; 12], garbage(&[id(1, 9)])).unwrap().is_none());
    }
}
