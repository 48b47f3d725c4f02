//! The plainest question to many partitions: their items, in the order of their keys.

use bytes::Bytes;
use lazuli_shardmap::layout::{PREFIX_BYTES, Space};
use lazuli_store::{Direction, KeyRange, PageLimit, Reads, Result, after_key};

use crate::fanout::{Order, PartitionScan, RowPage};
use crate::item::Item;
use crate::view::View;

/// The items of one space.
pub struct ItemScan {
    pub space: Space,
    /// Of `route | row key`.
    pub range: KeyRange,
}

impl PartitionScan for ItemScan {
    /// The whole key with its item.
    type Row = (Bytes, Item);

    fn order(&self) -> Order {
        Order::ByRoute
    }

    fn reads(&self) -> Reads {
        Reads::One
    }

    async fn page(
        &self,
        view: &View,
        after: Option<&Bytes>,
        limit: PageLimit,
    ) -> Result<RowPage<Self::Row>> {
        let mut range = self.range.clone();
        if let Some(after) = after {
            range.start = range.start.max(after_key(after));
        }
        let page = view.scan(self.space, &range, Direction::Forward, limit).await?;
        Ok(RowPage {
            bytes: page.items.iter().map(|(key, item)| key.len() + item.payload.len()).sum(),
            next: page.next.map(|key| key.slice(PREFIX_BYTES..)),
            rows: page.items,
        })
    }

    fn sort_key(&self, (key, _): &Self::Row) -> Result<Bytes> {
        Ok(key.slice(PREFIX_BYTES..))
    }
}
