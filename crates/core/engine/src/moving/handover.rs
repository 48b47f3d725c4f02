//! Handing over: where both stores can, the target adopts what the source holds without reading its rows.
//!
//! The target's rows are then read once: they are counted, and those that expire or have entries in indexes get these rows. Writes
//! on the source since the beginning of the move are recorded, as for a copy, and the passes bring them over.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use lazuli_shardmap::Move;
use lazuli_shardmap::local::LocalMap;
use lazuli_store::{Direction, KeyRange, Packed, PageLimit, Parcel, Result, Write, after_key};

use super::mover::{Mover, refused};
use crate::join::yield_now;
use crate::stats::Size;

/// How often a source that has no time is asked, and what it gets each time. After that it is copied row by row.
const ASKS_MAX: usize = 250;
const ASK_REST: Duration = Duration::from_millis(20);
/// What is read at once: others have their turn in between.
const PAGE: PageLimit = PageLimit { items: 4_096, bytes: 1024 * 1024 };
/// Rows that follow from others and are written at once, but for those of the last page.
const BEHIND_MAX: usize = 8 * 1024;

/// What was found on the target since it was last written down how far this has come.
#[derive(Default)]
struct Found {
    last: Bytes,
    size: Size,
    /// Rows of expiry and entries of indexes.
    behind: Vec<lazuli_store::Item>,
}

impl Mover<'_> {
    /// Has the target take over all that the source holds in key-ordered spaces, if they can.
    pub(super) async fn hand_over(&mut self) -> Result<()> {
        let target = self.target.clone();
        let Some(handover) = target.store.handover() else { return Ok(()) };
        let Some(parcel) = self.pack().await? else { return Ok(()) };
        let guard = LocalMap::arrival_guard(self.moving.number, self.moving.epoch);
        if handover.unpack(vec![guard], parcel).await.map_err(refused)? {
            self.engine.env.points.reach("move", "handed over").await;
            self.progress.is_handed_over = true;
            self.write(vec![]).await?;
            self.engine.moves.counters.handed_over.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn pack(&self) -> Result<Option<Parcel>> {
        let Some(handover) = self.source.store.handover() else { return Ok(None) };
        let ranges = self.key_ordered();
        for _ in 0..ASKS_MAX {
            match handover.pack(&ranges).await? {
                Packed::Parcel(parcel) => return Ok(Some(parcel)),
                Packed::Nothing => return Ok(None),
                Packed::NotNow => self.engine.env.clock.sleep(ASK_REST).await,
            }
        }
        Ok(None)
    }

    /// Goes through what was handed over. Answers what `run` is to answer if it must stop before the end.
    pub(super) async fn take_in(&mut self) -> Result<Option<Option<Move>>> {
        let began = self.engine.env.clock.uptime();
        let bytes_before = self.progress.bytes;
        let mut found = Found::default();
        for keys in self.key_ordered() {
            let mut keys = self.beyond_what_is_copied(keys);
            while !keys.is_empty() {
                let is_much = found.size.bytes >= self.chunk_bytes() as u64;
                if is_much || found.behind.len() >= BEHIND_MAX {
                    self.note_found(std::mem::take(&mut found)).await?;
                    self.throttle(began, bytes_before).await;
                    if let Some(stop) = self.look().await? {
                        return Ok(Some(stop));
                    }
                }
                let more = self.find(&keys, &mut found).await?;
                keys.start = if more { after_key(&found.last) } else { break };
                yield_now().await;
            }
        }
        self.note_found(found).await?;
        self.throttle(began, bytes_before).await;
        Ok(None)
    }

    /// Goes through one page, and says whether the range holds more behind it.
    async fn find(&self, keys: &KeyRange, found: &mut Found) -> Result<bool> {
        let derived = self.engine.derived(self.moving.container).await?;
        let mut visit = |key: Bytes, value: Bytes| {
            found.size.items += 1;
            found.size.bytes += (key.len() + value.len()) as u64;
            derived.rows(&key, value, &mut found.behind)?;
            found.last = key;
            self.engine.env.spawn.give_way();
            Ok(ControlFlow::Continue(()))
        };
        self.target.store.walk(keys, Direction::Forward, PAGE, &mut visit).await
    }

    async fn note_found(&mut self, found: Found) -> Result<()> {
        match found.size.items {
            0 => Ok(()),
            _ => {
                let writes = found.behind.into_iter().map(|(key, value)| Write::Put(key, value));
                self.note_brought(found.last, found.size, found.size, writes.collect()).await
            }
        }
    }
}
