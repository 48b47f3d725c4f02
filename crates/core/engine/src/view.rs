//! Reads: a snapshot of one partition, guarded by the partition's row of the local map. Reads never enter the lane.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_env::Clock;
use lazuli_shardmap::layout::Space;
use lazuli_shardmap::local::Held;
use lazuli_shardmap::{ContainerId, PartitionId, ShardId};
use lazuli_store::{Direction, Error, KeyRange, PageLimit, Reader, Result};

use crate::item::{Item, ItemKey, keys_of};
use crate::lsn::Lsn;
use crate::partition::LivePartition;
use crate::stats::{Counts, Size};
use crate::tx::{ItemPage, page_of_items};

/// An unchanging view of one partition. Keep it short.
pub struct View {
    pub(crate) partition: PartitionId,
    pub(crate) shard: ShardId,
    pub(crate) held: Held,
    pub(crate) reader: Box<dyn Reader>,
    pub(crate) now_ms: u64,
    /// Notes for how long the view was in use, when it is let go.
    pub(crate) timing: Option<Timing>,
}

/// Measures how long a partition was read from.
pub(crate) struct Timing {
    pub(crate) partition: Arc<LivePartition>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) began: Duration,
}

impl Drop for Timing {
    fn drop(&mut self) {
        self.partition.time_read(self.clock.uptime().saturating_sub(self.began));
    }
}

impl View {
    pub fn partition(&self) -> PartitionId {
        self.partition
    }

    pub fn container(&self) -> ContainerId {
        self.held.container
    }

    /// The shard that was read.
    pub fn shard(&self) -> ShardId {
        self.shard
    }

    /// The routes that this partition held.
    pub fn routes(&self) -> &KeyRange {
        &self.held.routes
    }

    /// The item, unless it is absent or expired.
    pub async fn get(&self, key: &ItemKey) -> Result<Option<Item>> {
        if key.container() != self.held.container || !self.held.routes.contains(key.route()) {
            return Err(Error::invalid("outside-partition", "the key is not in this partition"));
        }
        let item = self.reader.get(key.bytes()).await?.map(Item::decode).transpose()?;
        Ok(item.filter(|item| !item.is_expired(self.now_ms)))
    }

    /// Items of one space whose `route | row key` lies in the range and in this partition.
    pub async fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> Result<ItemPage> {
        let inside = range.intersect(&self.held.routes);
        if inside.is_empty() {
            return Ok(ItemPage::default());
        }
        let keys = keys_of(self.held.container, space, &inside);
        page_of_items(self.reader.scan(&keys, direction, limit).await?, self.now_ms)
    }

    /// Shows the items of such a page one after another. Answers where to go on if there are more behind them; an item that
    /// ends the walk counts as one with more behind it.
    pub async fn walk(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: PageLimit,
        mut visit: impl FnMut(&Bytes, Item) -> Result<ControlFlow<()>> + Send,
    ) -> Result<Option<Bytes>> {
        let inside = range.intersect(&self.held.routes);
        if inside.is_empty() {
            return Ok(None);
        }
        let keys = keys_of(self.held.container, space, &inside);
        let mut last = None;
        let mut visit_live = |key: Bytes, value: Bytes| {
            let item = Item::decode(value)?;
            let flow = match item.is_expired(self.now_ms) {
                true => ControlFlow::Continue(()),
                false => visit(&key, item)?,
            };
            last = Some(key);
            Ok(flow)
        };
        let more = self.reader.walk(&keys, direction, limit, &mut visit_live).await?;
        Ok(last.filter(|_| more))
    }

    /// The number of the last write of the partition that this view shows; zero if there was none.
    pub async fn last_lsn(&self) -> Result<Lsn> {
        Ok(crate::changes::horizon(&*self.reader, self.partition).await?.unwrap_or(Lsn::ZERO))
    }

    /// What the partition holds in this view, if it was counted.
    pub async fn size(&self) -> Result<Option<Size>> {
        Ok(Counts::read(&*self.reader, self.partition).await?.and_then(|counts| counts.size()))
    }

    /// This shard's copy of an entry of reference data.
    pub async fn reference(&self, name: &str, key: &[u8]) -> Result<Option<Bytes>> {
        let key = crate::reference::copy_key(name, key);
        crate::reference::value_of(self.reader.get(&key).await?)
    }
}
