//! A pass of catching up: after it, the target is what the source was in the pass's snapshot.
//!
//! The keys that were written down since the last pass are brought to the state that this one snapshot shows. So it does
//! not matter how often a key changed, nor whether a pass is repeated after a crash.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use lazuli_shardmap::Move;
use lazuli_shardmap::layout::Space;
use lazuli_store::{Direction, PageLimit, Reader, Result, Write};

use super::mover::Mover;
use crate::changes::{self, Change, Horizon};
use crate::item::{Item, ItemKey};
use crate::tx::{expiry_key, route_length};

/// What one commit of a pass brings over at most.
const PAGE: PageLimit = PageLimit { items: 1_024, bytes: 1024 * 1024 };

/// A pass that was made.
pub(super) struct Pass {
    /// What the target now is.
    pub(super) snapshot: Box<dyn Reader>,
    pub(super) changes: u64,
    pub(super) time: Duration,
}

impl Mover<'_> {
    /// Makes a pass. It gives up at the deadline, having done no harm.
    pub(super) async fn pass(&mut self, deadline: Option<Duration>) -> Result<Pass> {
        let began = self.engine.env.clock.uptime();
        let snapshot = self.source.store.snapshot();
        let horizon = Horizon::of(&*snapshot, self.moving.partition).await?;
        let mut changes = 0;
        // What was written down was written under the partition's id. Without a number of its own there is nothing.
        while horizon.covers_rows_of_others() {
            if deadline.is_some_and(|deadline| self.engine.env.clock.uptime() > deadline) {
                break;
            }
            let Move { container, .. } = self.moving;
            let rows = horizon.rows_after(container, Space::MOVING, &self.progress.position);
            if rows.is_empty() {
                break;
            }
            let page = snapshot.scan(&rows, Direction::Forward, PAGE).await?;
            let Some((last, _)) = page.items.last() else { break };
            self.progress.position = changes::position_of(last);
            let mut ours = Vec::new();
            for (key, value) in page.items {
                let change = changes::decode(&key, value)?;
                // The space holds what was written in all partitions of the container that leave this shard.
                if self.moving.routes.contains(change.key.route()) {
                    ours.push(change);
                }
            }
            changes += ours.len() as u64;
            self.bring(&*snapshot, ours).await?;
            if !page.more {
                break;
            }
        }
        let time = self.engine.env.clock.uptime().saturating_sub(began);
        Ok(Pass { snapshot, changes, time })
    }

    /// Brings the keys of these changes to what the snapshot shows, and reads them back.
    async fn bring(&mut self, snapshot: &dyn Reader, changed: Vec<Change>) -> Result<()> {
        let mut writes = self.feed(snapshot, &changed).await?;
        let keys: BTreeMap<Bytes, ItemKey> =
            changed.into_iter().map(|it| (it.key.bytes().clone(), it.key)).collect();
        let before = self.target.store.snapshot();
        let mut expected = Vec::with_capacity(keys.len());
        for (bytes, key) in keys {
            let value = snapshot.get(&bytes).await?;
            let old = before.get(&bytes).await?;
            if old != value {
                self.progress.hold(bytes.len(), old.as_ref(), value.as_ref());
                replace(&mut writes, &key, old, value.clone())?;
            }
            expected.push((bytes, value));
            self.engine.env.spawn.give_way();
        }
        self.write(writes).await?;
        let after = self.target.store.snapshot();
        for (key, value) in expected {
            if after.get(&key).await? != value {
                let message = "what was brought over does not read back as it was written";
                return Err(self.differs(message.into()).await);
            }
            self.engine.env.spawn.give_way();
        }
        Ok(())
    }

    /// The change records of a container that keeps them move along.
    async fn feed(&self, snapshot: &dyn Reader, changed: &[Change]) -> Result<Vec<Write>> {
        let mut writes = Vec::new();
        if !self.engine.router.container(self.moving.container).await?.policies.changes {
            return Ok(writes);
        }
        for change in changed {
            let record = changes::record(Space::CHANGES, change.lsn, &change.key, change.operation);
            // What was trimmed meanwhile stays trimmed.
            if snapshot.get(record.key()).await?.is_some() {
                writes.push(record);
            }
            self.engine.env.spawn.give_way();
        }
        Ok(writes)
    }
}

/// Makes an item of the target what it is on the source, and its row of the expiry space too.
fn replace(
    writes: &mut Vec<Write>,
    key: &ItemKey,
    old: Option<Bytes>,
    new: Option<Bytes>,
) -> Result<()> {
    let expiry = |value: &Option<Bytes>| -> Result<Option<u64>> {
        Ok(value.clone().map(Item::decode).transpose()?.and_then(|item| item.expires_ms))
    };
    let (was, is) = (expiry(&old)?, expiry(&new)?);
    if was != is {
        writes.extend(was.map(|at| Write::Delete(expiry_key(at, key))));
        writes.extend(is.map(|at| Write::Put(expiry_key(at, key), route_length(key))));
    }
    writes.push(match new {
        Some(value) => Write::Put(key.bytes().clone(), value),
        None => Write::Delete(key.bytes().clone()),
    });
    Ok(())
}
