//! Reading a backup, whatever pieces its bytes come in. What the parser hands out is whole, in order and within the routes
//! of the head; only [`BackupParser::finish`] says that nothing is missing.

use bytes::{Buf, Bytes, BytesMut};
use lazuli_shardmap::layout::{self, Space};
use lazuli_store::blocks::BlockFile;
use lazuli_store::crc64::{Crc64, crc64};
use lazuli_store::{Error, Result};

use super::format::{
    BACKUP_FORMAT, BackupHead, BackupRow, BackupTotals, FRAME_HEAD_BYTES, FRAME_SUM_BYTES,
    FileHead, FrameKind, MAGIC, PREAMBLE_BYTES, read_file, read_foot, read_head, read_rows,
};
use super::{BackupReason, damaged};
use crate::changes;
use crate::item::Item;

/// Every number of a write is below this: it survives a trip through JSON.
const LSN_END: u64 = 1 << 53;

/// What a backup is made of, in the order in which it comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupPart {
    Head(Box<BackupHead>),
    Rows(Vec<BackupRow>),
    /// A file of the shardlet at this route; its bytes follow.
    File {
        file: BlockFile,
        route: Bytes,
    },
    Piece(Bytes),
    /// There is nothing behind it.
    End(BackupTotals),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Preamble,
    Head,
    Body,
    Ended,
}

/// Reads a backup piece by piece. It holds one frame at most, and what was pushed and not asked for.
pub struct BackupParser {
    stage: Stage,
    buffer: BytesMut,
    /// Of all bytes that were read.
    sum: Crc64,
    head: Option<BackupHead>,
    /// The row before: route, space and key. Empty before the first.
    last: (Bytes, u8, Bytes),
    file: Option<OpenFile>,
    totals: BackupTotals,
}

/// A file whose bytes are coming.
struct OpenFile {
    file: BlockFile,
    left: u64,
    sum: Crc64,
}

impl Default for BackupParser {
    fn default() -> Self {
        Self::new()
    }
}

impl BackupParser {
    pub fn new() -> Self {
        Self {
            stage: Stage::Preamble,
            buffer: BytesMut::new(),
            sum: Crc64::new(),
            head: None,
            last: (Bytes::new(), 0, Bytes::new()),
            file: None,
            totals: BackupTotals::default(),
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next part, or none if more bytes are needed for it. After an error there is nothing more to be had.
    pub fn next_part(&mut self) -> Result<Option<BackupPart>> {
        if self.stage == Stage::Preamble && !self.read_preamble()? {
            return Ok(None);
        }
        if self.stage == Stage::Ended {
            return match self.buffer.is_empty() {
                true => Ok(None),
                false => Err(damaged("it goes on behind its end")),
            };
        }
        let before = self.sum.sum();
        match self.read_frame()? {
            Some((kind, body)) => self.part(kind, body, before).map(Some),
            None => Ok(None),
        }
    }

    /// What all of it adds up to, if it was read to its end.
    pub fn finish(&self) -> Result<BackupTotals> {
        if self.stage != Stage::Ended {
            let message = "the backup ends before its end: it was cut short";
            return Err(Error::invalid(BackupReason::Truncated, message));
        }
        Ok(self.totals)
    }

    /// Whether all of it was there.
    fn read_preamble(&mut self) -> Result<bool> {
        let known = self.buffer.len().min(MAGIC.len());
        if self.buffer[..known] != MAGIC[..known] {
            return Err(Error::invalid("not-a-backup", "this is no backup of Lazuli"));
        }
        if self.buffer.len() < PREAMBLE_BYTES {
            return Ok(false);
        }
        let mut preamble = self.buffer.split_to(PREAMBLE_BYTES);
        self.sum.update(&preamble);
        preamble.advance(MAGIC.len());
        let format = preamble.get_u32();
        if format != BACKUP_FORMAT {
            let message =
                format!("a backup of format {format}, and this version knows {BACKUP_FORMAT}");
            return Err(Error::invalid("format-unknown", message));
        }
        self.stage = Stage::Head;
        Ok(true)
    }

    fn read_frame(&mut self) -> Result<Option<(FrameKind, Bytes)>> {
        let Some([kind, length @ ..]) = self.buffer.first_chunk::<FRAME_HEAD_BYTES>() else {
            return Ok(None);
        };
        let (kind, length) = (FrameKind::read(*kind)?, u32::from_be_bytes(*length) as usize);
        if length > kind.bytes_max() {
            return Err(damaged(format!("a frame of {length} bytes")));
        }
        if self.buffer.len() < FRAME_HEAD_BYTES + length + FRAME_SUM_BYTES {
            return Ok(None);
        }
        let mut framed = self.buffer.split_to(FRAME_HEAD_BYTES + length).freeze();
        let mut sum = self.buffer.split_to(FRAME_SUM_BYTES);
        self.sum.update(&framed);
        self.sum.update(&sum);
        if sum.get_u64() != crc64(&framed) {
            return Err(damaged("a frame does not match its sum"));
        }
        framed.advance(FRAME_HEAD_BYTES);
        Ok(Some((kind, framed)))
    }

    fn part(&mut self, kind: FrameKind, body: Bytes, before: u64) -> Result<BackupPart> {
        let is_head = kind == FrameKind::Head;
        if is_head != (self.stage == Stage::Head) {
            return Err(damaged("its head is not at its beginning"));
        }
        if self.file.is_some() != (kind == FrameKind::Piece) {
            return Err(damaged("the bytes of a file do not follow it"));
        }
        match kind {
            FrameKind::Head => {
                let head = read_head(body)?;
                if head.lsn.0 >= LSN_END || head.routes.is_empty() {
                    return Err(damaged("its head does not make sense"));
                }
                self.stage = Stage::Body;
                self.head = Some(head.clone());
                Ok(BackupPart::Head(Box::new(head)))
            }
            FrameKind::Rows => {
                let rows = read_rows(body)?;
                for row in &rows {
                    self.check_row(row)?;
                    self.totals.rows += 1;
                    self.totals.row_bytes += (row.key.len() + row.value.len()) as u64;
                }
                Ok(BackupPart::Rows(rows))
            }
            FrameKind::File => {
                let FileHead { file, route } = read_file(body)?;
                self.check_route(&route)?;
                self.totals.files += 1;
                self.file = Some(OpenFile { file, left: file.length, sum: Crc64::new() });
                self.end_file()?;
                Ok(BackupPart::File { file, route })
            }
            FrameKind::Piece => {
                self.check_piece(&body)?;
                Ok(BackupPart::Piece(body))
            }
            FrameKind::Foot => {
                let (totals, sum) = read_foot(body)?;
                if totals != self.totals || sum != before {
                    return Err(damaged("its end does not match what came before it"));
                }
                self.stage = Stage::Ended;
                Ok(BackupPart::End(totals))
            }
        }
    }

    fn check_piece(&mut self, piece: &[u8]) -> Result<()> {
        let length = piece.len() as u64;
        if let Some(open) = &mut self.file {
            if length == 0 || length > open.left {
                return Err(damaged("a file has another length than it says"));
            }
            open.left -= length;
            open.sum.update(piece);
            self.totals.file_bytes += length;
        }
        self.end_file()
    }

    /// Lets go of a file whose bytes have all come.
    fn end_file(&mut self) -> Result<()> {
        if let Some(open) = self.file.take_if(|open| open.left == 0)
            && open.sum.sum() != open.file.crc64
        {
            return Err(damaged("a file does not match its sum"));
        }
        Ok(())
    }

    fn head(&self) -> Result<&BackupHead> {
        self.head.as_ref().ok_or_else(|| damaged("it has no head"))
    }

    /// The route of a file, which must be one whole route of the backup.
    fn check_route(&self, route: &[u8]) -> Result<()> {
        let head = self.head()?;
        match head.container.kind.split(&head.container.key, route) {
            Ok((_, [])) if head.routes.contains(route) => Ok(()),
            _ => Err(damaged("a file is outside of its routes")),
        }
    }

    /// Rows come by route, then by space, then by key; changes come after all others, in their own order.
    fn check_row(&mut self, row: &BackupRow) -> Result<()> {
        let head = self.head()?;
        let (route, version) = match row.space {
            Space::CHANGES => {
                let stored = layout::key(head.container.id, row.space, &row.key);
                let change = changes::decode(&stored, row.value.clone());
                let change = change.map_err(|error| damaged(error.message()))?;
                (Bytes::copy_from_slice(change.key.route()), change.lsn)
            }
            space if Space::KEY_ORDERED.contains(&space) => {
                let split = head.container.kind.split(&head.container.key, &row.key);
                let (route, _) = split.map_err(|error| damaged(error.message()))?;
                let item = Item::decode(row.value.clone());
                let item = item.map_err(|error| damaged(error.message()))?;
                (row.key.slice_ref(route), item.version)
            }
            Space(other) => return Err(damaged(format!("a row of space {other:#04x}"))),
        };
        if !head.routes.contains(&route) {
            return Err(damaged("a row is outside of its routes"));
        }
        if version > head.lsn {
            return Err(damaged("a row is newer than the backup"));
        }
        let this = match row.space {
            Space::CHANGES => (Bytes::new(), Space::CHANGES.0, row.key.clone()),
            space => (route, space.0, row.key.clone()),
        };
        let was_changes = self.last.1 == Space::CHANGES.0;
        let is_changes = this.1 == Space::CHANGES.0;
        let is_behind = match (was_changes, is_changes) {
            (false, true) => true,
            (true, false) => false,
            _ => this > self.last,
        };
        if !is_behind {
            return Err(damaged("its rows are not in order"));
        }
        self.last = this;
        Ok(())
    }
}
