//! Copying what the partition holds, in the order of its keys, chunk by chunk.
//!
//! Each chunk is read from a snapshot of its own. What changes behind it meanwhile is written down on the source, and
//! brought over by the passes that follow.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use lazuli_shardmap::Move;
use lazuli_shardmap::layout::{PREFIX_BYTES, Space};
use lazuli_store::{Direction, KeyRange, PageLimit, Result, Write, after_key};

use super::mover::Mover;
use super::status;
use crate::garbage::is_by_time_in;
use crate::item::{Item, ItemKey, keys_of};
use crate::tx::expiry_key;

/// What one commit copies at most.
const CHUNK: PageLimit = PageLimit { items: 4_096, bytes: 1024 * 1024 };
/// Chunks between two looks at the catalog.
const CHUNKS_UNSEEN_MAX: u32 = 16;

impl Mover<'_> {
    /// Copies whatever is not copied yet. Answers what `run` is to answer if it must stop before the end.
    pub(super) async fn copy(&mut self) -> Result<Option<Option<Move>>> {
        if self.progress.is_copied {
            return Ok(None);
        }
        let began = self.engine.env.clock.uptime();
        let bytes_before = self.progress.bytes;
        let mut chunks = 0;
        for keys in self.stretches().await? {
            let mut keys = keys;
            // What an earlier try has copied is there.
            if !self.progress.copied_to.is_empty() {
                keys.start = keys.start.max(after_key(&self.progress.copied_to));
            }
            while !keys.is_empty() {
                if chunks % CHUNKS_UNSEEN_MAX == 0
                    && let Some(stop) = self.look().await?
                {
                    return Ok(Some(stop));
                }
                chunks += 1;
                let is_last = self.copy_chunk(&mut keys).await?;
                self.throttle(began, bytes_before).await;
                if is_last {
                    break;
                }
            }
        }
        self.progress.is_copied = true;
        self.write(vec![]).await?;
        Ok(None)
    }

    /// The ranges of keys to be copied, in order.
    async fn stretches(&self) -> Result<Vec<KeyRange>> {
        let Move { container, routes, .. } = &self.moving;
        let spaces = Space::KEY_ORDERED.iter();
        let mut stretches: Vec<_> =
            spaces.map(|space| keys_of(*container, *space, routes)).collect();
        if self.engine.router.container(*container).await?.policies.changes {
            stretches.push(keys_of(*container, Space::CHANGES, &KeyRange::all()));
        }
        Ok(stretches)
    }

    /// Copies one chunk from the start of the range, which then begins behind it. Says whether it was the last.
    async fn copy_chunk(&mut self, keys: &mut KeyRange) -> Result<bool> {
        let page = self.source.store.snapshot().scan(keys, Direction::Forward, CHUNK).await?;
        let Some((last, _)) = page.items.last() else { return Ok(true) };
        let last = last.clone();
        let mut writes = Vec::with_capacity(page.items.len() + 1);
        for (key, value) in page.items {
            if key[PREFIX_BYTES - 1] == Space::CHANGES.0 {
                if !is_by_time_in(&key, &self.moving.routes) {
                    continue;
                }
            } else if let Some(expiry) = self.expiry_of(&key, value.clone()).await? {
                writes.push(expiry);
            }
            self.progress.items += 1;
            self.progress.bytes += (key.len() + value.len()) as u64;
            writes.push(Write::Put(key, value));
        }
        let bytes: usize = writes.iter().map(Write::bytes).sum();
        self.engine.moves.counters.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.progress.copied_to = last.clone();
        self.write(writes).await?;
        keys.start = after_key(&last);
        Ok(!page.more)
    }

    /// The row of the expiry space that stands for an item, if it expires.
    pub(super) async fn expiry_of(&self, key: &Bytes, value: Bytes) -> Result<Option<Write>> {
        let Some(expires_ms) = Item::decode(value)?.expires_ms else { return Ok(None) };
        let container = self.engine.router.container(self.moving.container).await?;
        let (route, _) = container.kind.split(&container.key, &key[PREFIX_BYTES..])?;
        let key = ItemKey::from_bytes(key.clone(), route.len())?;
        Ok(Some(Write::Put(expiry_key(expires_ms, &key), crate::tx::route_length(&key))))
    }

    /// Sleeps if the copy is ahead of what it may take.
    async fn throttle(&self, began: Duration, bytes_before: u64) {
        let clock = &self.engine.env.clock;
        let copied = self.progress.bytes - bytes_before;
        let took = clock.uptime().saturating_sub(began);
        if self.moving.bytes_per_second > 0 {
            let due = Duration::from_secs_f64(copied as f64 / self.moving.bytes_per_second as f64);
            if due > took {
                clock.sleep(due - took).await;
            }
        }
        let took = clock.uptime().saturating_sub(began).as_secs_f64();
        let mut status = status::lock(self.status);
        status.items = self.progress.items;
        status.bytes = self.progress.bytes;
        if took > 0.0 {
            status.rate = (copied as f64 / took) as u64;
        }
    }
}
