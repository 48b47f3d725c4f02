//! A shard while it is in use: its store, its local map, its clock, and the partitions that are warm.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use lazuli_env::Env;
use lazuli_shardmap::layout::{self, Space};
use lazuli_shardmap::local::LocalMap;
use lazuli_shardmap::{ContainerId, Partition, PartitionId, ShardId};
use lazuli_store::{Direction, Error, KeyRange, PageLimit, Result, Store, Write, after_key};

use crate::Settings;
use crate::limits::PARTITIONS_WARM_MAX;
use crate::lsn::{Lsn, LsnClock};
use crate::partition::LivePartition;
use crate::stats::{Counts, PartitionStats};

/// Figures of a former format that are written anew in one commit.
const RENEWED_AT_ONCE: usize = 1_000;
/// The statistics row of no partition: it keeps the highest LSN of partitions that are gone.
const FLOOR: PartitionId = PartitionId(0);

pub struct LiveShard {
    pub id: ShardId,
    pub(crate) env: Env,
    pub(crate) settings: Settings,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) local: Arc<LocalMap>,
    pub(crate) lsns: LsnClock,
    warm: Mutex<BTreeMap<PartitionId, Arc<LivePartition>>>,
    /// Containers that may hold items with an expiry.
    expiring: Mutex<BTreeSet<ContainerId>>,
    /// Partitions whose figures are estimates, to be counted in the background.
    inexact: Mutex<BTreeSet<PartitionId>>,
    commits: AtomicU64,
    transactions: AtomicU64,
    sweep_errors: AtomicU64,
}

/// What a shard has done since it was opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShardStats {
    pub commits: u64,
    /// Transactions in those commits; their ratio is the mean size of a batch.
    pub transactions: u64,
    /// Sweeps of expired items that had to be put off.
    pub sweep_errors: u64,
    pub partitions_warm: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What these locks guard is whole after every statement, so a panic elsewhere does not spoil it.
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl LiveShard {
    /// Takes a store into use: its clock goes on after the last write, its expiring containers are known.
    pub async fn open(
        env: Env,
        settings: Settings,
        id: ShardId,
        store: Arc<dyn Store>,
        local: Arc<LocalMap>,
    ) -> Result<Self> {
        let shard = Self {
            id,
            lsns: LsnClock::new(env.clock.clone()),
            env,
            settings,
            store,
            local,
            warm: Mutex::default(),
            expiring: Mutex::default(),
            inexact: Mutex::default(),
            commits: AtomicU64::new(0),
            transactions: AtomicU64::new(0),
            sweep_errors: AtomicU64::new(0),
        };
        shard.restore_clock().await?;
        shard.find_expiring().await?;
        crate::reference::begin_copy(&*shard.store).await?;
        Ok(shard)
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub fn local(&self) -> &Arc<LocalMap> {
        &self.local
    }

    pub fn stats(&self) -> ShardStats {
        ShardStats {
            commits: self.commits.load(Ordering::Relaxed),
            transactions: self.transactions.load(Ordering::Relaxed),
            sweep_errors: self.sweep_errors.load(Ordering::Relaxed),
            partitions_warm: lock(&self.warm).len(),
        }
    }

    /// The partitions with the most requests since they were warmed up, at most `most` of them.
    pub async fn busiest_partitions(&self, most: usize) -> Result<Vec<PartitionStats>> {
        let mut stats: Vec<_> =
            self.warm().iter().map(|one| one.stats(Counts::default())).collect();
        stats.sort_by_key(|one| (std::cmp::Reverse(one.reads + one.writes), one.partition));
        stats.truncate(most);
        for one in &mut stats {
            if let Some(row) = self.store.get(&Counts::key(one.partition)).await? {
                one.counts = Counts::decode(row)?.shown();
            }
        }
        Ok(stats)
    }

    pub(crate) fn count_commit(&self, transactions: usize) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.transactions.fetch_add(transactions as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_sweep_error(&self) {
        self.sweep_errors.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn partition(&self, id: PartitionId) -> Arc<LivePartition> {
        let mut warm = lock(&self.warm);
        if let Some(partition) = warm.get(&id) {
            return partition.clone();
        }
        if warm.len() >= PARTITIONS_WARM_MAX {
            warm.retain(|_, held| !is_unused(held));
        }
        let partition = Arc::new(LivePartition::new(id));
        warm.insert(id, partition.clone());
        partition
    }

    /// The partitions in use.
    pub(crate) fn warm(&self) -> Vec<Arc<LivePartition>> {
        lock(&self.warm).values().cloned().collect()
    }

    /// Forgets warm partitions, unless they are in use right now.
    pub(crate) fn let_go(&self, gone: &[PartitionId]) {
        if gone.is_empty() {
            return;
        }
        let mut warm = lock(&self.warm);
        for id in gone {
            if warm.get(id).is_some_and(is_unused) {
                warm.remove(id);
            }
        }
    }

    /// Remembers that the figures of a partition are estimates.
    pub(crate) fn note_inexact(&self, id: PartitionId) {
        lock(&self.inexact).insert(id);
    }

    pub(crate) fn take_inexact(&self) -> BTreeSet<PartitionId> {
        std::mem::take(&mut lock(&self.inexact))
    }

    pub(crate) fn note_expiring(&self, containers: impl Iterator<Item = ContainerId>) {
        lock(&self.expiring).extend(containers);
    }

    pub(crate) fn expiring(&self) -> Vec<ContainerId> {
        lock(&self.expiring).iter().copied().collect()
    }

    /// Pushes the clock past every write found here, and forgets the figures of partitions that are gone.
    async fn restore_clock(&self) -> Result<()> {
        let head = self.local.head_guard()?;
        let arrivals = self.local.arrivals()?;
        let is_arriving = |id| arrivals.iter().any(|arrival| arrival.partition == id);
        let mut highest = Lsn::ZERO;
        let (mut gone, mut former) = (Vec::new(), Vec::new());
        let mut rest = KeyRange::prefix(layout::prefix(ContainerId::SYSTEM, Space::STATS));
        loop {
            let page = self.store.scan(&rest, Direction::Forward, PageLimit::MAX).await?;
            let Some((last, _)) = page.items.last() else { break };
            rest.start = after_key(last);
            for (key, row) in page.items {
                highest = highest.max(Counts::decode(row.clone())?.last_lsn);
                let id = partition_of(&key)?;
                match self.local.get(id)? {
                    None if id != FLOOR && !is_arriving(id) => gone.push(Write::Delete(key)),
                    Some(held) if Counts::is_of_rows_only(&row) => former.push(held),
                    _ => {}
                }
            }
            if !page.more {
                break;
            }
        }
        self.lsns.push_past(highest);
        let tidied = async {
            self.renew_figures(former).await?;
            self.forget_figures(head, highest, gone).await
        };
        match tidied.await {
            // Another process is changing the map: what is left here is for the next start.
            Err(error) if error.is_moved() => Ok(()),
            tidied => tidied,
        }
    }

    /// Deletes figures of partitions that are gone at this version of the local map. The highest number stays known.
    async fn forget_figures(&self, head: Bytes, highest: Lsn, gone: Vec<Write>) -> Result<()> {
        if gone.is_empty() {
            return Ok(());
        }
        let txn = self.store.begin(vec![head]).await?;
        let mut floor = Counts::read(&*txn, FLOOR).await?.unwrap_or_default();
        floor.last_lsn = floor.last_lsn.max(highest);
        let mut writes = gone;
        writes.push(Write::Put(Counts::key(FLOOR), floor.encode()));
        txn.commit(writes).await
    }

    /// Writes figures anew that know nothing of bytes outside of the store. Where there may be such bytes, the figures
    /// are estimates until the partition has been counted.
    async fn renew_figures(&self, former: Vec<Partition>) -> Result<()> {
        for chunk in former.chunks(RENEWED_AT_ONCE) {
            let guard = |held: &Partition| LocalMap::partition_guard(held.id, held.epoch);
            let txn = self.store.begin(chunk.iter().map(guard).collect()).await?;
            let mut writes = Vec::with_capacity(chunk.len());
            for held in chunk {
                let Some(mut counts) = Counts::read(&*txn, held.id).await? else { continue };
                if self.settings.outside.is_in(&*txn, held.container, &held.routes).await? {
                    (counts.exact, counts.estimated) = (false, true);
                }
                if !counts.exact {
                    self.note_inexact(held.id);
                }
                writes.push(Write::Put(Counts::key(held.id), counts.encode()));
            }
            txn.commit(writes).await?;
        }
        Ok(())
    }

    /// Notes the partitions whose figures are estimates.
    pub(crate) async fn find_inexact(&self) -> Result<()> {
        let mut rest = KeyRange::prefix(layout::prefix(ContainerId::SYSTEM, Space::STATS));
        loop {
            let page = self.store.scan(&rest, Direction::Forward, PageLimit::MAX).await?;
            for (key, row) in &page.items {
                if !Counts::decode(row.clone())?.exact && partition_of(key)? != FLOOR {
                    self.note_inexact(partition_of(key)?);
                }
            }
            match (page.more, page.items.last()) {
                (true, Some((last, _))) => rest.start = after_key(last),
                _ => return Ok(()),
            }
        }
    }

    pub(crate) async fn find_expiring(&self) -> Result<()> {
        let arrivals = self.local.arrivals()?;
        let partitions = self.local.partitions()?;
        let held = partitions.iter().map(|partition| partition.container);
        let arriving = arrivals.iter().map(|arrival| arrival.container);
        let containers: BTreeSet<_> = held.chain(arriving).collect();
        for container in containers {
            let keys = KeyRange::prefix(layout::prefix(container, Space::EXPIRY));
            let page = self.store.scan(&keys, Direction::Forward, PageLimit::items(1)).await?;
            if !page.items.is_empty() {
                lock(&self.expiring).insert(container);
            }
        }
        Ok(())
    }
}

/// No other task holds an idle partition, and while the map of warm ones is locked none can begin to.
fn is_unused(partition: &Arc<LivePartition>) -> bool {
    Arc::strong_count(partition) == 1 && partition.lane.is_idle()
}

pub(crate) fn partition_of(key: &[u8]) -> Result<PartitionId> {
    let (_, _, rest) = layout::split(key).unwrap_or((ContainerId::SYSTEM, Space::STATS, &[]));
    match rest.try_into() {
        Ok(bytes) => Ok(PartitionId(u64::from_be_bytes(bytes))),
        Err(_) => Err(Error::corrupt("bad-stats", "a statistics row has a key of another form")),
    }
}
