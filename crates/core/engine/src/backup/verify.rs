//! Reading back what was restored, and opening it.

use lazuli_shardmap::PartitionState;
use lazuli_shardmap::layout::{PREFIX_BYTES, Space};
use lazuli_store::crc64::Crc64;
use lazuli_store::{Direction, Error, Newest, PageLimit, Reader, Result, Write, after_key};

use super::restore::{Restore, RestoreProgress};
use crate::item::keys_of;
use crate::stats::{Counts, Delta};

/// What some rows are, in whatever order they come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    rows: u64,
    sum: u64,
}

impl Sums {
    /// A key without its container, and its value.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        let mut sum = Crc64::new();
        sum.update(key);
        sum.update(value);
        self.rows += 1;
        self.sum = self.sum.wrapping_add(sum.sum());
    }
}

impl Restore {
    /// Compares what the partitions hold with what was written to them, counts them, and takes them online.
    pub async fn finish(self) -> Result<RestoreProgress> {
        for at in 0..self.taken.partitions.len() {
            let counted = self.read_back(at).await?;
            self.write_figures(at, counted).await?;
        }
        self.end(vec![Some(PartitionState::Online); self.taken.partitions.len()]).await?;
        Ok(self.progress)
    }

    /// Counts all that a partition holds, which may be more than the routes of the backup.
    async fn read_back(&self, at: usize) -> Result<Delta> {
        let partition = &self.taken.partitions[at];
        // The partition is offline as long as the guard exists, so all pages show one state.
        let pages = Newest::guarded(&*self.shards[at].store, vec![self.guard(at)]);
        let (mut found, mut total) = (Sums::default(), Delta::default());
        for space in Space::KEY_ORDERED {
            let mut keys = keys_of(self.container.id, *space, &partition.routes);
            loop {
                let page = pages.scan(&keys, Direction::Forward, PageLimit::MAX).await?;
                for (key, value) in &page.items {
                    total.put(self.shards[at].settings.outside.weigh(key, value));
                    if self.head.routes.contains(&key[PREFIX_BYTES..]) {
                        found.add(&key[PREFIX_BYTES - 1..], value);
                    }
                }
                match page.items.last() {
                    Some((last, _)) if page.more => keys.start = after_key(last),
                    _ => break,
                }
            }
        }
        if found == self.sums[at] {
            return Ok(total);
        }
        let message = format!("partition {} does not read back as it was written", partition.id);
        Err(Error::corrupt("restore-differs", message))
    }

    async fn write_figures(&self, at: usize, counted: Delta) -> Result<()> {
        let (shard, id) = (&self.shards[at], self.taken.partitions[at].id);
        let txn = shard.store.begin(vec![self.guard(at)]).await?;
        let before = Counts::read(&*txn, id).await?.unwrap_or_default();
        let last_lsn = before.last_lsn.max(self.head.lsn);
        shard.lsns.push_past(last_lsn);
        let mut counts = Counts { exact: true, last_lsn, ..Counts::default() };
        counted.add_to(&mut counts);
        txn.commit(vec![Write::Put(Counts::key(id), counts.encode())]).await
    }
}
