//! Comparing source and target, key by key and value by value, as sums in buckets.

use std::ops::ControlFlow;

use bytes::Bytes;
use lazuli_shardmap::Move;
use lazuli_shardmap::layout::Space;
use lazuli_store::crc64::Crc64;
use lazuli_store::{Direction, PageLimit, Reader, Result, after_key};

use super::mover::Mover;
use crate::item::keys_of;
use crate::join::yield_now;

/// The sums of which two sides that differ show where they do.
const BUCKETS: usize = 256;
/// What is read at once: others have their turn in between.
const PAGE: PageLimit = PageLimit { items: 4_096, bytes: 1024 * 1024 };

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
    fn add(&mut self, key: &[u8], value: &[u8]) {
        let mut sum = Crc64::default();
        sum.update(key);
        let bucket = (sum.sum() % BUCKETS as u64) as usize;
        sum.update(value);
        self.items[bucket] += 1;
        self.sums[bucket] = self.sums[bucket].wrapping_add(sum.sum());
    }

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
            let mut last = None;
            let mut visit = |key: Bytes, value: Bytes| {
                found.add(&key, &value);
                last = Some(key);
                Ok(ControlFlow::Continue(()))
            };
            let more = reader.walk(&keys, Direction::Forward, PAGE, &mut visit).await?;
            match last.filter(|_| more) {
                Some(last) => keys.start = after_key(&last),
                None => break,
            }
            yield_now().await;
        }
    }
    Ok(found)
}
