//! A pass of catching up: after it, the target is what the source was in the last snapshot of the pass.
//!
//! While a partition moves, its writes are recorded in the space `MOVING`. A pass reads the records page by page, each with
//! the newest values of its keys in one snapshot, and brings those to the target. A key that changes again meanwhile has a
//! later record. So it does not matter how often a key changed, nor whether a pass is repeated after a crash.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use bytes::Bytes;
use lazuli_shardmap::Move;
use lazuli_shardmap::layout::Space;
use lazuli_store::limits::SNAPSHOT_LIFE_MAX;
use lazuli_store::{Direction, Page, PageLimit, Reader, Reads, Result, Write};

use super::mover::Mover;
use crate::changes;
use crate::item::{Item, ItemKey};
use crate::stats::{Counts, Size};

/// What one commit of a pass brings over at most.
const PAGE: PageLimit = PageLimit { items: 1_024, bytes: 1024 * 1024 };

/// A pass that was made.
pub(super) struct Pass {
    /// How many rows the source itself has counted in the state that the target now has, if it knows exactly.
    pub(super) figures: Option<Size>,
    pub(super) changes: u64,
    pub(super) time: Duration,
}

/// One page of a pass.
#[derive(Default)]
struct Part {
    figures: Option<Size>,
    changes: u64,
    /// Whether there is no record behind it.
    is_last: bool,
}

/// A key that has changed.
struct Changed {
    key: ItemKey,
    /// What it is on the source, and what it was on the target.
    new: Option<Bytes>,
    old: Option<Bytes>,
}

impl Mover<'_> {
    /// Makes a pass. It gives up at the deadline, having done no harm.
    pub(super) async fn pass(&mut self, deadline: Option<Duration>) -> Result<Pass> {
        let clock = self.engine.env.clock.clone();
        let began = clock.uptime();
        let mut changes = 0;
        let figures = loop {
            if deadline.is_some_and(|deadline| clock.uptime() > deadline) {
                break None;
            }
            let part = self.pass_part().await?;
            changes += part.changes;
            if part.is_last {
                break part.figures;
            }
        };
        Ok(Pass { figures, changes, time: clock.uptime().saturating_sub(began) })
    }

    async fn pass_part(&mut self) -> Result<Part> {
        let clock = self.engine.env.clock.clone();
        let old_at = clock.uptime() + SNAPSHOT_LIFE_MAX / 2;
        let source = self.source.store.snapshot(&[], Reads::Several).await?;
        let counts = Counts::read(&*source, self.moving.partition).await?;
        let mut part = Part { is_last: true, ..Part::default() };
        part.figures = counts.and_then(|counts| counts.rows());
        // What was recorded was written under the partition's id. Without a number of its own there is nothing.
        let Some(horizon) = counts.and_then(|counts| counts.settled()) else { return Ok(part) };
        let Page { items, more } = self.records(&*source, horizon).await?;
        if items.is_empty() {
            return Ok(part);
        }
        let feeds = self.engine.router.container(self.moving.container).await?.policies.changes;
        let target = self.target.store.snapshot(&[], Reads::Several).await?;
        let (mut changed, mut writes) = (BTreeMap::new(), Vec::new());
        let last = items.len() - 1;
        for (n, (at, value)) in items.into_iter().enumerate() {
            let change = changes::decode(&at, value)?;
            self.progress.position = changes::position_of(&at);
            // The space holds what was written in all partitions of the container that leave this shard.
            if self.moving.routes.contains(change.key.route()) {
                part.changes += 1;
                if feeds {
                    writes.push(feed(&*source, &change).await?);
                }
                if let Entry::Vacant(unread) = changed.entry(change.key.bytes().clone()) {
                    let new = source.get(unread.key()).await?;
                    let old = target.get(unread.key()).await?;
                    if let (true, Some(old)) = (feeds, &old) {
                        let lsn = Item::decode(old.clone())?.version;
                        let (key, operation) = (change.key.clone(), changes::ItemOperation::Put);
                        let former = changes::ItemChange { lsn, operation, key };
                        writes.push(feed(&*source, &former).await?);
                    }
                    unread.insert(Changed { key: change.key, new, old });
                }
            }
            self.engine.env.spawn.give_way();
            if n < last && clock.uptime() > old_at {
                // The snapshots are getting old: the next part goes on with new ones.
                part.is_last = false;
                break;
            }
        }
        part.is_last &= !more;
        self.bring(changed, writes).await?;
        Ok(part)
    }

    /// The next records of writes on the source.
    pub(super) async fn records(&self, source: &dyn Reader, horizon: crate::Lsn) -> Result<Page> {
        let Move { container, .. } = self.moving;
        let position = &self.progress.position;
        let rows = changes::rows_after(container, Space::MOVING, position, horizon);
        match rows.is_empty() {
            true => Ok(Page::default()),
            false => source.scan(&rows, Direction::Forward, PAGE).await,
        }
    }

    /// Writes keys to the target, and reads them back.
    async fn bring(
        &mut self,
        changed: BTreeMap<Bytes, Changed>,
        mut writes: Vec<Write>,
    ) -> Result<()> {
        let derived = self.engine.derived(self.moving.container).await?;
        for (bytes, Changed { key, new, old }) in &changed {
            if old != new {
                self.progress.hold(bytes.len(), old.as_ref(), new.as_ref());
                derived.replace(key, old.as_ref(), new.as_ref(), &mut writes)?;
                writes.push(match new {
                    Some(value) => Write::Put(bytes.clone(), value.clone()),
                    None => Write::Delete(bytes.clone()),
                });
            }
        }
        self.write(writes).await?;
        for (key, Changed { new, .. }) in changed {
            if self.target.store.get(&key).await? != new {
                let message = "what was brought over does not read back as it was written";
                return Err(self.differs(message.into()).await);
            }
            self.engine.env.spawn.give_way();
        }
        Ok(())
    }
}

/// The record of a change in the container's change feed, which moves along. What was forgotten meanwhile is forgotten.
async fn feed(source: &dyn Reader, change: &changes::ItemChange) -> Result<Write> {
    let record = changes::record(Space::CHANGES, change.lsn, &change.key, change.operation);
    Ok(match source.get(record.key()).await? {
        Some(_) => record,
        None => Write::Delete(record.key().clone()),
    })
}
