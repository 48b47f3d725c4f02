//! Counting a partition whose figures are estimates, while it is in use.
//!
//! Under the lane's turn a snapshot is taken and the lane begins to note what it adds; the snapshot is counted without
//! the turn; under the turn again, count and notes together are the exact figures.

use std::sync::Arc;

use lazuli_shardmap::layout::Space;
use lazuli_shardmap::local::Access;
use lazuli_shardmap::{PartitionId, ShardId};
use lazuli_store::{Direction, Error, KeyRange, Kind, PageLimit, Reader, Result, Write, after_key};

use crate::engine::Engine;
use crate::item::keys_of;
use crate::lane::SinceCount;
use crate::lsn::Lsn;
use crate::outside::Outside;
use crate::shard::LiveShard;
use crate::stats::{Counts, Delta, PartitionStats, Size};

/// Makes the figures of a partition exact and returns them.
pub(crate) async fn recount(shard: &Arc<LiveShard>, id: PartitionId) -> Result<Counts> {
    let gone = || Error::not_found("partition-not-found", format!("partition {id} is not here"));
    let row = shard.local.get(id)?.ok_or_else(gone)?;
    let held = shard.local.check(id, row.epoch, Access::Read)?;
    // This holds as long as the guard does: a change of the state is a new epoch.
    let takes_writes = shard.local.check(id, row.epoch, Access::Write).is_ok();
    let partition = shard.partition(id);
    let (snapshot, number) = {
        let mut turn = partition.lane.turn.lock().await;
        turn.counts_begun += 1;
        let number = turn.counts_begun;
        turn.since_count = Some(SinceCount { number, delta: Delta::default() });
        (shard.store.snapshot(), number)
    };
    let mut total = Delta::default();
    for space in Space::KEY_ORDERED {
        let keys = keys_of(held.container, *space, &held.routes);
        total.add(count(&*snapshot, keys, &shard.settings.outside).await?);
    }
    let mut turn = partition.lane.turn.lock().await;
    let since = turn.since_count.take_if(|since| since.number == number);
    total.add(since.ok_or_else(disturbed)?.delta);
    let txn = shard.store.begin(vec![held.guard]).await?;
    let last_lsn = match Counts::read(&*txn, id).await?.and_then(|counts| counts.settled()) {
        Some(last_lsn) => last_lsn,
        // The last number of what is committed is not known, but a new one is greater. A partition that takes no writes
        // gets none: it may be on its way to a shard that would not know of it.
        None if takes_writes => shard.lsns.next_lsn(),
        None => Lsn::ZERO,
    };
    let mut counts = Counts { exact: true, last_lsn, ..Counts::default() };
    counts.apply(total);
    txn.commit(vec![Write::Put(Counts::key(id), counts.encode())]).await?;
    partition.note_size(counts.size().unwrap_or_default());
    Ok(counts)
}

fn disturbed() -> Error {
    Error::unavailable("count-disturbed", "a failed write or another count came in between")
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
        let mut outcome = Ok(());
        for shard in self.shards.all() {
            for id in shard.take_inexact() {
                let counted = recount(&shard, id).await;
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

    /// What one partition holds, counted first unless somebody has.
    pub async fn partition_size(&self, id: PartitionId, on: ShardId) -> Result<Size> {
        let shard = self.shards.get(on)?;
        let row = shard.store.snapshot().get(&Counts::key(id)).await?;
        match row.map(Counts::decode).transpose()?.and_then(|counts| counts.size()) {
            Some(size) => Ok(size),
            None => {
                let Counts { items, bytes, outside, .. } = recount(&shard, id).await?;
                Ok(Size { items, bytes, outside })
            }
        }
    }

    /// The figures of one partition, counted first if nobody has yet.
    pub async fn partition_stats(&self, id: PartitionId, on: ShardId) -> Result<PartitionStats> {
        let shard = self.shards.get(on)?;
        let row = shard.store.snapshot().get(&Counts::key(id)).await?;
        let counts = match row {
            Some(row) => Counts::decode(row)?,
            None => recount(&shard, id).await?,
        };
        Ok(shard.partition(id).stats(counts))
    }
}
