//! Which rows name which block files: for the sweep after a crash, for the check of everything, for backups (which copy the
//! files and give them new names at a restore), and for the bytes that rows stand for outside of the store
//! (`docs/decisions/0104-outside-bytes.md`).
//!
//! A file of an earlier process that no row of its owner names will never be named: rows name files in commits, uploads do
//! not outlive their process, and a name moves from one row to another in one commit, which a snapshot shows or does not.
//!
//! Outside bytes: a piece, and an uncommitted block, count the whole file that they name. Where a file has several names,
//! the row that counts the further ones subtracts them again. Cells are rows and count as rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::backup::{Filed, Hold};
use lazuli_engine::{
    BlockFile, BlockId, Blocks, Container, ContainerId, Continuation, Direction, FanOut, FoundFile,
    ItemScan, KeyRange, KeySchema, KeyType, MapKind, OnFailure, Outside, Owner, PREFIX_BYTES,
    PageLimit, Result, Space, after_key,
};

use super::address::{BlobPlace, number_at};
use super::garbage::Garbage;
use super::pieces::{CELLS, Piece, Source, decode_one, decode_row, encode_row, is_cell};
use super::pins::Pins;
use super::rows::{Reader, damaged};
use super::{BLOBS_SCHEMA, Blobs};

/// Files that are looked at at once.
const SWEEP_FILES: usize = 1_000;
/// Rows of one page of a check. Most are small; those that hold contents make pages end by their bytes.
const CHECK_LIMIT: PageLimit = PageLimit { items: 1_000, bytes: 1024 * 1024 };
/// The length of row keys that have a number and nothing else: cells among the pieces, sessions among the blocks. They
/// name no files.
const NUMBER_BYTES: usize = 8;
/// The length of row keys that name a file, of files that have several names: generation and number.
const FILE_ROW_BYTES: usize = 16;

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    pub files: u64,
    /// Of those, the ones that no row named.
    pub removed: u64,
}

/// A file that a row names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    pub file: BlockFile,
    pub owner: Owner,
}

impl Blobs {
    /// Removes those files of an earlier process's generation that no row names: what a crash left behind.
    pub async fn sweep(&self, generation: u64) -> Result<Swept> {
        let mut swept = Swept::default();
        let mut after = BlockId { generation, number: 0 };
        loop {
            let mut found = self.blocks.list(Some(after), SWEEP_FILES).await?;
            found.retain(|it| it.file.id.generation == generation);
            let Some(last) = found.last() else { return Ok(swept) };
            after = last.file.id;
            swept.files += found.len() as u64;
            for id in self.unnamed(found).await? {
                self.blocks.remove(id).await?;
                swept.removed += 1;
            }
        }
    }

    /// Of these files, those that no row of their owners names.
    pub async fn unnamed(&self, files: Vec<FoundFile>) -> Result<Vec<BlockId>> {
        let mut by_owner: BTreeMap<Owner, BTreeSet<BlockId>> = BTreeMap::new();
        for found in files {
            by_owner.entry(found.owner).or_default().insert(found.file.id);
        }
        let mut unnamed = Vec::new();
        for (owner, mut ids) in by_owner {
            self.leave_unnamed(&owner, &mut ids).await?;
            unnamed.extend(ids);
        }
        Ok(unnamed)
    }

    /// Takes those that a row of the shardlet names out of the set.
    async fn leave_unnamed(&self, owner: &Owner, ids: &mut BTreeSet<BlockId>) -> Result<()> {
        let place =
            BlobPlace { container: ContainerId(owner.container), route: owner.route.clone() };
        let view = self.engine.read(place.container, &place.route, 1).await?;
        for space in [Space::BLOB_PIECES, Space::BLOB_BLOCKS, Space::BLOB_GARBAGE] {
            let mut range = place.rows();
            while !ids.is_empty() {
                let page = view.scan(space, &range, Direction::Forward, PageLimit::MAX).await?;
                for (key, item) in page.items {
                    let row = key.get(PREFIX_BYTES + place.route.len()..).unwrap_or_default();
                    for id in ids_in(space, row, item.payload)? {
                        ids.remove(&id);
                    }
                }
                match page.next {
                    Some(last) => range.start = after_key(&last.slice(PREFIX_BYTES..)),
                    None => break,
                }
            }
        }
        Ok(())
    }

    /// All files that rows of contents and of blocks name, page by page.
    pub async fn named_files(&self) -> Result<NamedFiles> {
        let mut places = Vec::new();
        for container in self.engine.manager().catalog().containers().await? {
            if container.schema == BLOBS_SCHEMA {
                places.push((container.clone(), Space::BLOB_PIECES));
                places.push((container, Space::BLOB_BLOCKS));
            }
        }
        Ok(NamedFiles { blobs: self.clone(), places, from: None })
    }
}

/// The files that rows name, in pages.
pub struct NamedFiles {
    blobs: Blobs,
    /// What is still to be looked at; the last one first.
    places: Vec<(Container, Space)>,
    from: Option<Continuation>,
}

impl NamedFiles {
    /// The next page, which may be empty; none at the end. What is on shards that do not answer is left out.
    pub async fn next(&mut self) -> Result<Option<Vec<NamedFile>>> {
        let Some((container, space)) = self.places.last() else { return Ok(None) };
        let scan = ItemScan { space: *space, range: KeyRange::all() };
        let request =
            FanOut { routes: KeyRange::all(), limit: CHECK_LIMIT, on_failure: OnFailure::Partial };
        let engine = &self.blobs.engine;
        let page = engine.fan_out(container.id, &scan, &request, self.from.as_ref()).await?;
        let mut named = Vec::new();
        for (key, item) in page.rows {
            let behind = key.slice(PREFIX_BYTES..);
            let (route, row) = container.kind.split(&container.key, &behind)?;
            let owner = Owner { container: container.id.0, route: behind.slice_ref(route) };
            let files = files_in(*space, row, item.payload)?;
            named.extend(files.into_iter().map(|file| NamedFile { file, owner: owner.clone() }));
        }
        self.from = page.next;
        if self.from.is_none() {
            self.places.pop();
        }
        Ok(Some(named))
    }
}

/// The files that a row of contents or of blocks names.
pub(super) fn files_in(space: Space, row: &[u8], payload: Bytes) -> Result<Vec<BlockFile>> {
    if row.len() == NUMBER_BYTES {
        return Ok(Vec::new());
    }
    let pieces = match space {
        Space::BLOB_BLOCKS => vec![decode_one(payload)?],
        _ => decode_row(payload)?,
    };
    let files = pieces.iter().filter_map(|piece| piece.file()).copied();
    // Generations of files begin with 1; what has none is kept in rows.
    Ok(files.filter(|file| file.id.generation > 0).collect())
}

pub(super) fn ids_in(space: Space, row: &[u8], payload: Bytes) -> Result<Vec<BlockId>> {
    if space != Space::BLOB_GARBAGE {
        return Ok(files_in(space, row, payload)?.into_iter().map(|file| file.id).collect());
    }
    match Garbage::decode(payload)? {
        Garbage::Files(ids) => Ok(ids),
        _ => Ok(Vec::new()),
    }
}

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
            // Garbage may be deleted already; a backup does not need it.
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
                    // The backup has no files that only garbage names. Cells are rows and are in it.
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
