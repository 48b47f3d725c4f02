//! The local map: which partitions a shard holds, by the shard's own record. It has the last word on every request.
//!
//! One row per partition, whose key holds the epoch. The row is the guard of every read and write of that partition, so a
//! request that was routed by an older epoch is refused by the store itself.
//!
//! The rows are cached in memory, so that a check costs no read. Another process may change them on disk: before a check
//! refuses, it looks whether the cache is stale (`refresh`, by the version in the key of the head row). A check that passes
//! by a stale cache does no harm, because the guard is missing then.
//!
//! Changes come from operations of the catalog (`manager`). Each has a number that grows, and is applied once: the shard
//! remembers the numbers it has applied until the catalog says that all below some number are finished, and refuses those
//! from then on. So a coordinator that was paused and wakes up late does no harm.

mod count;
mod garbage;
mod lanes;
mod rows;
mod values;

use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};

use bytes::Bytes;
use lazuli_store::{Error, Kind, Newest, Result, Store, Write};

use crate::mirror;
use crate::record::encode;
use crate::{Epoch, MapReason, Partition, PartitionId, PartitionState, figures};
use rows::{
    HeadRow, IdentityRow, Rows, applied_key, arrival_key, arrival_writes, forget_applied,
    forget_garbage, head_key, identity_key, progress_key, read_head_at, read_identity, read_rows,
    row_key, wrong_shard,
};

pub use lanes::Lanes;
pub use rows::SHARD_FORMAT;
pub use values::{Access, Arrival, Arrived, Garbage, Held, Identity, LocalChange};

/// How often one change is tried while other processes or a faltering store come in between.
const APPLY_TRIES_MAX: usize = 3;
/// How often one change begins again because another process came first.
const APPLY_CONFLICTS_MAX: usize = 100;
/// How often reading the map begins again while other processes change it.
const LOAD_TRIES_MAX: usize = 100;

pub struct LocalMap {
    pub(crate) store: Arc<dyn Store>,
    identity: Identity,
    /// The cache. None while the outcome of the last change is unknown.
    rows: RwLock<Option<Rows>>,
    /// Held while a change is made or the cache is loaded.
    changing: tokio::sync::Mutex<()>,
    /// Wakes the tasks that wait for the end of a fence, in the order in which they came: `watch` would pick one by chance.
    changed: tokio::sync::Notify,
    /// None while no engine serves the shard.
    lanes: OnceLock<Weak<dyn Lanes>>,
}

impl LocalMap {
    /// Makes an empty store a shard. A store that is this shard already stays as it is; one that is another is refused.
    pub async fn init(store: &Arc<dyn Store>, identity: Identity) -> Result<()> {
        if let Some(found) = Self::identify(store).await? {
            return if found == identity { Ok(()) } else { Err(wrong_shard(found, identity)) };
        }
        let txn = store.begin(vec![]).await?;
        // Another process may have done it meanwhile.
        match read_identity(&*txn).await? {
            Some(found) if found == identity => Ok(()),
            Some(found) => Err(wrong_shard(found, identity)),
            None => {
                let Identity { catalog, shard } = identity;
                let row = IdentityRow { format: SHARD_FORMAT, catalog, shard };
                let writes = vec![
                    Write::Put(identity_key(), encode(&row)),
                    Write::Put(head_key(0), encode(&HeadRow { finished_below: 0 })),
                ];
                txn.commit(writes).await
            }
        }
    }

    /// Which shard a store is; none if it is not one yet.
    pub async fn identify(store: &Arc<dyn Store>) -> Result<Option<Identity>> {
        read_identity(&Newest::of(&**store)).await
    }

    /// Reads the map of a store that `init` has made a shard.
    pub async fn open(store: Arc<dyn Store>) -> Result<Self> {
        let identity = Self::identify(&store).await?.ok_or_else(|| {
            Error::not_found("shard-blank", "the store is not a shard: it has no identity")
        })?;
        let map = Self {
            store,
            identity,
            rows: RwLock::new(None),
            changing: tokio::sync::Mutex::default(),
            changed: tokio::sync::Notify::new(),
            lanes: OnceLock::new(),
        };
        map.refresh().await?;
        Ok(map)
    }

    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Refuses a store that is another shard than the one meant.
    pub fn expect(&self, identity: Identity) -> Result<()> {
        if self.identity == identity { Ok(()) } else { Err(wrong_shard(self.identity, identity)) }
    }

    /// Whether this shard holds the partition at exactly this epoch, in a state that allows the access. Refuses only by
    /// rows that are not stale, unless the store does not answer.
    pub async fn held(&self, partition: PartitionId, epoch: Epoch, access: Access) -> Result<Held> {
        let cached = self.check(partition, epoch, access);
        match cached.is_err() && self.refresh().await.unwrap_or(false) {
            true => self.check(partition, epoch, access),
            false => cached,
        }
    }

    /// The same by the cache alone.
    pub fn check(&self, partition: PartitionId, epoch: Epoch, access: Access) -> Result<Held> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        let row = rows.as_ref().ok_or_else(unknown)?.by_id.get(&partition);
        let Some(row) = row.filter(|row| row.epoch == epoch) else {
            let found = row.map_or("not here".into(), |row| format!("at epoch {}", row.epoch));
            return Err(Error::moved(format!(
                "routed to partition {partition} at epoch {epoch}, which is {found} on shard {}",
                self.identity.shard
            )));
        };
        match (row.state, access) {
            (PartitionState::Offline, _) => Err(Error::unavailable(
                "partition-offline",
                format!("partition {partition} is offline"),
            )),
            (PartitionState::ReadOnly, Access::Write) => Err(Error::unavailable(
                MapReason::PartitionReadOnly,
                format!("partition {partition} is read-only"),
            )),
            // The router shall look again, once the fence has gone.
            (PartitionState::Fenced, Access::Write) => Err(Error::new(
                Kind::Moved,
                MapReason::PartitionFenced,
                format!("partition {partition} is fenced"),
            )),
            (PartitionState::Online | PartitionState::Sending, _)
            | (PartitionState::ReadOnly | PartitionState::Fenced, Access::Read) => Ok(Held {
                guard: row_key(partition, epoch),
                partition,
                container: row.container,
                routes: row.routes.clone(),
                is_sending: row.state == PartitionState::Sending,
            }),
        }
    }

    /// Waits until the partition is no longer fenced here at this epoch, by the cache: while a task waits, something must
    /// call [`Self::refresh`] now and then.
    pub async fn unfenced(&self, partition: PartitionId, epoch: Epoch) {
        let is_fenced = || {
            let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
            let row = rows.as_ref().and_then(|rows| rows.by_id.get(&partition));
            row.is_some_and(|row| row.epoch == epoch && row.state == PartitionState::Fenced)
        };
        loop {
            // A change from here on wakes this task, also before it waits.
            let changed = self.changed.notified();
            if !is_fenced() {
                return;
            }
            changed.await;
        }
    }

    /// What is on its way to this shard.
    pub fn arrivals(&self) -> Result<Vec<Arrival>> {
        self.cached(|rows| rows.arrivals.values().cloned().collect())
    }

    /// The key that must exist when a part of what arrives is written, so that only the leader of the move does.
    pub fn arrival_guard(number: u64, epoch: u64) -> Bytes {
        arrival_key(number, epoch)
    }

    /// The row in which who leads a move keeps how far it has come. It goes with the arrival.
    pub fn progress_key(number: u64) -> Bytes {
        progress_key(number)
    }

    /// The guard of what must not happen unless the map is as the cache shows it.
    pub fn head_guard(&self) -> Result<Bytes> {
        self.version().map(head_key).ok_or_else(unknown)
    }

    /// Exists for as long as the partition is held here at this epoch, whatever its state.
    pub fn partition_guard(partition: PartitionId, epoch: Epoch) -> Bytes {
        row_key(partition, epoch)
    }

    pub fn get(&self, partition: PartitionId) -> Result<Option<Partition>> {
        self.cached(|rows| rows.by_id.get(&partition).cloned())
    }

    /// All partitions of this shard, by id.
    pub fn partitions(&self) -> Result<Vec<Partition>> {
        self.cached(|rows| rows.by_id.values().cloned().collect())
    }

    /// The highest number of an operation that this shard has taken. A catalog whose version is lower has lost its memory.
    pub fn seen(&self) -> Result<u64> {
        self.cached(|rows| rows.seen)
    }

    /// Makes the change, once: again is fine, and too late is refused (`operation-stale`). A shard that is not as the
    /// operation expects is refused too (`local-map-differs`), for an operator to decide.
    pub async fn apply(&self, change: &LocalChange) -> Result<()> {
        // Before the lock on changes: a lane may wait for that one in its turn.
        let _held = self.hold_lanes(change).await;
        let _changing = self.changing.lock().await;
        let (mut tries, mut conflicts) = (1, 0);
        loop {
            match self.try_apply(change).await {
                // Another process was faster: what is on disk now decides.
                Err(error) if error.is_moved() => {
                    conflicts += 1;
                    if conflicts >= APPLY_CONFLICTS_MAX {
                        let message = "other processes keep changing the local map";
                        return Err(Error::unavailable("local-map-busy", message));
                    }
                }
                // The store lost its answer: what is on disk now decides, too.
                Err(error) if may_have_happened(&error) && tries < APPLY_TRIES_MAX => tries += 1,
                result => {
                    // A store that takes no writes still serves reads, for which the rows must be known.
                    if self.version().is_none() {
                        let _ = self.load().await;
                    }
                    return result;
                }
            }
        }
    }

    async fn try_apply(&self, change: &LocalChange) -> Result<()> {
        let version = match self.version() {
            Some(version) => version,
            None => self.load().await?,
        };
        let dropped = self.cached(|rows| rows.dropped(change, self.identity.shard))?;
        let (parents, children) = self.cached(|rows| rows.heirs(change))?;
        // The figures of partitions that end here must not change any more.
        let mut guards = vec![head_key(version)];
        guards.extend(parents.iter().map(|parent| row_key(parent.id, parent.epoch)));
        let txn = match self.store.begin(guards).await {
            Err(error) if error.is_moved() => {
                self.load().await?;
                return Err(error);
            }
            begun => begun?,
        };
        // The guard is the row itself. To look for it by a scan would step over all heads that were deleted before it.
        let head = read_head_at(&*txn, version).await?;
        if change.operation < head.finished_below {
            let message = format!("operation {} was finished long ago", change.operation);
            return Err(Error::precondition(MapReason::OperationStale, message));
        }
        if txn.get(&applied_key(change.operation)).await?.is_some() {
            return Ok(());
        }
        let dropped = dropped?;
        let finished_below = head.finished_below.max(change.finished_below);
        let garbage = self.cached(|rows| rows.garbage_of(change))?;
        let mut writes = forget_garbage(&*txn, garbage).await?;
        writes.extend(self.writes(change, &dropped, garbage));
        writes.extend(figures::inherit(&*txn, &parents, &children).await?);
        writes.extend(forget_applied(&*txn, head.finished_below, finished_below).await?);
        writes.push(Write::Delete(head_key(version)));
        writes.push(Write::Put(head_key(version + 1), encode(&HeadRow { finished_below })));
        let doubt = Doubt { map: self };
        txn.commit(writes).await?;
        self.publish(change, &dropped);
        doubt.settle();
        Ok(())
    }

    /// Reads the rows again if the cache is stale or unknown, and says whether it was.
    pub async fn refresh(&self) -> Result<bool> {
        let known = self.version();
        if let Some(version) = known
            && self.store.get(&head_key(version)).await?.is_some()
        {
            return Ok(false);
        }
        let _changing = self.changing.lock().await;
        // Another task may have done it meanwhile.
        if self.version().is_none() || self.version() <= known {
            self.load().await?;
        }
        Ok(true)
    }

    /// What the cache says.
    fn cached<T>(&self, read: impl FnOnce(&Rows) -> T) -> Result<T> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        Ok(read(rows.as_ref().ok_or_else(unknown)?))
    }

    fn writes(
        &self,
        change: &LocalChange,
        dropped: &[(PartitionId, Epoch)],
        garbage: &[Garbage],
    ) -> Vec<Write> {
        let drops = dropped.iter().map(|(id, epoch)| Write::Delete(row_key(*id, *epoch)));
        let puts = change.puts.iter().map(|put| {
            assert_eq!(put.shard, self.identity.shard, "a row of another shard");
            Write::Put(row_key(put.id, put.epoch), encode(put))
        });
        let garbage = garbage
            .iter()
            .map(|garbage| Write::Put(Self::garbage_guard(garbage.id), encode(garbage)));
        let applied = Write::Put(applied_key(change.operation), Bytes::new());
        let writes = drops.chain(puts).chain(garbage).chain([applied]);
        writes.chain(arrival_writes(change)).chain(mirror::writes(change, dropped)).collect()
    }

    fn publish(&self, change: &LocalChange, dropped: &[(PartitionId, Epoch)]) {
        let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        let Some(rows) = rows.as_mut() else { return };
        for (id, _) in dropped {
            rows.by_id.remove(id);
        }
        rows.by_id.extend(change.puts.iter().map(|put| (put.id, put.clone())));
        for (number, epoch) in &change.arrived {
            // A repair may name one that is not there, or one that another leader has replaced.
            if rows.is_arriving(&(*number, *epoch)) {
                rows.arrivals.remove(number);
            }
        }
        let arrivals = change.arrivals.iter();
        rows.arrivals.extend(arrivals.map(|arrival| (arrival.number, arrival.clone())));
        rows.seen = rows.seen.max(change.operation);
        rows.version += 1;
        self.changed.notify_waiters();
    }

    /// The version of the map that the cache shows.
    fn version(&self) -> Option<u64> {
        self.rows.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|rows| rows.version)
    }

    fn forget(&self) {
        *self.rows.write().unwrap_or_else(PoisonError::into_inner) = None;
        self.changed.notify_waiters();
    }

    /// Reads all rows into the cache and answers their version. Called with `changing` held.
    async fn load(&self) -> Result<u64> {
        let mut tries = 1;
        let rows = loop {
            match read_rows(&*self.store).await {
                // Another process has changed the map between two pages.
                Err(error) if error.is_moved() && tries < LOAD_TRIES_MAX => tries += 1,
                rows => break rows?,
            }
        };
        let version = rows.version;
        *self.rows.write().unwrap_or_else(PoisonError::into_inner) = Some(rows);
        self.changed.notify_waiters();
        Ok(version)
    }
}

/// Exists while a commit is on its way. If it is dropped, by an error or because the caller was cancelled, the outcome is
/// unknown and the cache is not valid any more.
struct Doubt<'a> {
    map: &'a LocalMap,
}

impl Doubt<'_> {
    fn settle(self) {
        std::mem::forget(self);
    }
}

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        self.map.forget();
    }
}

fn may_have_happened(error: &Error) -> bool {
    matches!(error.kind(), Kind::Moved | Kind::Unavailable { .. })
}

fn unknown() -> Error {
    Error::unavailable("local-map-unknown", "the last change of the local map is not settled yet")
}
