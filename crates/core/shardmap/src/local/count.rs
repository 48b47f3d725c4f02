//! How many partitions a shard holds, at a cost that does not grow with them.

use lazuli_store::Result;

use super::LocalMap;

impl LocalMap {
    /// How many partitions this shard holds, by the rows in memory.
    pub fn partition_count(&self) -> Result<usize> {
        self.cached(|rows| rows.by_id.len())
    }
}
