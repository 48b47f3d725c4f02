//! Deleting the data of partitions that are gone, in slices. Each slice is guarded by the row that names the garbage, so
//! that nobody deletes what came to live there afterwards.

use lazuli_shardmap::layout::{PREFIX_BYTES, Space};
use lazuli_shardmap::local::{Garbage, LocalMap};
use lazuli_store::{Direction, KeyRange, PageLimit, Result, Write, after_key};

use crate::engine::Engine;
use crate::item::keys_of;
use crate::shard::LiveShard;

/// Keys that are deleted in one commit.
const SLICE_KEYS: usize = 1_000;

impl Engine {
    /// Deletes all garbage of the shards that answer, and says how many keys that were. The first error is answered once
    /// all were tried.
    pub async fn delete_garbage(&self) -> Result<usize> {
        let mut deleted = Ok(0);
        for garbage in self.manager.garbage().await? {
            let cleaned = self.clean(&garbage).await;
            deleted = deleted.and_then(|total| Ok(total + cleaned?));
        }
        deleted
    }

    async fn clean(&self, garbage: &Garbage) -> Result<usize> {
        let shard = self.shards.get(garbage.shard)?;
        let mut deleted = 0;
        for space in Space::KEY_ORDERED {
            let keys = keys_of(garbage.container, *space, &garbage.routes);
            deleted += clean_keys(&shard, garbage, keys, |_| true).await?;
        }
        for space in [Space::CHANGES, Space::EXPIRY] {
            let keys = keys_of(garbage.container, space, &KeyRange::all());
            // Time-ordered rows: `prefix | time or LSN (8) | space (1) | route | row key`.
            let is_ours = |key: &[u8]| {
                key.get(PREFIX_BYTES + 9..).is_some_and(|rest| garbage.routes.contains(rest))
            };
            deleted += clean_keys(&shard, garbage, keys, is_ours).await?;
        }
        self.manager.garbage_done(garbage).await?;
        Ok(deleted)
    }
}

async fn clean_keys(
    shard: &LiveShard,
    garbage: &Garbage,
    mut keys: KeyRange,
    is_ours: impl Fn(&[u8]) -> bool,
) -> Result<usize> {
    let mut deleted = 0;
    loop {
        let txn = shard.store.begin(vec![LocalMap::garbage_guard(garbage.id)]).await?;
        let page = txn.scan(&keys, Direction::Forward, PageLimit::items(SLICE_KEYS)).await?;
        let Some((last, _)) = page.items.last() else { return Ok(deleted) };
        keys.start = after_key(last);
        let (more, items) = (page.more, page.items);
        let ours = items.into_iter().filter(|(key, _)| is_ours(key));
        let writes: Vec<_> = ours.map(|(key, _)| Write::Delete(key)).collect();
        if !writes.is_empty() {
            deleted += writes.len();
            txn.commit(writes).await?;
        }
        if !more {
            return Ok(deleted);
        }
    }
}
