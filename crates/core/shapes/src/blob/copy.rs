//! Copies from one blob to another of this server: at once, or in the background with a state that can be asked for.

use lazuli_engine::{Error, Kind, Result, Transaction, Tx};

use super::address::{BlobAddress, BlobPlace, Which, no_blob};
use super::conditions::Conditions;
use super::garbage::{COPY_LOOK_MS, Garbage};
use super::lease::Leased;
use super::pieces::{CustomerKey, check_key};
use super::put::{Body, NewBlob, Protection, Put};
use super::read::Seen;
use super::record::{BlobRecord, CopyState, CopyStatus, Tier};
use super::shardlet::Shardlet;
use super::{BlobReason, Blobs};

/// Copies up to this size are made while the caller waits.
pub const COPY_AT_ONCE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Where to copy from.
#[derive(Clone, Debug)]
pub struct CopySource {
    pub address: BlobAddress,
    pub which: Which,
    pub conditions: Conditions,
    pub key: Option<CustomerKey>,
    /// As the client wrote it.
    pub url: String,
}

/// What the copy is to be.
#[derive(Clone, Debug, Default)]
pub struct CopyOptions {
    /// The id of the copy, which nothing else has.
    pub id: String,
    /// Headers, tags, tier and policies of the copy. Headers that are not given are the source's.
    pub new: NewBlob,
    /// None: the source's.
    pub metadata: Option<Vec<(String, String)>>,
    /// Whether the source's headers are taken over where `new` has none.
    pub with_headers: bool,
    pub with_tags: bool,
    /// The key with which the copy is encrypted.
    pub key: Option<CustomerKey>,
    pub is_sealed: bool,
}

impl Blobs {
    /// Makes a copy while the caller waits.
    pub async fn copy(
        &self,
        source: &CopySource,
        target: &BlobAddress,
        options: CopyOptions,
        conditions: &Conditions,
        protection: Protection,
    ) -> Result<BlobRecord> {
        let seen = self.source(source, &options).await?;
        let copied = self.copied(source, seen, target, &options).await?;
        let state = CopyStatus::Success;
        let (put, files) =
            copied.put(source, options, conditions, protection, state, self.now_ms());
        let place = put.place.clone();
        self.commit(&place, put, files).await
    }

    /// Makes a copy, in the background if it takes long: the answer says whether it is done.
    pub async fn start_copy(
        &self,
        source: &CopySource,
        target: &BlobAddress,
        options: CopyOptions,
        conditions: &Conditions,
        protection: Protection,
    ) -> Result<BlobRecord> {
        let seen = self.source(source, &options).await?;
        if seen.record.length() <= COPY_AT_ONCE_BYTES_MAX {
            drop(seen);
            return self.copy(source, target, options, conditions, protection).await;
        }
        let place = self.find_place(target).await?;
        let begin = Begin {
            put: Put {
                place: place.clone(),
                kind: seen.record.kind,
                new: NewBlob::default(),
                body: Body::Bytes(Vec::new()),
                conditions: conditions.clone(),
                protection,
                copy: Some(copy_state(source, &options, &seen.record, CopyStatus::Pending, 0)),
                is_sealed: false,
                append_blocks: 0,
            },
        };
        // Before the copy becomes visible, so that the collector does not take it for one whose process has died.
        self.begin_copy(&options.id).await?;
        let begun = self.commit(&place, begin, None).await;
        if begun.is_err() {
            self.end_copy(&options.id).await;
            return begun;
        }
        let (shape, source, target) = (self.clone(), source.clone(), target.clone());
        let task = async move {
            let id = options.id.clone();
            shape.go_on_copying(&source, seen, &target, options).await;
            shape.end_copy(&id).await;
        };
        self.engine.env().spawn.spawn("copy a blob", Box::pin(task));
        begun
    }

    async fn go_on_copying(
        &self,
        source: &CopySource,
        seen: Seen,
        target: &BlobAddress,
        options: CopyOptions,
    ) {
        let id = options.id.clone();
        let copied = self.copied(source, seen, target, &options).await;
        let outcome = match copied {
            Ok(copied) => {
                let conditions = Conditions::default();
                let (protection, state) = (Protection::default(), CopyStatus::Success);
                let (put, files) =
                    copied.put(source, options, &conditions, protection, state, self.now_ms());
                let place = put.place.clone();
                self.commit(&place, Finish { id: id.clone(), put }, files).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            let Ok(place) = self.find_place(target).await else { return };
            let end = End {
                place: place.clone(),
                id,
                status: CopyStatus::Failed,
                description: Some(error.to_string()),
                lease_id: None,
                is_own: true,
            };
            // If this fails too, the collector finds that no process runs the copy.
            let _ = self.commit(&place, end, None).await;
        }
    }

    /// Calls a copy off that is being made. What is there by then is an empty blob.
    pub async fn abort_copy(
        &self,
        address: &BlobAddress,
        id: &str,
        lease_id: Option<&str>,
    ) -> Result<()> {
        let place = self.find_place(address).await?;
        let end = End {
            place: place.clone(),
            id: id.to_owned(),
            status: CopyStatus::Aborted,
            description: None,
            lease_id: lease_id.map(str::to_owned),
            is_own: false,
        };
        self.commit(&place, end, None).await
    }

    /// The state to copy from, if it may be copied.
    async fn source(&self, source: &CopySource, options: &CopyOptions) -> Result<Seen> {
        let seen = self.see(&source.address, source.which).await.map_err(of_source)?;
        let now_ms = self.now_ms();
        seen.record.check_read(&source.conditions, now_ms).map_err(of_source)?;
        check_key(seen.record.key_sha256.as_ref(), source.key.as_ref())?;
        // Said before a long copy begins, not when it is done.
        if let Some(tier) = options.new.tier {
            tier.check(seen.record.kind)?;
        }
        // A copy out of the archive is a way to have it back.
        if !options.new.tier.is_some_and(|tier| tier != Tier::Archive) {
            seen.record.check_changeable(now_ms)?;
        }
        Ok(seen)
    }
}

/// The same refusal, said of the source.
fn of_source(error: Error) -> Error {
    let message = error.message().to_owned();
    match (error.kind(), error.reason()) {
        (Kind::NotFound, _) => Error::not_found(BlobReason::SourceNotFound, message),
        (Kind::Precondition, Some(BlobReason::ConditionNotMet | BlobReason::NotModified)) => {
            Error::precondition(BlobReason::SourceConditionNotMet, message)
        }
        _ => error,
    }
}

pub(super) fn copy_state(
    source: &CopySource,
    options: &CopyOptions,
    record: &BlobRecord,
    status: CopyStatus,
    now_ms: u64,
) -> CopyState {
    let is_done = status == CopyStatus::Success;
    CopyState {
        id: options.id.clone(),
        source: source.url.clone(),
        status,
        done: if is_done { record.length() } else { 0 },
        total: record.length(),
        completed_ms: is_done.then_some(now_ms),
        description: None,
    }
}

/// Puts an empty blob that says that it is being copied to.
struct Begin {
    put: Put,
}

impl Transaction for Begin {
    type Output = BlobRecord;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<BlobRecord> {
        let record = self.put.run(tx).await?;
        let mut shardlet = Shardlet::new(tx, &self.put.place);
        // The rows of garbage of the put come before this one.
        shardlet.skip_garbage();
        let due = Garbage::Due(shardlet.now_ms() + COPY_LOOK_MS);
        shardlet.put_garbage(&due)?;
        Ok(record)
    }
}

/// Puts the bytes into the blob that waits for them.
struct Finish {
    id: String,
    put: Put,
}

impl Transaction for Finish {
    type Output = BlobRecord;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<BlobRecord> {
        let mut shardlet = Shardlet::new(tx, &self.put.place);
        let old = shardlet.pending(&self.id).await?;
        let mut record = self.put.record(&mut shardlet).await?;
        record.created_ms = old.created_ms;
        record.version = old.version;
        record.lease = old.lease.clone();
        shardlet.drop_content(&old).await?;
        shardlet.put_current(&record).await?;
        Ok(record)
    }
}

/// Ends a copy without its bytes.
struct End {
    place: BlobPlace,
    id: String,
    status: CopyStatus,
    description: Option<String>,
    lease_id: Option<String>,
    /// Whether it is the copy itself that ends, which no lease keeps from it.
    is_own: bool,
}

impl Transaction for End {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        let mut shardlet = Shardlet::new(tx, &self.place);
        let now_ms = shardlet.now_ms();
        let mut record = shardlet.pending(&self.id).await?;
        if !self.is_own {
            record.lease.check_write(self.lease_id.as_deref(), now_ms, Leased::Blob)?;
        }
        if let Some(copy) = &mut record.copy {
            copy.status = self.status;
            copy.completed_ms = Some(now_ms);
            copy.description.clone_from(&self.description);
        }
        shardlet.touch(&mut record);
        shardlet.put_current(&record).await
    }
}

impl Shardlet<'_, '_> {
    /// The blob, if it waits for this copy.
    async fn pending(&self, id: &str) -> Result<BlobRecord> {
        let record = self.current().await?.ok_or_else(no_blob)?;
        match &record.copy {
            Some(copy) if copy.status == CopyStatus::Pending && copy.id == id => Ok(record),
            Some(copy) if copy.status == CopyStatus::Pending => {
                Err(Error::exists(BlobReason::CopyIdMismatch, "another copy is being made"))
            }
            _ => Err(Error::exists(BlobReason::NoPendingCopy, "no copy is being made")),
        }
    }
}

impl BlobRecord {
    /// Whether no copy into the blob is running.
    pub(super) fn check_not_pending(&self) -> Result<()> {
        match &self.copy {
            Some(copy) if copy.status == CopyStatus::Pending => {
                Err(Error::exists(BlobReason::PendingCopy, "a copy into the blob is being made"))
            }
            _ => Ok(()),
        }
    }
}
