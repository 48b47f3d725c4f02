//! Blocks: put one by one, then named by a list, which makes them the content of a block blob.
//!
//! Blocks that wait belong to a session, whose number the blob's record has. A commit takes those that it names and leaves
//! the session behind; the collector clears away the rest of it, however much that is.

use bytes::Bytes;
use lazuli_engine::{Direction, Error, PageLimit, Result, Space, Transaction, Tx};

use super::address::{BlobAddress, BlobPlace};
use super::conditions::{Conditions, Facts};
use super::garbage::Garbage;
use super::limits::{BLOCK_ID_BYTES_MAX, BLOCKS_UNCOMMITTED_MAX, UNCOMMITTED_MAX_MS};
use super::pieces::{Piece, Source, decode_one};
use super::record::{BlobKind, BlobRecord};
use super::rows::{Reader, Writer};
use super::shardlet::Shardlet;
use super::upload::Content;
use super::{BlobReason, Blobs};

/// What is known of the blocks of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) blocks: u64,
    pub(super) key_sha256: Option<[u8; 32]>,
}

impl Session {
    fn encode(&self) -> Bytes {
        let mut to = Writer::new();
        to.number(self.blocks);
        if let Some(sum) = &self.key_sha256 {
            to.raw(sum);
        }
        to.finish()
    }

    pub(super) fn decode(bytes: Bytes) -> Result<Self> {
        let mut from = Reader::new(bytes);
        let blocks = from.number()?;
        let key_sha256 = if from.is_empty() { None } else { Some(from.array()?) };
        Ok(Self { blocks, key_sha256 })
    }
}

struct PutBlock {
    place: BlobPlace,
    id: Bytes,
    piece: Piece,
    key_sha256: Option<[u8; 32]>,
    lease_id: Option<String>,
}

impl Transaction for PutBlock {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let mut shardlet = Shardlet::new(tx, &self.place);
        let record = self.record(&shardlet).await?;
        let key = self.place.block(record.waiting, &[]);
        let found = shardlet.tx.get(&key).await?;
        let mut session = match found {
            Some(item) => Session::decode(item.payload)?,
            None => {
                let due_ms = shardlet.now_ms() + UNCOMMITTED_MAX_MS;
                shardlet.put_idle(record.waiting, due_ms).await?;
                shardlet.put_current(&record).await?;
                Session { blocks: 0, key_sha256: self.key_sha256 }
            }
        };
        Blobs::check_same_key(session.key_sha256.as_ref(), self.key_sha256.as_ref())?;
        self.check_id(&shardlet, record.waiting).await?;
        let mut piece = self.piece.clone();
        if let Source::Row(bytes) = &piece.source {
            piece.source = Source::File(shardlet.put_cell(bytes).await?);
        }
        let block = self.place.block(record.waiting, &self.id);
        match shardlet.tx.get(&block).await? {
            Some(old) => shardlet.drop_piece(&decode_one(old.payload)?).await?,
            None => session.blocks += 1,
        }
        if session.blocks > BLOCKS_UNCOMMITTED_MAX as u64 {
            let message = "too many blocks wait for a commit";
            return Err(Error::exists(BlobReason::BlockCountExceeded, message));
        }
        shardlet.tx.put(&block, piece.encode()).await?;
        shardlet.tx.put(&key, session.encode()).await
    }
}

impl PutBlock {
    /// The blob, or what stands for it until its first commit, with a session.
    async fn record(&self, shardlet: &Shardlet<'_, '_>) -> Result<BlobRecord> {
        let now_ms = shardlet.now_ms();
        let row = shardlet.row().await?.filter(|it| !it.is_expired(now_ms));
        let found = row.as_ref().filter(|it| it.is_committed);
        let conditions = Conditions::leased(self.lease_id.clone());
        let facts = found.map(Facts::of);
        conditions.check_write(facts, found.map(|it| &it.lease), now_ms)?;
        if let Some(found) = found {
            found.check_kind(BlobKind::Block)?;
            found.check_changeable(now_ms)?;
        }
        let mut record = row.unwrap_or_else(|| BlobRecord {
            is_committed: false,
            ..BlobRecord::new(BlobKind::Block, shardlet.lsn())
        });
        if record.waiting == 0 {
            record.waiting = shardlet.lsn().0;
        }
        Ok(record)
    }

    /// All ids of the blocks of a blob have one length.
    async fn check_id(&self, shardlet: &Shardlet<'_, '_>, session: u64) -> Result<()> {
        let range = self.place.range(&session.to_be_bytes());
        let (container, last) = (self.place.container, Direction::Backward);
        let limit = PageLimit::items(1);
        let page = shardlet.tx.scan(container, Space::BLOB_BLOCKS, &range, last, limit).await?;
        let Some((key, _)) = page.items.first() else { return Ok(()) };
        let length = key.len() - lazuli_engine::PREFIX_BYTES - self.place.route.len() - 8;
        if length == 0 || length == self.id.len() {
            return Ok(());
        }
        let message = "the ids of all blocks of a blob have one length";
        Err(Error::invalid(BlobReason::InvalidBlockId, message))
    }
}

impl BlobRecord {
    pub(super) fn check_kind(&self, kind: BlobKind) -> Result<()> {
        if self.kind == kind {
            return Ok(());
        }
        Err(Error::exists(BlobReason::BlobTypeMismatch, "the blob is of another type"))
    }
}

impl Shardlet<'_, '_> {
    /// Leaves the blocks that wait for a commit to the collector.
    pub(super) async fn drop_waiting(&mut self, record: &mut BlobRecord) -> Result<()> {
        match std::mem::take(&mut record.waiting) {
            0 => Ok(()),
            session => {
                self.tx.delete(&self.place.idle(session)).await?;
                self.put_garbage(&Garbage::Session(session))
            }
        }
    }

    /// Has a session looked at when its blocks may have waited too long.
    pub(super) async fn put_idle(&mut self, session: u64, due_ms: u64) -> Result<()> {
        let row = Garbage::Idle { session, due_ms }.encode();
        self.tx.put(&self.place.idle(session), row).await
    }

    /// One piece less names what it names.
    pub(super) async fn drop_piece(&mut self, piece: &Piece) -> Result<()> {
        match piece.file() {
            Some(file) => self.drop_files(&[(file.id, 1)].into()).await,
            None => Ok(()),
        }
    }
}

impl Blobs {
    /// Puts a block that waits for a commit, in the place of one with the same id.
    pub async fn put_block(
        &self,
        address: &BlobAddress,
        id: Bytes,
        content: Content,
        lease_id: Option<&str>,
    ) -> Result<()> {
        if id.is_empty() || id.len() > BLOCK_ID_BYTES_MAX {
            let message = "the id of a block has 1 to 64 bytes";
            return Err(Error::invalid(BlobReason::InvalidBlockId, message));
        }
        self.check_content(&content, address).await?;
        let Some(mut piece) = content.piece else {
            return Err(Error::invalid(BlobReason::InvalidBlockId, "a block is not empty"));
        };
        piece.block = id.clone();
        let put = PutBlock {
            place: content.place.clone(),
            id,
            piece,
            key_sha256: content.key_sha256,
            lease_id: lease_id.map(str::to_owned),
        };
        self.commit(&content.place, put, content.files).await
    }
}
