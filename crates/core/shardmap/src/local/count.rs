//! How many partitions a shard holds, at a cost that does not grow with them.

use std::sync::PoisonError;

use lazuli_store::Result;

use super::{LocalMap, unknown};

impl LocalMap {
    /// How many partitions this shard holds, by the rows in memory.
    pub fn partition_count(&self) -> Result<usize> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        Ok(rows.as_ref().ok_or_else(unknown)?.by_id.len())
    }
}
