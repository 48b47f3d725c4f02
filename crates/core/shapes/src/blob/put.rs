//! Putting blobs: a whole block blob, an empty append blob, a page blob of zeros.

use lazuli_engine::{Error, Result, Transaction, Tx};

use super::address::{BlobAddress, BlobPlace};
use super::conditions::{Conditions, Facts};
use super::garbage::Garbage;
use super::limits::{PAGE_BLOB_BYTES_MAX, PAGE_BYTES};
use super::pieces::Piece;
use super::record::{
    BlobKind, BlobRecord, ChosenTier, ContentRef, CopyState, Form, Headers, Immutability, Tier,
};
use super::shardlet::Shardlet;
use super::upload::Content;
use super::{BlobReason, Blobs};

/// What the account keeps of what is replaced and deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    pub versioning: bool,
    /// How many days deleted blobs can be restored; none where deleting is for good.
    pub retention_days: Option<u32>,
}

/// What a new blob is, besides its bytes.
#[derive(Clone, Debug, Default)]
pub struct NewBlob {
    pub headers: Headers,
    pub metadata: Vec<(String, String)>,
    pub tags: Vec<(String, String)>,
    pub tier: Option<Tier>,
    pub immutability: Option<Immutability>,
    pub has_legal_hold: bool,
    pub expires_ms: Option<u64>,
    pub scope: Option<String>,
    /// The key with which what is appended or written in pages will be encrypted.
    pub key_sha256: Option<[u8; 32]>,
}

impl NewBlob {
    pub(super) fn record(self, kind: BlobKind, now: lazuli_engine::Lsn) -> Result<BlobRecord> {
        if let Some(tier) = self.tier {
            tier.check(kind)?;
        }
        let tier =
            self.tier.map(|tier| ChosenTier { tier, changed_ms: now.millis(), rehydration: None });
        Ok(BlobRecord {
            headers: self.headers,
            metadata: self.metadata,
            tags: self.tags,
            tier,
            immutability: self.immutability,
            has_legal_hold: self.has_legal_hold,
            expires_ms: self.expires_ms,
            scope: self.scope,
            key_sha256: self.key_sha256,
            ..BlobRecord::new(kind, now)
        })
    }
}

/// What is put.
pub(super) enum Body {
    Bytes(Vec<Piece>),
    /// What no piece covers is zeros.
    Pages {
        length: u64,
        sequence_number: u64,
        pieces: Vec<(u64, Piece)>,
    },
}

/// Replaces the blob of this name, if there is one.
pub(super) struct Put {
    pub(super) place: BlobPlace,
    pub(super) kind: BlobKind,
    pub(super) new: NewBlob,
    pub(super) body: Body,
    pub(super) conditions: Conditions,
    pub(super) protection: Protection,
    pub(super) copy: Option<CopyState>,
    pub(super) is_sealed: bool,
    pub(super) append_blocks: u32,
}

impl Transaction for Put {
    type Output = BlobRecord;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<BlobRecord> {
        let mut shardlet = Shardlet::new(tx, &self.place);
        let old = shardlet.replaceable(self.kind, &self.conditions, self.protection).await?;
        let mut record = self.record(&mut shardlet).await?;
        shardlet.replace(old, &mut record, self.protection).await?;
        Ok(record)
    }
}

impl Put {
    /// The new state, with the rows of its content.
    pub(super) async fn record(&self, shardlet: &mut Shardlet<'_, '_>) -> Result<BlobRecord> {
        let lsn = shardlet.lsn();
        let mut record = self.new.clone().record(self.kind, lsn)?;
        record.copy.clone_from(&self.copy);
        record.is_sealed = self.is_sealed;
        record.append_blocks = self.append_blocks;
        record.content = match &self.body {
            Body::Bytes(pieces) => {
                shardlet.share_repeated(pieces.iter()).await?;
                shardlet.store(pieces).await?
            }
            Body::Pages { length, sequence_number, pieces } => {
                record.sequence_number = *sequence_number;
                shardlet.share_repeated(pieces.iter().map(|(_, piece)| piece)).await?;
                for (offset, piece) in pieces {
                    let piece = Piece { since: lsn, ..piece.clone() };
                    shardlet.tx.put(&self.place.piece(lsn.0, *offset), piece.encode()).await?;
                }
                ContentRef { id: lsn.0, length: *length, form: Form::Pieces }
            }
        };
        if self.kind == BlobKind::Append {
            // Rows of pieces follow one by one.
            record.content.form = Form::Pieces;
            record.content.id = lsn.0;
        }
        if let Some(expires_ms) = record.expires_ms {
            shardlet.put_garbage(&Garbage::Due(expires_ms))?;
        }
        Ok(record)
    }
}

impl Shardlet<'_, '_> {
    /// The state that a new one is to replace, if it may.
    pub(super) async fn replaceable(
        &self,
        kind: BlobKind,
        conditions: &Conditions,
        protection: Protection,
    ) -> Result<Option<BlobRecord>> {
        let row = self.row().await?;
        let now_ms = self.now_ms();
        let found = row.as_ref().filter(|it| it.is_committed && !it.is_expired(now_ms));
        let facts = found.map(Facts::of);
        conditions.check_write(facts, found.map(|it| &it.lease), now_ms)?;
        if let Some(found) = found {
            if found.kind != kind {
                let message = "there is a blob of another type";
                return Err(Error::exists(BlobReason::BlobTypeMismatch, message));
            }
            found.check_changeable(now_ms)?;
            found.check_not_pending()?;
            if !protection.versioning {
                found.check_erasable(now_ms)?;
            }
        }
        Ok(row)
    }

    /// Puts a new state in the place of the old one, whose lease goes on.
    pub(super) async fn replace(
        &mut self,
        old: Option<BlobRecord>,
        record: &mut BlobRecord,
        protection: Protection,
    ) -> Result<()> {
        self.follow_clock(record);
        if protection.versioning {
            record.version = Some(self.moment().await?);
        }
        match old {
            Some(mut old) => {
                if old.is_committed {
                    record.lease = old.lease.clone();
                    record.lease.settle(self.now_ms());
                }
                self.drop_waiting(&mut old).await?;
                self.retire(old, protection).await?;
            }
            None if protection.retention_days.is_some() => self.bury().await?,
            None => {}
        }
        self.put_current(record).await
    }
}

impl BlobRecord {
    /// Whether the content and what is said about it may change.
    pub(super) fn check_changeable(&self, now_ms: u64) -> Result<()> {
        if !self.is_archived(now_ms) {
            return Ok(());
        }
        let way = self.tier_at(now_ms).and_then(|chosen| chosen.rehydration);
        let code = match way {
            Some(_) => BlobReason::BlobBeingRehydrated,
            None => BlobReason::BlobArchived,
        };
        Err(Error::exists(code, "the blob is in the archive"))
    }

    /// Whether this state may go away for good.
    pub(super) fn check_erasable(&self, now_ms: u64) -> Result<()> {
        if self.has_legal_hold {
            let message = "a legal hold keeps the blob as it is";
            return Err(Error::exists(BlobReason::LegalHold, message));
        }
        if self.immutability.is_some_and(|policy| policy.until_ms > now_ms) {
            let message = "a policy keeps the blob as it is";
            return Err(Error::exists(BlobReason::BlobImmutable, message));
        }
        Ok(())
    }
}

impl Blobs {
    /// Puts a block blob with all its bytes.
    pub async fn put_block_blob(
        &self,
        address: &BlobAddress,
        content: Content,
        new: NewBlob,
        conditions: &Conditions,
        protection: Protection,
    ) -> Result<BlobRecord> {
        self.put_content(address, content, new, None, conditions, protection).await
    }

    /// Puts a block blob whose bytes the front copied from somewhere else.
    pub async fn put_copied_blob(
        &self,
        address: &BlobAddress,
        content: Content,
        new: NewBlob,
        copy: CopyState,
        conditions: &Conditions,
        protection: Protection,
    ) -> Result<BlobRecord> {
        self.put_content(address, content, new, Some(copy), conditions, protection).await
    }

    async fn put_content(
        &self,
        address: &BlobAddress,
        content: Content,
        mut new: NewBlob,
        copy: Option<CopyState>,
        conditions: &Conditions,
        protection: Protection,
    ) -> Result<BlobRecord> {
        self.check_content(&content, address).await?;
        new.key_sha256 = content.key_sha256;
        let put = Put {
            place: content.place.clone(),
            kind: BlobKind::Block,
            new,
            body: Body::Bytes(content.piece.into_iter().collect()),
            conditions: conditions.clone(),
            protection,
            copy,
            is_sealed: false,
            append_blocks: 0,
        };
        self.commit(&content.place, put, content.files).await
    }

    /// Puts an append blob without bytes.
    pub async fn put_append_blob(
        &self,
        address: &BlobAddress,
        new: NewBlob,
        conditions: &Conditions,
        protection: Protection,
    ) -> Result<BlobRecord> {
        let body = Body::Bytes(Vec::new());
        self.put_empty(address, BlobKind::Append, body, new, conditions, protection).await
    }

    /// Puts a page blob of zeros.
    pub async fn put_page_blob(
        &self,
        address: &BlobAddress,
        length: u64,
        sequence_number: u64,
        new: NewBlob,
        conditions: &Conditions,
        protection: Protection,
    ) -> Result<BlobRecord> {
        check_page_length(length)?;
        let body = Body::Pages { length, sequence_number, pieces: Vec::new() };
        self.put_empty(address, BlobKind::Page, body, new, conditions, protection).await
    }

    async fn put_empty(
        &self,
        address: &BlobAddress,
        kind: BlobKind,
        body: Body,
        new: NewBlob,
        conditions: &Conditions,
        protection: Protection,
    ) -> Result<BlobRecord> {
        let place = self.find_place(address).await?;
        let put = Put {
            place: place.clone(),
            kind,
            new,
            body,
            conditions: conditions.clone(),
            protection,
            copy: None,
            is_sealed: false,
            append_blocks: 0,
        };
        self.commit(&place, put, None).await
    }
}

/// Whether a page blob may have this length.
pub(super) fn check_page_length(length: u64) -> Result<()> {
    if !length.is_multiple_of(PAGE_BYTES) {
        return Err(Error::invalid(BlobReason::InvalidPageRange, "a page has 512 bytes"));
    }
    if length > PAGE_BLOB_BYTES_MAX {
        let message = "a page blob has 8 TiB at the most";
        return Err(Error::too_large(BlobReason::InvalidPageRange, message));
    }
    Ok(())
}
