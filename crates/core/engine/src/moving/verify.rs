//! Comparing source and target.
//!
//! Every row is read back from the target when it has been copied (`copy`), and every change when it has been brought over
//! (`pass`). What is left to be shown is that nothing is missing: the source counts its items and bytes in the very commits
//! that change them, and the target's are counted by the move. Where the source does not know its figures exactly, or
//! they are others, both sides are read whole.

use std::ops::ControlFlow;

use bytes::Bytes;
use lazuli_env::Spawn;
use lazuli_shardmap::Move;
use lazuli_shardmap::layout::Space;
use lazuli_store::{Direction, KeyRange, PageLimit, Reader, Result, after_key};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::mover::Mover;
use crate::item::keys_of;
use crate::join::yield_now;
use crate::recount::recount;
use crate::stats::{Counts, Size};

/// The sums of which two sides that differ show where they do.
const BUCKETS: usize = 256;
/// What is read at once: others have their turn in between.
const PAGE: PageLimit = PageLimit { items: 4_096, bytes: 1024 * 1024 };

/// What some rows are, whatever their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) items: u64,
    pub(super) bytes: u64,
    sum: u64,
}

impl Sum {
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.add_value(xxh3_64(key), key, value);
    }

    fn add_value(&mut self, key_sum: u64, key: &[u8], value: &[u8]) {
        self.items += 1;
        self.bytes += (key.len() + value.len()) as u64;
        self.sum = self.sum.wrapping_add(xxh3_64_with_seed(value, key_sum));
    }

    /// Adds all rows of a range.
    pub(super) async fn add_all(
        &mut self,
        reader: &dyn Reader,
        keys: KeyRange,
        spawn: &dyn Spawn,
    ) -> Result<()> {
        each(reader, keys, spawn, |key, value| self.add(key, value)).await
    }
}

impl Mover<'_> {
    /// Fails with `move-differs` unless the target holds what the snapshot of the source does, which it has just been
    /// brought to.
    pub(super) async fn verify(&mut self, snapshot: &dyn Reader) -> Result<()> {
        if self.figures(snapshot).await? != Some(self.progress.held) {
            self.compare_whole(snapshot).await?;
            // Where that is not possible now, the figures that the move has counted are those of the target.
            let _ = recount(&self.source, self.moving.partition).await;
        }
        self.progress.is_verified = true;
        self.write(vec![]).await
    }

    /// What the source itself has counted of the rows, if it knows exactly.
    async fn figures(&self, snapshot: &dyn Reader) -> Result<Option<Size>> {
        let row = snapshot.get(&Counts::key(self.moving.partition)).await?;
        Ok(row.map(Counts::decode).transpose()?.and_then(|counts| counts.rows()))
    }

    async fn compare_whole(&self, snapshot: &dyn Reader) -> Result<()> {
        let target = self.target.store.snapshot();
        let spawn = &*self.engine.env.spawn;
        let theirs = sums(snapshot, &self.moving, spawn).await?;
        let ours = sums(&*target, &self.moving, spawn).await?;
        let Some(bucket) = (0..BUCKETS).find(|at| theirs[*at] != ours[*at]) else { return Ok(()) };
        let message = format!(
            "bucket {bucket} has {} items on shard {} and {} on shard {}",
            theirs[bucket].items, self.moving.source, ours[bucket].items, self.moving.target
        );
        Err(self.differs(message).await)
    }
}

/// What one side holds.
async fn sums(reader: &dyn Reader, moving: &Move, spawn: &dyn Spawn) -> Result<Vec<Sum>> {
    let mut found = vec![Sum::default(); BUCKETS];
    for space in Space::KEY_ORDERED {
        let keys = keys_of(moving.container, *space, &moving.routes);
        each(reader, keys, spawn, |key, value| {
            let sum = xxh3_64(key);
            let bucket = (sum % BUCKETS as u64) as usize;
            found[bucket].add_value(sum, key, value);
        })
        .await?;
    }
    Ok(found)
}

/// Shows every row of a range, and lets others have the core in between.
async fn each(
    reader: &dyn Reader,
    mut keys: KeyRange,
    spawn: &dyn Spawn,
    mut show: impl FnMut(&[u8], &[u8]) + Send,
) -> Result<()> {
    loop {
        let mut last = None;
        let mut visit = |key: Bytes, value: Bytes| {
            show(&key, &value);
            spawn.give_way();
            last = Some(key);
            Ok(ControlFlow::Continue(()))
        };
        let more = reader.walk(&keys, Direction::Forward, PAGE, &mut visit).await?;
        match last.filter(|_| more) {
            Some(last) => keys.start = after_key(&last),
            None => return Ok(()),
        }
        yield_now().await;
    }
}
