//! Counting a partition whose figures are not exact, while it is in use, by any process.
//!
//! Every commit adds to the figures exactly what it adds to the partition, so the figures are wrong by the same amount at all
//! times. A count in one snapshot, with the figures in the same snapshot, tells the amount; a transaction then takes it from
//! the figures as they are by then.

use std::sync::Arc;

use lazuli_shardmap::layout::Space;
use lazuli_shardmap::local::{Access, Held};
use lazuli_shardmap::{MapReason, PartitionId, ShardId};
use lazuli_store::{
    Direction, Error, KeyRange, Kind, PageLimit, Reader, Reads, Result, Write, after_key,
};

use crate::engine::Engine;
use crate::item::keys_of;
use crate::outside::Outside;
use crate::shard::LiveShard;
use crate::stats::{Counts, Delta, PartitionStats, Size};

/// Makes the figures of a partition exact and returns them.
pub(crate) async fn recount(shard: &Arc<LiveShard>, id: PartitionId) -> Result<Counts> {
    shard.local.refresh().await?;
    let gone =
        || Error::not_found(MapReason::PartitionNotFound, format!("partition {id} is not here"));
    let row = shard.local.get(id)?.ok_or_else(gone)?;
    let held = shard.local.check(id, row.epoch, Access::Read)?;
    // This holds as long as the guard does: a change of the state is a new epoch.
    let takes_writes = shard.local.check(id, row.epoch, Access::Write).is_ok();
    let (before, counted) = count_all(shard, id, &held).await?;
    let partition = shard.partition(id);
    let _turn = partition.lane.turn.lock().await;
    let txn = shard.store.begin(vec![held.guard]).await?;
    let mut counts = Counts::read(&*txn, id).await?.unwrap_or_default();
    if counts.exact && !before.exact {
        // Another process has counted meanwhile.
        return Ok(counts);
    }
    let wrong = (before.items, before.bytes, before.outside);
    let is = (counts.items, counts.bytes, counts.outside);
    let was_blank = before.is_blank() || before.exact;
    if was_blank && (wrong, before.last_lsn) != (is, counts.last_lsn) {
        return Err(Error::unavailable(
            "count-disturbed",
            "the partition was written to meanwhile",
        ));
    }
    if counts.settled().is_none() && takes_writes {
        // The last number of what is committed is not known, but a new one is greater. A partition that takes no writes
        // gets none: it may be on its way to a shard that would not know of it.
        counts.last_lsn = shard.lsns.next_lsn();
    }
    counted.add_to(&mut counts);
    counts.items = counts.items.wrapping_sub(before.items);
    counts.bytes = counts.bytes.wrapping_sub(before.bytes);
    counts.outside = counts.outside.wrapping_sub(before.outside);
    counts.exact = true;
    txn.commit(vec![Write::Put(Counts::key(id), counts.encode())]).await?;
    partition.note_size(counts.size().unwrap_or_default());
    Ok(counts)
}

/// The figures of a partition and what it holds, both in one snapshot.
async fn count_all(shard: &LiveShard, id: PartitionId, held: &Held) -> Result<(Counts, Delta)> {
    let guard = std::slice::from_ref(&held.guard);
    let snapshot = shard.store.snapshot(guard, Reads::Long).await?;
    let figures = Counts::read(&*snapshot, id).await?.unwrap_or_default();
    let mut total = Delta::default();
    for space in Space::KEY_ORDERED {
        let keys = keys_of(held.container, *space, &held.routes);
        total.add(count(&*snapshot, keys, &shard.settings.outside).await?);
    }
    Ok((figures, total))
}

/// Items and bytes of a range of keys.
async fn count(reader: &dyn Reader, mut keys: KeyRange, outside: &Outside) -> Result<Delta> {
    let mut total = Delta::default();
    loop {
        let page = reader.scan(&keys, Direction::Forward, PageLimit::MAX).await?;
        for (key, value) in &page.items {
            total.put(outside.weigh(key, value));
        }
        match (page.more, page.items.last()) {
            (true, Some((last, _))) => keys.start = after_key(last),
            _ => return Ok(total),
        }
    }
}

impl Engine {
    /// Counts every partition whose figures were found to be estimates.
    pub async fn recount_all(&self) -> Result<()> {
        self.recount_on(&self.shards.all()).await
    }

    pub(crate) async fn recount_on(&self, shards: &[Arc<LiveShard>]) -> Result<()> {
        let mut outcome = Ok(());
        for shard in shards {
            for id in shard.take_inexact() {
                let counted = recount(shard, id).await;
                if counted.as_ref().is_err_and(|error| error.kind() != Kind::NotFound) {
                    // Not now: the next round tries again.
                    shard.note_inexact(id);
                }
                outcome = outcome.and(counted.map(|_| ()));
            }
        }
        outcome
    }

    /// Has a partition counted in the background.
    pub fn count_soon(&self, id: PartitionId, on: ShardId) {
        if let Ok(shard) = self.shards.get(on) {
            shard.note_inexact(id);
        }
    }

    /// What one partition holds. Counts it first unless that was done.
    pub async fn partition_size(&self, id: PartitionId, on: ShardId) -> Result<Size> {
        let shard = self.shards.get(on)?;
        let row = shard.store.get(&Counts::key(id)).await?;
        match row.map(Counts::decode).transpose()?.and_then(|counts| counts.size()) {
            Some(size) => Ok(size),
            None => {
                let Counts { items, bytes, outside, .. } = recount(&shard, id).await?;
                Ok(Size { items, bytes, outside })
            }
        }
    }

    /// The figures of one partition. Counts it first if nothing is known of it.
    pub async fn partition_stats(&self, id: PartitionId, on: ShardId) -> Result<PartitionStats> {
        let shard = self.shards.get(on)?;
        let row = shard.store.get(&Counts::key(id)).await?;
        let counts = match row.map(Counts::decode).transpose()? {
            Some(counts) if !counts.is_blank() => counts,
            _ => recount(&shard, id).await?,
        };
        Ok(shard.partition(id).stats(counts))
    }
}
