//! Comparing source and target.
//!
//! Every row is read back from the target when it has been copied (`copy`), and every change when it has been brought over
//! (`pass`). What is left to be shown is that nothing is missing: the source counts its items and bytes in the very commits
//! that change them, and the target's are counted by the move. Where the source does not know its figures exactly, or
//! they are others, both sides are read whole, page by page. Keys that were written on the source since the last pass are
//! left out: the next pass brings them, and reads them back.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use bytes::Bytes;
use lazuli_env::Spawn;
use lazuli_store::{Direction, KeyRange, Newest, PageLimit, Reader, Reads, Result, after_key};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::mover::Mover;
use super::pass::Pass;
use crate::changes;
use crate::join::yield_now;
use crate::recount::recount;

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
        self.items += 1;
        self.bytes += (key.len() + value.len()) as u64;
        self.sum = self.sum.wrapping_add(xxh3_64_with_seed(value, xxh3_64(key)));
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
    /// Fails with `move-differs` unless the target holds what the source does, but for what was written there since the
    /// pass.
    pub(super) async fn verify(&mut self, pass: &Pass) -> Result<()> {
        if pass.figures != Some(self.progress.held) {
            self.compare_whole().await?;
            // Where that is not possible now, the figures that the move has counted are those of the target.
            let _ = recount(&self.source, self.moving.partition).await;
        }
        self.progress.is_verified = true;
        self.write(vec![]).await
    }

    async fn compare_whole(&mut self) -> Result<()> {
        for mut keys in self.key_ordered() {
            while !keys.is_empty() {
                let source = self.source.store.snapshot(&[], Reads::Several).await?;
                let Some(changed) = self.changed_since_pass(&*source).await? else {
                    drop(source);
                    self.pass(None).await?;
                    continue;
                };
                let mut theirs = Sum::default();
                let rest = keys.clone();
                let next = page(&*source, &rest, &*self.engine.env.spawn, |key, value| {
                    if !changed.contains(key) {
                        theirs.add(key, value);
                    }
                });
                let next = next.await?;
                drop(source);
                let end = next.clone().or(rest.end);
                self.compare(KeyRange::new(rest.start, end), theirs, &changed).await?;
                keys.start = match next {
                    Some(next) => next,
                    None => break,
                };
                yield_now().await;
            }
        }
        Ok(())
    }

    async fn compare(&self, keys: KeyRange, theirs: Sum, changed: &BTreeSet<Bytes>) -> Result<()> {
        let mut ours = Sum::default();
        let target = Newest::of(&*self.target.store);
        each(&target, keys, &*self.engine.env.spawn, |key, value| {
            if !changed.contains(key) {
                ours.add(key, value);
            }
        })
        .await?;
        if ours == theirs {
            return Ok(());
        }
        let message = format!(
            "some keys have {} items on shard {} and {} on shard {}",
            theirs.items, self.moving.source, ours.items, self.moving.target
        );
        Err(self.differs(message).await)
    }

    /// The keys that were written on the source since the last pass. None if there are many: a pass brings them over.
    async fn changed_since_pass(&self, source: &dyn Reader) -> Result<Option<BTreeSet<Bytes>>> {
        let Some(horizon) = changes::horizon(source, self.moving.partition).await? else {
            return Ok(Some(BTreeSet::new()));
        };
        let records = self.records(source, horizon).await?;
        if records.more {
            return Ok(None);
        }
        let changed = records.items.into_iter().map(|(key, value)| {
            changes::decode(&key, value).map(|change| change.key.bytes().clone())
        });
        changed.collect::<Result<_>>().map(Some)
    }
}

/// Shows every row of a range, and lets others have the core in between.
async fn each(
    reader: &dyn Reader,
    mut keys: KeyRange,
    spawn: &dyn Spawn,
    mut show: impl FnMut(&[u8], &[u8]) + Send,
) -> Result<()> {
    while let Some(next) = page(reader, &keys, spawn, &mut show).await? {
        keys.start = next;
        yield_now().await;
    }
    Ok(())
}

/// Shows the rows of one page, and answers where the next one begins.
async fn page(
    reader: &dyn Reader,
    keys: &KeyRange,
    spawn: &dyn Spawn,
    mut show: impl FnMut(&[u8], &[u8]) + Send,
) -> Result<Option<Bytes>> {
    let mut last = None;
    let mut visit = |key: Bytes, value: Bytes| {
        show(&key, &value);
        spawn.give_way();
        last = Some(key);
        Ok(ControlFlow::Continue(()))
    };
    let more = reader.walk(keys, Direction::Forward, PAGE, &mut visit).await?;
    Ok(last.filter(|_| more).map(|last| after_key(&last)))
}
