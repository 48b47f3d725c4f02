//! What a blob and a container are: their records, one row each, small enough that a list reads nothing but records.

use bytes::Bytes;
use lazuli_engine::{Lsn, Result, Tx};

use super::lease::Lease;
use super::rows::{Reader, Writer, damaged};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobKind {
    Block,
    Append,
    Page,
}

/// Where the bytes of a blob are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentRef {
    /// Unique among the contents of its blob.
    pub(super) id: u64,
    pub length: u64,
    pub(super) form: Form,
}

/// How a content is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Form {
    /// There are no bytes, and no rows.
    #[default]
    Empty,
    /// One row that has them all.
    Inline,
    /// Rows of pieces.
    Pieces,
}

/// What a client says about the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    pub content_type: Option<String>,
    pub content_encoding: Option<String>,
    pub content_language: Option<String>,
    pub content_disposition: Option<String>,
    pub cache_control: Option<String>,
    pub content_md5: Option<[u8; 16]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    Hot,
    Cool,
    Cold,
    Archive,
    /// The tiers of page blobs on premium accounts, by their number: 4, 6, 10 and so on up to 80.
    Premium(u8),
}

/// A tier that a client chose; a blob without one has the account's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChosenTier {
    pub tier: Tier,
    pub changed_ms: u64,
    /// Out of the archive, and when it will be there.
    pub rehydration: Option<Rehydration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rehydration {
    pub to: Tier,
    pub is_urgent: bool,
    pub ready_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyStatus {
    Pending,
    Success,
    Aborted,
    Failed,
}

/// The last copy that made, or was to make, this blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyState {
    pub id: String,
    pub source: String,
    pub status: CopyStatus,
    pub done: u64,
    pub total: u64,
    pub completed_ms: Option<u64>,
    pub description: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Immutability {
    pub until_ms: u64,
    pub is_locked: bool,
}

/// That a state was deleted where deletions are kept for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deleted {
    pub at_ms: u64,
    /// From then on it is gone for good.
    pub until_ms: u64,
}

/// One state of a blob: the current one, a snapshot, a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobRecord {
    pub kind: BlobKind,
    pub created_ms: u64,
    /// The write that gave it its ETag and its time of last modification.
    pub changed: Lsn,
    /// When that was, where it does not follow from its number: the clock had been ahead, and was set back.
    pub(super) changed_ms: Option<u64>,
    pub content: ContentRef,
    /// False while there are only blocks that wait for a commit.
    pub is_committed: bool,
    pub version: Option<Lsn>,
    /// Whether a read found it to be the version that the blob has now. No row says so.
    pub is_current_version: bool,
    pub headers: Headers,
    pub metadata: Vec<(String, String)>,
    pub tags: Vec<(String, String)>,
    pub tier: Option<ChosenTier>,
    pub lease: Lease,
    pub copy: Option<CopyState>,
    pub immutability: Option<Immutability>,
    pub has_legal_hold: bool,
    pub expires_ms: Option<u64>,
    /// The SHA-256 of the customer's key with which the content is encrypted.
    pub key_sha256: Option<[u8; 32]>,
    /// The name of the encryption scope that the client chose.
    pub scope: Option<String>,
    pub deleted: Option<Deleted>,
    /// Of page blobs.
    pub sequence_number: u64,
    /// Of a past state: when it stopped being the current one. Of the current state of a page blob: pieces that were there
    /// at this time must be kept for older states.
    pub(super) kept_until: Lsn,
    /// Of append blobs.
    pub append_blocks: u32,
    pub is_sealed: bool,
    /// The session of blocks that wait for a commit; 0 where none do.
    pub(super) waiting: u64,
}

impl BlobRecord {
    pub(super) fn new(kind: BlobKind, now: Lsn) -> Self {
        Self {
            kind,
            created_ms: now.millis(),
            changed: now,
            changed_ms: None,
            content: ContentRef::default(),
            is_committed: true,
            version: None,
            is_current_version: false,
            headers: Headers::default(),
            metadata: Vec::new(),
            tags: Vec::new(),
            tier: None,
            lease: Lease::default(),
            copy: None,
            immutability: None,
            has_legal_hold: false,
            expires_ms: None,
            key_sha256: None,
            scope: None,
            deleted: None,
            sequence_number: 0,
            kept_until: Lsn::ZERO,
            append_blocks: 0,
            is_sealed: false,
            waiting: 0,
        }
    }

    pub fn length(&self) -> u64 {
        self.content.length
    }

    /// The write that gave it its ETag, and when it was.
    pub fn modified(&self) -> (Lsn, u64) {
        (self.changed, self.modified_ms())
    }

    /// When it was last modified, in milliseconds since the Unix epoch.
    pub fn modified_ms(&self) -> u64 {
        self.changed_ms.unwrap_or(self.changed.millis())
    }

    /// The same in seconds.
    pub fn modified_s(&self) -> u64 {
        self.modified_ms() / 1000
    }

    /// The tier and, on the way out of the archive, where to.
    pub fn tier_at(&self, now_ms: u64) -> Option<ChosenTier> {
        let chosen = self.tier?;
        Some(match chosen.rehydration {
            Some(way) if way.ready_ms <= now_ms => {
                ChosenTier { tier: way.to, changed_ms: way.ready_ms, rehydration: None }
            }
            _ => chosen,
        })
    }

    pub fn is_archived(&self, now_ms: u64) -> bool {
        self.tier_at(now_ms).is_some_and(|chosen| chosen.tier == Tier::Archive)
    }

    pub(super) fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|expires| expires <= now_ms)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PublicAccess {
    #[default]
    None,
    /// Blobs can be read by anybody who knows their names.
    Blob,
    /// They can also be listed.
    Container,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerRecord {
    /// Unique for each time that a container of this name was created: the blobs of one know the other not.
    pub(super) generation: i64,
    pub created_ms: u64,
    /// The write that gave it its ETag and its time of last modification.
    pub changed: Lsn,
    /// When that was, where it does not follow from its number: the clock had been ahead, and was set back.
    pub(super) changed_ms: Option<u64>,
    pub metadata: Vec<(String, String)>,
    pub public_access: PublicAccess,
    /// Stored access policies, in the front's own form.
    pub policies: Bytes,
    pub lease: Lease,
    /// The encryption scope of blobs that choose none.
    pub scope: Option<String>,
    pub is_scope_fixed: bool,
    pub is_immutable_by_version: bool,
    /// Whether its blobs are placed by a hash of their names.
    pub is_hashed: bool,
    pub deleted: Option<Deleted>,
}

const FORMAT: u8 = 1;
const SCOPE_FIXED: u8 = 1;
const IMMUTABLE: u8 = 2;
const HASHED: u8 = 4;

mod field {
    pub(super) const METADATA: u8 = 1;
    pub(super) const POLICIES: u8 = 2;
    pub(super) const LEASE: u8 = 3;
    pub(super) const SCOPE: u8 = 4;
    pub(super) const DELETED: u8 = 5;
    pub(super) const CHANGED_MS: u8 = 6;
}

impl ContainerRecord {
    /// The write that gave it its ETag, and when it was, in milliseconds since the Unix epoch.
    pub fn modified(&self) -> (Lsn, u64) {
        (self.changed, self.changed_ms.unwrap_or(self.changed.millis()))
    }

    /// When it was last modified, in seconds since the Unix epoch.
    pub fn modified_s(&self) -> u64 {
        self.modified().1 / 1000
    }

    /// Says that it is changed now.
    pub(super) fn touch(&mut self, tx: &Tx<'_>) {
        self.changed = tx.lsn();
        self.changed_ms = tx.set_back_ms();
    }

    pub(super) fn encode(&self) -> Bytes {
        let mut to = Writer::new();
        to.u8(FORMAT);
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        to.u8(flag(self.is_scope_fixed, SCOPE_FIXED)
            | flag(self.is_immutable_by_version, IMMUTABLE)
            | flag(self.is_hashed, HASHED));
        to.u8(self.public_access as u8);
        to.u64(self.generation.cast_unsigned());
        to.u64(self.created_ms);
        to.u64(self.changed.0);
        let metadata = (!self.metadata.is_empty()).then_some(&self.metadata);
        to.field(field::METADATA, metadata, |to, pairs| to.pairs(pairs));
        let policies = (!self.policies.is_empty()).then_some(&self.policies);
        to.field(field::POLICIES, policies, |to, policies| to.bytes(policies));
        let lease = self.lease.id.is_some().then_some(&self.lease);
        to.field(field::LEASE, lease, |to, lease| lease.write(to));
        to.field(field::SCOPE, self.scope.as_ref(), |to, scope| to.text(scope));
        to.field(field::DELETED, self.deleted.as_ref(), |to, deleted| {
            to.u64(deleted.at_ms);
            to.u64(deleted.until_ms);
        });
        to.field(field::CHANGED_MS, self.changed_ms.as_ref(), |to, it| to.u64(*it));
        to.finish()
    }

    pub(super) fn decode(bytes: Bytes) -> Result<Self> {
        let mut from = Reader::new(bytes);
        if from.u8()? != FORMAT {
            return Err(damaged());
        }
        let flags = from.u8()?;
        if flags & !(SCOPE_FIXED | IMMUTABLE | HASHED) != 0 {
            return Err(damaged());
        }
        let public_access = match from.u8()? {
            0 => PublicAccess::None,
            1 => PublicAccess::Blob,
            2 => PublicAccess::Container,
            _ => return Err(damaged()),
        };
        let mut record = Self {
            generation: from.u64()?.cast_signed(),
            created_ms: from.u64()?,
            changed: Lsn(from.u64()?),
            changed_ms: None,
            metadata: Vec::new(),
            public_access,
            policies: Bytes::new(),
            lease: Lease::default(),
            scope: None,
            is_scope_fixed: flags & SCOPE_FIXED != 0,
            is_immutable_by_version: flags & IMMUTABLE != 0,
            is_hashed: flags & HASHED != 0,
            deleted: None,
        };
        while !from.is_empty() {
            match from.u8()? {
                field::METADATA => record.metadata = from.pairs()?,
                field::POLICIES => record.policies = from.bytes()?,
                field::LEASE => record.lease = Lease::read(&mut from)?,
                field::SCOPE => record.scope = Some(from.text()?),
                field::DELETED => {
                    let (at_ms, until_ms) = (from.u64()?, from.u64()?);
                    record.deleted = Some(Deleted { at_ms, until_ms });
                }
                field::CHANGED_MS => record.changed_ms = Some(from.u64()?),
                _ => return Err(damaged()),
            }
        }
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_its_row_and_damage_is_an_error() {
        let record = ContainerRecord {
            generation: -3,
            created_ms: 1,
            changed: Lsn(2),
            changed_ms: Some(9),
            metadata: vec![("a".into(), "b".into())],
            public_access: PublicAccess::Container,
            policies: "policies".into(),
            lease: Lease { id: Some("x".into()), seconds: Some(15), ..Lease::default() },
            scope: Some("scope".into()),
            is_scope_fixed: true,
            is_immutable_by_version: false,
            is_hashed: true,
            deleted: Some(Deleted { at_ms: 3, until_ms: 4 }),
        };
        let row = record.encode();
        assert_eq!(ContainerRecord::decode(row.clone()).unwrap(), record);
        for length in 0..row.len() {
            let _ = ContainerRecord::decode(row.slice(..length));
        }
        assert!(ContainerRecord::decode(row.slice(..20)).is_err());
    }
}
