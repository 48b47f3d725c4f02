//! Reading indexes: all partitions of a container that one shard holds are looked at together, because their entries lie
//! among each other. A container with many partitions on a shard is so read once, not once for each partition.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bytes::Bytes;
use lazuli_shardmap::layout::Space;
use lazuli_shardmap::local::{Access, Held};
use lazuli_shardmap::map::Placed;
use lazuli_shardmap::{ContainerId, PartitionId, ShardId};
use lazuli_store::{Direction, Error, KeyRange, PageLimit, Reader, Reads, Result};

use crate::derived;
use crate::engine::Engine;
use crate::item::{Item, ItemKey, keys_of};

/// An unchanging view of the partitions of a container that one shard holds. Keep it short.
pub struct ShardView {
    pub shard: ShardId,
    container: ContainerId,
    /// In the order of their routes.
    held: Vec<Held>,
    /// The routes that were asked for.
    routes: KeyRange,
    reader: Box<dyn Reader>,
    now_ms: u64,
}

impl ShardView {
    /// The partitions that it shows.
    pub fn partitions(&self) -> impl Iterator<Item = PartitionId> {
        self.held.iter().map(|held| held.partition)
    }

    /// Whether a route is one of those asked for, and in one of the partitions.
    pub fn holds(&self, route: &[u8]) -> bool {
        if !self.routes.contains(route) {
            return false;
        }
        let behind = self.held.partition_point(|held| held.routes.start[..] <= *route);
        behind > 0 && self.held[behind - 1].routes.contains(route)
    }

    /// The item, unless it is absent or expired.
    pub async fn get(&self, key: &ItemKey) -> Result<Option<Item>> {
        if key.container() != self.container || !self.holds(key.route()) {
            return Err(Error::invalid("outside-partition", "the key is not in these partitions"));
        }
        let item = self.reader.get(key.bytes()).await?.map(Item::decode).transpose()?;
        Ok(item.filter(|item| !item.is_expired(self.now_ms)))
    }

    /// Shows the entries in a range of `entry | route | row key`, each with its item. The limit counts those of other
    /// partitions too. Answers where to go on if there are more behind the last one that was looked at.
    pub async fn entries(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: PageLimit,
        mut visit: impl FnMut(Bytes, ItemKey) -> Result<ControlFlow<()>> + Send,
    ) -> Result<Option<Bytes>> {
        let keys = keys_of(self.container, Space::INDEX, range);
        let mut last = None;
        let mut show = |key: Bytes, value: Bytes| {
            let (entry, item) = derived::decode(&key, &value)?;
            last = Some(key);
            match self.holds(item.route()) {
                true => visit(entry, item),
                false => Ok(ControlFlow::Continue(())),
            }
        };
        let more = self.reader.walk(&keys, direction, limit, &mut show).await?;
        Ok(last.filter(|_| more).map(|last| last.slice(lazuli_shardmap::layout::PREFIX_BYTES..)))
    }
}

impl ShardView {
    /// How many entries of a range of `entry | route | row key` are of these partitions. The limit counts those of other
    /// partitions too. Answers where to go on, as [`Self::entries`] does.
    pub async fn count_entries(
        &self,
        range: &KeyRange,
        limit: PageLimit,
    ) -> Result<(u64, Option<Bytes>)> {
        let keys = keys_of(self.container, Space::INDEX, range);
        let (mut count, mut last) = (0, None);
        let mut show = |key: Bytes, value: Bytes| {
            let route = derived::route(&key, &value)?;
            count += u64::from(self.holds(route));
            last = Some(key);
            Ok(ControlFlow::Continue(()))
        };
        let more = self.reader.walk(&keys, Direction::Forward, limit, &mut show).await?;
        let prefix = lazuli_shardmap::layout::PREFIX_BYTES;
        Ok((count, last.filter(|_| more).map(|last| last.slice(prefix..))))
    }
}

impl Engine {
    /// A view of every shard that holds some of these routes, for reads within
    /// [`lazuli_store::limits::SNAPSHOT_LIFE_MAX`].
    pub async fn shard_views(
        &self,
        container: ContainerId,
        routes: &KeyRange,
    ) -> Result<Vec<ShardView>> {
        let mut attempt = 0;
        loop {
            match self.try_shard_views(container, routes).await {
                Err(error) if error.is_moved() => {
                    self.router.before_retry(container, attempt).await?;
                    attempt += 1;
                }
                views => return views,
            }
        }
    }

    async fn try_shard_views(
        &self,
        container: ContainerId,
        routes: &KeyRange,
    ) -> Result<Vec<ShardView>> {
        let mut by_shard: BTreeMap<ShardId, Vec<Placed>> = BTreeMap::new();
        for place in self.places(container, routes).await? {
            by_shard.entry(place.placed.shard).or_default().push(place.placed);
        }
        let mut views = Vec::with_capacity(by_shard.len());
        for (id, places) in by_shard {
            self.router.shard_ready(id)?;
            let shard = self.shards.get(id)?;
            let mut held = Vec::with_capacity(places.len());
            for placed in &places {
                let one = shard.local.held(placed.partition, placed.epoch, Access::Read).await?;
                if one.container != container {
                    return Err(Error::moved("the partition belongs to another container"));
                }
                shard.partition(placed.partition).count_scan();
                held.push(one);
            }
            let guards: Vec<Bytes> = held.iter().map(|held| held.guard.clone()).collect();
            let reader = shard.store.snapshot(&guards, Reads::Several).await?;
            let (routes, now_ms) = (routes.clone(), self.env.clock.now_ms());
            views.push(ShardView { shard: id, container, held, routes, reader, now_ms });
        }
        Ok(views)
    }
}
