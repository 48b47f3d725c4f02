//! Time to live: expired items are hidden at once and deleted by a sweeper, through their lanes like any other write.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use lazuli_shardmap::layout::{self, Space};
use lazuli_shardmap::{ContainerId, ShardId};
use lazuli_store::{Direction, Error, KeyRange, PageLimit, Result};

use crate::engine::Engine;
use crate::item::ItemKey;
use crate::shard::LiveShard;
use crate::tx::{Transaction, Tx};

/// A row of the expiry space.
pub(crate) struct Expiry {
    expires_ms: u64,
    pub(crate) key: ItemKey,
}

pub(crate) fn decode(key: &Bytes, mut value: Bytes) -> Result<Expiry> {
    let damaged = || Error::corrupt("bad-expiry", "a row of the expiry space does not decode");
    let (container, _, mut rest) = layout::split(key).ok_or_else(damaged)?;
    if rest.len() < 9 || value.len() != 2 {
        return Err(damaged());
    }
    let (expires_ms, space) = (rest.get_u64(), Space(rest.get_u8()));
    let (route, row) = rest.split_at_checked(value.get_u16().into()).ok_or_else(damaged)?;
    Ok(Expiry { expires_ms, key: ItemKey::new(container, space, route, row) })
}

/// Deletes what has expired by the time the lane comes to it.
struct Expire(Vec<Expiry>);

impl Transaction for Expire {
    type Output = usize;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<usize> {
        let mut deleted = 0;
        for expiry in &self.0 {
            deleted += usize::from(tx.expire(&expiry.key, expiry.expires_ms).await?);
        }
        Ok(deleted)
    }

    fn cost(&self) -> u32 {
        0
    }
}

impl Engine {
    /// Deletes expired items of one shard, a bounded number for each container, and says how many.
    pub async fn sweep(&self, id: ShardId) -> Result<usize> {
        let shard = self.shards.get(id)?;
        let mut deleted = 0;
        for container in shard.expiring() {
            deleted += self.sweep_container(&shard, container).await?;
        }
        Ok(deleted)
    }

    async fn sweep_container(
        &self,
        shard: &Arc<LiveShard>,
        container: ContainerId,
    ) -> Result<usize> {
        let start = layout::prefix(container, Space::EXPIRY);
        let now = self.env.clock.now_ms();
        let end = layout::key(container, Space::EXPIRY, &(now + 1).to_be_bytes());
        let due = KeyRange::new(start, Some(end));
        let limit = PageLimit::items(self.settings.sweep_items);
        let page = shard.store.snapshot().scan(&due, Direction::Forward, limit).await?;
        let mut by_route: std::collections::BTreeMap<Bytes, Vec<Expiry>> = Default::default();
        for (key, value) in page.items {
            let expiry = decode(&key, value)?;
            let route = Bytes::copy_from_slice(expiry.key.route());
            by_route.entry(route).or_default().push(expiry);
        }
        let mut deleted = 0;
        for (route, expired) in by_route {
            match self.write(container, &route, Expire(expired)).await {
                Ok(count) => deleted += count,
                // A partition that is offline or on its way keeps its expired items for the next sweep.
                Err(_) => shard.count_sweep_error(),
            }
        }
        Ok(deleted)
    }

    /// Sweeps every shard once.
    pub async fn sweep_all(&self) -> Result<usize> {
        let mut deleted = Ok(0);
        for shard in self.shards.all() {
            let swept = self.sweep(shard.id).await;
            deleted = deleted.and_then(|total| Ok(total + swept?));
        }
        deleted
    }
}
