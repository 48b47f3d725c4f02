//! The middle of a partition.
//!
//! Most partitions are walked through, key by key, and cut where both halves come nearest to each other. What is large is
//! bisected: a key near the middle of what is left is looked for, and the store says roughly how many bytes are before and
//! behind its shardlet. So the cost is bounded, whatever the size.
//!
//! The store knows nothing of bytes that lie outside of it. Where rows may stand for such bytes, all of them are walked
//! through: that costs what counting the halves costs, which follows every cut.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bytes::Bytes;
use lazuli_shardmap::Container;
use lazuli_shardmap::layout::{PREFIX_BYTES, Space};
use lazuli_store::{Direction, KeyRange, Newest, PageLimit, Reader, Result, Store, after_key};

use super::unit;
use crate::hot::HotKey;
use crate::item::keys_of;
use crate::join::yield_now;
use crate::outside::Outside;

/// Partitions up to this are walked through; larger ones are bisected.
pub(super) const WALK_MAX: PageLimit = PageLimit { items: 2_000_000, bytes: 512 * 1024 * 1024 };
/// Where rows may stand for bytes outside of the store.
const NO_LIMIT: PageLimit = PageLimit { items: usize::MAX, bytes: usize::MAX };
/// What is read at once: others have their turn in between.
const PAGE: PageLimit = PageLimit { items: 4_096, bytes: 1024 * 1024 };
/// How often a partition is bisected at the most.
const PROBES_MAX: usize = 32;
/// Halves that differ from half of all by this part of it are even enough.
const CLOSE_ENOUGH: f64 = 0.02;

/// The part of the known requests that is taken to be spread like the bytes, at the least.
const REST_MIN: f64 = 0.01;

/// Where a middle is looked for.
pub(super) struct Ground<'a> {
    store: &'a dyn Store,
    reader: Newest<'a>,
    container: &'a Container,
    routes: &'a KeyRange,
    outside: &'a Outside,
}

/// The requests that are known, and what they are out of.
struct Heat<'a> {
    hot: &'a [HotKey],
    /// The part of all requests that is not known key by key, and so is spread like the bytes.
    rest: f64,
    all: f64,
}

impl<'a> Heat<'a> {
    fn new(hot: &'a [HotKey], requests: u64) -> Self {
        let known: u64 = hot.iter().map(HotKey::sure).sum();
        let known = known as f64;
        // Between cuts that leave the same requests on both sides, bytes decide.
        let rest = (requests as f64 - known).max(known * REST_MIN);
        Self { hot, rest, all: known + rest }
    }

    /// The part that lies before a route, out of 1, where so much of the bytes does. Without requests, bytes decide.
    fn before(&self, at: &[u8], of_bytes: f64) -> f64 {
        if self.all == 0.0 {
            return of_bytes;
        }
        let hot = self.hot.iter().filter(|key| &key.route[..] < at).map(HotKey::sure);
        (hot.sum::<u64>() as f64 + self.rest * of_bytes) / self.all
    }
}

impl<'a> Ground<'a> {
    pub(super) fn new(
        store: &'a dyn Store,
        container: &'a Container,
        routes: &'a KeyRange,
        outside: &'a Outside,
    ) -> Self {
        Self { store, reader: Newest::of(store), container, routes, outside }
    }

    /// Where to cut so that both sides get about half; none if there is nothing to cut between.
    pub(super) async fn middle(
        &self,
        hot: &[HotKey],
        requests: u64,
        walk_max: PageLimit,
    ) -> Result<Option<Bytes>> {
        let heat = Heat::new(hot, requests);
        let is_outside = self.outside.is_in(&self.reader, self.container.id, self.routes).await?;
        match self.walk(if is_outside { NO_LIMIT } else { walk_max }).await? {
            Some(units) => Ok(nearest(&units.bytes, &heat)),
            None => self.bisect(&heat).await,
        }
    }

    /// All bytes; none if there are too many to walk through.
    pub(super) async fn counted(&self, walk_max: PageLimit) -> Result<Option<u64>> {
        let units = self.walk(walk_max).await?;
        Ok(units.map(|units| units.all.max(0) as u64))
    }

    /// Roughly how many bytes the store needs for all.
    pub(super) async fn estimated(&self) -> Result<u64> {
        self.size(self.routes).await
    }

    pub(super) async fn is_one_unit(&self) -> Result<bool> {
        let [first, last] = self.ends().await?;
        match (first, last) {
            (Some(first), Some(last)) => {
                Ok(unit(self.container, &first)? == unit(self.container, &last)?)
            }
            _ => Ok(true),
        }
    }

    fn keys(&self) -> impl Iterator<Item = KeyRange> {
        let (container, routes) = (self.container.id, self.routes);
        Space::KEY_ORDERED.iter().map(move |space| keys_of(container, *space, routes))
    }

    /// The bytes of every unit; none if there is too much to walk through.
    async fn walk(&self, most: PageLimit) -> Result<Option<Units>> {
        let mut units = Units::default();
        let (mut items, mut bytes) = (0, 0);
        let mut here: Option<(KeyRange, i64)> = None;
        for mut keys in self.keys() {
            loop {
                let mut last = None;
                let mut visit = |key: Bytes, value: Bytes| {
                    items += 1;
                    bytes += key.len() + value.len();
                    let tail = &key[PREFIX_BYTES..];
                    let weight = self.outside.weigh(&key, &value);
                    let size = weight.row.saturating_add(weight.outside);
                    match &mut here {
                        Some((unit, sum)) if unit.contains(tail) => *sum += size,
                        _ => {
                            let next = (unit(self.container, tail)?, size);
                            if let Some((unit, sum)) = here.replace(next) {
                                units.add(unit.start, sum);
                            }
                        }
                    }
                    last = Some(key);
                    let over = items > most.items || bytes > most.bytes;
                    Ok(if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
                };
                let more = self.reader.walk(&keys, Direction::Forward, PAGE, &mut visit).await?;
                if items > most.items || bytes > most.bytes {
                    return Ok(None);
                }
                match last.filter(|_| more) {
                    Some(last) => keys.start = after_key(&last),
                    None => break,
                }
                yield_now().await;
            }
        }
        if let Some((unit, sum)) = here {
            units.add(unit.start, sum);
        }
        Ok(Some(units))
    }

    async fn bisect(&self, heat: &Heat<'_>) -> Result<Option<Bytes>> {
        let [Some(mut low), Some(mut high)] = self.ends().await? else { return Ok(None) };
        let first = unit(self.container, &low)?;
        let mut best: Option<(f64, Bytes)> = None;
        for _ in 0..PROBES_MAX {
            let middle = between(&low, &high);
            if middle <= low {
                break;
            }
            let Some(tail) = self.seek(&middle).await? else { break };
            let here = unit(self.container, &tail)?;
            let mut share = 0.0;
            if here.start > first.start {
                share = heat.before(&here.start, self.bytes_before(&here.start).await?);
                keep_nearer(&mut best, share, &here.start);
            }
            if share >= 0.5 {
                // Keys that are there begin alike where names that could be do not.
                match self.last_before(&here.start).await? {
                    Some(last) if last < high => high = last,
                    _ => break,
                }
            } else {
                // The unit may be large enough to reach over the middle.
                let Some(end) = here.end.filter(|end| self.routes.contains(end)) else { break };
                let Some(next) = self.seek(&end).await? else { break };
                share = heat.before(&end, self.bytes_before(&end).await?);
                keep_nearer(&mut best, share, &end);
                if share >= 0.5 {
                    break;
                }
                low = next;
            }
            if best.as_ref().is_some_and(|(distance, _)| *distance < CLOSE_ENOUGH) {
                break;
            }
        }
        if best.is_none() && !self.is_one_unit().await? {
            // All but nothing lies in the first unit: what is behind it goes.
            best = first.end.map(|end| (0.5, end));
        }
        Ok(best.map(|(_, at)| at))
    }

    /// Roughly the part of all bytes that lies before a route.
    async fn bytes_before(&self, at: &Bytes) -> Result<f64> {
        let before = KeyRange::new(self.routes.start.clone(), Some(at.clone()));
        let behind = KeyRange::new(at.clone(), self.routes.end.clone());
        let [before, behind] = [self.size(&before).await?, self.size(&behind).await?];
        let all = before + behind;
        Ok(if all > 0 { before as f64 / all as f64 } else { 0.5 })
    }

    async fn size(&self, routes: &KeyRange) -> Result<u64> {
        let mut bytes = 0;
        for space in Space::KEY_ORDERED {
            bytes += self.store.size(&keys_of(self.container.id, *space, routes)).await?;
        }
        Ok(bytes)
    }

    /// The first and the last `route | rest` of all spaces.
    async fn ends(&self) -> Result<[Option<Bytes>; 2]> {
        let (mut first, mut last): (Option<Bytes>, Option<Bytes>) = (None, None);
        for keys in self.keys() {
            let [low, high] = [
                self.edge(&keys, Direction::Forward).await?,
                self.edge(&keys, Direction::Backward).await?,
            ];
            first = [first, low].into_iter().flatten().min();
            last = last.max(high);
        }
        Ok([first, last])
    }

    /// The first `route | rest` of all spaces from here on.
    async fn seek(&self, from: &Bytes) -> Result<Option<Bytes>> {
        let rest = KeyRange::new(from.clone(), self.routes.end.clone());
        let mut first: Option<Bytes> = None;
        for space in Space::KEY_ORDERED {
            let keys = keys_of(self.container.id, *space, &rest);
            let found = self.edge(&keys, Direction::Forward).await?;
            first = [first, found].into_iter().flatten().min();
        }
        Ok(first)
    }

    /// The last `route | rest` of all spaces before here.
    async fn last_before(&self, end: &Bytes) -> Result<Option<Bytes>> {
        let before = KeyRange::new(self.routes.start.clone(), Some(end.clone()));
        let mut last: Option<Bytes> = None;
        for space in Space::KEY_ORDERED {
            let keys = keys_of(self.container.id, *space, &before);
            last = last.max(self.edge(&keys, Direction::Backward).await?);
        }
        Ok(last)
    }

    async fn edge(&self, keys: &KeyRange, direction: Direction) -> Result<Option<Bytes>> {
        let page = self.reader.scan(keys, direction, PageLimit::items(1)).await?;
        Ok(page.items.first().map(|(key, _)| key.slice(PREFIX_BYTES..)))
    }
}

/// Bytes by the first route of a unit, or of several units that follow each other: however many units there are, this
/// stays small, and no stretch of several units is much.
#[derive(Default)]
struct Units {
    bytes: BTreeMap<Bytes, i64>,
    all: i64,
}

/// Stretches that are told apart at the most.
const STRETCHES_MAX: usize = 64 * 1024;

impl Units {
    fn add(&mut self, at: Bytes, bytes: i64) {
        self.all = self.all.saturating_add(bytes);
        *self.bytes.entry(at).or_default() += bytes;
        if self.bytes.len() > STRETCHES_MAX {
            self.make_room();
        }
    }

    /// Joins neighbours as long as they have little together. Of any two that are left side by side, one is large or
    /// both are more than a small part of all: so at least half of the room is free again.
    fn make_room(&mut self) {
        let little = self.all / (STRETCHES_MAX as i64 / 4);
        let mut joined: BTreeMap<Bytes, i64> = BTreeMap::new();
        for (at, bytes) in std::mem::take(&mut self.bytes) {
            match joined.last_entry() {
                Some(mut last) if last.get().saturating_add(bytes) <= little => {
                    *last.get_mut() += bytes;
                }
                _ => drop(joined.insert(at, bytes)),
            }
        }
        self.bytes = joined;
    }
}

fn keep_nearer(best: &mut Option<(f64, Bytes)>, share: f64, at: &Bytes) {
    let distance = (share - 0.5).abs();
    if best.as_ref().is_none_or(|(nearest, _)| distance < *nearest) {
        *best = Some((distance, at.clone()));
    }
}

/// The first route of the unit before which about half of everything lies.
fn nearest(units: &BTreeMap<Bytes, i64>, heat: &Heat<'_>) -> Option<Bytes> {
    let all: i64 = units.values().sum();
    let mut before = 0;
    let mut best = None;
    for (at, bytes) in units {
        // Before the first unit there is nothing to cut off.
        if before > 0 {
            let of_bytes = before as f64 / all.max(1) as f64;
            keep_nearer(&mut best, heat.before(at, of_bytes), at);
        }
        before += bytes;
    }
    best.map(|(_, at)| at)
}

/// A place about half-way between two others, which may be no key.
fn between(low: &[u8], high: &[u8]) -> Bytes {
    let same = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let number = |bytes: &[u8]| {
        let mut eight = [0; 8];
        let taken = bytes.len().min(8);
        eight[..taken].copy_from_slice(&bytes[..taken]);
        u128::from(u64::from_be_bytes(eight))
    };
    let half = (number(&low[same..]) + number(&high[same..])) / 2;
    // Below 2^64, because both are.
    [&low[..same], &(half as u64).to_be_bytes()].concat().into()
}
