//! A blob as a transaction sees it: its rows, and the bookkeeping of who names which content and which file.
//!
//! A content is named by states (the current one, snapshots, versions); where more than one does, a row counts them. A file
//! is named by pieces of contents and by blocks that wait; where more than one does, a row counts the further ones. What
//! nothing names any more becomes a row of garbage, in the same transaction, and the collector does the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use lazuli_engine::{
    BlockFile, BlockId, Direction, Item, ItemKey, KeyRange, Lsn, PageLimit, Result, Space, Tx,
};

use super::address::{BlobPlace, Past};
use super::garbage::Garbage;
use super::limits::{ROW_BYTES, ROW_PIECES_MAX};
use super::pieces::{Piece, Source, encode_row};
use super::put::Protection;
use super::record::{BlobKind, BlobRecord, ContentRef, Deleted, Form};
use super::rows::{Reader, Writer, damaged};

/// Files that one row of garbage names at the most.
pub(super) const GARBAGE_FILES_MAX: usize = 1_000;

const DAY_MS: u64 = 24 * 3600 * 1000;

pub(super) struct Shardlet<'t, 'x> {
    pub(super) tx: &'t mut Tx<'x>,
    pub(super) place: &'t BlobPlace,
    garbage_rows: u32,
    /// The row of the current state as it was read, so that it is not read again to be replaced.
    seen: OnceLock<Option<Item>>,
}

impl<'t, 'x> Shardlet<'t, 'x> {
    pub(super) fn new(tx: &'t mut Tx<'x>, place: &'t BlobPlace) -> Self {
        Self { tx, place, garbage_rows: 0, seen: OnceLock::new() }
    }

    pub(super) fn lsn(&self) -> Lsn {
        self.tx.lsn()
    }

    /// The time of this transaction: the clock's, where that was set back.
    pub(super) fn now_ms(&self) -> u64 {
        self.tx.set_back_ms().unwrap_or(self.tx.now_ms())
    }

    /// Says of a record that it is changed now.
    pub(super) fn touch(&self, record: &mut BlobRecord) {
        record.changed = self.lsn();
        self.follow_clock(record);
    }

    /// Has what people are shown of a record that is changed now follow a clock that was set back.
    pub(super) fn follow_clock(&self, record: &mut BlobRecord) {
        record.changed_ms = self.tx.set_back_ms();
        let Some(clock_ms) = record.changed_ms else { return };
        let ahead_ms = self.lsn().millis();
        let times =
            [Some(&mut record.created_ms), record.tier.as_mut().map(|it| &mut it.changed_ms)];
        for time in times.into_iter().flatten().filter(|time| **time == ahead_ms) {
            *time = clock_ms;
        }
    }

    /// The time under which a state of the blob is kept from now on: later than that of every state that is kept, and else
    /// the clock's. It is what people are shown, and by what they ask for the state.
    pub(super) async fn moment(&self) -> Result<Lsn> {
        let Some(clock_ms) = self.tx.set_back_ms() else { return Ok(self.lsn()) };
        let mut moment = Lsn::at_ms(clock_ms);
        let current = self.row().await?.and_then(|record| record.version);
        let pasts = self.pasts().await?.into_iter().map(|(_, _, time, _)| time);
        for taken in pasts.chain(current) {
            moment = moment.max(Lsn(taken.0 + 1));
        }
        Ok(moment)
    }

    /// The row of the current state, deleted or not.
    pub(super) async fn row(&self) -> Result<Option<BlobRecord>> {
        let item = match self.seen.get() {
            Some(item) => item.clone(),
            None => {
                let item = self.tx.get(&self.place.current()).await?;
                self.seen.get_or_init(|| item).clone()
            }
        };
        item.map(|item| BlobRecord::decode(item.payload)).transpose()
    }

    /// The blob as clients see it: committed and not expired.
    pub(super) async fn current(&self) -> Result<Option<BlobRecord>> {
        let now_ms = self.now_ms();
        Ok(self.row().await?.filter(|record| record.is_committed && !record.is_expired(now_ms)))
    }

    pub(super) async fn put_current(&mut self, record: &BlobRecord) -> Result<()> {
        let key = self.place.current();
        match self.seen.take() {
            Some(seen) => self.tx.replace(&key, seen.as_ref(), record.encode(), None),
            None => self.tx.put(&key, record.encode()).await,
        }
    }

    pub(super) async fn delete_current(&mut self) -> Result<()> {
        self.seen.take();
        self.tx.delete(&self.place.current()).await.map(|_| ())
    }

    pub(super) async fn put_past(
        &mut self,
        kind: Past,
        time: Lsn,
        record: &BlobRecord,
    ) -> Result<()> {
        self.tx.put(&self.place.past(kind, time), record.encode()).await
    }

    pub(super) async fn past(&self, kind: Past, time: Lsn) -> Result<Option<BlobRecord>> {
        let item = self.tx.get(&self.place.past(kind, time)).await?;
        item.map(|item| BlobRecord::decode(item.payload)).transpose()
    }

    /// All past states, oldest first, with their keys.
    pub(super) async fn pasts(&self) -> Result<Vec<(ItemKey, Past, Lsn, BlobRecord)>> {
        let mut pasts = Vec::new();
        for (key, item) in self.rows(Space::BLOB_PAST, self.place.rows()).await? {
            let (time, kind) = past_of(key.row())?;
            pasts.push((key, kind, time, BlobRecord::decode(item.payload)?));
        }
        Ok(pasts)
    }

    /// All rows of a range of one space.
    pub(super) async fn rows(
        &self,
        space: Space,
        mut range: KeyRange,
    ) -> Result<Vec<(ItemKey, Item)>> {
        let mut rows = Vec::new();
        loop {
            let container = self.place.container;
            let scan =
                self.tx.scan(container, space, &range, Direction::Forward, PageLimit::MAX).await?;
            for (key, item) in scan.items {
                rows.push((ItemKey::from_bytes(key, self.place.route.len())?, item));
            }
            match scan.next {
                Some(last) => {
                    let behind = last.slice(lazuli_engine::PREFIX_BYTES..);
                    range.start = lazuli_engine::after_key(&behind);
                }
                None => return Ok(rows),
            }
        }
    }

    /// Writes the rows of a new content. One transaction makes at most one.
    pub(super) async fn store(&mut self, pieces: &[Piece]) -> Result<ContentRef> {
        let id = self.lsn().0;
        let length = pieces.iter().map(|piece| piece.length).sum();
        let form = match pieces {
            [] => Form::Empty,
            [Piece { source: Source::Row(_), .. }] => Form::Inline,
            _ => Form::Pieces,
        };
        let (mut start, mut offset) = (0, 0);
        while start < pieces.len() {
            let (mut end, mut bytes, mut covered) = (start, 0, 0);
            while end < pieces.len() && end - start < ROW_PIECES_MAX && bytes < ROW_BYTES {
                if let Source::Row(inline) = &pieces[end].source {
                    bytes += inline.len();
                }
                covered += pieces[end].length;
                end += 1;
            }
            let row = encode_row(&pieces[start..end]);
            // Contents have new numbers, so that nothing is there yet.
            self.tx.replace(&self.place.piece(id, offset), None, row, None)?;
            offset += covered;
            start = end;
        }
        Ok(ContentRef { id, length, form })
    }

    /// One more state names the content.
    pub(super) async fn share_content(&mut self, content: &ContentRef) -> Result<()> {
        if content.form == Form::Empty {
            return Ok(());
        }
        self.change_count(&self.place.shared_content(content.id), true, None).await.map(|_| ())
    }

    /// One state less names its content; the last one leaves garbage behind.
    pub(super) async fn drop_content(&mut self, record: &BlobRecord) -> Result<()> {
        let content = &record.content;
        if content.form == Form::Empty {
            return Ok(());
        }
        if self.change_count(&self.place.shared_content(content.id), false, None).await? {
            if record.kind == BlobKind::Page {
                // Others name it still, and may not need what only this one did.
                self.put_garbage(&Garbage::Former(content.id))?;
            }
            return Ok(());
        }
        if content.form == Form::Inline {
            self.tx.delete(&self.place.piece(content.id, 0)).await?;
            return Ok(());
        }
        self.put_garbage(&Garbage::Content(content.id))
    }

    /// Counts the files that more than one of these pieces names.
    pub(super) async fn share_repeated(
        &mut self,
        pieces: impl Iterator<Item = &Piece>,
    ) -> Result<()> {
        let mut seen = BTreeSet::new();
        for file in pieces.filter_map(Piece::file) {
            if !seen.insert(file.id) {
                self.share_file(file).await?;
            }
        }
        Ok(())
    }

    /// One more piece names the file.
    pub(super) async fn share_file(&mut self, file: &BlockFile) -> Result<()> {
        let key = self.place.shared_file(file.id);
        self.change_count(&key, true, Some(file.length)).await.map(|_| ())
    }

    /// For each file that many pieces less name it: puts those that nothing names any more among the garbage.
    pub(super) async fn drop_files(&mut self, files: &BTreeMap<BlockId, u32>) -> Result<()> {
        let mut unnamed = Vec::new();
        for (file, times) in files {
            let key = self.place.shared_file(*file);
            for _ in 0..*times {
                if !self.change_count(&key, false, None).await? {
                    unnamed.push(*file);
                    break;
                }
            }
        }
        for files in unnamed.chunks(GARBAGE_FILES_MAX) {
            self.put_garbage(&Garbage::Files(files.to_vec()))?;
        }
        Ok(())
    }

    /// Counts one name more or one less in a row that says how many there are beyond the first, and says whether the row
    /// had one to give. Rows of files also say how long the file is.
    async fn change_count(
        &mut self,
        key: &ItemKey,
        up: bool,
        file_bytes: Option<u64>,
    ) -> Result<bool> {
        let (mut further, mut length) = (0, file_bytes);
        if let Some(item) = self.tx.get(key).await? {
            let mut from = Reader::new(item.payload);
            further = from.number()?;
            if !from.is_empty() {
                length = Some(from.number()?);
            }
        }
        let further = match (up, further) {
            (true, further) => further + 1,
            (false, 0) => return Ok(false),
            (false, further) => further - 1,
        };
        if further == 0 {
            self.tx.delete(key).await?;
        } else {
            let mut to = Writer::new();
            to.number(further);
            if let Some(length) = length {
                to.number(length);
            }
            self.tx.put(key, to.finish()).await?;
        }
        Ok(true)
    }

    /// Leaves room for the rows of garbage that this transaction wrote before.
    pub(super) fn skip_garbage(&mut self) {
        self.garbage_rows += 1 << 16;
    }

    pub(super) fn put_garbage(&mut self, garbage: &Garbage) -> Result<()> {
        self.garbage_rows += 1;
        let key = self.place.garbage(self.lsn(), self.garbage_rows);
        self.tx.replace(&key, None, garbage.encode(), None)
    }

    /// What becomes of a state that something else replaces, or nothing: a version, a deleted snapshot, or garbage.
    pub(super) async fn retire(
        &mut self,
        mut old: BlobRecord,
        protection: Protection,
    ) -> Result<()> {
        if !old.is_committed {
            return Ok(());
        }
        old.lease = Default::default();
        old.kept_until = self.lsn();
        // A version stays one, also when versions are switched off before it is replaced.
        if protection.versioning || old.version.is_some() {
            let version = old.version.unwrap_or(old.changed);
            old.version = Some(version);
            return self.put_past(Past::Version, version, &old).await;
        }
        match protection.retention_days {
            Some(days) => {
                old.deleted = Some(self.deleted(days).await?);
                let moment = self.moment().await?;
                self.put_past(Past::Snapshot, moment, &old).await
            }
            None => self.drop_content(&old).await,
        }
    }

    /// That something is deleted now and gone for good in some days, when the collector will look at it.
    pub(super) async fn deleted(&mut self, days: u32) -> Result<Deleted> {
        let at_ms = self.now_ms();
        let until_ms = at_ms + u64::from(days) * DAY_MS;
        self.put_garbage(&Garbage::Due(until_ms))?;
        Ok(Deleted { at_ms, until_ms })
    }

    /// A blob that was deleted and is kept for a while stays as a snapshot where a new one takes its name.
    pub(super) async fn bury(&mut self) -> Result<()> {
        let rows = self.rows(Space::BLOB_PAST, self.place.rows()).await?;
        for (key, item) in rows {
            let (time, kind) = past_of(key.row())?;
            if kind == Past::Deleted {
                self.tx.delete(&key).await?;
                self.tx.put(&self.place.past(Past::Snapshot, time), item.payload).await?;
            }
        }
        Ok(())
    }
}

/// Time and kind in the row key of a past state.
pub(super) fn past_of(row: &[u8]) -> Result<(Lsn, Past)> {
    let (time, kind) = row.split_first_chunk::<8>().ok_or_else(damaged)?;
    let kind = match kind {
        [1] => Past::Snapshot,
        [2] => Past::Version,
        [3] => Past::Deleted,
        _ => return Err(damaged()),
    };
    Ok((Lsn(u64::from_be_bytes(*time)), kind))
}
