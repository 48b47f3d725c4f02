//! Reading blobs: the record from one snapshot, then the bytes piece by piece, however many there are.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use lazuli_engine::{
    BlockReader, Direction, Error, Item, ItemKey, KeyRange, Lsn, PIECE_BYTES_MAX, PREFIX_BYTES,
    PageLimit, Result, Space, View, after_key,
};

use super::address::{BlobAddress, BlobPlace, Past, Which, no_blob, offset_of};
use super::conditions::{Conditions, Facts};
use super::limits::PAGES_WRITE_BYTES_MAX;
use super::pages::each_piece;
use super::pieces::{
    Cipher, CustomerKey, Piece, Source, check_key, decode_row, is_cell, read_cell,
};
use super::pins::Pin;
use super::record::{BlobKind, BlobRecord, ContentRef, Form};
use super::rows::damaged;
use super::{BlobReason, Blobs};

/// The rows of pieces that a reader takes at once.
const ROWS_AT_ONCE: PageLimit = PageLimit { items: 64, bytes: 256 * 1024 };

static ZEROS: [u8; PIECE_BYTES_MAX] = [0; PIECE_BYTES_MAX];

/// Which bytes to read: from the first up to and including the last. The default is all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadRange {
    pub first: u64,
    pub last: Option<u64>,
}

/// A state of a blob, and its bytes.
pub struct BlobRead {
    pub record: BlobRecord,
    /// The bytes that the reader gives, within those of the blob.
    pub range: Range<u64>,
    pub reader: BlobReader,
}

/// A state of a blob, from one snapshot.
pub(super) struct Seen {
    pub(super) record: BlobRecord,
    pub(super) place: BlobPlace,
    /// For older states of page blobs: the time whose pages they have.
    pub(super) as_of: Option<Lsn>,
    pub(super) view: View,
    pub(super) pin: Pin,
}

impl Blobs {
    /// What is known about a state of a blob.
    pub async fn properties(
        &self,
        address: &BlobAddress,
        which: Which,
        conditions: &Conditions,
        key: Option<&CustomerKey>,
    ) -> Result<BlobRecord> {
        let seen = self.see(address, which).await?;
        let record = seen.record;
        record.check_read(conditions, self.now_ms())?;
        check_key(record.key_sha256.as_ref(), key)?;
        Ok(record)
    }

    /// A state of a blob with a range of its bytes; all of them where no range is given.
    pub async fn read(
        &self,
        address: &BlobAddress,
        which: Which,
        range: Option<ReadRange>,
        conditions: &Conditions,
        key: Option<&CustomerKey>,
    ) -> Result<BlobRead> {
        let seen = self.see(address, which).await?;
        let now_ms = self.now_ms();
        seen.record.check_read(conditions, now_ms)?;
        check_key(seen.record.key_sha256.as_ref(), key)?;
        seen.record.check_changeable(now_ms)?;
        let length = seen.record.length();
        let range = match range {
            None => 0..length,
            Some(range) if range.first < length => {
                let last = range.last.unwrap_or(length - 1).min(length - 1);
                range.first..last.max(range.first) + 1
            }
            Some(_) => {
                let message = "the range begins behind the end of the blob";
                return Err(Error::invalid(BlobReason::InvalidRange, message));
            }
        };
        self.open(seen, range, key.cloned()).await
    }

    /// Begins to read a state that may be read.
    pub(super) async fn open(
        &self,
        seen: Seen,
        range: Range<u64>,
        key: Option<CustomerKey>,
    ) -> Result<BlobRead> {
        let mut reader = BlobReader {
            blobs: self.clone(),
            place: seen.place,
            content: seen.record.content,
            is_sparse: seen.record.kind == BlobKind::Page,
            as_of: seen.as_of,
            key,
            position: range.start,
            end: range.end,
            pieces: VecDeque::new(),
            next_row: Some(range.start),
            file: None,
            _pin: seen.pin,
        };
        if !range.is_empty() {
            reader.load(&seen.view).await?;
        }
        Ok(BlobRead { record: seen.record, range, reader })
    }

    /// Looks up a state of a blob.
    pub(super) async fn see(&self, address: &BlobAddress, which: Which) -> Result<Seen> {
        let place = self.find_place(address).await?;
        self.see_at(place, which).await
    }

    pub(super) async fn see_at(&self, place: BlobPlace, which: Which) -> Result<Seen> {
        // The pin comes before the snapshot: what the snapshot names stays until the pin is gone.
        let pin = self.pins.pin(&place.route);
        let view = self.engine.read(place.container, &place.route, 1).await?;
        let (record, is_past) = match which {
            Which::Current => (state(&view, &place.current()).await?, false),
            Which::Snapshot(time) => (state(&view, &place.past(Past::Snapshot, time)).await?, true),
            Which::Version(version) => match state(&view, &place.current()).await? {
                Some(record) if record.version == Some(version) => (Some(record), false),
                _ => (state(&view, &place.past(Past::Version, version)).await?, true),
            },
        };
        let now_ms = self.now_ms();
        let visible = |it: &BlobRecord| it.is_committed && !it.is_expired(now_ms);
        let record = record.filter(|it| visible(it) && it.deleted.is_none());
        let mut record = record.ok_or_else(no_blob)?;
        record.is_current_version = !is_past && record.version.is_some();
        let as_of = is_past.then_some(record.kept_until);
        Ok(Seen { record, place, as_of, view, pin })
    }
}

async fn state(view: &View, key: &ItemKey) -> Result<Option<BlobRecord>> {
    view.get(key).await?.map(|item: Item| BlobRecord::decode(item.payload)).transpose()
}

impl BlobRecord {
    pub(super) fn check_read(&self, conditions: &Conditions, now_ms: u64) -> Result<()> {
        let facts = Facts::of(self);
        conditions.check_read(&facts, &self.lease, now_ms)
    }
}

/// Bytes of a blob, piece by piece. While it lives nothing of what it reads is collected.
pub struct BlobReader {
    blobs: Blobs,
    place: BlobPlace,
    content: ContentRef,
    /// Whether what no piece covers is zeros.
    is_sparse: bool,
    as_of: Option<Lsn>,
    key: Option<CustomerKey>,
    position: u64,
    end: u64,
    /// Pieces with their offsets, from the position on.
    pieces: VecDeque<(u64, Piece)>,
    /// From which offset on further rows of pieces are to be read; none when there are none.
    next_row: Option<u64>,
    file: Option<OpenFile>,
    _pin: Pin,
}

struct OpenFile {
    reader: Box<dyn BlockReader>,
    cipher: Option<Cipher>,
    left: u64,
}

impl BlobReader {
    /// The next bytes, at most [`PIECE_BYTES_MAX`], none of them empty; none at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            if self.position >= self.end {
                return Ok(None);
            }
            if let Some(file) = &mut self.file {
                if let Some(bytes) = file.next().await? {
                    return Ok(Some(self.passed(bytes)));
                }
                self.file = None;
                continue;
            }
            if self.pieces.is_empty() && self.next_row.is_some() {
                let (container, route) = (self.place.container, self.place.route.clone());
                let view = self.blobs.engine.read(container, &route, 0).await?;
                self.load(&view).await?;
                continue;
            }
            let ahead = self.pieces.front().map_or(self.end, |(offset, _)| *offset).min(self.end);
            if ahead > self.position {
                if !self.is_sparse {
                    return Err(Error::corrupt("missing-piece", "a blob lacks some of its bytes"));
                }
                let length = (ahead - self.position).min(PIECE_BYTES_MAX as u64) as usize;
                return Ok(Some(self.passed(Bytes::from_static(&ZEROS[..length]))));
            }
            if let Some((offset, piece)) = self.pieces.pop_front()
                && let Some(bytes) = self.begin(offset, &piece).await?
            {
                return Ok(Some(self.passed(bytes)));
            }
        }
    }

    fn passed(&mut self, bytes: Bytes) -> Bytes {
        self.position += bytes.len() as u64;
        bytes
    }

    /// Begins a piece that the position is in: bytes of a row at once, those of a file from then on.
    async fn begin(&mut self, offset: u64, piece: &Piece) -> Result<Option<Bytes>> {
        let from = self.position - offset;
        let to = piece.length.min(self.end - offset);
        if from >= to {
            return Ok(None);
        }
        let place = piece.skip + from..piece.skip + to;
        let mut cipher = match (&piece.iv, &self.key) {
            (None, _) => None,
            (Some(iv), Some(key)) => Some(Cipher::at(key, iv, place.start)),
            (Some(_), None) => {
                return Err(Error::precondition(BlobReason::KeyRequired, "the blob needs its key"));
            }
        };
        match &piece.source {
            Source::Row(bytes) => {
                let bytes = bytes.slice(place.start as usize..place.end as usize);
                Ok(Some(match &mut cipher {
                    Some(cipher) => cipher.apply(&bytes),
                    None => bytes,
                }))
            }
            Source::File(file) if is_cell(file.id) => {
                let (container, route) = (self.place.container, self.place.route.clone());
                let view = self.blobs.engine.read(container, &route, 0).await?;
                let bytes = read_cell(&view, &self.place, file).await?;
                let bytes = bytes.slice(place.start as usize..place.end as usize);
                Ok(Some(match &mut cipher {
                    Some(cipher) => cipher.apply(&bytes),
                    None => bytes,
                }))
            }
            Source::File(file) => {
                let left = place.end - place.start;
                let reader = self.blobs.blocks.read(file, place).await?;
                self.file = Some(OpenFile { reader, cipher, left });
                Ok(None)
            }
        }
    }

    /// Reads further rows of pieces from a snapshot.
    async fn load(&mut self, view: &View) -> Result<()> {
        let Some(from) = self.next_row.take() else { return Ok(()) };
        if let Some(as_of) = self.as_of.filter(|_| self.is_sparse) {
            return self.load_former(view, as_of, from).await;
        }
        match self.content.form {
            Form::Empty => Ok(()),
            Form::Inline => {
                let item = view.get(&self.place.piece(self.content.id, 0)).await?;
                self.take_row(0, item.ok_or_else(damaged)?.payload)
            }
            Form::Pieces => self.load_rows(view, from).await,
        }
    }

    /// A stretch of the pieces that a page blob had at some time.
    async fn load_former(&mut self, view: &View, as_of: Lsn, from: u64) -> Result<()> {
        let end = self.end.min(from + PAGES_WRITE_BYTES_MAX);
        let mut found = Vec::new();
        let mut show = |offset, piece| found.push((offset, piece));
        let (place, content) = (&self.place, self.content.id);
        each_piece(view, place, content, Some(as_of), from..end, &mut show).await?;
        found.sort_by_key(|(offset, _)| *offset);
        // Those that reach over from the stretch before have been read.
        found.retain(|(offset, piece): &(u64, Piece)| offset + piece.length > self.position);
        self.pieces.extend(found);
        self.next_row = (end < self.end).then_some(end);
        Ok(())
    }

    async fn load_rows(&mut self, view: &View, from: u64) -> Result<()> {
        let mut range = self.place.pieces(self.content.id, 0, self.end);
        // The row that the first byte is in begins at it or before it.
        let before = self.place.pieces(self.content.id, 0, from + 1);
        let one = PageLimit::items(1);
        let first = view.scan(Space::BLOB_PIECES, &before, Direction::Backward, one).await?;
        let start = match first.items.first() {
            Some((key, _)) => key.slice(PREFIX_BYTES..),
            None => self.place.pieces(self.content.id, from, self.end).start,
        };
        range.start = start;
        let page = view.scan(Space::BLOB_PIECES, &range, Direction::Forward, ROWS_AT_ONCE).await?;
        for (key, item) in page.items {
            let key = ItemKey::from_bytes(key, self.place.route.len())?;
            self.take_row(offset_of(key.row()).ok_or_else(damaged)?, item.payload)?;
        }
        if let Some(last) = page.next {
            let key = ItemKey::from_bytes(last, self.place.route.len())?;
            let offset = offset_of(key.row()).ok_or_else(damaged)?;
            let behind = self.pieces.back().map_or(offset + 1, |(at, piece)| at + piece.length);
            self.next_row = Some(behind.max(offset + 1));
        }
        Ok(())
    }

    fn take_row(&mut self, mut offset: u64, row: Bytes) -> Result<()> {
        for piece in decode_row(row)? {
            let length = piece.length;
            // What lies before the position is not needed any more.
            if offset + length > self.position {
                self.pieces.push_back((offset, piece));
            }
            offset += length;
        }
        Ok(())
    }
}

impl OpenFile {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        let Some(bytes) = self.reader.next().await? else {
            return match self.left {
                0 => Ok(None),
                _ => Err(Error::corrupt("short-block-file", "a block file ended too early")),
            };
        };
        self.left = self.left.saturating_sub(bytes.len() as u64);
        Ok(Some(match &mut self.cipher {
            Some(cipher) => cipher.apply(&bytes),
            None => bytes,
        }))
    }
}

/// All rows of a range of one space of a blob.
pub(super) async fn rows_of(
    view: &View,
    place: &BlobPlace,
    space: Space,
    mut range: KeyRange,
) -> Result<Vec<(ItemKey, Item)>> {
    let mut rows = Vec::new();
    loop {
        let page = view.scan(space, &range, Direction::Forward, PageLimit::MAX).await?;
        for (key, item) in page.items {
            rows.push((ItemKey::from_bytes(key, place.route.len())?, item));
        }
        match page.next {
            Some(last) => range.start = behind(&last),
            None => return Ok(rows),
        }
    }
}

/// All rows of the pieces that a content has now.
pub(super) async fn all_rows(
    view: &View,
    place: &BlobPlace,
    content: u64,
) -> Result<Vec<(ItemKey, Item)>> {
    rows_of(view, place, Space::BLOB_PIECES, place.pieces(content, 0, u64::MAX)).await
}

/// The key right behind another one, both without their prefixes.
pub(super) fn behind(key: &Bytes) -> Bytes {
    after_key(&key.slice(PREFIX_BYTES..))
}
