//! Pages: writes in multiples of 512 bytes anywhere in a page blob, which is zeros elsewhere.
//!
//! Each write is a piece at its offset; it cuts away what it covers of the pieces that were there. What an older state
//! still needs of those stays as a former piece, which knows from when to when it was there. So a write costs what it
//! covers, however large the blob is and however many snapshots it has, and what changed since a snapshot is what is newer.

use std::ops::Range;

use lazuli_engine::{
    Direction, Error, ItemKey, Lsn, PageLimit, Result, Space, Transaction, Tx, View,
};

use super::address::{BlobAddress, BlobPlace, number_at, offset_of};
use super::conditions::Conditions;
use super::limits::{PAGE_BYTES, PAGES_WRITE_BYTES_MAX};
use super::pieces::{Piece, decode_one};
use super::put::check_page_length;
use super::read::behind;
use super::record::{BlobKind, BlobRecord, Headers};
use super::rows::damaged;
use super::shardlet::Shardlet;
use super::upload::Content;
use super::{BlobReason, Blobs};

/// What must hold of the sequence number of a page blob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceConditions {
    pub at_most: Option<u64>,
    pub below: Option<u64>,
    pub equal: Option<u64>,
}

/// What to do with the sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceAction {
    /// The larger one of the two.
    Max(u64),
    Update(u64),
    Increment,
}

impl SequenceAction {
    fn apply(self, number: u64) -> Result<u64> {
        let number = match self {
            Self::Max(other) => other.max(number),
            Self::Update(other) => other,
            Self::Increment => number.saturating_add(1),
        };
        if number > SEQUENCE_MAX {
            let message = "the sequence number would be too large";
            return Err(Error::exists(BlobReason::SequenceNumberTooLarge, message));
        }
        Ok(number)
    }
}

/// What is set of a page blob in one change. What is not given stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageProperties {
    pub length: Option<u64>,
    pub sequence: Option<SequenceAction>,
    /// All headers: those that are not among them are gone.
    pub headers: Option<Headers>,
}

/// The rows of pieces that are looked at at once.
const PIECES_AT_ONCE: PageLimit = PageLimit { items: 1_000, bytes: 1024 * 1024 };
/// The largest sequence number.
const SEQUENCE_MAX: u64 = i64::MAX as u64;

struct WritePages {
    place: BlobPlace,
    offset: u64,
    length: u64,
    /// None: the pages are cleared.
    piece: Option<Piece>,
    key_sha256: Option<[u8; 32]>,
    wanted: SequenceConditions,
    conditions: Conditions,
}

impl Transaction for WritePages {
    type Output = BlobRecord;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<BlobRecord> {
        let mut shardlet = Shardlet::new(tx, &self.place);
        let mut record = shardlet.changeable(BlobKind::Page, &self.conditions).await?;
        if self.piece.is_some() {
            Blobs::check_same_key(record.key_sha256.as_ref(), self.key_sha256.as_ref())?;
        }
        self.wanted.check(record.sequence_number)?;
        let end = self.offset.checked_add(self.length).ok_or_else(outside)?;
        if end > record.content.length {
            return Err(outside());
        }
        shardlet.cut(&record, self.offset..end).await?;
        if let Some(piece) = &self.piece {
            let mut piece = piece.clone();
            piece.since = shardlet.lsn();
            let key = self.place.piece(record.content.id, self.offset);
            shardlet.tx.put(&key, piece.encode()).await?;
        }
        shardlet.touch(&mut record);
        shardlet.put_current(&record).await?;
        Ok(record)
    }
}

struct SetPageProperties {
    place: BlobPlace,
    set: PageProperties,
    conditions: Conditions,
}

impl Transaction for SetPageProperties {
    type Output = BlobRecord;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<BlobRecord> {
        let mut shardlet = Shardlet::new(tx, &self.place);
        let mut record = shardlet.changeable(BlobKind::Page, &self.conditions).await?;
        if let Some(action) = self.set.sequence {
            record.sequence_number = action.apply(record.sequence_number)?;
        }
        if let Some(headers) = &self.set.headers {
            record.headers.clone_from(headers);
        }
        if let Some(length) = self.set.length {
            if length < record.content.length {
                shardlet.cut(&record, length..record.content.length).await?;
            }
            record.content.length = length;
        }
        shardlet.touch(&mut record);
        shardlet.put_current(&record).await?;
        Ok(record)
    }
}

impl SequenceConditions {
    fn check(&self, number: u64) -> Result<()> {
        let holds = self.at_most.is_none_or(|most| number <= most)
            && self.below.is_none_or(|end| number < end)
            && self.equal.is_none_or(|equal| number == equal);
        if holds {
            return Ok(());
        }
        let message = format!("the sequence number is {number}");
        Err(Error::precondition(BlobReason::SequenceNumberNotMet, message))
    }
}

impl Shardlet<'_, '_> {
    /// Cuts a range out of the pieces of a page blob; what older states need of it stays as former pieces.
    async fn cut(&mut self, record: &BlobRecord, range: Range<u64>) -> Result<()> {
        let content = record.content.id;
        let mut rows = Vec::new();
        // Pieces do not overlap, so that only the one before the range can reach into it.
        let before = self.place.pieces(content, 0, range.start);
        let (one, back) = (PageLimit::items(1), Direction::Backward);
        let container = self.place.container;
        let page = self.tx.scan(container, Space::BLOB_PIECES, &before, back, one).await?;
        for (key, item) in page.items {
            rows.push((ItemKey::from_bytes(key, self.place.route.len())?, item));
        }
        let mut within = self.place.pieces(content, range.start, range.end);
        loop {
            for (key, item) in rows.drain(..) {
                self.cut_piece(record, &key, decode_one(item.payload)?, &range).await?;
            }
            let ahead = Direction::Forward;
            let limit = PIECES_AT_ONCE;
            let page = self.tx.scan(container, Space::BLOB_PIECES, &within, ahead, limit).await?;
            for (key, item) in page.items {
                rows.push((ItemKey::from_bytes(key, self.place.route.len())?, item));
            }
            match (page.next, rows.is_empty()) {
                (Some(last), _) => within.start = behind(&last),
                (None, false) => within.start = within.end.clone().unwrap_or_default(),
                (None, true) => return Ok(()),
            }
        }
    }

    async fn cut_piece(
        &mut self,
        record: &BlobRecord,
        key: &ItemKey,
        piece: Piece,
        range: &Range<u64>,
    ) -> Result<()> {
        let content = record.content.id;
        let offset = offset_of(key.row()).ok_or_else(damaged)?;
        let end = offset + piece.length;
        if end <= range.start {
            return Ok(());
        }
        let (from, to) = (range.start.max(offset), range.end.min(end));
        self.tx.delete(key).await?;
        let mut names = 0;
        if offset < from {
            let left = piece.part(0, from - offset);
            self.tx.put(&self.place.piece(content, offset), left.encode()).await?;
            names += 1;
        }
        if to < end {
            let right = piece.part(to - offset, end - offset);
            self.tx.put(&self.place.piece(content, to), right.encode()).await?;
            names += 1;
        }
        if piece.since <= record.kept_until {
            let former = piece.part(from - offset, to - offset);
            let key = self.place.former(content, from, self.lsn());
            self.tx.put(&key, former.encode()).await?;
            names += 1;
        }
        match (piece.file(), names) {
            (None, _) => {}
            (Some(_), 0) => self.drop_piece(&piece).await?,
            (Some(file), names) => {
                for _ in 1..names {
                    self.share_file(file).await?;
                }
            }
        }
        Ok(())
    }
}

impl Blobs {
    /// Writes pages: as many bytes as the content has, from the offset on.
    pub async fn put_pages(
        &self,
        address: &BlobAddress,
        offset: u64,
        content: Content,
        wanted: SequenceConditions,
        conditions: &Conditions,
    ) -> Result<BlobRecord> {
        self.check_content(&content, address).await?;
        let length = content.length;
        check_pages(offset, length)?;
        if length > PAGES_WRITE_BYTES_MAX {
            let message = "one write of pages has 4 MiB at the most";
            return Err(Error::too_large(BlobReason::InvalidPageRange, message));
        }
        let write = WritePages {
            place: content.place.clone(),
            offset,
            length,
            piece: content.piece,
            key_sha256: content.key_sha256,
            wanted,
            conditions: conditions.clone(),
        };
        self.commit(&content.place, write, content.files).await
    }

    /// Makes pages zeros.
    pub async fn clear_pages(
        &self,
        address: &BlobAddress,
        range: Range<u64>,
        wanted: SequenceConditions,
        conditions: &Conditions,
    ) -> Result<BlobRecord> {
        let length = range.end.saturating_sub(range.start);
        check_pages(range.start, length)?;
        let place = self.find_place(address).await?;
        let write = WritePages {
            place: place.clone(),
            offset: range.start,
            length,
            piece: None,
            key_sha256: None,
            wanted,
            conditions: conditions.clone(),
        };
        self.commit(&place, write, None).await
    }

    /// Makes a page blob longer or shorter.
    pub async fn resize(
        &self,
        address: &BlobAddress,
        length: u64,
        conditions: &Conditions,
    ) -> Result<BlobRecord> {
        let set = PageProperties { length: Some(length), ..PageProperties::default() };
        self.set_page_properties(address, set, conditions).await
    }

    pub async fn set_sequence_number(
        &self,
        address: &BlobAddress,
        action: SequenceAction,
        conditions: &Conditions,
    ) -> Result<BlobRecord> {
        let set = PageProperties { sequence: Some(action), ..PageProperties::default() };
        self.set_page_properties(address, set, conditions).await
    }

    /// Sets length, sequence number and headers of a page blob together.
    pub async fn set_page_properties(
        &self,
        address: &BlobAddress,
        set: PageProperties,
        conditions: &Conditions,
    ) -> Result<BlobRecord> {
        if let Some(length) = set.length {
            check_page_length(length)?;
        }
        let place = self.find_place(address).await?;
        let conditions = conditions.clone();
        let set = SetPageProperties { place: place.clone(), set, conditions };
        self.commit(&place, set, None).await
    }
}

fn check_pages(offset: u64, length: u64) -> Result<()> {
    let fits = |number: u64| number.is_multiple_of(PAGE_BYTES);
    if length > 0 && fits(offset) && fits(length) {
        return Ok(());
    }
    Err(outside())
}

fn outside() -> Error {
    Error::invalid(BlobReason::InvalidPageRange, "the range is not one of whole pages of the blob")
}

/// Shows the pieces that a page blob had at some time, or has now, as far as they reach into the range: those of now by
/// their offsets, then the former ones by theirs.
pub(super) async fn each_piece(
    view: &View,
    place: &BlobPlace,
    content: u64,
    as_of: Option<Lsn>,
    range: Range<u64>,
    show: &mut (dyn FnMut(u64, Piece) + Send),
) -> Result<()> {
    // No piece is longer than one write, so that those that reach into the range are not far before it.
    let from = range.start.saturating_sub(PAGES_WRITE_BYTES_MAX);
    let mut ranges = vec![place.pieces(content, from, range.end)];
    if as_of.is_some() {
        ranges.push(place.former_pieces(content, from, range.end));
    }
    for mut keys in ranges {
        loop {
            let space = Space::BLOB_PIECES;
            let page = view.scan(space, &keys, Direction::Forward, PIECES_AT_ONCE).await?;
            for (key, item) in page.items {
                let key = ItemKey::from_bytes(key, place.route.len())?;
                let offset = offset_of(key.row()).ok_or_else(damaged)?;
                // A piece of now has no end yet.
                let until = number_at(key.row(), 16).map_or(Lsn(u64::MAX), Lsn);
                let piece = decode_one(item.payload)?;
                let is_then = as_of.is_none_or(|time| piece.since <= time && time < until);
                if offset < range.end && offset + piece.length > range.start && is_then {
                    show(offset, piece);
                }
            }
            match page.next {
                Some(last) => keys.start = behind(&last),
                None => break,
            }
        }
    }
    Ok(())
}
