//! Comparing source and target, key by key and value by value, as sums in buckets.

use lazuli_shardmap::Move;
use lazuli_shardmap::layout::Space;
use lazuli_store::crc64::Crc64;
use lazuli_store::{Direction, PageLimit, Reader, Result, after_key};

use super::mover::Mover;
use crate::item::keys_of;

/// The sums of which two sides that differ show where they do.
const BUCKETS: usize = 256;

/// What one side holds.
#[derive(Clone, PartialEq, Eq)]
struct Sums {
    items: [u64; BUCKETS],
    sums: [u64; BUCKETS],
}

impl Mover<'_> {
    /// Fails with `move-differs` unless the target holds exactly what the snapshot of the source does.
    pub(super) async fn verify(&mut self, snapshot: &dyn Reader) -> Result<()> {
        let target = self.target.store.snapshot();
        let theirs = sums(snapshot, &self.moving).await?;
        let ours = sums(&*target, &self.moving).await?;
        if let Some(bucket) = theirs.first_difference(&ours) {
            let message = format!(
                "bucket {bucket} has {} items on shard {} and {} on shard {}",
                theirs.items[bucket], self.moving.source, ours.items[bucket], self.moving.target
            );
            return Err(self.differs(message).await);
        }
        self.progress.is_verified = true;
        self.write(vec![]).await
    }
}

impl Sums {
    fn first_difference(&self, other: &Self) -> Option<usize> {
        let differs =
            |at: &usize| self.items[*at] != other.items[*at] || self.sums[*at] != other.sums[*at];
        (0..BUCKETS).find(differs)
    }
}

async fn sums(reader: &dyn Reader, moving: &Move) -> Result<Sums> {
    let mut found = Sums { items: [0; BUCKETS], sums: [0; BUCKETS] };
    for space in Space::KEY_ORDERED {
        let mut keys = keys_of(moving.container, *space, &moving.routes);
        loop {
            let page = reader.scan(&keys, Direction::Forward, PageLimit::MAX).await?;
            for (key, value) in &page.items {
                let mut sum = Crc64::default();
                sum.update(key);
                let bucket = (sum.sum() % BUCKETS as u64) as usize;
                sum.update(value);
                found.items[bucket] += 1;
                found.sums[bucket] = found.sums[bucket].wrapping_add(sum.sum());
            }
            match page.items.last() {
                Some((last, _)) if page.more => keys.start = after_key(last),
                _ => break,
            }
        }
    }
    Ok(found)
}
