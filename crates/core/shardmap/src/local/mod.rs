//! The local map: what a shard itself says it holds. It has the last word on every request.
//!
//! One row per partition, whose key holds the epoch: the row is the guard of every write to that partition, so whoever
//! was routed by an older epoch cannot commit. The rows are kept in memory too, so that a check costs no read. A change is
//! on disk before it is in memory: readers take their snapshot first and check second, so what they see was theirs to see.
//!
//! Changes come from operations of the catalog (`manager`). Each has a number that grows, and is applied once: the shard
//! remembers the numbers it has applied until the catalog says that all below some number are finished, and refuses those
//! from then on. So a coordinator that was paused and wakes up late does no harm.

mod count;
mod garbage;
mod rows;
mod values;

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use lazuli_store::{Error, Kind, Result, Store, Write};

use crate::mirror;
use crate::record::encode;
use crate::{Epoch, Partition, PartitionId, PartitionState};
use rows::{
    HeadRow, IdentityRow, Rows, applied_key, arrival_key, arrival_writes, forget_applied,
    forget_garbage, head_key, identity_key, progress_key, read_head, read_head_at, read_identity,
    read_rows, row_key, wrong_shard,
};

pub use rows::SHARD_FORMAT;
pub use values::{Access, Arrival, Arrived, Garbage, Held, Identity, LocalChange};

/// How often one change is tried while other processes or a faltering store come in between.
const APPLY_TRIES_MAX: usize = 3;

pub struct LocalMap {
    pub(crate) store: Arc<dyn Store>,
    identity: Identity,
    /// None while nobody knows whether the last change has reached the disk.
    rows: RwLock<Option<Rows>>,
    /// Held while a change is made, with the version of the head as far as it is known.
    changing: tokio::sync::Mutex<u64>,
    /// Tells those who wait for a fence to go that something has changed, in the order in which they came: `watch` would
    /// draw one by chance.
    changed: tokio::sync::Notify,
}

/// The code of the refusal of a write that must wait until the partition is another shard's, or this one's again.
pub const FENCED: &str = "partition-fenced";

impl LocalMap {
    /// Makes an empty store a shard. A store that is this shard already stays as it is; one that is another is refused.
    pub async fn init(store: &Arc<dyn Store>, identity: Identity) -> Result<()> {
        match read_identity(&*store.snapshot()).await? {
            Some(found) if found == identity => Ok(()),
            Some(found) => Err(wrong_shard(found, identity)),
            None => {
                let Identity { catalog, shard } = identity;
                let row = IdentityRow { format: SHARD_FORMAT, catalog, shard };
                let writes = vec![
                    Write::Put(identity_key(), encode(&row)),
                    Write::Put(head_key(0), encode(&HeadRow { finished_below: 0 })),
                ];
                store.begin(vec![]).await?.commit(writes).await
            }
        }
    }

    /// Which shard a store is; none if it is not one yet.
    pub async fn identify(store: &Arc<dyn Store>) -> Result<Option<Identity>> {
        read_identity(&*store.snapshot()).await
    }

    /// Reads the map of a store that `init` has made a shard.
    pub async fn open(store: Arc<dyn Store>) -> Result<Self> {
        let snapshot = store.snapshot();
        let identity = read_identity(&*snapshot).await?.ok_or_else(|| {
            Error::not_found("shard-blank", "the store is not a shard: it has no identity")
        })?;
        let (version, _) = read_head(&*snapshot).await?;
        let rows = read_rows(&*snapshot).await?;
        Ok(Self {
            store,
            identity,
            rows: RwLock::new(Some(rows)),
            changing: tokio::sync::Mutex::new(version),
            changed: tokio::sync::Notify::new(),
        })
    }

    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Refuses a store that is another shard than the one meant.
    pub fn expect(&self, identity: Identity) -> Result<()> {
        if self.identity == identity { Ok(()) } else { Err(wrong_shard(self.identity, identity)) }
    }

    /// Whether this shard holds the partition at exactly this epoch, in a state that allows the access.
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
                "partition-read-only",
                format!("partition {partition} is read-only"),
            )),
            // The router shall look again, once the fence has gone.
            (PartitionState::Fenced, Access::Write) => {
                Err(Error::new(Kind::Moved, FENCED, format!("partition {partition} is fenced")))
            }
            (PartitionState::Online | PartitionState::Sending, _)
            | (PartitionState::ReadOnly | PartitionState::Fenced, Access::Read) => Ok(Held {
                guard: row_key(partition, epoch),
                container: row.container,
                routes: row.routes.clone(),
                is_sending: row.state == PartitionState::Sending,
            }),
        }
    }

    /// Waits until the partition is no longer fenced here at this epoch.
    pub async fn unfenced(&self, partition: PartitionId, epoch: Epoch) {
        let is_fenced = || {
            let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
            let row = rows.as_ref().and_then(|rows| rows.by_id.get(&partition));
            row.is_some_and(|row| row.epoch == epoch && row.state == PartitionState::Fenced)
        };
        loop {
            // What changes from here on is heard of, also before anybody waits.
            let changed = self.changed.notified();
            if !is_fenced() {
                return;
            }
            changed.await;
        }
    }

    /// What is on its way to this shard.
    pub fn arrivals(&self) -> Result<Vec<Arrival>> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        Ok(rows.as_ref().ok_or_else(unknown)?.arrivals.values().cloned().collect())
    }

    /// The key that must exist when a part of what arrives is written, so that nobody but who leads the move does.
    pub fn arrival_guard(number: u64, epoch: u64) -> Bytes {
        arrival_key(number, epoch)
    }

    /// The row in which who leads a move keeps how far it has come. It goes with the arrival.
    pub fn progress_key(number: u64) -> Bytes {
        progress_key(number)
    }

    /// What stands for as long as the partition is held here at this epoch, whatever its state.
    pub fn partition_guard(partition: PartitionId, epoch: Epoch) -> Bytes {
        row_key(partition, epoch)
    }

    pub fn get(&self, partition: PartitionId) -> Result<Option<Partition>> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        Ok(rows.as_ref().ok_or_else(unknown)?.by_id.get(&partition).cloned())
    }

    /// All partitions of this shard, by id.
    pub fn partitions(&self) -> Result<Vec<Partition>> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        Ok(rows.as_ref().ok_or_else(unknown)?.by_id.values().cloned().collect())
    }

    /// The highest number of an operation that this shard has taken. A catalog whose version is lower has lost its memory.
    pub fn seen(&self) -> Result<u64> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        Ok(rows.as_ref().ok_or_else(unknown)?.seen)
    }

    /// Makes the change, once: again is fine, and too late is refused (`operation-stale`). A shard that is not as the
    /// operation expects is refused too (`local-map-differs`), for an operator to decide.
    pub async fn apply(&self, change: &LocalChange) -> Result<()> {
        let mut version = self.changing.lock().await;
        let mut tries = 1;
        loop {
            match self.try_apply(&mut version, change).await {
                // Another process was faster, or the store lost its answer: what is on disk now decides.
                Err(error) if may_have_happened(&error) && tries < APPLY_TRIES_MAX => tries += 1,
                result => {
                    // A store that takes no writes still serves reads, for which the rows must be known.
                    if self.is_unknown()
                        && let Ok(found) = self.load().await
                    {
                        *version = found;
                    }
                    return result;
                }
            }
        }
    }

    async fn try_apply(&self, version: &mut u64, change: &LocalChange) -> Result<()> {
        if self.is_unknown() {
            *version = self.load().await?;
        }
        let txn = match self.store.begin(vec![head_key(*version)]).await {
            Err(error) if error.is_moved() => {
                self.forget();
                return Err(error);
            }
            begun => begun?,
        };
        // The guard is the row itself. To look for it by a scan would step over all heads that were deleted before it.
        let head = read_head_at(&*txn, *version).await?;
        if change.operation < head.finished_below {
            let message = format!("operation {} was finished long ago", change.operation);
            return Err(Error::precondition("operation-stale", message));
        }
        if txn.get(&applied_key(change.operation)).await?.is_some() {
            return Ok(());
        }
        let dropped = self.dropped(change)?;
        let finished_below = head.finished_below.max(change.finished_below);
        let garbage = self.garbage_of(change)?;
        let mut writes = forget_garbage(&*txn, garbage).await?;
        writes.extend(self.writes(change, &dropped, garbage));
        writes.extend(forget_applied(&*txn, head.finished_below, finished_below).await?);
        writes.push(Write::Delete(head_key(*version)));
        writes.push(Write::Put(head_key(*version + 1), encode(&HeadRow { finished_below })));
        let doubt = Doubt { map: self };
        txn.commit(writes).await?;
        *version += 1;
        self.publish(change, &dropped);
        doubt.settle();
        Ok(())
    }

    /// Reads the rows again after a change whose outcome was not known. Does nothing if they are known.
    pub async fn refresh(&self) -> Result<()> {
        if !self.is_unknown() {
            return Ok(());
        }
        let mut version = self.changing.lock().await;
        if self.is_unknown() {
            *version = self.load().await?;
        }
        Ok(())
    }

    /// The rows that the change takes away. They must be there, unless it is a repair.
    fn dropped(&self, change: &LocalChange) -> Result<Vec<(PartitionId, Epoch)>> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        let rows = rows.as_ref().ok_or_else(unknown)?;
        let ids = change.puts.iter().map(|put| put.id);
        if change.forced {
            let rows = &rows.by_id;
            let ids = ids.chain(change.drops.iter().map(|(id, _)| *id));
            return Ok(ids.filter_map(|id| rows.get(&id)).map(|row| (row.id, row.epoch)).collect());
        }
        if let Some((number, epoch)) = change.arrived.iter().find(|row| !rows.is_arriving(row)) {
            let message = format!(
                "operation {} does not find move {number} at epoch {epoch} on shard {}",
                change.operation, self.identity.shard
            );
            return Err(Error::precondition("local-map-differs", message));
        }
        let rows = &rows.by_id;
        let present = |(id, epoch): &(PartitionId, Epoch)| {
            rows.get(id).is_some_and(|row| row.epoch == *epoch)
        };
        let replaced: BTreeSet<PartitionId> = change.drops.iter().map(|(id, _)| *id).collect();
        let missing = change.drops.iter().find(|row| !present(row)).map(|(id, _)| *id);
        let extra = ids.filter(|id| rows.contains_key(id)).find(|id| !replaced.contains(id));
        match missing.or(extra) {
            None => Ok(change.drops.clone()),
            Some(partition) => Err(Error::precondition(
                "local-map-differs",
                format!(
                    "operation {} does not fit partition {partition} as shard {} has it",
                    change.operation, self.identity.shard
                ),
            )),
        }
    }

    fn garbage_of<'a>(&self, change: &'a LocalChange) -> Result<&'a [Garbage]> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        Ok(rows.as_ref().ok_or_else(unknown)?.garbage_of(change))
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
        self.changed.notify_waiters();
    }

    fn is_unknown(&self) -> bool {
        self.rows.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn forget(&self) {
        *self.rows.write().unwrap_or_else(PoisonError::into_inner) = None;
        self.changed.notify_waiters();
    }

    /// Reads all rows into memory and answers the version of the head. Called with `changing` held.
    async fn load(&self) -> Result<u64> {
        let snapshot = self.store.snapshot();
        let (version, _) = read_head(&*snapshot).await?;
        let rows = read_rows(&*snapshot).await?;
        *self.rows.write().unwrap_or_else(PoisonError::into_inner) = Some(rows);
        Ok(version)
    }
}

/// Stands while a commit is on its way. If it falls, by an error or because the caller went away, nobody knows what is on
/// disk, and the rows in memory may not be trusted.
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
