//! Deleting the data of partitions that are gone: first what the store can drop as a whole, then what is left, in slices.
//! All of it is guarded by the row that names the garbage, so that nothing is deleted that came to these routes afterwards.
//! Slices are small, and there is a pause after each: commits of clients stand in the same queue.

use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use lazuli_shardmap::ShardId;
use lazuli_shardmap::layout::{PREFIX_BYTES, Space};
use lazuli_shardmap::local::{Garbage, LocalMap};
use lazuli_store::{Direction, Dropped, KeyRange, PageLimit, Result, Write, after_key};

use crate::derived;
use crate::engine::Engine;
use crate::item::keys_of;
use crate::shard::LiveShard;

/// Keys that are deleted in one commit.
const SLICE_KEYS: usize = 250;
/// Keys that are looked through at once.
const PAGE_KEYS: usize = 1_000;
/// How long a store that is busy is left alone before it is asked again to drop keys, and how often it is asked in all.
const DROP_REST: Duration = Duration::from_millis(20);
const DROP_ASKS_MAX: usize = 1_000;

impl Engine {
    /// Deletes all garbage of the shards that answer, and says how many keys that were, without those that a store dropped.
    /// The first error is answered once all were tried.
    pub async fn delete_garbage(&self) -> Result<usize> {
        self.delete_garbage_where(|_| true).await
    }

    /// The same on the shards that `may_clean` names.
    pub(crate) async fn delete_garbage_where(
        &self,
        may_clean: impl Fn(ShardId) -> bool,
    ) -> Result<usize> {
        let mut deleted = Ok(0);
        for garbage in self.manager.garbage().await? {
            if !may_clean(garbage.shard) {
                continue;
            }
            let cleaned = self.clean(&garbage).await;
            deleted = deleted.and_then(|total| Ok(total + cleaned?));
        }
        deleted
    }

    /// Deletes one piece of garbage. If another task or another engine ends it first, there is nothing left to do.
    pub(crate) async fn clean(&self, garbage: &Garbage) -> Result<usize> {
        match self.clean_all(garbage).await {
            Err(error) if error.is_moved() => {
                let left = self.shards.get(garbage.shard)?.local.garbage().await?;
                if left.iter().any(|one| one.id == garbage.id) {
                    return Err(error);
                }
                self.manager.garbage_done(garbage).await.map(|()| 0)
            }
            outcome => outcome,
        }
    }

    async fn clean_all(&self, garbage: &Garbage) -> Result<usize> {
        let shard = self.shards.get(garbage.shard)?;
        let guard = LocalMap::garbage_guard(garbage.id);
        let mut deleted = 0;
        for space in Space::KEY_ORDERED {
            let keys = keys_of(garbage.container, *space, &garbage.routes);
            // Most spaces of most containers hold nothing.
            if !is_empty(&shard, &keys).await? {
                drop_keys(&shard, &guard, &keys).await;
                deleted += clean_keys(&shard, &guard, keys, |_, _| true).await?;
            }
        }
        for space in Space::TIME_ORDERED {
            let keys = keys_of(garbage.container, *space, &KeyRange::all());
            let is_ours = |key: &[u8], _: &[u8]| is_by_time_in(key, &garbage.routes);
            deleted += clean_keys(&shard, &guard, keys, is_ours).await?;
        }
        let is_ours = |key: &[u8], value: &[u8]| derived::is_in(key, value, &garbage.routes);
        let keys = derived::all_keys(garbage.container);
        deleted += clean_keys(&shard, &guard, keys, is_ours).await?;
        self.manager.garbage_done(garbage).await?;
        Ok(deleted)
    }
}

/// Whether a row of a time-ordered space, `prefix | time or LSN (8) | space (1) | route | row key`, is about these routes.
pub(crate) fn is_by_time_in(key: &[u8], routes: &KeyRange) -> bool {
    key.get(PREFIX_BYTES + 9..).is_some_and(|rest| routes.contains(rest))
}

async fn is_empty(shard: &LiveShard, keys: &KeyRange) -> Result<bool> {
    let page = shard.store.scan(keys, Direction::Forward, PageLimit::items(1)).await?;
    Ok(page.items.is_empty())
}

/// Has the store let go of what it can, as long as the guard stands. If it does not come to it, all is deleted.
async fn drop_keys(shard: &LiveShard, guard: &Bytes, keys: &KeyRange) {
    let Some(handover) = shard.store.handover() else { return };
    for _ in 0..DROP_ASKS_MAX {
        match handover.drop_range(vec![guard.clone()], keys).await {
            Ok(Dropped::Part) => {}
            Ok(Dropped::NotNow) => shard.env.clock.sleep(DROP_REST).await,
            Ok(Dropped::All) | Err(_) => return,
        }
    }
}

/// Deletes keys in slices, as long as the guard stands.
pub(crate) async fn clean_keys(
    shard: &LiveShard,
    guard: &Bytes,
    mut keys: KeyRange,
    is_ours: impl Fn(&[u8], &[u8]) -> bool + Sync,
) -> Result<usize> {
    let mut deleted = 0;
    loop {
        let (mut ours, mut last) = (Vec::new(), None);
        let mut visit = |key: Bytes, value: Bytes| {
            last = Some(key.clone());
            if is_ours(&key, &value) {
                ours.push(key);
            }
            shard.env.spawn.give_way();
            Ok(ControlFlow::Continue(()))
        };
        let page = PageLimit::items(PAGE_KEYS);
        let more = shard.store.walk(&keys, Direction::Forward, page, &mut visit).await?;
        let Some(last) = last else { return Ok(deleted) };
        keys.start = after_key(&last);
        for slice in ours.chunks(SLICE_KEYS) {
            let clock = &shard.env.clock;
            let began = clock.uptime();
            let txn = shard.store.begin(vec![guard.clone()]).await?;
            txn.commit(slice.iter().cloned().map(Write::Delete).collect()).await?;
            deleted += slice.len();
            // As long as it took is left to others.
            clock.sleep(clock.uptime().saturating_sub(began)).await;
        }
        if !more {
            return Ok(deleted);
        }
    }
}
