//! Blobs: containers of named contents of any size, with snapshots, versions, leases and conditions. The model behind
//! Blobs of Azure; `docs/decisions/0050-blobs.md` has the reasons, `docs/formats/blobs.md` the rows.
//!
//! All blobs of an account are one container of the engine on a range map over container, generation and name, with one
//! shardlet per blob; the account's containers are another. Small contents are rows, larger ones files beside the store.

mod address;
mod append;
mod block_list;
mod blocks;
mod collect;
mod conditions;
mod containers;
mod copies;
mod copy;
mod copy_pieces;
mod cursor;
mod files;
mod find;
mod garbage;
mod lease;
pub mod limits;
mod list;
mod page_ranges;
mod pages;
mod pieces;
mod pins;
mod properties;
mod put;
mod read;
mod reason;
mod record;
mod rows;
mod shardlet;
mod upload;
mod versions;

use std::sync::Arc;
use std::time::Duration;

use lazuli_engine::{
    Blocks, Container, Cuts, Engine, Error, KeySchema, KeyType, Kind, MapKind, NewContainer,
    Policies, Result, STALENESS_MAX,
};

pub use address::{BlobAddress, ContainerAddress, Which, lsn_of, ticks_of};
pub use append::AppendConditions;
pub use block_list::{BlockChoice, BlockList};
pub use collect::Collected;
pub use conditions::{Conditions, Etags, TagTest};
pub use containers::{ListContainers, ListedContainer, NewBlobContainer};
pub use copy::{COPY_AT_ONCE_BYTES_MAX, CopyOptions, CopySource};
pub use files::{NamedFile, NamedFiles, Swept, outside};
pub use find::{FindTest, FoundBlob};
pub use lease::{Lease, LeaseAction, LeaseState};
pub use list::{Include, ListOptions, Listed, ListedBlob, Page};
pub use page_ranges::PageRanges;
pub use pages::{PageProperties, SequenceAction, SequenceConditions};
pub use pieces::CustomerKey;
pub use put::{NewBlob, Protection};
pub use read::{BlobRead, BlobReader, ReadRange};
pub use reason::BlobReason;
pub use record::{
    BlobKind, BlobRecord, ChosenTier, ContainerRecord, ContentRef, CopyState, CopyStatus, Deleted,
    Headers, Immutability, PublicAccess, Rehydration, Tier,
};
pub use upload::{Content, Upload, UploadOptions};
pub use versions::{DeleteOptions, DeleteOutcome, Snapshots};

use copies::Copies;
use pins::Pins;

/// The schema tags of the two containers of the engine that every account has (S13).
const BLOBS_SCHEMA: &str = "blob/1";
const CONTAINERS_SCHEMA: &str = "blob-container/1";

/// All blobs of all accounts.
#[derive(Clone)]
pub struct Blobs {
    engine: Arc<Engine>,
    blocks: Arc<dyn Blocks>,
    pins: Arc<Pins>,
    copies: Arc<Copies>,
    /// How long garbage stays for readers in other processes, of which the pins know nothing.
    grace_ms: u64,
}

impl Blobs {
    pub fn new(engine: Arc<Engine>, blocks: Arc<dyn Blocks>) -> Self {
        let (pins, copies) = (Arc::default(), Arc::default());
        let blobs = Self { engine, blocks, pins, copies, grace_ms: 0 };
        blobs.tend_backups();
        blobs
    }

    /// The same where other processes share the stores: what nothing names any more stays for as long as one of them may
    /// still read it.
    #[must_use]
    pub fn shared(self, longest_read: Duration) -> Self {
        let grace_ms = u64::try_from(longest_read.as_millis()).unwrap_or(u64::MAX);
        Self { grace_ms, ..self }
    }

    /// The same blobs through another engine of the same process, which may be asked with this one.
    #[must_use]
    pub fn through(&self, engine: Arc<Engine>) -> Self {
        let blobs = Self { engine, ..self.clone() };
        blobs.tend_backups();
        blobs
    }

    /// The same blobs, read as they were up to a minute ago if a copy of the store can answer then. Where garbage does not stay
    /// for readers that the pins do not know, an old state may name files that are gone, so the newest one is read.
    #[must_use]
    pub fn allowing_stale(&self) -> Self {
        let is_safe = u128::from(self.grace_ms) >= STALENESS_MAX.as_millis();
        let engine = match is_safe {
            true => Arc::new(self.engine.allowing_stale()),
            false => self.engine.clone(),
        };
        Self { engine, ..self.clone() }
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The time by which leases, retention and the like are judged outside of transactions.
    fn now_ms(&self) -> u64 {
        self.engine.env().clock.now_ms()
    }

    /// The engine's container of an account's containers; none before the first of them is created.
    async fn directory(&self, account: &str) -> Result<Option<Arc<Container>>> {
        self.opened(&format!("blob-containers/{account}"), CONTAINERS_SCHEMA).await
    }

    /// The engine's container of an account's blobs.
    async fn contents(&self, account: &str) -> Result<Option<Arc<Container>>> {
        self.opened(&format!("blobs/{account}"), BLOBS_SCHEMA).await
    }

    async fn opened(&self, name: &str, schema: &str) -> Result<Option<Arc<Container>>> {
        match self.engine.open(name, schema).await {
            Ok(container) => Ok(Some(container)),
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes what an account needs before it has its first container.
    async fn directory_or_new(&self, account: &str) -> Result<Arc<Container>> {
        if let Some(container) = self.directory(account).await? {
            return Ok(container);
        }
        let text = KeySchema::one(KeyType::Text);
        let name = files::key_of_blobs()?;
        self.create(&format!("blobs/{account}"), BLOBS_SCHEMA, name).await?;
        self.create(&format!("blob-containers/{account}"), CONTAINERS_SCHEMA, text).await?;
        self.directory(account).await?.ok_or_else(|| {
            Error::unavailable("account-not-ready", "the account's containers are being made")
        })
    }

    async fn create(&self, name: &str, schema: &str, key: KeySchema) -> Result<()> {
        let new = NewContainer {
            name: name.to_owned(),
            kind: MapKind::Range,
            key,
            schema: schema.to_owned(),
            placement: Vec::new(),
            policies: Policies::default(),
            cuts: Cuts::At(Vec::new()),
            shards: Vec::new(),
        };
        match self.engine.create_container(&new).await {
            // Another request created it first, or an earlier attempt stopped half-way.
            Err(error) if error.kind() != Kind::Exists => Err(error),
            _ => Ok(()),
        }
    }
}
