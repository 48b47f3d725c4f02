//! Items that have expired and were not swept yet, for shapes that decide what becomes of them.

use lazuli_shardmap::ContainerId;
use lazuli_shardmap::layout::Space;
use lazuli_store::{Direction, KeyRange, PageLimit, Result};

use crate::item::{Item, ItemKey};
use crate::tx::{ItemPage, Tx};

impl Tx<'_> {
    /// The item as it is kept, also if it has expired and was not swept yet.
    pub async fn get_expired(&self, key: &ItemKey) -> Result<Option<Item>> {
        self.claim_of(key)?;
        self.raw(key).await
    }

    /// Like [`Self::scan`], with items that have expired and were not swept yet.
    pub async fn scan_expired(
        &self,
        container: ContainerId,
        space: Space,
        range: &KeyRange,
        limit: PageLimit,
    ) -> Result<ItemPage> {
        // Nothing had expired at the beginning of time.
        self.scan_at(container, space, range, Direction::Forward, limit, 0).await
    }
}
