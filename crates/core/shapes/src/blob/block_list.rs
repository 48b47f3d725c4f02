//! Block lists: which blocks a block blob is made of, and a commit of others.

use std::collections::BTreeMap;

use bytes::Bytes;
use lazuli_engine::{BlockId, Error, Item, ItemKey, Result, Space, Transaction, Tx};

use super::address::{BlobAddress, BlobPlace, Which, no_blob};
use super::blocks::Session;
use super::conditions::Conditions;
use super::limits::BLOCKS_COMMITTED_MAX;
use super::pieces::{Piece, decode_one, decode_row};
use super::put::{NewBlob, Protection};
use super::read::all_rows;
use super::record::{BlobKind, BlobRecord, Form};
use super::shardlet::Shardlet;
use super::{BlobReason, Blobs};

/// Where a commit looks for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockChoice {
    Committed,
    Uncommitted,
    /// Among those that wait, then among those of the blob.
    Latest,
}

/// The blocks of a blob: ids and lengths.
#[derive(Debug, Default)]
pub struct BlockList {
    /// None while there has been no commit.
    pub record: Option<BlobRecord>,
    /// In the order of the list that was committed.
    pub committed: Vec<(Bytes, u64)>,
    /// By id.
    pub uncommitted: Vec<(Bytes, u64)>,
}

struct Commit {
    place: BlobPlace,
    list: Vec<(BlockChoice, Bytes)>,
    new: NewBlob,
    conditions: Conditions,
    protection: Protection,
}

/// Blocks that a commit may name.
#[derive(Default)]
struct Known {
    committed: BTreeMap<Bytes, Piece>,
    waiting: BTreeMap<Bytes, (ItemKey, Piece)>,
}

impl Transaction for Commit {
    type Output = BlobRecord;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<BlobRecord> {
        let mut shardlet = Shardlet::new(tx, &self.place);
        let kind = BlobKind::Block;
        let mut old = shardlet.replaceable(kind, &self.conditions, self.protection).await?;
        let mut record = self.new.clone().record(kind, shardlet.lsn())?;
        let mut known = Known::default();
        if let Some(old) = &old {
            if old.is_committed {
                record.created_ms = old.created_ms;
            }
            known = self.known(&shardlet, old).await?;
        }
        let (pieces, taken) = self.choose(&known)?;
        let kept = self.kept(&shardlet, old.as_ref(), &known, &pieces).await?;
        let mut named: BTreeMap<BlockId, u32> = BTreeMap::new();
        for file in pieces.iter().filter_map(Piece::file) {
            // Every name beyond those that go over from a waiting block, or from a content that goes away, is a new one.
            let kept = kept.get(&file.id).copied().unwrap_or(0);
            let had = u32::from(taken.contains_key(&file.id)) + kept;
            let times = named.entry(file.id).or_default();
            *times += 1;
            if *times > had {
                shardlet.share_file(file).await?;
            }
        }
        record.content = shardlet.store(&pieces).await?;
        if let Some(old) = &mut old {
            if old.waiting != 0 && taken.len() == known.waiting.len() {
                // Nothing is left of the session.
                shardlet.tx.delete(&self.place.block(old.waiting, &[])).await?;
                shardlet.tx.delete(&self.place.idle(old.waiting)).await?;
                old.waiting = 0;
            }
            for (key, _) in taken.into_values() {
                shardlet.tx.delete(&key).await?;
            }
            if !kept.is_empty() {
                self.take_over(&mut shardlet, old, &pieces).await?;
            }
        }
        shardlet.replace(old, &mut record, self.protection).await?;
        Ok(record)
    }
}

/// Waiting blocks that a commit takes, by the file or cell that they name.
type Taken = BTreeMap<BlockId, (ItemKey, Bytes)>;

impl Commit {
    async fn known(&self, shardlet: &Shardlet<'_, '_>, old: &BlobRecord) -> Result<Known> {
        let mut known = Known::default();
        if old.waiting != 0 {
            let range = self.place.range(&old.waiting.to_be_bytes());
            for (key, item) in shardlet.rows(Space::BLOB_BLOCKS, range).await? {
                let id = Bytes::copy_from_slice(&key.row()[8..]);
                if id.is_empty() {
                    let session = Session::decode(item.payload)?;
                    let (used, given) = (&session.key_sha256, &self.new.key_sha256);
                    Blobs::check_same_key(used.as_ref(), given.as_ref())?;
                    continue;
                }
                known.waiting.insert(id, (key, decode_one(item.payload)?));
            }
        }
        let may_be_committed = |(choice, id): &(BlockChoice, Bytes)| match choice {
            BlockChoice::Committed => true,
            BlockChoice::Uncommitted => false,
            BlockChoice::Latest => !known.waiting.contains_key(id),
        };
        if old.is_committed && self.list.iter().any(may_be_committed) {
            Blobs::check_same_key(old.key_sha256.as_ref(), self.new.key_sha256.as_ref())?;
            for piece in shardlet.pieces(old).await? {
                known.committed.insert(piece.block.clone(), piece);
            }
        }
        Ok(known)
    }

    /// The pieces of the list, and the waiting blocks that it takes.
    fn choose(&self, known: &Known) -> Result<(Vec<Piece>, Taken)> {
        let mut pieces = Vec::with_capacity(self.list.len());
        let mut taken = BTreeMap::new();
        for (choice, id) in &self.list {
            let waiting = known.waiting.get(id).filter(|_| *choice != BlockChoice::Committed);
            if let Some((key, piece)) = waiting {
                if let Some(file) = piece.file() {
                    taken.insert(file.id, (key.clone(), id.clone()));
                }
                pieces.push(piece.clone());
                continue;
            }
            let committed = known.committed.get(id).filter(|_| *choice != BlockChoice::Uncommitted);
            let Some(piece) = committed else {
                let message = "the list names a block that there is not";
                return Err(Error::invalid(BlobReason::InvalidBlockList, message));
            };
            pieces.push(piece.clone());
        }
        Ok((pieces, taken))
    }

    /// How often pieces name each file.
    fn names(&self, pieces: &[Piece]) -> BTreeMap<BlockId, u32> {
        let mut names = BTreeMap::new();
        for file in pieces.iter().filter_map(Piece::file) {
            *names.entry(file.id).or_default() += 1;
        }
        names
    }

    /// The names that the old content gives up because it goes away with this commit, if some of its blocks stay: then
    /// only the difference is written.
    async fn kept(
        &self,
        shardlet: &Shardlet<'_, '_>,
        old: Option<&BlobRecord>,
        known: &Known,
        pieces: &[Piece],
    ) -> Result<BTreeMap<BlockId, u32>> {
        let Some(old) = old.filter(|_| !known.committed.is_empty()) else {
            return Ok(BTreeMap::new());
        };
        let stays = self.protection.versioning
            || self.protection.retention_days.is_some()
            || old.version.is_some()
            || shardlet.tx.get(&self.place.shared_content(old.content.id)).await?.is_some();
        let reuses = pieces.iter().any(|piece| known.committed.get(&piece.block) == Some(piece));
        if stays || !reuses || old.content.form != Form::Pieces {
            return Ok(BTreeMap::new());
        }
        Ok(self.names(&shardlet.pieces(old).await?))
    }

    /// Takes the old content apart on the spot: its rows go, and the names that the new one does not take over.
    async fn take_over(
        &self,
        shardlet: &mut Shardlet<'_, '_>,
        old: &mut BlobRecord,
        pieces: &[Piece],
    ) -> Result<()> {
        let had = self.names(&shardlet.pieces(old).await?);
        let has = self.names(pieces);
        let dropped = had.into_iter().filter_map(|(file, times)| {
            let left = times.saturating_sub(has.get(&file).copied().unwrap_or(0));
            (left > 0).then_some((file, left))
        });
        shardlet.drop_files(&dropped.collect()).await?;
        let range = self.place.range(&old.content.id.to_be_bytes());
        for (key, _) in shardlet.rows(Space::BLOB_PIECES, range).await? {
            shardlet.tx.delete(&key).await?;
        }
        old.content = Default::default();
        Ok(())
    }
}

impl Shardlet<'_, '_> {
    /// All pieces of a block blob, in their order.
    pub(super) async fn pieces(&self, record: &BlobRecord) -> Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        let range = self.place.pieces(record.content.id, 0, u64::MAX);
        for (_, item) in self.rows(Space::BLOB_PIECES, range).await? {
            pieces.append(&mut decode_row(item.payload)?);
        }
        Ok(pieces)
    }
}

impl Blobs {
    /// Makes the blocks of the list the content of the blob, and forgets all others.
    pub async fn commit_block_list(
        &self,
        address: &BlobAddress,
        list: Vec<(BlockChoice, Bytes)>,
        new: NewBlob,
        conditions: &Conditions,
        protection: Protection,
    ) -> Result<BlobRecord> {
        if list.len() > BLOCKS_COMMITTED_MAX {
            let message = "a block list names 50,000 blocks at the most";
            return Err(Error::invalid(BlobReason::BlockCountExceeded, message));
        }
        let place = self.find_place(address).await?;
        let conditions = conditions.clone();
        let commit = Commit { place: place.clone(), list, new, conditions, protection };
        self.commit(&place, commit, None).await
    }

    /// The blocks of a state of a blob, and those that wait for a commit.
    pub async fn block_list(
        &self,
        address: &BlobAddress,
        which: Which,
        conditions: &Conditions,
    ) -> Result<BlockList> {
        let place = self.find_place(address).await?;
        let _pin = self.pins.pin(&place.route);
        let view = self.engine.read(place.container, &place.route, 1).await?;
        let key = match which {
            Which::Current => place.current(),
            _ => {
                let seen = self.see_at(place, which).await?;
                seen.record.check_kind(BlobKind::Block)?;
                let rows = all_rows(&seen.view, &seen.place, seen.record.content.id).await?;
                return list_of(Some(seen.record), rows, Vec::new());
            }
        };
        let row = view.get(&key).await?.map(|item| BlobRecord::decode(item.payload)).transpose()?;
        let now_ms = self.now_ms();
        let row = row.filter(|it| !it.is_expired(now_ms)).ok_or_else(no_blob)?;
        row.check_kind(BlobKind::Block)?;
        let waiting = match row.waiting {
            0 => Vec::new(),
            session => {
                let range = place.range(&session.to_be_bytes());
                super::read::rows_of(&view, &place, Space::BLOB_BLOCKS, range).await?
            }
        };
        if !row.is_committed {
            return list_of(None, Vec::new(), waiting);
        }
        row.check_read(conditions, now_ms)?;
        let rows = all_rows(&view, &place, row.content.id).await?;
        list_of(Some(row), rows, waiting)
    }
}

fn list_of(
    record: Option<BlobRecord>,
    rows: Vec<(ItemKey, Item)>,
    waiting: Vec<(ItemKey, Item)>,
) -> Result<BlockList> {
    let mut list = BlockList { record, ..BlockList::default() };
    for (_, item) in rows {
        let pieces = decode_row(item.payload)?;
        // What was put whole has no blocks.
        let blocks = pieces.into_iter().filter(|piece| !piece.block.is_empty());
        list.committed.extend(blocks.map(|piece| (piece.block, piece.length)));
    }
    for (key, item) in waiting {
        if key.row().len() > 8 {
            let piece = decode_one(item.payload)?;
            list.uncommitted.push((piece.block, piece.length));
        }
    }
    Ok(list)
}
