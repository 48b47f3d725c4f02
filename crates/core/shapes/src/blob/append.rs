//! Append blobs: blocks that only ever come at the end. Each is a row of its own, so that an append rewrites nothing.

use lazuli_engine::{Error, Result, Transaction, Tx};

use super::address::{BlobAddress, BlobPlace, no_blob};
use super::conditions::{Conditions, Facts};
use super::limits::BLOCKS_COMMITTED_MAX;
use super::pieces::Piece;
use super::record::{BlobKind, BlobRecord};
use super::shardlet::Shardlet;
use super::upload::Content;
use super::{BlobReason, Blobs};

/// What must hold of the length of an append blob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppendConditions {
    /// The length before the append.
    pub position: Option<u64>,
    /// The most that the length may be after it.
    pub max_length: Option<u64>,
}

struct Append {
    place: BlobPlace,
    piece: Piece,
    key_sha256: Option<[u8; 32]>,
    wanted: AppendConditions,
    conditions: Conditions,
}

impl Transaction for Append {
    type Output = (u64, BlobRecord);

    async fn run(&self, tx: &mut Tx<'_>) -> Result<(u64, BlobRecord)> {
        let mut shardlet = Shardlet::new(tx, &self.place);
        let mut record = shardlet.changeable(BlobKind::Append, &self.conditions).await?;
        Blobs::check_same_key(record.key_sha256.as_ref(), self.key_sha256.as_ref())?;
        if record.is_sealed {
            return Err(Error::exists(BlobReason::BlobSealed, "the blob is sealed"));
        }
        let (offset, length) = (record.content.length, self.piece.length);
        self.wanted.check_position(offset)?;
        if self.wanted.max_length.is_some_and(|most| offset + length > most) {
            let message = "the blob would be longer than it may be";
            return Err(Error::precondition(BlobReason::MaxBlobSizeNotMet, message));
        }
        if record.append_blocks as usize >= BLOCKS_COMMITTED_MAX {
            let message = "an append blob has 50,000 blocks at the most";
            return Err(Error::exists(BlobReason::BlockCountExceeded, message));
        }
        let key = self.place.piece(record.content.id, offset);
        // An append blob only grows, so that nothing is there yet.
        shardlet.tx.replace(&key, None, self.piece.encode(), None)?;
        record.content.length += length;
        record.append_blocks += 1;
        shardlet.touch(&mut record);
        shardlet.put_current(&record).await?;
        Ok((offset, record))
    }
}

struct Seal {
    place: BlobPlace,
    wanted: AppendConditions,
    conditions: Conditions,
}

impl Transaction for Seal {
    type Output = BlobRecord;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<BlobRecord> {
        let mut shardlet = Shardlet::new(tx, &self.place);
        let mut record = shardlet.changeable(BlobKind::Append, &self.conditions).await?;
        self.wanted.check_position(record.content.length)?;
        if !record.is_sealed {
            record.is_sealed = true;
            shardlet.touch(&mut record);
            shardlet.put_current(&record).await?;
        }
        Ok(record)
    }
}

impl AppendConditions {
    fn check_position(&self, length: u64) -> Result<()> {
        if self.position.is_none_or(|position| position == length) {
            return Ok(());
        }
        let message = format!("the blob has {length} bytes");
        Err(Error::precondition(BlobReason::AppendPositionNotMet, message))
    }
}

impl Shardlet<'_, '_> {
    /// The blob, if it is of this type, the conditions hold, and its bytes may change.
    pub(super) async fn changeable(
        &self,
        kind: BlobKind,
        conditions: &Conditions,
    ) -> Result<BlobRecord> {
        let now_ms = self.now_ms();
        let mut record = self.current().await?.ok_or_else(no_blob)?;
        record.check_kind(kind)?;
        let facts = Facts::of(&record);
        conditions.check_write(Some(facts), Some(&record.lease), now_ms)?;
        record.check_changeable(now_ms)?;
        record.check_erasable(now_ms)?;
        record.check_not_pending()?;
        record.lease.settle(now_ms);
        Ok(record)
    }
}

impl Blobs {
    /// Adds a block at the end. Answers where it begins.
    pub async fn append_block(
        &self,
        address: &BlobAddress,
        content: Content,
        wanted: AppendConditions,
        conditions: &Conditions,
    ) -> Result<(u64, BlobRecord)> {
        self.check_content(&content, address).await?;
        let Some(piece) = content.piece else {
            return Err(Error::invalid(BlobReason::InvalidBlockId, "a block is not empty"));
        };
        let append = Append {
            place: content.place.clone(),
            piece,
            key_sha256: content.key_sha256,
            wanted,
            conditions: conditions.clone(),
        };
        self.commit(&content.place, append, content.files).await
    }

    /// Lets nothing more be appended.
    pub async fn seal(
        &self,
        address: &BlobAddress,
        position: Option<u64>,
        conditions: &Conditions,
    ) -> Result<BlobRecord> {
        let place = self.find_place(address).await?;
        let wanted = AppendConditions { position, max_length: None };
        let seal = Seal { place: place.clone(), wanted, conditions: conditions.clone() };
        self.commit(&place, seal, None).await
    }
}
