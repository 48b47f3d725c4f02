//! What rows of blobs stand for outside of the store: the block files that they name, each counted once
//! (`docs/decisions/0104-outside-bytes.md`).
//!
//! A piece, and a block that waits, count the whole file that they name. Where a file has several names, the row that
//! counts the further ones takes them off again. Cells are rows, and count as such.

use bytes::Bytes;
use lazuli_engine::{KeySchema, KeyType, MapKind, Outside, Result, Space};

use super::address::number_at;
use super::cells::CELLS;
use super::codec::{Reader, damaged};
use super::files::files_in;

/// The row keys of files that have several names: generation and number.
const FILE_ROW_BYTES: usize = 16;

/// The key of the engine's containers of blobs: container, generation and name.
pub(super) fn key_of_blobs() -> Result<KeySchema> {
    KeySchema::new(vec![KeyType::Text, KeyType::Int64, KeyType::Text])
}

/// Says what rows of blobs stand for, to an engine whose containers may hold blobs.
pub fn outside() -> Outside {
    Outside {
        spaces: &[Space::BLOB_BLOCKS, Space::BLOB_PIECES, Space::BLOB_SHARED],
        // Rows that do not decode are found when they are read.
        bytes: |space, tail, payload| bytes_of(space, tail, payload).unwrap_or(0),
    }
}

fn bytes_of(space: Space, tail: &[u8], payload: &Bytes) -> Result<i64> {
    let (_, row) = MapKind::Range.split(&key_of_blobs()?, tail)?;
    if space == Space::BLOB_SHARED {
        return further_names(row, payload);
    }
    let files = files_in(space, row, payload.clone())?;
    let bytes: u64 = files.iter().fold(0, |sum, file| file.length.saturating_add(sum));
    Ok(i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// What is to be taken off because a file has further names.
fn further_names(row: &[u8], payload: &Bytes) -> Result<i64> {
    if row.len() != FILE_ROW_BYTES || number_at(row, 0) == Some(CELLS) {
        return Ok(0);
    }
    let mut from = Reader::new(payload.clone());
    let further = from.number()?;
    // Rows from before this was counted do not say how long the file is: its bytes count once for each name.
    let length = if from.is_empty() { 0 } else { from.number()? };
    let bytes = further.checked_mul(length).and_then(|bytes| i64::try_from(bytes).ok());
    Ok(-bytes.ok_or_else(damaged)?)
}
