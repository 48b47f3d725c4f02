//! Past states of a blob: snapshots, versions and soft-deleted ones. Taking, deleting and restoring them.
//!
//! A snapshot is a state of a blob under a time. It shares the content until one of the two changes.

use lazuli_engine::{Error, Lsn, Result, Transaction, Tx};

use super::address::{BlobAddress, BlobPlace, Past, Which, no_blob};
use super::conditions::{Conditions, Facts};
use super::lease::Leased;
use super::put::Protection;
use super::record::{BlobKind, BlobRecord};
use super::shardlet::Shardlet;
use super::{BlobReason, Blobs};

struct Snapshot {
    place: BlobPlace,
    metadata: Option<Vec<(String, String)>>,
    conditions: Conditions,
    key_sha256: Option<[u8; 32]>,
    protection: Protection,
}

impl Transaction for Snapshot {
    type Output = (Lsn, BlobRecord);

    async fn run(&self, tx: &mut Tx<'_>) -> Result<(Lsn, BlobRecord)> {
        let mut shardlet = Shardlet::new(tx, &self.place);
        let now_ms = shardlet.now_ms();
        let mut record = shardlet.current().await?.ok_or_else(no_blob)?;
        // A snapshot changes nothing that a lease protects: only an id that is given must be right.
        record.lease.check_read(self.conditions.lease_id.as_deref(), now_ms, Leased::Blob)?;
        let facts = Facts::of(&record);
        let rest = Conditions { lease_id: None, ..self.conditions.clone() };
        rest.check_write(Some(facts), Some(&Default::default()), now_ms)?;
        Blobs::check_same_key(record.key_sha256.as_ref(), self.key_sha256.as_ref())?;
        record.check_changeable(now_ms)?;
        let mut snapshot = record.clone();
        snapshot.lease = Default::default();
        snapshot.waiting = 0;
        snapshot.kept_until = shardlet.lsn();
        snapshot.version = None;
        if let Some(metadata) = &self.metadata {
            snapshot.metadata.clone_from(metadata);
            shardlet.touch(&mut snapshot);
        }
        shardlet.share_content(&record.content).await?;
        let time = shardlet.moment().await?;
        shardlet.put_past(Past::Snapshot, time, &snapshot).await?;
        if self.protection.versioning {
            // What the snapshot shows is a version too, and the blob goes on as the next one.
            let mut before = record.clone();
            before.waiting = 0;
            shardlet.share_content(&record.content).await?;
            shardlet.retire(before, self.protection).await?;
            record.version = Some(time);
        }
        if record.kind == BlobKind::Page || self.protection.versioning {
            record.kept_until = shardlet.lsn();
            shardlet.put_current(&record).await?;
        }
        snapshot.version = record.version;
        Ok((time, snapshot))
    }
}

impl Blobs {
    /// Takes a snapshot. Metadata that is given is the snapshot's instead of the blob's. Where versions are kept it makes
    /// one as well.
    pub async fn snapshot(
        &self,
        address: &BlobAddress,
        metadata: Option<Vec<(String, String)>>,
        conditions: &Conditions,
        key_sha256: Option<[u8; 32]>,
        protection: Protection,
    ) -> Result<(Lsn, BlobRecord)> {
        let place = self.find_place(address).await?;
        let conditions = conditions.clone();
        let snapshot =
            Snapshot { place: place.clone(), metadata, conditions, key_sha256, protection };
        self.commit(&place, snapshot, None).await
    }
}

/// What becomes of the snapshots of a blob that is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Snapshots {
    /// There must be none.
    #[default]
    Refuse,
    /// They are deleted with it.
    Include,
    /// Only they are deleted.
    Only,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    pub snapshots: Snapshots,
    /// Whether a snapshot or version that was deleted, and can be restored, is to be gone for good.
    pub permanent: bool,
}

/// How something was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteOutcome {
    /// Whether it is gone for good.
    pub permanent: bool,
}

struct Delete {
    place: BlobPlace,
    which: Which,
    options: DeleteOptions,
    conditions: Conditions,
    protection: Protection,
}

impl Transaction for Delete {
    type Output = DeleteOutcome;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<DeleteOutcome> {
        let mut shardlet = Shardlet::new(tx, &self.place);
        match self.which {
            Which::Current => self.delete_current(&mut shardlet).await,
            Which::Snapshot(time) => self.delete_past(&mut shardlet, Past::Snapshot, time).await,
            Which::Version(version) => {
                let current = shardlet.current().await?;
                if current.is_some_and(|record| record.version == Some(version)) {
                    let message = "the current version is deleted as the blob";
                    let code = BlobReason::OperationNotAllowedOnRoot;
                    return Err(Error::exists(code, message));
                }
                self.delete_past(&mut shardlet, Past::Version, version).await
            }
        }
    }
}

impl Delete {
    async fn delete_current(&self, shardlet: &mut Shardlet<'_, '_>) -> Result<DeleteOutcome> {
        let now_ms = shardlet.now_ms();
        let Some(mut record) = shardlet.current().await? else { return Err(no_blob()) };
        let facts = Facts::of(&record);
        self.conditions.check_write(Some(facts), Some(&record.lease), now_ms)?;
        let keeps_version = self.protection.versioning || record.version.is_some();
        let pasts = shardlet.pasts().await?;
        let snapshots: Vec<(Lsn, BlobRecord)> = pasts
            .into_iter()
            .filter(|(_, kind, _, it)| *kind == Past::Snapshot && it.deleted.is_none())
            .map(|(_, _, time, it)| (time, it))
            .collect();
        match self.options.snapshots {
            Snapshots::Refuse if !snapshots.is_empty() => {
                let message = "the blob has snapshots";
                return Err(Error::exists(BlobReason::SnapshotsPresent, message));
            }
            Snapshots::Refuse => {}
            Snapshots::Include | Snapshots::Only => {
                for (time, snapshot) in snapshots {
                    self.erase(shardlet, Past::Snapshot, time, snapshot).await?;
                }
            }
        }
        let permanent = self.protection.retention_days.is_none();
        if self.options.snapshots == Snapshots::Only {
            return Ok(DeleteOutcome { permanent });
        }
        if !keeps_version {
            record.check_erasable(now_ms)?;
        }
        shardlet.delete_current().await?;
        shardlet.drop_waiting(&mut record).await?;
        record.lease = Default::default();
        match self.protection.retention_days {
            // Deleted as it is, so that it comes back as it was.
            Some(days) if !keeps_version => {
                record.deleted = Some(shardlet.deleted(days).await?);
                record.kept_until = shardlet.lsn();
                let moment = shardlet.moment().await?;
                shardlet.put_past(Past::Deleted, moment, &record).await?;
            }
            _ => shardlet.retire(record, self.protection).await?,
        }
        Ok(DeleteOutcome { permanent: permanent && !keeps_version })
    }

    async fn delete_past(
        &self,
        shardlet: &mut Shardlet<'_, '_>,
        kind: Past,
        time: Lsn,
    ) -> Result<DeleteOutcome> {
        let found = shardlet.past(kind, time).await?;
        let wanted = |record: &BlobRecord| self.options.permanent || record.deleted.is_none();
        let record = found.filter(wanted).ok_or_else(no_blob)?;
        if self.options.permanent && record.deleted.is_none() {
            let message = "what is to go for good must have been deleted before";
            return Err(Error::exists(BlobReason::NotSoftDeleted, message));
        }
        let facts = Facts::of(&record);
        self.conditions.check_write(Some(facts), Some(&record.lease), shardlet.now_ms())?;
        let permanent = record.deleted.is_some() || self.protection.retention_days.is_none();
        self.erase(shardlet, kind, time, record).await?;
        Ok(DeleteOutcome { permanent })
    }

    /// Deletes a past state for a while, or for good.
    async fn erase(
        &self,
        shardlet: &mut Shardlet<'_, '_>,
        kind: Past,
        time: Lsn,
        mut record: BlobRecord,
    ) -> Result<()> {
        record.check_erasable(shardlet.now_ms())?;
        match self.protection.retention_days {
            Some(days) if record.deleted.is_none() => {
                record.deleted = Some(shardlet.deleted(days).await?);
                shardlet.put_past(kind, time, &record).await
            }
            _ => {
                shardlet.tx.delete(&self.place.past(kind, time)).await?;
                shardlet.drop_content(&record).await
            }
        }
    }
}

/// Restores all soft-deleted states that are still within their retention.
struct Undelete {
    place: BlobPlace,
}

impl Transaction for Undelete {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let mut shardlet = Shardlet::new(tx, &self.place);
        let now_ms = shardlet.now_ms();
        let current = shardlet.current().await?;
        let pasts = shardlet.pasts().await?;
        if current.is_none() && pasts.is_empty() {
            return Err(no_blob());
        }
        // The blob that was deleted last comes back as the blob; what was deleted before it stays a snapshot.
        let mut is_free = current.is_none();
        for (key, kind, time, mut record) in pasts.into_iter().rev() {
            match record.deleted.take() {
                Some(deleted) if deleted.until_ms > now_ms => {}
                _ => continue,
            }
            if kind == Past::Deleted {
                shardlet.tx.delete(&key).await?;
                if std::mem::take(&mut is_free) {
                    shardlet.put_current(&record).await?;
                } else {
                    shardlet.put_past(Past::Snapshot, time, &record).await?;
                }
            } else {
                shardlet.put_past(kind, time, &record).await?;
            }
        }
        Ok(())
    }
}

impl Blobs {
    /// Deletes a state of a blob.
    pub async fn delete(
        &self,
        address: &BlobAddress,
        which: Which,
        options: DeleteOptions,
        conditions: &Conditions,
        protection: Protection,
    ) -> Result<DeleteOutcome> {
        let place = self.find_place(address).await?;
        let conditions = conditions.clone();
        let delete = Delete { place: place.clone(), which, options, conditions, protection };
        self.commit(&place, delete, None).await
    }

    /// Brings a deleted blob back, with its deleted snapshots and versions. Fine where nothing was deleted.
    pub async fn undelete(&self, address: &BlobAddress) -> Result<()> {
        let place = self.find_place(address).await?;
        self.commit(&place.clone(), Undelete { place }, None).await
    }
}
