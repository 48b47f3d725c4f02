//! The catalog: the durable record of all shards, containers and maps, in a store of its own.
//!
//! Every change is one commit that replaces the head row of one version by that of the next. The head is the commit's
//! guard, so of two changes that began on the same version one is refused, reads again and decides again. A change writes
//! the rows it changes and no others, so its cost does not grow with the map, and it leaves a row in the change log, so
//! routers follow instead of reading everything.
//!
//! `view` reads, `draft` collects what a change writes, `records` keeps small things for the engine, `leases` says which node
//! does which background work.

mod draft;
mod keys;
pub mod kinds;
mod leases;
mod records;
mod rows;
mod source;
mod told;
mod view;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lazuli_env::{Env, Id};
use lazuli_store::{
    Direction, Error, KeyRange, Kind, PageLimit, Reader, Reads, Result, Store, Write,
};

use crate::moves::Move;
use crate::record::{decode, encode};
use crate::{Container, ContainerId, Garbage, Partition, PartitionId, Shard, ShardId};

pub(crate) use draft::{CatalogChange, Decision, Draft, Refusal};
pub use draft::{LOG_PARTITIONS_MAX, LOG_VERSIONS_MAX, PENDING_OPERATIONS_MAX};
pub use leases::{Lease, Work};
pub use records::{Expected, RecordWrite, Versioned};
pub(crate) use rows::Deleting;
pub use rows::{CATALOG_FORMAT, ContainerChange, DroppedRow, Entry, MapOperation};
use rows::{Head, IdentityRow, LogRow};
pub use source::Followed;
pub use told::{TOLD_ROWS_MAX, Told};
pub(crate) use view::View;

/// How often a change is decided again when others come first. Each time one of them has made progress; with several
/// processes that change the catalog without a pause, 16 times in a row was seen.
pub const CHANGE_TRIES_MAX: usize = 100;

pub struct Catalog {
    store: Arc<dyn Store>,
    env: Env,
    id: Id,
    /// Held while a change is made, with the version of the head as far as it is known.
    changing: tokio::sync::Mutex<u64>,
    /// Held while records are written, likewise.
    recording: tokio::sync::Mutex<u64>,
    /// The highest version that was seen: there is none below it any more.
    known: AtomicU64,
    /// How many containers there were at the version at which they were last counted.
    counted: Mutex<Option<(u64, usize)>>,
}

impl Catalog {
    /// Makes an empty store a catalog and opens it. A store that is one already is just opened.
    pub async fn init(store: Arc<dyn Store>, env: Env) -> Result<Self> {
        let id = env.ids.next_id();
        Self::init_as(store, env, id).await
    }

    /// The same with the id of a catalog that was lost, for shards that know it.
    pub async fn init_as(store: Arc<dyn Store>, env: Env, id: Id) -> Result<Self> {
        if store.get(&keys::space(keys::IDENTITY)).await?.is_none() {
            Self::make(&*store, id).await?;
        }
        Self::open(store, env).await
    }

    async fn make(store: &dyn Store, id: Id) -> Result<()> {
        let txn = store.begin(vec![]).await?;
        // Another process may have done it meanwhile.
        if txn.get(&keys::space(keys::IDENTITY)).await?.is_none() {
            let identity = IdentityRow { format: CATALOG_FORMAT, id };
            let head = Head {
                next_shard: 1,
                next_container: 1,
                next_partition: 1,
                next_garbage: 1,
                log_from: 1,
            };
            let writes = vec![
                Write::Put(keys::space(keys::IDENTITY), encode(&identity)),
                Write::Put(keys::numbered(keys::HEAD, 0), encode(&head)),
                Write::Put(keys::numbered(keys::RECORD_HEAD, 0), encode(&None::<Id>)),
            ];
            txn.commit(writes).await?;
        }
        Ok(())
    }

    pub async fn open(store: Arc<dyn Store>, env: Env) -> Result<Self> {
        let snapshot = store.snapshot(&[], Reads::Several).await?;
        let blank = || Error::not_found("catalog-blank", "the store is not a catalog");
        let row = snapshot.get(&keys::space(keys::IDENTITY)).await?.ok_or_else(blank)?;
        let identity: IdentityRow = decode(row)?;
        if identity.format > CATALOG_FORMAT {
            let message = format!(
                "the catalog has format {}, and this version knows up to {CATALOG_FORMAT}",
                identity.format
            );
            return Err(Error::invalid("format-unknown", message));
        }
        let version = newest(&*snapshot, keys::HEAD).await?;
        let records = newest(&*snapshot, keys::RECORD_HEAD).await?;
        Ok(Self {
            store,
            env,
            id: identity.id,
            changing: tokio::sync::Mutex::new(version),
            recording: tokio::sync::Mutex::new(records),
            known: AtomicU64::new(version),
            counted: Mutex::default(),
        })
    }

    /// Which catalog this is. Its shards know it by this id.
    pub fn id(&self) -> Id {
        self.id
    }

    pub(crate) async fn snapshot(&self) -> Result<Box<dyn Reader>> {
        self.store.snapshot(&[], Reads::Several).await
    }

    /// For one row.
    async fn one(&self) -> Result<Box<dyn Reader>> {
        self.store.snapshot(&[], Reads::One).await
    }

    /// Grows with every change.
    pub async fn version(&self) -> Result<u64> {
        self.version_in(&*self.snapshot().await?).await
    }

    /// The version of the catalog that a snapshot shows. Heads below the highest version that was ever seen here are not
    /// looked at: a store may have to step over all of them, though they are deleted.
    async fn version_in(&self, snapshot: &dyn Reader) -> Result<u64> {
        let known = self.known.load(Ordering::Relaxed);
        let end = KeyRange::prefix(keys::space(keys::HEAD)).end;
        let range = KeyRange::new(keys::numbered(keys::HEAD, known), end);
        let page = snapshot.scan(&range, Direction::Backward, PageLimit::items(1)).await?;
        match page.items.first().and_then(|(key, _)| keys::number_of(key)) {
            Some(version) => {
                self.known.fetch_max(version, Ordering::Relaxed);
                Ok(version)
            }
            // The snapshot was taken before that version was made.
            None => newest(snapshot, keys::HEAD).await,
        }
    }

    pub async fn shard(&self, id: ShardId) -> Result<Shard> {
        View::of(&*self.one().await?).shard(id).await
    }

    /// All shards, by id.
    pub async fn shards(&self) -> Result<Vec<Shard>> {
        View::of(&*self.snapshot().await?).shards().await
    }

    pub async fn container(&self, id: ContainerId) -> Result<Container> {
        View::of(&*self.one().await?).container(id).await
    }

    pub async fn container_named(&self, name: &str) -> Result<Container> {
        View::of(&*self.snapshot().await?).container_named(name).await
    }

    /// All containers, by id.
    pub async fn containers(&self) -> Result<Vec<Container>> {
        View::of(&*self.snapshot().await?).containers().await
    }

    /// How many containers there are. They are counted again only after the catalog has changed.
    pub async fn container_count(&self) -> Result<usize> {
        let snapshot = self.snapshot().await?;
        let version = self.version_in(&*snapshot).await?;
        let counted = *self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, count)) = counted.filter(|(at, _)| *at == version) {
            return Ok(count);
        }
        let count = View::of(&*snapshot).container_count().await?;
        *self.counted.lock().unwrap_or_else(PoisonError::into_inner) = Some((version, count));
        Ok(count)
    }

    /// Containers from this id on, by id, at most `most`: a page of all of them.
    pub async fn containers_from(&self, first: ContainerId, most: usize) -> Result<Vec<Container>> {
        View::of(&*self.snapshot().await?).containers_from(first, most).await
    }

    /// Containers whose names begin with `prefix`, by name, behind the name `after`, at most `most`.
    pub async fn containers_named(
        &self,
        prefix: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<Container>> {
        View::of(&*self.snapshot().await?).containers_named(prefix, after, most).await
    }

    /// Containers that are being deleted: they are hidden, and some of their partitions are still there.
    pub async fn containers_deleting(&self) -> Result<Vec<Container>> {
        let deleting = View { reader: &*self.snapshot().await? }.deleting().await?;
        Ok(deleting.into_iter().map(|deleting| deleting.container).collect())
    }

    pub async fn partition(&self, id: PartitionId) -> Result<Entry> {
        View::of(&*self.snapshot().await?).entry(id).await
    }

    /// Partitions of a container that hold any of these routes, in the order of routes, at most `most`.
    pub async fn partitions_in(
        &self,
        container: ContainerId,
        routes: &KeyRange,
        most: usize,
    ) -> Result<Vec<Entry>> {
        View::of(&*self.snapshot().await?).entries(container, routes, most).await
    }

    /// Partitions on a shard, at most `most`.
    pub async fn partitions_on(&self, shard: ShardId, most: usize) -> Result<Vec<Partition>> {
        let entries = View::of(&*self.snapshot().await?).entries_on(shard, most).await?;
        Ok(entries.into_iter().map(|entry| entry.partition).collect())
    }

    /// How many partitions a shard holds.
    pub async fn partition_count(&self, shard: ShardId) -> Result<u64> {
        View::of(&*self.snapshot().await?).count_on(shard, None).await
    }

    /// Operations that were decided and are not finished.
    pub async fn operations(&self) -> Result<Vec<MapOperation>> {
        View::of(&*self.snapshot().await?).operations().await
    }

    /// Moves that are not over, by number.
    pub async fn moves(&self) -> Result<Vec<Move>> {
        View::of(&*self.snapshot().await?).moves().await
    }

    /// A move that is not over.
    pub async fn moving(&self, number: u64) -> Result<Option<Move>> {
        View::of(&*self.one().await?).moving(number).await
    }

    /// Data that is to be deleted, on all shards.
    pub async fn garbage(&self) -> Result<Vec<Garbage>> {
        View::of(&*self.snapshot().await?).garbage().await
    }

    /// Makes a change: decides it on the newest version, and again if another change came first. Deciding without writing
    /// anything changes nothing.
    pub(crate) async fn change<C: CatalogChange>(&self, change: &C) -> Decision<C::Output> {
        let id = self.env.ids.next_id();
        let mut version = self.changing.lock().await;
        // The version of a commit whose outcome is unknown, with what it will have answered.
        let mut unknown: Option<(u64, C::Output)> = None;
        for _ in 0..CHANGE_TRIES_MAX {
            let draft = self.draft(*version, id, change.lease()).await?;
            // By now that commit is decided: this transaction could not have begun before, and one that did not begin found
            // another version. The log knows which change made a version.
            if let Some((made, output)) = unknown.take()
                && self.made_by(made).await? == Some(id)
            {
                drop(draft);
                *version = self.version().await?;
                return Ok(output);
            }
            let Some(mut draft) = draft else {
                *version = self.version().await?;
                continue;
            };
            let output = change.decide(&mut draft).await?;
            if draft.is_empty() {
                return Ok(output);
            }
            let made = draft.next_version();
            match draft.commit().await {
                Ok(()) => {
                    *version = made;
                    self.known.fetch_max(made, Ordering::Relaxed);
                    return Ok(output);
                }
                Err(error) if error.is_moved() => {}
                Err(error) if matches!(error.kind(), Kind::Unavailable { .. }) => {
                    unknown = Some((made, output));
                }
                Err(error) => return Err(error.into()),
            }
            *version = self.version().await?;
        }
        let message = format!("others changed the catalog {CHANGE_TRIES_MAX} times meanwhile");
        Err(Error::precondition("catalog-changed", message).into())
    }

    /// A draft on this version; none if it is not the newest.
    async fn draft(
        &self,
        version: u64,
        change: Id,
        lease: Option<&Lease>,
    ) -> Result<Option<Draft>> {
        let key = keys::numbered(keys::HEAD, version);
        let guards = [key.clone()].into_iter().chain(lease.map(Lease::guard)).collect();
        let txn = match self.store.begin(guards).await {
            Err(error) if error.is_moved() => {
                if let Some(lease) = lease {
                    self.check_lease(lease).await?;
                }
                return Ok(None);
            }
            begun => begun?,
        };
        let head: Option<Head> = View::of(&*txn).row(&key).await?;
        match head {
            Some(head) => Draft::new(txn, version, head, change).await.map(Some),
            None => Ok(None),
        }
    }

    /// The change that made this version, if the log remembers it.
    async fn made_by(&self, version: u64) -> Result<Option<Id>> {
        let key = keys::numbered(keys::LOG, version);
        let row: Option<LogRow> = View::of(&*self.one().await?).row(&key).await?;
        Ok(row.map(|row| row.change))
    }
}

/// The version of the one live head row. Walks backward, because older versions may still be in the way of a forward scan.
async fn newest(reader: &dyn Reader, space: u8) -> Result<u64> {
    let range = KeyRange::prefix(keys::space(space));
    let page = reader.scan(&range, Direction::Backward, PageLimit::items(1)).await?;
    let version = page.items.first().and_then(|(key, _)| keys::number_of(key));
    version.ok_or_else(|| Error::corrupt("row-corrupt", "the catalog has no head"))
}
