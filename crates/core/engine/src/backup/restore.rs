//! Restoring a backup into partitions that are offline meanwhile.
//!
//! The partitions that hold the backup's routes are taken offline and locked, what they hold of these routes is deleted,
//! the backup is loaded and read back, and only then are they online again. Whatever stops it in between leaves them
//! offline, for the next restore to take over. Everything is written under the guard of the partition's epoch, so that a
//! restore which was overtaken cannot write into what another one has brought.

use super::BackupReason;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use lazuli_shardmap::layout::Space;
use lazuli_shardmap::local::LocalMap;
use lazuli_shardmap::manager::{Cuts, NewContainer, NewPartition, Taken, is_restore};
use lazuli_shardmap::{Container, ContainerId, MapKind, Partition, PartitionState};
use lazuli_store::blocks::{BlockFile, BlockId, BlockWriter};
use lazuli_store::{Direction, Error, KeyRange, Kind, PageLimit, Result};

use super::filed::Filed;
use super::format::BackupHead;
use super::verify::Sums;
use crate::derived::Derived;
use crate::engine::Engine;
use crate::item::keys_of;
use crate::lsn::Lsn;
use crate::shard::LiveShard;

/// The partitions that a new container on a hash map begins with.
const HASHED_PARTITIONS: u16 = 16;
/// The most partitions that the routes of one backup may have become.
const PARTITIONS_MAX: usize = 16_384;
/// How far the numbers of a backup may be ahead of this clock: every later write would get a number, and so a time, that
/// is as far ahead.
pub const LSN_AHEAD_MAX: Duration = Duration::from_secs(24 * 3600);

/// Where a backup goes.
#[derive(Clone, Debug)]
pub struct RestoreTarget {
    /// The container. If there is none of this name it is created, with the kind, keys, schema, rules and policies of the
    /// one that the backup was taken of.
    pub name: String,
    /// What a container that is created has instead of those attributes of the same names.
    pub attributes: BTreeMap<String, String>,
    /// Whether what the routes hold now may be deleted. Without it they must hold nothing.
    pub replace: bool,
}

/// How far a restore has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoreProgress {
    pub rows: u64,
    /// Bytes of rows and files.
    pub bytes: u64,
}

/// A restore that has begun: its partitions are offline. Dropped before its end, it leaves them so.
pub struct Restore {
    pub(super) engine: Arc<Engine>,
    pub(super) head: BackupHead,
    pub(super) container: Container,
    pub(super) taken: Taken,
    /// The shard of each partition taken.
    pub(super) shards: Vec<Arc<LiveShard>>,
    pub(super) filed: Option<Arc<dyn Filed>>,
    /// What follows from the items.
    pub(super) derived: Derived,
    /// What was written to each partition.
    pub(super) sums: Vec<Sums>,
    /// The shardlet that is being loaded, and the new names of its files.
    pub(super) route: Bytes,
    pub(super) names: BTreeMap<BlockId, BlockFile>,
    /// Files that are on disk and that no row names yet.
    pub(super) unnamed: Vec<BlockId>,
    pub(super) writing: Option<Writing>,
    pub(super) progress: RestoreProgress,
}

/// A file that is being written.
pub(super) struct Writing {
    pub(super) was: BlockFile,
    pub(super) left: u64,
    /// The lock is never taken: it lets a restore be shared between threads, though its writer is not.
    pub(super) writer: Mutex<Box<dyn BlockWriter>>,
}

impl Engine {
    /// Begins to restore a backup with this head: its partitions go offline. What is refused has changed nothing. Next is
    /// [`Restore::clear`], then [`Restore::take`] for each part, then [`Restore::finish`].
    pub async fn begin_restore(
        self: &Arc<Self>,
        head: BackupHead,
        target: &RestoreTarget,
    ) -> Result<Restore> {
        check_clock(head.lsn, self.env.clock.now_ms())?;
        let container = match self.manager.catalog().container_named(&target.name).await {
            Err(error) if error.kind() == Kind::NotFound => self.create_like(&head, target).await?,
            found => found?,
        };
        check_alike(&head.container, &container)?;
        let has_rows = !target.replace && self.holds_any(container.id, &head.routes).await?;
        if has_rows {
            return Err(not_empty(&container));
        }
        let (manager, id, routes) = (self.manager.clone(), container.id, head.routes.clone());
        let begun = async move { manager.begin_restore(id, &routes).await };
        let taken = self.to_the_end(begun).await?;
        // Read again: what it says about entries may have changed until its partitions were taken, and waits for their
        // restore from then on.
        let container = self.manager.catalog().container(id).await?;
        let partitions = taken.partitions.iter();
        let shards = partitions.map(|it| self.shards.get(it.shard)).collect::<Result<_>>()?;
        let restore = Restore {
            engine: self.clone(),
            filed: self.filed.get(&container.schema),
            derived: Derived {
                rules: self.settings.deriving.rules(&container)?,
                container: Arc::new(container.clone()),
            },
            sums: vec![Sums::default(); taken.partitions.len()],
            head,
            container,
            taken,
            shards,
            route: Bytes::new(),
            names: BTreeMap::new(),
            unnamed: Vec::new(),
            writing: None,
            progress: RestoreProgress::default(),
        };
        // Clients may have written until this moment.
        if !target.replace && restore.took_any().await? {
            restore.end(restore.taken.states.clone()).await?;
            return Err(not_empty(&restore.container));
        }
        Ok(restore)
    }

    /// A container like the one of the backup, offline.
    async fn create_like(&self, head: &BackupHead, target: &RestoreTarget) -> Result<Container> {
        let was = &head.container;
        let mut policies = was.policies.clone();
        policies.attributes.extend(target.attributes.clone());
        let bounds =
            [Some(&head.routes.start).filter(|it| !it.is_empty()), head.routes.end.as_ref()];
        let new = NewContainer {
            name: target.name.clone(),
            kind: was.kind,
            key: was.key.clone(),
            schema: was.schema.clone(),
            placement: was.placement.clone(),
            policies,
            cuts: match was.kind {
                MapKind::List => Cuts::Empty,
                MapKind::Range | MapKind::EpkV1 | MapKind::EpkV2 | MapKind::EpkMulti => {
                    Cuts::At(bounds.into_iter().flatten().cloned().collect())
                }
                MapKind::Hash => Cuts::Even(HASHED_PARTITIONS),
            },
            shards: Vec::new(),
        };
        let (manager, routes) = (self.manager.clone(), head.routes.clone());
        self.to_the_end(async move {
            let container = manager.create_container_offline(&new, &routes).await?;
            if new.kind == MapKind::List {
                let point = NewPartition::range(routes, None);
                manager.add_partition(container.id, point).await?;
            }
            Ok(container)
        })
        .await
    }

    /// Whether partitions hold anything among these routes. What an earlier restore has left behind does not count.
    async fn holds_any(&self, container: ContainerId, routes: &KeyRange) -> Result<bool> {
        let catalog = self.manager.catalog();
        for entry in catalog.partitions_in(container, routes, PARTITIONS_MAX).await? {
            let shard = self.shards.get(entry.partition.shard)?;
            let is_left = entry.lock.is_some_and(is_restore);
            if !is_left && holds_any(&shard, &entry.partition, routes).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Restore {
    pub fn container(&self) -> &Container {
        &self.container
    }

    /// The partitions that the backup goes into.
    pub fn partitions(&self) -> &[Partition] {
        &self.taken.partitions
    }

    pub fn progress(&self) -> RestoreProgress {
        self.progress
    }

    /// The guard of everything that is written to a partition.
    pub(super) fn guard(&self, at: usize) -> Bytes {
        let Partition { id, epoch, .. } = self.taken.partitions[at];
        LocalMap::partition_guard(id, epoch)
    }

    /// Whether a partition held anything when it was taken.
    async fn took_any(&self) -> Result<bool> {
        let taken = self.taken.partitions.iter().zip(&self.taken.states).zip(&self.shards);
        for ((partition, state), shard) in taken {
            if state.is_some() && holds_any(shard, partition, &self.head.routes).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) async fn end(&self, states: Vec<Option<PartitionState>>) -> Result<()> {
        let (manager, taken) = (self.engine.manager.clone(), self.taken.clone());
        let ended = async move { manager.end_restore(&taken, &states).await };
        self.engine.to_the_end(ended).await
    }
}

async fn holds_any(shard: &LiveShard, partition: &Partition, routes: &KeyRange) -> Result<bool> {
    let inside = partition.routes.intersect(routes);
    for space in Space::KEY_ORDERED {
        let keys = keys_of(partition.container, *space, &inside);
        let page = shard.store.scan(&keys, Direction::Forward, PageLimit::items(1)).await?;
        if !page.items.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn check_clock(lsn: Lsn, now_ms: u64) -> Result<()> {
    let most = now_ms.saturating_add(LSN_AHEAD_MAX.as_millis() as u64);
    if lsn.millis() <= most {
        return Ok(());
    }
    let message = "the backup is of a time that is more than a day ahead of this clock";
    Err(Error::precondition("backup-ahead", message))
}

/// Refuses a container whose keys or contents are others than those of the backup.
fn check_alike(was: &Container, is: &Container) -> Result<()> {
    if (was.kind, &was.key, &was.schema) == (is.kind, &is.key, &is.schema) {
        return Ok(());
    }
    let message = format!("container {} has another kind, key or schema than the backup", is.name);
    Err(Error::precondition("container-differs", message))
}

fn not_empty(container: &Container) -> Error {
    let message = format!("container {} has items among the routes of the backup", container.name);
    Error::precondition(BackupReason::RoutesNotEmpty, message)
}
