//! What is said about a blob without touching its bytes: headers, metadata, tags, tier, policies, expiry.

use lazuli_engine::{Error, Result, Transaction, Tx};

use super::address::{BlobAddress, BlobPlace, Past, Which, no_blob};
use super::conditions::{Conditions, Facts};
use super::garbage::Garbage;
use super::lease::{Lease, LeaseAction};
use super::put::Protection;
use super::record::{BlobKind, BlobRecord, ChosenTier, Headers, Immutability, Rehydration, Tier};
use super::shardlet::Shardlet;
use super::{BlobReason, Blobs};

/// How long a blob takes out of the archive: no time is a service's to know, so it is short enough to be waited for.
const REHYDRATION_MS: u64 = 10_000;
const REHYDRATION_URGENT_MS: u64 = 1_000;

/// What a change of a record is to the rest of the world.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// A new ETag.
    Modified,
    /// A new ETag, and a new version where versions are kept.
    NewVersion,
    /// No new ETag, though a lease keeps others from it.
    SameEtag,
    /// No new ETag, and a lease is no obstacle: only an id that is given must be right.
    Free,
}

impl Effect {
    fn has_new_etag(self) -> bool {
        matches!(self, Self::Modified | Self::NewVersion)
    }
}

/// Changes one record if the conditions hold.
struct Amend<F> {
    place: BlobPlace,
    which: Which,
    conditions: Conditions,
    effect: Effect,
    protection: Protection,
    /// Whether a lease keeps others from it.
    minds_lease: bool,
    change: F,
}

impl<F> Transaction for Amend<F>
where
    F: Fn(&mut BlobRecord, u64) -> Result<()> + Send + Sync + 'static,
{
    type Output = BlobRecord;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<BlobRecord> {
        let mut shardlet = Shardlet::new(tx, &self.place);
        let now_ms = shardlet.now_ms();
        let (found, past) = shardlet.state(self.which).await?;
        let mut record = found.filter(|it| it.deleted.is_none()).ok_or_else(no_blob)?;
        let facts = Facts::of(&record);
        // A lease that does not matter here is not looked at.
        let unlocked = Lease::default();
        let lease = if self.minds_lease { &record.lease } else { &unlocked };
        self.conditions.check_write(Some(facts), Some(lease), now_ms)?;
        let before = record.clone();
        (self.change)(&mut record, now_ms)?;
        if self.effect.has_new_etag() {
            shardlet.touch(&mut record);
            record.lease.settle(now_ms);
        }
        if let Some(expires_ms) =
            record.expires_ms.filter(|_| record.expires_ms != before.expires_ms)
        {
            shardlet.put_garbage(&Garbage::Due(expires_ms))?;
        }
        match past {
            Some((kind, time)) => shardlet.put_past(kind, time, &record).await?,
            None => {
                if self.effect == Effect::NewVersion && self.protection.versioning {
                    shardlet.share_content(&before.content).await?;
                    record.kept_until = shardlet.lsn();
                    record.version = Some(shardlet.moment().await?);
                    let mut before = before;
                    before.waiting = 0;
                    shardlet.retire(before, self.protection).await?;
                }
                shardlet.put_current(&record).await?;
            }
        }
        Ok(record)
    }
}

impl Shardlet<'_, '_> {
    /// A state of the blob, and where it is kept if it is a past one.
    pub(super) async fn state(
        &self,
        which: Which,
    ) -> Result<(Option<BlobRecord>, Option<(Past, lazuli_engine::Lsn)>)> {
        let (kind, time) = match which {
            Which::Current => return Ok((self.current().await?, None)),
            Which::Snapshot(time) => (Past::Snapshot, time),
            Which::Version(version) => {
                let current = self.current().await?;
                if current.as_ref().is_some_and(|it| it.version == Some(version)) {
                    return Ok((current, None));
                }
                (Past::Version, version)
            }
        };
        Ok((self.past(kind, time).await?, Some((kind, time))))
    }
}

impl Blobs {
    async fn amend<F>(
        &self,
        address: &BlobAddress,
        which: Which,
        conditions: &Conditions,
        effect: Effect,
        protection: Protection,
        change: F,
    ) -> Result<BlobRecord>
    where
        F: Fn(&mut BlobRecord, u64) -> Result<()> + Send + Sync + 'static,
    {
        let place = self.find_place(address).await?;
        let minds_lease = effect != Effect::Free || conditions.lease_id.is_some();
        let amend = Amend {
            place: place.clone(),
            which,
            conditions: conditions.clone(),
            effect,
            protection,
            minds_lease,
            change,
        };
        self.commit(&place, amend, None).await
    }

    /// Replaces all headers: those that are not given are gone.
    pub async fn set_headers(
        &self,
        address: &BlobAddress,
        headers: Headers,
        conditions: &Conditions,
    ) -> Result<BlobRecord> {
        let change = move |record: &mut BlobRecord, now_ms| {
            record.check_changeable(now_ms)?;
            record.headers = headers.clone();
            Ok(())
        };
        let none = Protection::default();
        self.amend(address, Which::Current, conditions, Effect::Modified, none, change).await
    }

    /// Replaces all metadata.
    pub async fn set_metadata(
        &self,
        address: &BlobAddress,
        metadata: Vec<(String, String)>,
        conditions: &Conditions,
        protection: Protection,
        key_sha256: Option<[u8; 32]>,
    ) -> Result<BlobRecord> {
        let change = move |record: &mut BlobRecord, now_ms| {
            record.check_changeable(now_ms)?;
            Self::check_same_key(record.key_sha256.as_ref(), key_sha256.as_ref())?;
            record.metadata.clone_from(&metadata);
            Ok(())
        };
        let (which, effect) = (Which::Current, Effect::NewVersion);
        self.amend(address, which, conditions, effect, protection, change).await
    }

    /// Replaces all tags.
    pub async fn set_tags(
        &self,
        address: &BlobAddress,
        which: Which,
        tags: Vec<(String, String)>,
        conditions: &Conditions,
    ) -> Result<()> {
        let change = move |record: &mut BlobRecord, _| {
            record.tags.clone_from(&tags);
            Ok(())
        };
        let none = Protection::default();
        self.amend(address, which, conditions, Effect::SameEtag, none, change).await?;
        Ok(())
    }

    /// Puts a blob into a tier. Out of the archive it takes a while: the answer then says so.
    pub async fn set_tier(
        &self,
        address: &BlobAddress,
        which: Which,
        tier: Tier,
        is_urgent: bool,
        conditions: &Conditions,
    ) -> Result<BlobRecord> {
        let change =
            move |record: &mut BlobRecord, now_ms| move_to_tier(record, tier, is_urgent, now_ms);
        let none = Protection::default();
        self.amend(address, which, conditions, Effect::SameEtag, none, change).await
    }

    /// Keeps a state from being changed and deleted until some time, or lets go of it.
    pub async fn set_immutability(
        &self,
        address: &BlobAddress,
        which: Which,
        policy: Option<Immutability>,
        conditions: &Conditions,
    ) -> Result<BlobRecord> {
        let change = move |record: &mut BlobRecord, now_ms: u64| {
            let locked = record.immutability.filter(|it| it.is_locked && it.until_ms > now_ms);
            if let Some(locked) = locked {
                let extends =
                    policy.is_some_and(|it| it.is_locked && it.until_ms >= locked.until_ms);
                if !extends {
                    let message = "a locked policy can only be made longer";
                    return Err(Error::exists(BlobReason::ImmutabilityLocked, message));
                }
            }
            record.immutability = policy;
            Ok(())
        };
        let none = Protection::default();
        self.amend(address, which, conditions, Effect::Free, none, change).await
    }

    pub async fn set_legal_hold(
        &self,
        address: &BlobAddress,
        which: Which,
        has_legal_hold: bool,
    ) -> Result<BlobRecord> {
        let change = move |record: &mut BlobRecord, _| {
            record.has_legal_hold = has_legal_hold;
            Ok(())
        };
        let (conditions, none) = (Conditions::default(), Protection::default());
        self.amend(address, which, &conditions, Effect::Free, none, change).await
    }

    /// From then on the blob is gone; with none it stays. The time is made from the record and the moment of the change.
    pub async fn set_expiry(
        &self,
        address: &BlobAddress,
        expires_ms: impl Fn(&BlobRecord, u64) -> Result<Option<u64>> + Send + Sync + 'static,
        conditions: &Conditions,
    ) -> Result<BlobRecord> {
        let change = move |record: &mut BlobRecord, now_ms| {
            record.expires_ms = expires_ms(record, now_ms)?;
            Ok(())
        };
        let (which, none) = (Which::Current, Protection::default());
        self.amend(address, which, conditions, Effect::Modified, none, change).await
    }

    /// Makes a change of a blob's lease. Answers the blob and the seconds until a broken lease is free.
    pub async fn lease(
        &self,
        address: &BlobAddress,
        action: LeaseAction,
        conditions: &Conditions,
    ) -> Result<(BlobRecord, u32)> {
        let left = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let told = left.clone();
        let change = move |record: &mut BlobRecord, now_ms| {
            let seconds = record.lease.act(&action, now_ms)?;
            told.store(seconds, std::sync::atomic::Ordering::Relaxed);
            Ok(())
        };
        let conditions = Conditions { lease_id: None, ..conditions.clone() };
        let (which, none) = (Which::Current, Protection::default());
        let record = self.amend(address, which, &conditions, Effect::Free, none, change).await?;
        Ok((record, left.load(std::sync::atomic::Ordering::Relaxed)))
    }
}

impl Tier {
    /// Accounts are standard ones: block blobs have tiers, and only premium accounts have those of page blobs.
    pub(super) fn check(self, kind: BlobKind) -> Result<()> {
        match (kind, self) {
            (BlobKind::Block, Self::Hot | Self::Cool | Self::Cold | Self::Archive) => Ok(()),
            (BlobKind::Block, Self::Premium(_)) | (BlobKind::Page | BlobKind::Append, _) => {
                let message = "a blob of this type cannot be in this tier";
                Err(Error::invalid(BlobReason::TierNotOfType, message))
            }
        }
    }
}

fn move_to_tier(record: &mut BlobRecord, to: Tier, is_urgent: bool, now_ms: u64) -> Result<()> {
    to.check(record.kind)?;
    let now = record.tier_at(now_ms);
    if to == Tier::Archive && record.key_sha256.is_some() {
        let message = "a blob with a customer's key cannot be archived";
        return Err(Error::exists(BlobReason::TierNotAllowed, message));
    }
    let leaves_archive = now.is_some_and(|chosen| chosen.tier == Tier::Archive);
    record.tier = Some(match (now, leaves_archive && to != Tier::Archive) {
        (Some(chosen), true) => {
            if let Some(way) = chosen.rehydration
                && (way.to != to || way.is_urgent && !is_urgent)
            {
                let message = "the blob is on its way to another tier";
                return Err(Error::exists(BlobReason::BlobBeingRehydrated, message));
            }
            let takes = if is_urgent { REHYDRATION_URGENT_MS } else { REHYDRATION_MS };
            let ready_ms = now_ms + takes;
            ChosenTier { rehydration: Some(Rehydration { to, is_urgent, ready_ms }), ..chosen }
        }
        (Some(chosen), false) if chosen.tier == to => chosen,
        _ => ChosenTier { tier: to, changed_ms: now_ms, rehydration: None },
    });
    Ok(())
}
