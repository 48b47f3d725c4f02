//! Which block files the rows name: for the sweep after a crash, and for whoever checks everything.
//!
//! A file of an earlier process that no row of its owner names will never be named: rows are named in commits, uploads do
//! not outlive their process, and what moves from one row to another does so in one commit, which one snapshot shows or not.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use lazuli_engine::{
    BlockFile, BlockId, Container, ContainerId, Continuation, Direction, FanOut, FoundFile,
    ItemScan, KeyRange, OnFailure, Owner, PREFIX_BYTES, PageLimit, Result, Space, after_key,
};

use super::address::Place;
use super::garbage::Garbage;
use super::pieces::{decode_one, decode_row};
use super::{BLOBS_SCHEMA, Blobs};

/// Files that are looked at at once.
const SWEEP_FILES: usize = 1_000;
/// Rows of one page of a check. Most are small; those that hold contents make pages end by their bytes.
const CHECK_LIMIT: PageLimit = PageLimit { items: 1_000, bytes: 1024 * 1024 };
/// The length of row keys that have a number and nothing else: cells among the pieces, sessions among the blocks. They
/// name no files.
const NUMBER_BYTES: usize = 8;

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
        let place = Place { container: ContainerId(owner.container), route: owner.route.clone() };
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
