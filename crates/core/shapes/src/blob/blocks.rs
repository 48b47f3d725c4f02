//! Blocks: put one by one, then named by a list, which makes them the content of a block blob.

use std::collections::BTreeMap;

use lazuli_engine::{BlockId, Result, Space};

use super::pieces::decode_one;
use super::shardlet::Shardlet;

impl Shardlet<'_, '_> {
    /// Drops all blocks that wait for a commit.
    pub(super) async fn drop_waiting(&mut self) -> Result<()> {
        let mut files: BTreeMap<BlockId, u32> = BTreeMap::new();
        for (key, item) in self.rows(Space::BLOB_BLOCKS, self.place.rows()).await? {
            if let Some(file) = decode_one(item.payload)?.file() {
                *files.entry(file.id).or_default() += 1;
            }
            self.tx.delete(&key).await?;
        }
        self.drop_files(&files).await
    }
}
