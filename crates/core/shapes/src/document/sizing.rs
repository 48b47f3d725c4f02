//! How large ranges and shardlets may become, and how it is noticed that one is too large.
//!
//! The engine counts the bytes of each range exactly, and those of a shardlet not at all. A shardlet can only be too large
//! where its range is larger than a shardlet may be. So most writes cost one look into memory: how much was written to their
//! range since its figures were last read. Only in large ranges are shardlets measured, when they are written to, and only
//! those near the limit again and again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lazuli_engine::{ContainerId, Error, KeyRange, PartitionId, Result};

use super::Documents;
use super::collection::Collection;
use super::operation::{Action, Operation, Outcome};
use super::reason::DocumentReason;

/// How large ranges and shardlets may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizing {
    /// A range with more bytes is split, if it has more than one partition key.
    pub range_bytes_max: u64,
    /// A partition key with more bytes takes nothing more.
    pub shardlet_bytes_max: u64,
}

const GIB: u64 = 1 << 30;

impl Default for Sizing {
    fn default() -> Self {
        Self { range_bytes_max: 50 * GIB, shardlet_bytes_max: 20 * GIB }
    }
}

/// The figures of a range are read again after this part of the smaller limit was written to it.
const LOOKS_PER_LIMIT: u64 = 64;
/// The most ranges, and the most shardlets, that are remembered. Forgotten ones are looked at again.
const KEPT_MAX: usize = 10_000;
/// How long a shardlet that is full is taken to be so, while nothing is written to it.
const FULL_KEPT_MS: u64 = 1_000;
/// How long the size of one that is not full is believed: other processes may write to it.
const SIZE_KEPT_MS: u64 = 60_000;

#[derive(Clone, Copy, Debug, Default)]
struct Watched {
    /// As the figures said when they were last read.
    bytes: u64,
    /// What this process has written since.
    written: u64,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    bytes: u64,
    /// What this process has written since.
    written: u64,
    at_ms: u64,
}

/// What is known of sizes.
#[derive(Default)]
pub(super) struct Sizes {
    pub(super) sizing: Sizing,
    ranges: Mutex<BTreeMap<PartitionId, Watched>>,
    /// Of large ranges alone.
    shardlets: Mutex<BTreeMap<(ContainerId, Bytes), Measured>>,
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sizes {
    pub(super) fn new(sizing: Sizing) -> Self {
        Self { sizing, ..Self::default() }
    }

    /// Counts what was written to a range. None if its figures must be read; else its size, or a bit more.
    fn count(&self, range: PartitionId, bytes: u64) -> Option<u64> {
        let least = self.sizing.range_bytes_max.min(self.sizing.shardlet_bytes_max);
        let mut ranges = held(&self.ranges);
        let watched = ranges.get_mut(&range)?;
        watched.written = watched.written.saturating_add(bytes);
        let is_known = watched.written <= least / LOOKS_PER_LIMIT;
        is_known.then_some(watched.bytes + watched.written)
    }

    fn looked(&self, range: PartitionId, bytes: u64) {
        let mut ranges = held(&self.ranges);
        if ranges.len() >= KEPT_MAX {
            ranges.clear();
        }
        ranges.insert(range, Watched { bytes, written: 0 });
    }

    fn measured(&self, shardlet: &(ContainerId, Bytes)) -> Option<Measured> {
        held(&self.shardlets).get(shardlet).copied()
    }

    fn keep(&self, shardlet: (ContainerId, Bytes), bytes: u64, at_ms: u64) {
        let mut shardlets = held(&self.shardlets);
        if shardlets.len() >= KEPT_MAX {
            shardlets.clear();
        }
        shardlets.insert(shardlet, Measured { bytes, written: 0, at_ms });
    }

    /// Counts what was written to a shardlet. False if it must be measured.
    fn count_shardlet(&self, shardlet: &(ContainerId, Bytes), bytes: u64, now_ms: u64) -> bool {
        match held(&self.shardlets).get_mut(shardlet) {
            Some(measured) if now_ms.saturating_sub(measured.at_ms) < SIZE_KEPT_MS => {
                measured.written = measured.written.saturating_add(bytes);
                true
            }
            _ => false,
        }
    }
}

/// Whether operations can make a shardlet larger. Deletions and reads cannot.
fn can_grow(operations: &[Operation]) -> bool {
    operations.iter().any(|operation| match operation.action {
        Action::Create(_) | Action::Upsert(_) | Action::Replace(_) | Action::Update(_) => true,
        Action::Read | Action::Delete => false,
    })
}

impl Documents {
    /// Refuses with `ShardletFull` what would add to a shardlet that has reached its limit.
    pub(super) async fn check_room(
        &self,
        collection: &Collection,
        route: &Bytes,
        operations: &[Operation],
    ) -> Result<()> {
        let limit = self.sizes.sizing.shardlet_bytes_max;
        let shardlet = (collection.container.id, route.clone());
        let Some(measured) = self.sizes.measured(&shardlet) else { return Ok(()) };
        if measured.bytes.saturating_add(measured.written) < limit || !can_grow(operations) {
            return Ok(());
        }
        let now_ms = self.engine.env().clock.now_ms();
        let is_fresh = now_ms.saturating_sub(measured.at_ms) < FULL_KEPT_MS;
        let bytes = match is_fresh && measured.written == 0 {
            true => measured.bytes,
            // Deletions may have made room, and what was written may have replaced what was there.
            false => self.measure(shardlet, now_ms).await?,
        };
        if bytes < limit {
            return Ok(());
        }
        let message = format!("the partition key has {bytes} bytes, and may have {limit}");
        Err(Error::too_large(DocumentReason::ShardletFull, message))
    }

    async fn measure(&self, shardlet: (ContainerId, Bytes), now_ms: u64) -> Result<u64> {
        let bytes = self.engine.shardlet_size(shardlet.0, &shardlet.1).await?;
        self.sizes.keep(shardlet, bytes, now_ms);
        Ok(bytes)
    }

    /// Notices what operations on one shardlet have added. The write is done: what cannot be looked at now is looked at
    /// after the next one.
    pub(super) async fn notice(
        &self,
        collection: &Collection,
        route: &Bytes,
        outcomes: &[Outcome],
    ) -> Result<()> {
        let grown = outcomes.iter().filter(|outcome| outcome.document.is_some());
        let bytes = grown.map(|outcome| outcome.work.bytes_written).sum();
        let Some(range) = outcomes.first().map(|one| one.range).filter(|_| bytes > 0) else {
            return Ok(());
        };
        let Sizing { range_bytes_max, shardlet_bytes_max } = self.sizes.sizing;
        let size = match self.sizes.count(range, bytes) {
            Some(size) => size,
            None => {
                let size = self.range_size(collection, route).await?;
                self.sizes.looked(range, size);
                if size > range_bytes_max {
                    self.note_large(collection).await?;
                }
                size
            }
        };
        if size < shardlet_bytes_max {
            return Ok(());
        }
        let shardlet = (collection.container.id, route.clone());
        let now_ms = self.engine.env().clock.now_ms();
        if !self.sizes.count_shardlet(&shardlet, bytes, now_ms) {
            self.measure(shardlet, now_ms).await?;
        }
        Ok(())
    }

    /// The bytes of the range that has a route.
    async fn range_size(&self, collection: &Collection, route: &Bytes) -> Result<u64> {
        let catalog = self.engine.manager().catalog();
        let (id, routes) = (collection.container.id, KeyRange::prefix(route.clone()));
        let found = catalog.partitions_in(id, &routes, 1).await?;
        let Some(entry) = found.into_iter().next() else { return Ok(0) };
        let partition = entry.partition;
        Ok(self.engine.partition_size(partition.id, partition.shard).await?.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_looked_at_when_enough_was_written_to_it() {
        let sizes = Sizes::new(Sizing { range_bytes_max: 6_400, shardlet_bytes_max: 12_800 });
        let range = PartitionId(7);
        assert_eq!(sizes.count(range, 10), None);
        sizes.looked(range, 1_000);
        assert_eq!(sizes.count(range, 60), Some(1_060));
        assert_eq!(sizes.count(range, 40), Some(1_100));
        assert_eq!(sizes.count(range, 1), None);
        sizes.looked(range, 1_101);
        assert_eq!(sizes.count(range, 1), Some(1_102));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let sizes = Sizes::default();
        for number in 0..3 * KEPT_MAX as u64 {
            sizes.looked(PartitionId(number), 1);
            let route = Bytes::copy_from_slice(&number.to_be_bytes());
            sizes.keep((ContainerId(1), route), 1, 0);
        }
        assert!(held(&sizes.ranges).len() <= KEPT_MAX);
        assert!(held(&sizes.shardlets).len() <= KEPT_MAX);
    }
}
