//! Snapshots: a state of a blob under a time, which shares the content until one of the two changes.

use lazuli_engine::{Lsn, Result, Transaction, Tx};

use super::Blobs;
use super::address::{BlobAddress, Past, Place};
use super::conditions::{Conditions, Facts};
use super::lease::Leased;
use super::place::no_blob;
use super::put::Protection;
use super::record::{BlobKind, BlobRecord};
use super::shardlet::Shardlet;

struct Snapshot {
    place: Place,
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
