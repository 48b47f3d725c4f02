//! The bytes of a copy: files are copied as files, whole and once each; what is small and in rows goes into rows again, or
//! into one file where it is much.

use std::collections::BTreeMap;

use bytes::Bytes;
use lazuli_engine::{
    BlockFile, BlockId, BlockWriter, Direction, Error, ItemKey, PageLimit, Result, Space,
};

use super::address::{BlobAddress, BlobPlace, offset_of};
use super::conditions::Conditions;
use super::copy::{CopyOptions, CopySource, copy_state};
use super::pages::each_piece;
use super::pieces::{Piece, Source, decode_row, is_cell, read_cell};
use super::put::{Body, Protection, Put};
use super::read::Seen;
use super::record::{BlobKind, BlobRecord, CopyStatus};
use super::rows::damaged;
use super::upload::{Files, UploadOptions};
use super::{BlobReason, Blobs};

/// What a copy keeps in rows at the most; beyond it small pieces share a file.
const ROWS_BYTES_MAX: usize = 1024 * 1024;
/// How much of a page blob is looked at at once.
const STRETCH_BYTES: u64 = 16 * 1024 * 1024;
/// The rows of pieces that are looked at at once.
const ROWS_AT_ONCE: PageLimit = PageLimit { items: 64, bytes: 1024 * 1024 };

/// The bytes of a copy, ready to be put.
pub(super) struct Copied {
    record: BlobRecord,
    place: BlobPlace,
    pieces: Vec<(u64, Piece)>,
    key_sha256: Option<[u8; 32]>,
    files: Option<Files>,
}

impl Blobs {
    /// Copies the bytes of a state for another blob.
    pub(super) async fn copied(
        &self,
        source: &CopySource,
        seen: Seen,
        target: &BlobAddress,
        options: &CopyOptions,
    ) -> Result<Copied> {
        let place = self.find_place(target).await?;
        let key_sha256 = options.key.as_ref().map(|key| key.sha256);
        if seen.record.key_sha256 != key_sha256 {
            return self.copied_anew(source, seen, target, options).await;
        }
        let mut copier = Copier {
            shape: self,
            seen: &seen,
            place: place.clone(),
            pieces: Vec::new(),
            copies: BTreeMap::new(),
            in_rows: 0,
            gathered: None,
            files: self.files(Vec::new()),
        };
        let mut from = Some(0);
        while let Some(start) = from {
            let (pieces, next) = pieces_from(&seen, start).await?;
            for (offset, piece) in pieces {
                copier.copy(offset, piece).await?;
            }
            from = next;
        }
        let (pieces, files) = copier.finish().await?;
        Ok(Copied { record: seen.record, place, pieces, key_sha256, files: Some(files) })
    }

    /// Where the keys differ the bytes are read with the one and written with the other.
    async fn copied_anew(
        &self,
        source: &CopySource,
        seen: Seen,
        target: &BlobAddress,
        options: &CopyOptions,
    ) -> Result<Copied> {
        if seen.record.kind != BlobKind::Block {
            let message = "only block blobs are copied from one customer's key to another";
            return Err(Error::precondition(BlobReason::KeyMismatch, message));
        }
        let range = 0..seen.record.length();
        let mut read = self.open(seen, range, source.key.clone()).await?;
        let upload = UploadOptions { md5: false, key: options.key.clone() };
        let mut upload = self.upload(target, &upload).await?;
        while let Some(bytes) = read.reader.next().await? {
            upload.write(bytes).await?;
        }
        let content = upload.finish().await?;
        Ok(Copied {
            record: read.record,
            place: content.place,
            pieces: content.piece.map(|piece| (0, piece)).into_iter().collect(),
            key_sha256: content.key_sha256,
            files: content.files,
        })
    }
}

/// Some pieces of a state that begin at an offset or behind it, and where to go on.
async fn pieces_from(seen: &Seen, from: u64) -> Result<(Vec<(u64, Piece)>, Option<u64>)> {
    let (record, end) = (&seen.record, seen.record.length());
    let (view, place, content) = (&seen.view, &seen.place, record.content.id);
    let mut pieces = Vec::new();
    if record.kind == BlobKind::Page {
        let stretch = from..end.min(from + STRETCH_BYTES);
        let next = (stretch.end < end).then_some(stretch.end);
        let mut show = |offset, piece| {
            // Those that reach into the stretch from before it were in the one before.
            if offset >= from {
                pieces.push((offset, piece));
            }
        };
        each_piece(view, place, content, seen.as_of, stretch, &mut show).await?;
        return Ok((pieces, next));
    }
    let range = place.pieces(content, from, end);
    let page = view.scan(Space::BLOB_PIECES, &range, Direction::Forward, ROWS_AT_ONCE).await?;
    let mut behind = from;
    for (key, item) in page.items {
        let key = ItemKey::from_bytes(key, place.route.len())?;
        behind = offset_of(key.row()).ok_or_else(damaged)?;
        for piece in decode_row(item.payload)? {
            let offset = behind;
            behind += piece.length;
            pieces.push((offset, piece));
        }
    }
    Ok((pieces, page.next.map(|_| behind)))
}

struct Copier<'a> {
    shape: &'a Blobs,
    seen: &'a Seen,
    place: BlobPlace,
    pieces: Vec<(u64, Piece)>,
    /// The copies of files that more than one piece may name.
    copies: BTreeMap<BlockId, BlockFile>,
    /// The bytes that stay in rows.
    in_rows: usize,
    gathered: Option<Gathered>,
    files: Files,
}

/// The file that small pieces share, and which ones.
struct Gathered {
    writer: Box<dyn BlockWriter>,
    length: u64,
    pieces: Vec<usize>,
}

impl Copier<'_> {
    async fn copy(&mut self, offset: u64, mut piece: Piece) -> Result<()> {
        match &piece.source {
            Source::Row(bytes) => {
                let bytes = bytes.clone();
                return self.take_bytes(offset, piece, bytes).await;
            }
            Source::File(file) if is_cell(file.id) => {
                let bytes = read_cell(&self.seen.view, &self.seen.place, file).await?;
                return self.take_bytes(offset, piece, bytes).await;
            }
            Source::File(file) => {
                let copy = match self.copies.get(&file.id) {
                    Some(copy) => *copy,
                    None => {
                        let copy = self.shape.blocks.copy(file, &self.place.owner()).await?;
                        self.files.add(Some(self.shape.files(vec![copy.id])));
                        self.copies.insert(file.id, copy);
                        copy
                    }
                };
                piece.source = Source::File(copy);
            }
        }
        self.pieces.push((offset, piece));
        Ok(())
    }

    /// Keeps small bytes in rows until they are much, and then in a file.
    async fn take_bytes(&mut self, offset: u64, mut piece: Piece, bytes: Bytes) -> Result<()> {
        // Encrypted bytes must stay where their stream begins.
        if piece.iv.is_some() || self.in_rows + bytes.len() <= ROWS_BYTES_MAX {
            self.in_rows += bytes.len();
            piece.source = Source::Row(bytes);
            self.pieces.push((offset, piece));
            return Ok(());
        }
        if self.gathered.is_none() {
            let writer = self.shape.blocks.create(&self.place.owner()).await?;
            self.gathered = Some(Gathered { writer, length: 0, pieces: Vec::new() });
        }
        if let Some(gathered) = &mut self.gathered {
            piece.skip += gathered.length;
            piece.source = Source::Row(Bytes::new());
            gathered.length += bytes.len() as u64;
            gathered.pieces.push(self.pieces.len());
            gathered.writer.write(bytes).await?;
        }
        self.pieces.push((offset, piece));
        Ok(())
    }

    async fn finish(mut self) -> Result<(Vec<(u64, Piece)>, Files)> {
        if let Some(gathered) = self.gathered.take() {
            let file = gathered.writer.finish().await?;
            self.files.add(Some(self.shape.files(vec![file.id])));
            for index in gathered.pieces {
                self.pieces[index].1.source = Source::File(file);
            }
        }
        Ok((self.pieces, self.files))
    }
}

impl Copied {
    /// The transaction that makes them a blob, and the files that it names.
    pub(super) fn put(
        self,
        source: &CopySource,
        options: CopyOptions,
        conditions: &Conditions,
        protection: Protection,
        status: CopyStatus,
        now_ms: u64,
    ) -> (Put, Option<Files>) {
        let record = self.record;
        let copy = copy_state(source, &options, &record, status, now_ms);
        let mut new = options.new;
        if options.with_headers {
            new.headers = record.headers.clone();
        }
        if options.with_tags {
            new.tags.clone_from(&record.tags);
        }
        new.metadata = options.metadata.unwrap_or_else(|| record.metadata.clone());
        new.key_sha256 = self.key_sha256;
        let body = match record.kind {
            BlobKind::Page => Body::Pages {
                length: record.length(),
                sequence_number: record.sequence_number,
                pieces: self.pieces,
            },
            BlobKind::Block | BlobKind::Append => {
                Body::Bytes(self.pieces.into_iter().map(|(_, piece)| piece).collect())
            }
        };
        let put = Put {
            place: self.place,
            kind: record.kind,
            new,
            body,
            conditions: conditions.clone(),
            protection,
            copy: Some(copy),
            is_sealed: options.is_sealed,
            append_blocks: record.append_blocks,
        };
        (put, self.files)
    }
}
