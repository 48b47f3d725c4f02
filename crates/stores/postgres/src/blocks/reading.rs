//! Reads a range of a file, a piece of a megabyte at a time.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::try_join;
use lazuli_env::BoxFuture;
use lazuli_store::blocks::{BlockFile, BlockReader, PIECE_BYTES_MAX};
use lazuli_store::crc64::Crc64;
use lazuli_store::{Error, Result};
use tokio_postgres::types::ToSql;

use super::{PIECE_BYTES, Shared, damaged, signed};
use crate::fault::Fault;
use crate::limits::PAGE_TIME_MAX;
use crate::session::Session;
use crate::sql::Sql;

pub(super) struct PieceReader {
    shared: Arc<Shared>,
    file: BlockFile,
    /// What was not asked for yet.
    rest: Range<u64>,
    /// What was read and not handed out yet.
    read: Bytes,
    /// The sum so far, if all bytes are read.
    sum: Option<Crc64>,
}

/// A part of one piece: its number, where it begins in the piece, and its length.
fn part(rest: &Range<u64>) -> (i64, i32, i32) {
    let size = PIECE_BYTES as u64;
    let begin = rest.start % size;
    let length = (size - begin).min(rest.end - rest.start);
    // Both are at most a piece.
    ((rest.start / size) as i64, begin as i32, length as i32)
}

impl PieceReader {
    pub(super) async fn open(
        shared: Arc<Shared>,
        file: BlockFile,
        range: Range<u64>,
    ) -> Result<Self> {
        if range.start > range.end || range.end > file.length {
            return Err(Error::invalid("bad-range", "the range is not inside the file"));
        }
        let sum = (range == (0..file.length)).then(Crc64::new);
        let mut reader = Self { shared, file, rest: range, read: Bytes::new(), sum };
        let lease = reader.shared.pool.lease().await?;
        let session = lease.session();
        let opened = open(session, &file, &reader.rest);
        let bytes = lease.run(PAGE_TIME_MAX, opened).await?;
        drop(lease);
        reader.took(bytes)?;
        Ok(reader)
    }

    /// Advances past bytes that were read, and checks the sum before the last ones are handed out.
    fn took(&mut self, bytes: Bytes) -> Result<()> {
        self.rest.start += bytes.len() as u64;
        if let Some(sum) = &mut self.sum {
            sum.update(&bytes);
            if self.rest.is_empty() && sum.sum() != self.file.crc64 {
                return Err(damaged(self.file.id, "does not match its sum"));
            }
        }
        self.read = bytes;
        Ok(())
    }

    async fn next_bytes(&mut self) -> Result<Option<Bytes>> {
        if self.read.is_empty() {
            if self.rest.is_empty() {
                return Ok(None);
            }
            let lease = self.shared.pool.lease().await?;
            let piece = piece(lease.session(), &self.file, &self.rest);
            let bytes = lease.run(PAGE_TIME_MAX, piece).await?;
            drop(lease);
            self.took(bytes)?;
        }
        let most = self.read.len().min(PIECE_BYTES_MAX);
        Ok(Some(self.read.split_to(most)))
    }
}

/// Compares the row of a file with the reference.
pub(super) async fn look(session: &Session, file: &BlockFile) -> Result<(), Fault> {
    let [look] = session.prepared([Sql::GetFile]).await?;
    let id = [signed(file.id.generation), signed(file.id.number)];
    let row = session.client.query_opt(&look, &[&id[0], &id[1]]).await?;
    let Some(row) = row else { return Err(damaged(file.id, "is missing").into()) };
    let (length, crc64): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    match (length == signed(file.length), crc64 == signed(file.crc64)) {
        (true, true) => Ok(()),
        (false, _) => Err(damaged(file.id, "has another length than its row says").into()),
        (_, false) => Err(damaged(file.id, "has another sum than its row says").into()),
    }
}

/// The same, and reads the first bytes in the same trip.
async fn open(session: &Session, file: &BlockFile, rest: &Range<u64>) -> Result<Bytes, Fault> {
    session.prepared([Sql::GetFile, Sql::GetPiece]).await?;
    if rest.is_empty() {
        look(session, file).await?;
        return Ok(Bytes::new());
    }
    let (_, bytes) = try_join(look(session, file), piece(session, file, rest)).await?;
    Ok(bytes)
}

/// The next bytes: a piece, or the part of it that is wanted.
async fn piece(session: &Session, file: &BlockFile, rest: &Range<u64>) -> Result<Bytes, Fault> {
    let [get] = session.prepared([Sql::GetPiece]).await?;
    let (generation, number) = (signed(file.id.generation), signed(file.id.number));
    let (n, begin, length) = part(rest);
    // Counted from one.
    let begin = begin + 1;
    let parameters: [&(dyn ToSql + Sync); 5] = [&generation, &number, &n, &begin, &length];
    let row = session.client.query_opt(&get, &parameters).await?;
    let Some(row) = row else { return Err(damaged(file.id, "lacks a piece").into()) };
    let bytes: &[u8] = row.try_get(0)?;
    match bytes.len() == length as usize {
        true => Ok(Bytes::copy_from_slice(bytes)),
        false => Err(damaged(file.id, "has a piece that is too short").into()),
    }
}

impl BlockReader for PieceReader {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>>> {
        Box::pin(self.next_bytes())
    }
}
