//! Entries of indexes as transactions keep and find them, and items as data models with indexes need them.

use lazuli_shardmap::layout::Space;
use lazuli_shardmap::{ContainerId, PartitionId};
use lazuli_store::{Direction, KeyRange, PageLimit, Result};

use crate::derived;
use crate::item::{Item, ItemKey, keys_of};
use crate::tx::Tx;

impl Tx<'_> {
    /// The item, even if it has expired and is only not swept away yet. What [`Self::replace`] and [`Self::remove`] need.
    pub async fn get_raw(&self, key: &ItemKey) -> Result<Option<Item>> {
        self.claim_of(key)?;
        self.raw(key).await
    }

    /// The partition that an item is in.
    pub fn partition_of(&self, key: &ItemKey) -> Result<PartitionId> {
        Ok(self.claims[self.claim_of(key)?].held.partition)
    }

    /// How many entries of indexes this transaction has written or deleted so far.
    pub fn entries_written(&self) -> u64 {
        self.entries_written
    }

    /// The items of one shardlet that have an entry, up to `most`, as this transaction sees them.
    pub async fn entry_items(
        &self,
        container: ContainerId,
        entry: &[u8],
        route: &[u8],
        most: usize,
    ) -> Result<Vec<ItemKey>> {
        let range = KeyRange::prefix([entry, route].concat());
        let keys = keys_of(container, Space::INDEX, &range);
        let limit = PageLimit::items(most);
        let page = self.overlay.scan(self.base, &keys, Direction::Forward, limit).await?;
        let decoded = page.items.iter().map(|(key, value)| derived::decode(key, value));
        let mut found = Vec::new();
        for row in decoded {
            let (its_entry, key) = row?;
            if its_entry == entry && key.route() == route {
                found.push(key);
            }
        }
        Ok(found)
    }

    /// Keeps the rows that follow from an item in step with it.
    #[inline]
    pub(crate) fn derive(
        &mut self,
        claim: usize,
        key: &ItemKey,
        old: Option<&Item>,
        new: Option<&Item>,
    ) -> Result<()> {
        let Some(rules) = &self.claims[claim].rules else { return Ok(()) };
        let writes = derived::changes(&**rules, key, old, new)?;
        self.entries_written += writes.len() as u64;
        writes.into_iter().try_for_each(|write| self.write(write))
    }
}
