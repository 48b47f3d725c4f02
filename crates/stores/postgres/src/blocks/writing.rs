//! Writes a file, piece after piece.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::future::join4;
use lazuli_env::BoxFuture;
use lazuli_store::blocks::{BlockFile, BlockId, BlockWriter, Owner};
use lazuli_store::crc64::Crc64;
use lazuli_store::{Error, Result, StoreReason};
use tokio::task::JoinHandle;
use tokio_postgres::types::ToSql;

use super::{PIECE_BYTES, Shared, signed};
use crate::fault::Fault;
use crate::limits::PAGE_TIME_MAX;
use crate::sql::Sql;

/// Pieces of one file that are on their way at once.
const PIECES_SENT_MAX: usize = 2;

pub(super) struct PieceWriter {
    /// None once the file is finished.
    shared: Option<Arc<Shared>>,
    id: BlockId,
    owner: Owner,
    /// The piece that is being filled.
    piece: BytesMut,
    /// Pieces that were sent.
    sent: i64,
    /// The last ones of them, while they are on their way. The next piece is filled meanwhile.
    sending: VecDeque<JoinHandle<Result<()>>>,
    length: u64,
    sum: Crc64,
}

impl PieceWriter {
    pub(super) fn new(shared: Arc<Shared>, id: BlockId, owner: Owner) -> Self {
        let (piece, sum) = (BytesMut::new(), Crc64::new());
        let (sent, sending) = (0, VecDeque::new());
        Self { shared: Some(shared), id, owner, piece, sent, sending, length: 0, sum }
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

    /// Sends a full piece, on a connection of its own. The server takes one in while it writes the other.
    async fn send(&mut self) -> Result<()> {
        self.wait_for(PIECES_SENT_MAX - 1).await?;
        let Some(shared) = self.shared.clone() else { return Ok(()) };
        let (id, n, piece) = (self.id, self.sent, self.piece.split().freeze());
        let runtime = shared.database.runtime.clone();
        self.sending.push_back(runtime.spawn(async move { put(&shared, id, n, &piece).await }));
        self.sent += 1;
        Ok(())
    }

    /// Waits until at most so many pieces are on their way.
    async fn wait_for(&mut self, most: usize) -> Result<()> {
        while self.sending.len() > most {
            let Some(first) = self.sending.front_mut() else { return Ok(()) };
            let sent = first.await;
            self.sending.pop_front();
            sent.map_err(|error| Error::internal(StoreReason::Panicked, error))??;
        }
        Ok(())
    }

    async fn end(mut self) -> Result<BlockFile> {
        self.wait_for(0).await?;
        let Some(shared) = self.shared.clone() else { return Err(lost()) };
        let file = BlockFile { id: self.id, length: self.length, crc64: self.sum.sum() };
        let last = (!self.piece.is_empty()).then_some(&self.piece[..]);
        let parameters: [&(dyn ToSql + Sync); 8] = [
            &signed(file.id.generation),
            &signed(file.id.number),
            &self.sent,
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

/// Inserts a piece without waiting for the disk. That it is on disk is known when the row of the file is, which comes later
/// in the log.
async fn put(shared: &Shared, id: BlockId, n: i64, piece: &[u8]) -> Result<()> {
    let lease = shared.pool.lease().await?;
    let session = lease.session();
    let (generation, number) = (signed(id.generation), signed(id.number));
    let parameters: [&(dyn ToSql + Sync); 4] = [&generation, &number, &n, &piece];
    let sent = async {
        let wanted = [Sql::Begin, Sql::NoWait, Sql::PutPiece, Sql::Commit];
        let [begin, no_wait, put, commit] = session.prepared(wanted).await?;
        let client = &session.client;
        let (begun, no_wait) = (client.execute(&begin, &[]), client.execute(&no_wait, &[]));
        let (put, commit) = (client.execute(&put, &parameters), client.execute(&commit, &[]));
        let (begun, no_wait, put, commit) = join4(begun, no_wait, put, commit).await;
        // After an error in front of it, COMMIT rolls back, and does not say so.
        for answer in [begun, no_wait, put, commit] {
            answer?;
        }
        Ok::<(), Fault>(())
    };
    lease.run(PAGE_TIME_MAX, sent).await
}

/// After a crash of the server, pieces may be missing that were not on disk yet.
fn lost() -> Error {
    Error::unavailable("block-file-lost", "the database lost a part of the file: write it again")
}

impl Drop for PieceWriter {
    /// Removes what was written of a file that is not finished. If that fails, it goes when the generation is swept.
    fn drop(&mut self) {
        let Some(shared) = self.shared.take() else { return };
        if self.sent == 0 {
            return;
        }
        let sending = std::mem::take(&mut self.sending);
        let id = [signed(self.id.generation), signed(self.id.number)];
        let runtime = shared.database.runtime.clone();
        runtime.spawn(async move {
            for piece in sending {
                let _ = piece.await;
            }
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
