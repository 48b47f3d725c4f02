//! Writes a file, piece after piece.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::future::join4;
use lazuli_env::BoxFuture;
use lazuli_store::blocks::{BlockFile, BlockId, BlockWriter, Owner};
use lazuli_store::crc64::Crc64;
use lazuli_store::{Error, Result};
use tokio_postgres::types::ToSql;

use super::{PIECE_BYTES, Shared, signed};
use crate::fault::Fault;
use crate::limits::PAGE_TIME_MAX;
use crate::session::Session;
use crate::sql::Sql;

pub(super) struct PieceWriter {
    /// None once the file is finished.
    shared: Option<Arc<Shared>>,
    id: BlockId,
    owner: Owner,
    /// The piece that is being filled.
    piece: BytesMut,
    /// Pieces that are in the database.
    written: i64,
    length: u64,
    sum: Crc64,
}

impl PieceWriter {
    pub(super) fn new(shared: Arc<Shared>, id: BlockId, owner: Owner) -> Self {
        let (piece, sum) = (BytesMut::new(), Crc64::new());
        Self { shared: Some(shared), id, owner, piece, written: 0, length: 0, sum }
    }

    async fn add(&mut self, mut bytes: Bytes) -> Result<()> {
        self.sum.update(&bytes);
        self.length += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.piece.len() == PIECE_BYTES {
                self.send().await?;
            }
            let room = PIECE_BYTES - self.piece.len();
            self.piece.extend_from_slice(&bytes.split_to(room.min(bytes.len())));
        }
        Ok(())
    }

    /// Writes a full piece. That it is on disk is known when the row of the file is, which comes later in the log.
    async fn send(&mut self) -> Result<()> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let lease = shared.pool.lease().await?;
        let session = lease.session();
        let piece = self.piece.split();
        let (generation, number) = (signed(self.id.generation), signed(self.id.number));
        let data = &piece[..];
        let parameters: [&(dyn ToSql + Sync); 4] = [&generation, &number, &self.written, &data];
        lease.run(PAGE_TIME_MAX, send(session, &parameters)).await?;
        self.written += 1;
        Ok(())
    }

    async fn end(mut self) -> Result<BlockFile> {
        let Some(shared) = self.shared.clone() else { return Err(lost()) };
        let file = BlockFile { id: self.id, length: self.length, crc64: self.sum.sum() };
        let last = (!self.piece.is_empty()).then_some(&self.piece[..]);
        let parameters: [&(dyn ToSql + Sync); 8] = [
            &signed(file.id.generation),
            &signed(file.id.number),
            &self.written,
            &last,
            &i64::from(self.owner.container),
            &&self.owner.route[..],
            &signed(file.length),
            &signed(file.crc64),
        ];
        match shared.execute(Sql::PutFile, &parameters).await? {
            0 => Err(lost()),
            _ => {
                self.shared = None;
                Ok(file)
            }
        }
    }
}

/// Inserts a piece without waiting for the disk.
async fn send(session: &Session, parameters: &[&(dyn ToSql + Sync)]) -> Result<(), Fault> {
    let wanted = [Sql::Begin, Sql::NoWait, Sql::PutPiece, Sql::Commit];
    let [begin, no_wait, put, commit] = session.prepared(wanted).await?;
    let client = &session.client;
    let (begun, no_wait) = (client.execute(&begin, &[]), client.execute(&no_wait, &[]));
    let (put, commit) = (client.execute(&put, parameters), client.execute(&commit, &[]));
    let (begun, no_wait, put, commit) = join4(begun, no_wait, put, commit).await;
    begun?;
    no_wait?;
    put?;
    commit?;
    Ok(())
}

/// After a crash of the server, pieces may be missing that were not on disk yet.
fn lost() -> Error {
    Error::unavailable("block-file-lost", "the database lost a part of the file: write it again")
}

impl Drop for PieceWriter {
    /// Removes what was written of a file that is not finished. If that fails, it goes when the generation is swept.
    fn drop(&mut self) {
        let Some(shared) = self.shared.take() else { return };
        if self.written == 0 {
            return;
        }
        let id = [signed(self.id.generation), signed(self.id.number)];
        let runtime = shared.database.runtime.clone();
        runtime.spawn(async move {
            let _ = shared.execute(Sql::RemoveFile, &[&id[0], &id[1]]).await;
        });
    }
}

impl BlockWriter for PieceWriter {
    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.add(bytes))
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<BlockFile>> {
        Box::pin((*self).end())
    }
}
