//! Bytes that lie outside of the store: what a row stands for beyond its own key and value, as the pieces of a blob stand
//! for the block files that they name (`docs/decisions/0104-outside-bytes.md`).
//!
//! They follow from the row alone. So counts in a commit, in the background and offline come to one sum.

use bytes::Bytes;
use lazuli_shardmap::ContainerId;
use lazuli_shardmap::layout::{PREFIX_BYTES, Space};
use lazuli_store::{Direction, KeyRange, PageLimit, Reader, Result};

use crate::item::{Item, keys_of};

/// How a data model says what its rows stand for.
#[derive(Clone, Copy, Debug)]
pub struct Outside {
    /// The spaces whose rows may stand for anything.
    pub spaces: &'static [Space],
    /// The bytes that a row stands for, given its space, its `route | row key` and its payload. A row may take off what
    /// another one of the same shardlet counts twice, but no shardlet comes to less than nothing.
    pub bytes: fn(Space, &[u8], &Bytes) -> i64,
}

impl Default for Outside {
    fn default() -> Self {
        Self { spaces: &[], bytes: |_, _, _| 0 }
    }
}

/// What one row adds to a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    /// The row itself: its key and its value.
    pub(crate) row: i64,
    pub(crate) outside: i64,
}

impl Outside {
    /// The weight of a row as the store has it.
    pub(crate) fn weigh(&self, key: &Bytes, value: &Bytes) -> Weight {
        let row = (key.len() + value.len()) as i64;
        let outside = match self.is_about(key) {
            // What does not decode is found when it is read. Here it stands for nothing.
            true => Item::decode(value.clone()).map_or(0, |item| self.of(key, &item.payload)),
            false => 0,
        };
        Weight { row, outside }
    }

    /// The weight of a row that has been read.
    pub(crate) fn weigh_item(&self, key: &Bytes, item: &Item) -> Weight {
        let row = (key.len() + item.encoded_bytes()) as i64;
        let outside = if self.is_about(key) { self.of(key, &item.payload) } else { 0 };
        Weight { row, outside }
    }

    /// Whether any of these routes has a row that may stand for something outside.
    pub(crate) async fn is_in(
        &self,
        reader: &dyn Reader,
        container: ContainerId,
        routes: &KeyRange,
    ) -> Result<bool> {
        for space in self.spaces {
            let keys = keys_of(container, *space, routes);
            let page = reader.scan(&keys, Direction::Forward, PageLimit::items(1)).await?;
            if !page.items.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_about(&self, key: &[u8]) -> bool {
        key.get(PREFIX_BYTES - 1).is_some_and(|space| self.spaces.contains(&Space(*space)))
    }

    fn of(&self, key: &[u8], payload: &Bytes) -> i64 {
        (self.bytes)(Space(key[PREFIX_BYTES - 1]), &key[PREFIX_BYTES..], payload)
    }
}
