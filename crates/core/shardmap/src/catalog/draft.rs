//! A change of the catalog in the making: what it has read, and what it will write in one commit.

use std::collections::BTreeMap;

use bytes::Bytes;
use lazuli_env::Id;
use lazuli_store::{Error, KeyRange, Result, Txn, Write};

use super::keys;
use super::leases::Lease;
use super::rows::{Claim, ContainerChange, Deleting, Entry, Head, LogRow, MapOperation};
use super::view::View;
use crate::moves::Move;
use crate::record::encode;
use crate::{Container, ContainerId, Garbage, PartitionId, Shard, ShardId};

/// How many versions the change log goes back. A router that is further behind reads all of it again.
pub const LOG_VERSIONS_MAX: u64 = 4_096;
/// The most partitions that one row of the change log names. Above that, followers read the container again.
pub const LOG_PARTITIONS_MAX: usize = 1_024;

/// The most operations that may be pending at once, so that a shard that stays down does not fill the catalog.
pub const PENDING_OPERATIONS_MAX: usize = 1_024;

/// Why a change was not made.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// A pending operation stands in the way: finish it, then decide again.
    Pending(u64),
    Error(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

pub(crate) type Decision<T> = Result<T, Refusal>;

/// Something that can be done to the catalog. It is decided again whenever another change came first.
pub(crate) trait CatalogChange: Sync {
    type Output: Send;

    fn decide(&self, draft: &mut Draft) -> impl Future<Output = Decision<Self::Output>> + Send;

    /// The lease that must still be held when the change is committed.
    fn lease(&self) -> Option<&Lease> {
        None
    }
}

pub(crate) struct Draft {
    txn: Box<dyn Txn>,
    version: u64,
    head: Head,
    pending: Vec<(u64, ContainerId)>,
    log: LogRow,
    writes: Vec<Write>,
    counts: BTreeMap<(ShardId, ContainerId), i64>,
    begun: Option<MapOperation>,
    advanced: bool,
}

impl Draft {
    pub(super) async fn new(
        txn: Box<dyn Txn>,
        version: u64,
        head: Head,
        change: Id,
    ) -> Result<Self> {
        let pending = View::of(&*txn).pending().await?;
        let (log, writes, counts) = (LogRow::new(change), Vec::new(), BTreeMap::new());
        let (begun, advanced) = (None, false);
        Ok(Self { txn, version, head, pending, log, writes, counts, begun, advanced })
    }

    /// The catalog as it was when the draft began, without what it will write.
    pub(crate) fn view(&self) -> View<'_> {
        View { reader: &*self.txn }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty() && !self.advanced
    }

    /// The version that its commit makes.
    pub(crate) fn next_version(&self) -> u64 {
        self.version + 1
    }

    /// The operation that it begins, if it does.
    pub(crate) fn begun(&self) -> Option<&MapOperation> {
        self.begun.as_ref()
    }

    pub(crate) fn new_shard_id(&mut self) -> ShardId {
        self.head.next_shard += 1;
        ShardId(self.head.next_shard - 1)
    }

    pub(crate) fn new_container_id(&mut self) -> ContainerId {
        self.head.next_container += 1;
        ContainerId(self.head.next_container - 1)
    }

    pub(crate) fn new_partition_id(&mut self) -> PartitionId {
        self.head.next_partition += 1;
        PartitionId(self.head.next_partition - 1)
    }

    pub(crate) fn new_garbage(
        &mut self,
        shard: ShardId,
        container: ContainerId,
        routes: KeyRange,
    ) -> Garbage {
        self.head.next_garbage += 1;
        Garbage { id: self.head.next_garbage - 1, shard, container, routes }
    }

    /// Makes sure that no id and no version from before is given again, after a catalog has lost its memory. No router can
    /// follow over the gap, so the change log begins anew.
    pub(crate) fn advance(&mut self, version: u64, partition: PartitionId, garbage: u64) {
        self.head.next_partition = self.head.next_partition.max(partition.0 + 1);
        self.head.next_garbage = self.head.next_garbage.max(garbage + 1);
        self.advanced = true;
        if version > self.version {
            self.writes.push(Write::Delete(keys::numbered(keys::HEAD, self.version)));
            self.version = version;
            self.head.log_from = version + 1;
        }
    }

    fn put(&mut self, key: Bytes, value: Option<Bytes>) {
        self.writes.push(match value {
            Some(value) => Write::Put(key, value),
            None => Write::Delete(key),
        });
    }

    pub(crate) fn put_shard(&mut self, before: Option<&Shard>, shard: &Shard) {
        if let Some(before) = before {
            self.put(keys::named(keys::SHARD_NAME, &before.name), None);
            self.put(keys::named(keys::SHARD_LOCATION, &before.location), None);
        }
        self.head.next_shard = self.head.next_shard.max(shard.id.0 + 1);
        self.put(keys::shard(shard.id), Some(encode(shard)));
        self.put(keys::named(keys::SHARD_NAME, &shard.name), Some(encode(&shard.id)));
        self.put(keys::named(keys::SHARD_LOCATION, &shard.location), Some(encode(&shard.id)));
        self.log.shards.push(shard.id);
    }

    pub(crate) fn drop_shard(&mut self, shard: &Shard) {
        self.put(keys::shard(shard.id), None);
        self.put(keys::named(keys::SHARD_NAME, &shard.name), None);
        self.put(keys::named(keys::SHARD_LOCATION, &shard.location), None);
        self.log.shards.push(shard.id);
    }

    pub(crate) fn take_name(&mut self, container: &Container) {
        let key = keys::named(keys::CONTAINER_NAME, &container.name);
        self.put(key, Some(encode(&container.id)));
    }

    pub(crate) fn put_container(&mut self, container: &Container) {
        let key = keys::of_container(keys::CONTAINER, container.id);
        self.put(key, Some(encode(container)));
        self.log.containers.push(container.id);
    }

    /// Writes down a container that another catalog made. Its id is not given again.
    pub(crate) fn adopt_container(&mut self, container: &Container) {
        self.head.next_container = self.head.next_container.max(container.id.0 + 1);
        self.take_name(container);
        self.put_container(container);
    }

    /// Hides the container and frees its name. Its partitions remain, for operations to remove.
    pub(crate) fn start_deleting(&mut self, deleting: &Deleting) {
        let container = &deleting.container;
        self.put(keys::of_container(keys::CONTAINER, container.id), None);
        self.put(keys::named(keys::CONTAINER_NAME, &container.name), None);
        let key = keys::of_container(keys::DELETING, container.id);
        self.put(key, Some(encode(deleting)));
        self.log.containers.push(container.id);
        self.log.reloads.push(container.id);
    }

    pub(crate) fn put_entry(&mut self, entry: &Entry) {
        let partition = &entry.partition;
        let (container, route) = (partition.container, &partition.routes.start);
        let place = (container, route.clone());
        self.put(keys::routed(keys::ROUTE, container, route), Some(encode(entry)));
        self.put(keys::partition(partition.id), Some(encode(&place)));
        let on_shard = keys::on_shard(partition.shard, Some((container, route)));
        self.put(on_shard, Some(encode(&true)));
        if let Some(token) = entry.lock {
            self.put(keys::locked(token, container, route), Some(encode(&true)));
        }
        *self.counts.entry((partition.shard, container)).or_default() += 1;
        self.log.puts.push(partition.clone());
    }

    pub(crate) fn drop_entry(&mut self, entry: &Entry) {
        let partition = &entry.partition;
        let (container, route) = (partition.container, &partition.routes.start);
        self.put(keys::routed(keys::ROUTE, container, route), None);
        self.put(keys::partition(partition.id), None);
        self.put(keys::on_shard(partition.shard, Some((container, route))), None);
        if let Some(token) = entry.lock {
            self.put(keys::locked(token, container, route), None);
        }
        *self.counts.entry((partition.shard, container)).or_default() -= 1;
        self.log.removes.push(partition.clone());
    }

    /// Locks change nothing for those who follow the map, so the change log does not name them.
    pub(crate) fn set_lock(&mut self, entry: &Entry, lock: Option<Id>) {
        let (container, route) = (entry.partition.container, &entry.partition.routes.start);
        if let Some(token) = entry.lock {
            self.put(keys::locked(token, container, route), None);
        }
        if let Some(token) = lock {
            self.put(keys::locked(token, container, route), Some(encode(&true)));
        }
        let locked = Entry { lock, ..entry.clone() };
        self.put(keys::routed(keys::ROUTE, container, route), Some(encode(&locked)));
    }

    pub(crate) fn put_garbage(&mut self, garbage: &Garbage) {
        let Garbage { id, shard, container, routes } = garbage;
        self.head.next_garbage = self.head.next_garbage.max(id + 1);
        let key = keys::garbage(*container, *shard, &routes.start);
        self.put(key, Some(encode(garbage)));
    }

    pub(crate) fn drop_garbage(&mut self, garbage: &Garbage) {
        let Garbage { shard, container, routes, .. } = garbage;
        self.put(keys::garbage(*container, *shard, &routes.start), None);
    }

    pub(crate) fn put_move(&mut self, moving: &Move) {
        self.put(keys::numbered(keys::MOVE, moving.number), Some(encode(moving)));
    }

    pub(crate) fn drop_move(&mut self, number: u64) {
        self.put(keys::numbered(keys::MOVE, number), None);
    }

    /// Decides the operation: from the commit of this draft on it will be done. Its number is that commit's version.
    pub(crate) fn begin(&mut self, mut operation: MapOperation) -> Result<MapOperation> {
        assert!(self.begun.is_none(), "a change begins one operation");
        if self.pending.len() >= PENDING_OPERATIONS_MAX {
            let message =
                format!("{PENDING_OPERATIONS_MAX} operations wait for shards that are down");
            return Err(Error::unavailable("too-many-operations", message));
        }
        operation.number = self.next_version();
        self.pending.push((operation.number, operation.container));
        self.put_pending();
        for routes in &operation.claims {
            let claim = Claim { operation: operation.number, routes: routes.clone() };
            let key = keys::routed(keys::CLAIM, operation.container, &routes.start);
            self.put(key, Some(encode(&claim)));
        }
        let key = keys::numbered(keys::OPERATION, operation.number);
        self.put(key, Some(encode(&operation)));
        self.begun = Some(operation.clone());
        Ok(operation)
    }

    fn put_pending(&mut self) {
        let row = (!self.pending.is_empty()).then(|| encode(&self.pending));
        self.put(keys::space(keys::PENDING), row);
    }

    /// Writes a pending operation down again, as a repair that replaces what it finds.
    pub(crate) fn force(&mut self, mut operation: MapOperation) {
        operation.forced = true;
        let key = keys::numbered(keys::OPERATION, operation.number);
        self.put(key, Some(encode(&operation)));
    }

    /// Makes an operation's outcome the catalog's truth, after all local maps have taken it.
    pub(crate) async fn finish(&mut self, operation: &MapOperation) -> Result<()> {
        for id in &operation.removes {
            let entry = self.view().entry(*id).await?;
            self.drop_entry(&entry);
        }
        for entry in &operation.puts {
            self.put_entry(entry);
        }
        for garbage in &operation.garbage {
            let Garbage { shard, container, routes, .. } = garbage;
            // Routes come back to a shard only once it is clean, so what is found here is part of what is new.
            for old in self.view().garbage_in(*container, *shard, routes, usize::MAX).await? {
                self.drop_garbage(&old);
            }
            self.put_garbage(garbage);
        }
        match &operation.change {
            ContainerChange::Touch => {
                let mut container = self.view().container(operation.container).await?;
                container.version += 1;
                self.put_container(&container);
            }
            ContainerChange::Create(container) => self.put_container(container),
            ContainerChange::Update(after) => {
                // Partitions may have changed their states since it was decided. Every state of a container has a version
                // of its own, or what was decided by one would be taken for what was decided by another.
                let before = self.view().container(operation.container).await?;
                let version = before.version.max(after.version) + 1;
                let policies = after.policies.clone();
                self.put_container(&Container { policies, version, ..before });
            }
            ContainerChange::None => {}
            ContainerChange::Forget => {
                self.put(keys::of_container(keys::DELETING, operation.container), None);
            }
        }
        for routes in &operation.claims {
            self.put(keys::routed(keys::CLAIM, operation.container, &routes.start), None);
        }
        self.put(keys::numbered(keys::OPERATION, operation.number), None);
        self.pending.retain(|(number, _)| *number != operation.number);
        self.put_pending();
        Ok(())
    }

    /// Writes everything, unless the catalog has changed since the draft began.
    pub(super) async fn commit(mut self) -> Result<()> {
        for ((shard, container), change) in std::mem::take(&mut self.counts) {
            let key = keys::count(shard, Some(container));
            let before: u64 = self.view().row(&key).await?.unwrap_or(0);
            let after = before.checked_add_signed(change).ok_or_else(|| {
                Error::corrupt(
                    "row-corrupt",
                    "the catalog has miscounted the partitions of a shard",
                )
            })?;
            self.put(key, (after > 0).then(|| encode(&after)));
        }
        if self.log.puts.len() + self.log.removes.len() > LOG_PARTITIONS_MAX {
            let puts = std::mem::take(&mut self.log.puts);
            let removes = std::mem::take(&mut self.log.removes);
            let changed = puts.iter().chain(&removes).map(|partition| partition.container);
            self.log.reloads.extend(changed);
            self.log.reloads.sort_unstable();
            self.log.reloads.dedup();
        }
        let version = self.next_version();
        let oldest = (version + 1).saturating_sub(LOG_VERSIONS_MAX);
        if oldest > self.head.log_from {
            self.head.log_from = oldest;
            self.put(keys::numbered(keys::LOG, oldest - 1), None);
        }
        self.put(keys::numbered(keys::LOG, version), Some(encode(&self.log)));
        self.put(keys::numbered(keys::HEAD, self.version), None);
        self.put(keys::numbered(keys::HEAD, version), Some(encode(&self.head)));
        self.txn.commit(self.writes).await
    }
}
