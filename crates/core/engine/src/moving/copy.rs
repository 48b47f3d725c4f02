//! Copying what the partition holds, in the order of its keys, chunk by chunk.
//!
//! Each page is read from a snapshot of its own. What changes behind it meanwhile is written down on the source, and
//! brought over by the passes that follow. While the target takes one chunk, the next one is read.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use lazuli_shardmap::Move;
use lazuli_shardmap::layout::{PREFIX_BYTES, Space};
use lazuli_shardmap::local::LocalMap;
use lazuli_store::{Direction, KeyRange, PageLimit, Result, Write, after_key};

use super::mover::{Mover, refused};
use super::status;
use crate::garbage::is_by_time_in;
use crate::item::{Item, ItemKey, keys_of};
use crate::join::yield_now;
use crate::tx::expiry_key;

/// What one load of the target holds at most. Two of them are in memory.
const CHUNK_BYTES_MAX: usize = 32 * 1024 * 1024;
/// What one load holds at least, however slow the copy is to be, if there is as much.
const CHUNK_BYTES_LEAST: usize = 1024 * 1024;
/// What is read at once: others have their turn in between.
const PAGE: PageLimit = PageLimit { items: 4_096, bytes: 1024 * 1024 };
/// How much may be copied before it is written down how far the copy has come. So much is copied again after a crash.
/// Writing it down is a commit, whose rows lie around all that is loaded: the store then merges what it could leave.
const UNNOTED_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A stretch of rows as the target gets them.
struct Chunk {
    rows: Vec<lazuli_store::Item>,
    /// The last key that was read.
    last: Bytes,
    items: u64,
    bytes: u64,
}

impl Mover<'_> {
    /// Copies whatever is not copied yet. Answers what `run` is to answer if it must stop before the end.
    pub(super) async fn copy(&mut self) -> Result<Option<Option<Move>>> {
        if self.progress.is_copied {
            return Ok(None);
        }
        self.forget_expiries_ahead().await?;
        let began = self.engine.env.clock.uptime();
        let (bytes_before, mut noted) = (self.progress.bytes, self.progress.bytes);
        let mut left = self.left_to_copy().await?;
        let mut next = self.read_chunk(&mut left).await?;
        while let Some(Chunk { rows, last, items, bytes }) = next {
            if let Some(stop) = self.look().await? {
                if stop.is_none() {
                    self.write(vec![]).await?;
                }
                return Ok(Some(stop));
            }
            let (loaded, read) = tokio::join!(biased; self.load(rows), self.read_chunk(&mut left));
            loaded?;
            self.engine.moves.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.progress.copied_to = last;
            self.progress.items += items;
            self.progress.bytes += bytes;
            if self.progress.bytes - noted >= UNNOTED_BYTES_MAX {
                self.write(vec![]).await?;
                noted = self.progress.bytes;
            }
            self.throttle(began, bytes_before).await;
            next = read?;
        }
        self.progress.is_copied = true;
        self.write(vec![]).await?;
        Ok(None)
    }

    /// The ranges of keys that are still to be copied, in order.
    async fn left_to_copy(&self) -> Result<VecDeque<KeyRange>> {
        let mut stretches = self.key_ordered();
        if self.engine.router.container(self.moving.container).await?.policies.changes {
            stretches.push(keys_of(self.moving.container, Space::CHANGES, &KeyRange::all()));
        }
        Ok(stretches.into_iter().map(|keys| self.beyond_what_is_copied(keys)).collect())
    }

    fn key_ordered(&self) -> Vec<KeyRange> {
        let Move { container, routes, .. } = &self.moving;
        Space::KEY_ORDERED.iter().map(|space| keys_of(*container, *space, routes)).collect()
    }

    fn beyond_what_is_copied(&self, mut keys: KeyRange) -> KeyRange {
        if !self.progress.copied_to.is_empty() {
            keys.start = keys.start.max(after_key(&self.progress.copied_to));
        }
        keys
    }

    /// What the target holds beyond what was written down as copied comes from loads that are made again. They replace
    /// the items, and the passes make good what was deleted. But an item that expires at another time by now would leave
    /// a row of the expiry space behind.
    async fn forget_expiries_ahead(&mut self) -> Result<()> {
        let target = self.target.store.snapshot();
        for keys in self.key_ordered() {
            let mut keys = self.beyond_what_is_copied(keys);
            while !keys.is_empty() {
                let page = target.scan(&keys, Direction::Forward, PAGE).await?;
                let Some((last, _)) = page.items.last() else { break };
                keys.start = after_key(last);
                let mut writes = Vec::new();
                for (key, value) in page.items {
                    if let Some((expiry, _)) = self.expiry_of(&key, value).await? {
                        writes.push(Write::Delete(expiry));
                    }
                }
                if !writes.is_empty() {
                    self.write(writes).await?;
                }
                if !page.more {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The next rows to be copied; none behind the last.
    async fn read_chunk(&self, left: &mut VecDeque<KeyRange>) -> Result<Option<Chunk>> {
        let mut chunk: Option<Chunk> = None;
        let mut expiries = Vec::new();
        while let Some(keys) = left.front_mut() {
            let page = match keys.is_empty() {
                true => lazuli_store::Page::default(),
                false => self.source.store.snapshot().scan(keys, Direction::Forward, PAGE).await?,
            };
            if let Some((last, _)) = page.items.last() {
                keys.start = after_key(last);
                let empty = || Chunk { rows: Vec::new(), last: Bytes::new(), items: 0, bytes: 0 };
                let chunk = chunk.get_or_insert_with(empty);
                chunk.last = last.clone();
                self.take(chunk, &mut expiries, page.items).await?;
            }
            if !page.more {
                left.pop_front();
            }
            if chunk.as_ref().is_some_and(|chunk| chunk.bytes >= self.chunk_bytes() as u64) {
                break;
            }
            yield_now().await;
        }
        if let Some(chunk) = &mut chunk
            && !expiries.is_empty()
        {
            // Of one space and, mostly, of all kinds of times.
            chunk.rows.append(&mut expiries);
            chunk.rows.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        }
        Ok(chunk)
    }

    /// Adds the rows of a page to a chunk, and to the other list those of the expiry space that stand for them.
    async fn take(
        &self,
        chunk: &mut Chunk,
        expiries: &mut Vec<lazuli_store::Item>,
        page: Vec<lazuli_store::Item>,
    ) -> Result<()> {
        for (key, value) in page {
            if key[PREFIX_BYTES - 1] == Space::CHANGES.0 {
                if !is_by_time_in(&key, &self.moving.routes) {
                    continue;
                }
            } else if let Some(expiry) = self.expiry_of(&key, value.clone()).await? {
                expiries.push(expiry);
            }
            chunk.items += 1;
            chunk.bytes += (key.len() + value.len()) as u64;
            chunk.rows.push((key, value));
        }
        Ok(())
    }

    /// A copy that is to be slow goes in small steps.
    fn chunk_bytes(&self) -> usize {
        match self.moving.bytes_per_second {
            0 => CHUNK_BYTES_MAX,
            limit => {
                let quarter = usize::try_from(limit / 4).unwrap_or(usize::MAX);
                quarter.clamp(CHUNK_BYTES_LEAST, CHUNK_BYTES_MAX)
            }
        }
    }

    /// Puts rows on the target, unless another one leads the move.
    async fn load(&self, rows: Vec<lazuli_store::Item>) -> Result<()> {
        let guard = LocalMap::arrival_guard(self.moving.number, self.moving.epoch);
        self.target.store.ingest(vec![guard], rows).await.map_err(refused)
    }

    /// The row of the expiry space that stands for an item, if it expires.
    async fn expiry_of(&self, key: &Bytes, value: Bytes) -> Result<Option<lazuli_store::Item>> {
        let Some(expires_ms) = Item::decode(value)?.expires_ms else { return Ok(None) };
        let container = self.engine.router.container(self.moving.container).await?;
        let (route, _) = container.kind.split(&container.key, &key[PREFIX_BYTES..])?;
        let key = ItemKey::from_bytes(key.clone(), route.len())?;
        Ok(Some((expiry_key(expires_ms, &key), crate::tx::route_length(&key))))
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
