//! Copying what the partition holds, in the order of its keys, chunk by chunk.
//!
//! Each page is read from a snapshot of its own. What changes behind it meanwhile is written down on the source, and
//! brought over by the passes that follow. While one chunk is on its way, page by page, the target puts the one before it,
//! and the one before that is read back and compared with what was sent. What has been read back is written down as copied.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use lazuli_shardmap::Move;
use lazuli_shardmap::layout::{PREFIX_BYTES, Space};
use lazuli_shardmap::local::LocalMap;
use lazuli_store::{
    Direction, KeyRange, Loading, Newest, PageLimit, Result, Store, Write, after_key,
};

use super::mover::{Mover, refused};
use super::status;
use super::verify::Sum;
use crate::garbage::is_by_time_in;
use crate::item::keys_of;
use crate::join::yield_now;
use crate::stats::Size;

/// What one load of the target holds at most, but for the last page. After a crash up to three are copied again.
const CHUNK_BYTES_MAX: usize = 32 * 1024 * 1024;
/// What one load holds at least, however slow the copy is to be, if there is as much.
const CHUNK_BYTES_LEAST: usize = 1024 * 1024;
/// What follows from the rows of one load at most, but for the last page: rows of expiry and entries of indexes.
const ROWS_BEHIND_MAX: usize = 200_000;
/// What is read at once: others have their turn in between.
const PAGE: PageLimit = PageLimit { items: 4_096, bytes: 1024 * 1024 };

/// What is remembered of a chunk of rows until it was read back.
#[derive(Default)]
struct Sent {
    /// The last key that was read.
    last: Bytes,
    /// All rows, change records among them.
    items: u64,
    bytes: u64,
    /// The stretches of key-ordered spaces that it covers, and what they hold.
    covered: Vec<KeyRange>,
    sum: Sum,
}

/// A chunk of which all rows are on their way.
struct Sending<'s> {
    loading: Box<dyn Loading + 's>,
    sent: Sent,
}

/// Lets a chunk be put, unless another one leads the move by now.
async fn finish(sending: Option<Sending<'_>>) -> Result<Option<Sent>> {
    let Some(Sending { loading, sent }) = sending else { return Ok(None) };
    loading.finish().await.map_err(refused)?;
    Ok(Some(sent))
}

impl Sent {
    /// Notes that the rows of a key-ordered space up to `end` are in this chunk. Pages of one space follow each other.
    fn cover(&mut self, start: Bytes, end: Option<Bytes>) {
        match self.covered.last_mut().filter(|last| last.end.as_ref() == Some(&start)) {
            Some(last) => last.end = end,
            None => self.covered.push(KeyRange::new(start, end)),
        }
    }
}

impl Mover<'_> {
    /// Copies whatever is not copied yet. Answers what `run` is to answer if it must stop before the end.
    pub(super) async fn copy(&mut self) -> Result<Option<Option<Move>>> {
        if self.progress.is_copied {
            return Ok(None);
        }
        self.clear_changes_ahead().await?;
        if !self.progress.is_handed_over {
            self.clear_ahead().await?;
            if self.progress.copied_to.is_empty() {
                self.hand_over().await?;
            }
        }
        if self.progress.is_handed_over
            && let Some(stop) = self.take_in().await?
        {
            return Ok(Some(stop));
        }
        let began = self.engine.env.clock.uptime();
        let bytes_before = self.progress.bytes;
        let mut left = self.left_to_copy().await?;
        let target = self.target.clone();
        // What was sent last, and what the target has put, but was not read back yet.
        let (mut sent, mut put) = (None, None);
        while !left.is_empty() {
            if let Some(stop) = self.look().await? {
                if stop.is_none() {
                    self.end_chunks(sent, put).await?;
                }
                return Ok(Some(stop));
            }
            let (next, finished, same) = tokio::join!(biased;
                self.send_chunk(&*target.store, &mut left),
                finish(sent),
                self.read_back(put.as_ref()),
            );
            same?;
            self.note_copied(put).await?;
            put = finished?;
            sent = Some(next?);
            self.throttle(began, bytes_before).await;
        }
        self.end_chunks(sent, put).await?;
        self.progress.is_copied = true;
        self.write(vec![]).await?;
        self.throttle(began, bytes_before).await;
        Ok(None)
    }

    /// Lets what is under way arrive, and writes it down.
    async fn end_chunks(&mut self, sent: Option<Sending<'_>>, put: Option<Sent>) -> Result<()> {
        let (finished, same) = tokio::join!(biased; finish(sent), self.read_back(put.as_ref()));
        same?;
        self.note_copied(put).await?;
        let put = finished?;
        self.read_back(put.as_ref()).await?;
        self.note_copied(put).await
    }

    /// Fails with `move-differs` unless the target holds what was sent to it.
    async fn read_back(&self, sent: Option<&Sent>) -> Result<()> {
        let Some(sent) = sent else { return Ok(()) };
        let target = Newest::of(&*self.target.store);
        let mut found = Sum::default();
        for keys in &sent.covered {
            found.add_all(&target, keys.clone(), &*self.engine.env.spawn).await?;
        }
        if found != sent.sum {
            let (shard, ours, theirs) = (self.moving.target, found.items, sent.sum.items);
            let message =
                format!("{theirs} items were sent to shard {shard}, it holds {ours} there");
            return Err(self.differs(message).await);
        }
        Ok(())
    }

    /// Writes down that a chunk is on the target.
    async fn note_copied(&mut self, sent: Option<Sent>) -> Result<()> {
        let Some(sent) = sent.filter(|it| !it.last.is_empty()) else { return Ok(()) };
        let Sent { last, items, bytes, sum, .. } = sent;
        let held = Size { items: sum.items, bytes: sum.bytes, outside: 0 };
        self.note_brought(last, Size { items, bytes, outside: 0 }, held, vec![]).await
    }

    /// Writes down that all up to this key is on the target: how much that was, and how much of it are rows of the
    /// partition.
    pub(super) async fn note_brought(
        &mut self,
        last: Bytes,
        brought: Size,
        held: Size,
        writes: Vec<Write>,
    ) -> Result<()> {
        self.engine.moves.counters.bytes.fetch_add(brought.bytes, Ordering::Relaxed);
        self.progress.copied_to = last;
        self.progress.items += brought.items;
        self.progress.bytes += brought.bytes;
        self.progress.held.items += held.items;
        self.progress.held.bytes += held.bytes;
        self.write(writes).await
    }

    /// The ranges of keys that are still to be copied, in order.
    async fn left_to_copy(&self) -> Result<VecDeque<KeyRange>> {
        let mut stretches = match self.progress.is_handed_over {
            true => vec![],
            false => self.key_ordered(),
        };
        if self.engine.router.container(self.moving.container).await?.policies.changes {
            stretches.push(keys_of(self.moving.container, Space::CHANGES, &KeyRange::all()));
        }
        Ok(stretches.into_iter().map(|keys| self.beyond_what_is_copied(keys)).collect())
    }

    pub(super) fn key_ordered(&self) -> Vec<KeyRange> {
        let Move { container, routes, .. } = &self.moving;
        Space::KEY_ORDERED.iter().map(|space| keys_of(*container, *space, routes)).collect()
    }

    pub(super) fn beyond_what_is_copied(&self, mut keys: KeyRange) -> KeyRange {
        if !self.progress.copied_to.is_empty() {
            keys.start = keys.start.max(after_key(&self.progress.copied_to));
        }
        keys
    }

    /// Deletes what the target holds beyond what was written down as copied. It comes from loads that are made again, but
    /// by then items may be gone, or expire at other times.
    async fn clear_ahead(&mut self) -> Result<()> {
        let derived = self.engine.derived(self.moving.container).await?;
        let target = self.target.clone();
        for keys in self.key_ordered() {
            let mut keys = self.beyond_what_is_copied(keys);
            while !keys.is_empty() {
                let page = target.store.scan(&keys, Direction::Forward, PAGE).await?;
                let Some((last, _)) = page.items.last() else { break };
                keys.start = after_key(last);
                let mut writes = Vec::with_capacity(page.items.len());
                let mut rows = Vec::new();
                for (key, value) in page.items {
                    derived.rows(&key, value, &mut rows)?;
                    writes.push(Write::Delete(key));
                }
                writes.extend(rows.into_iter().map(|(key, _)| Write::Delete(key)));
                self.write(writes).await?;
                if !page.more {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Deletes the change records beyond what was written down as copied: some may be forgotten on the source by now.
    async fn clear_changes_ahead(&mut self) -> Result<()> {
        let target = self.target.clone();
        let all = keys_of(self.moving.container, Space::CHANGES, &KeyRange::all());
        let mut keys = self.beyond_what_is_copied(all);
        while !keys.is_empty() {
            let page = target.store.scan(&keys, Direction::Forward, PAGE).await?;
            let Some((last, _)) = page.items.last() else { break };
            keys.start = after_key(last);
            let ours = page.items.into_iter().map(|(key, _)| key);
            let ours = ours.filter(|key| is_by_time_in(key, &self.moving.routes));
            let writes: Vec<Write> = ours.map(Write::Delete).collect();
            if !writes.is_empty() {
                self.write(writes).await?;
            }
            if !page.more {
                break;
            }
        }
        Ok(())
    }

    /// Sends the next rows to the target.
    async fn send_chunk<'s>(
        &self,
        target: &'s dyn Store,
        left: &mut VecDeque<KeyRange>,
    ) -> Result<Sending<'s>> {
        let guard = LocalMap::arrival_guard(self.moving.number, self.moving.epoch);
        let mut loading = target.load(vec![guard]);
        let derived = self.engine.derived(self.moving.container).await?;
        let mut sent = Sent::default();
        let mut behind = Vec::new();
        while let Some(keys) = left.front_mut() {
            if keys.is_empty() {
                left.pop_front();
                continue;
            }
            let start = keys.start.clone();
            let is_key_ordered = start[PREFIX_BYTES - 1] != Space::CHANGES.0;
            let (mut rows, mut last) = (Vec::new(), None);
            let mut visit = |key: Bytes, value: Bytes| {
                last = Some(key.clone());
                if is_key_ordered {
                    sent.sum.add(&key, &value);
                    derived.rows(&key, value.clone(), &mut behind)?;
                }
                if is_key_ordered || is_by_time_in(&key, &self.moving.routes) {
                    sent.items += 1;
                    sent.bytes += (key.len() + value.len()) as u64;
                    rows.push((key, value));
                }
                self.engine.env.spawn.give_way();
                Ok(ControlFlow::Continue(()))
            };
            let source = &self.source.store;
            let more = source.walk(keys, Direction::Forward, PAGE, &mut visit).await?;
            if let Some(last) = last {
                keys.start = after_key(&last);
                sent.last = last;
            }
            let end = if more { Some(keys.start.clone()) } else { keys.end.clone() };
            if !more {
                left.pop_front();
            }
            if is_key_ordered {
                sent.cover(start, end);
            }
            loading.add(rows).await.map_err(refused)?;
            if sent.bytes >= self.chunk_bytes() as u64 || behind.len() >= ROWS_BEHIND_MAX {
                break;
            }
            yield_now().await;
        }
        // Their spaces lie behind all others.
        behind.sort_unstable_by(|a: &lazuli_store::Item, b| a.0.cmp(&b.0));
        loading.add(behind).await.map_err(refused)?;
        Ok(Sending { loading, sent })
    }

    /// A copy that is to be slow goes in small steps.
    pub(super) fn chunk_bytes(&self) -> usize {
        match self.moving.bytes_per_second {
            0 => CHUNK_BYTES_MAX,
            limit => {
                let quarter = usize::try_from(limit / 4).unwrap_or(usize::MAX);
                quarter.clamp(CHUNK_BYTES_LEAST, CHUNK_BYTES_MAX)
            }
        }
    }

    /// Sleeps if the copy is ahead of what it may take.
    pub(super) async fn throttle(&self, began: Duration, bytes_before: u64) {
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
