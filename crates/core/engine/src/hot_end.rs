//! Where inserts land: whether those of a container all go to one end of its keys (T6), in bounded memory.
//!
//! Keys that only grow (times, counters) or only shrink (reversed ticks) send every insert to one partition, however
//! many there are. A watch keeps the highest and the lowest route and counts the inserts that land there. Writers that
//! run side by side come out of order, so the bound that counts is the end as it was a while ago: an insert that is a
//! few places late is at the end all the same.
//!
//! Keys of several parts are watched group by group: those that share all parts but the last, such as the names of one
//! container of blobs, have ends of their own.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use lazuli_shardmap::route::hashed_slice;
use lazuli_shardmap::{Container, ContainerId, PartitionId};

/// Fewer inserts than this say nothing.
pub const INSERTS_LEAST: u64 = 1_000;
/// How often the end must have moved: a few keys that take all inserts are hot, but do not grow.
const MOVES_LEAST: u64 = 50;
/// The share of inserts that must land at the end, in per cent.
const SHARE_LEAST: u64 = 90;
/// How many inserts later than its neighbours one may come and still be at the end.
pub const LATE_MAX: u64 = 128;
/// What is said rests on the last one to two windows of so many inserts.
const WINDOW_INSERTS: u64 = 16_384;
/// Routes are compared up to here; longer ones that begin alike count as one.
const ROUTE_BYTES_KEPT: usize = 128;
/// Groups of keys that are watched at a time, about a kilobyte each; one more has to wait until another is idle.
const GROUPS_WATCHED_MAX: usize = 4_096;
/// In so many slices inserts are counted as they would be spread if their keys were hashed.
pub const HASHED_SLICES: u16 = 16;
/// After this long without an insert a group is idle.
const IDLE_AFTER: Duration = Duration::from_secs(600);
/// How often idle ones are looked for when there are too many.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// An end of the keys of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Low,
    High,
}

/// A container whose inserts land at one end, and what shows it. A transaction counts as one insert, if it added items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotEnd {
    pub container: ContainerId,
    /// The encoded parts that the keys share; nothing for keys of one part.
    pub group: Bytes,
    pub end: End,
    pub inserts: u64,
    /// How many of them landed at the end: at or beyond every key that was more than [`LATE_MAX`] inserts old.
    pub at_end: u64,
    /// How often an insert went beyond all keys so far.
    pub moves: u64,
    /// The partition that holds the end now.
    pub partition: PartitionId,
    /// Inserts into the partition that held the end when they were made.
    pub in_partition: u64,
    /// What the busiest of [`HASHED_SLICES`] would have taken of them if the keys were hashed.
    pub busiest_slice: u64,
    /// When the first of these inserts was made, as the engine's uptime.
    pub since: Duration,
}

/// What a window says of one end.
#[derive(Clone, Copy, Default)]
struct Tally {
    at_end: u64,
    moves: u64,
    in_partition: u64,
}

/// Some inserts in a row.
#[derive(Clone, Copy, Default)]
struct Window {
    since: Duration,
    inserts: u64,
    low: Tally,
    high: Tally,
    slices: [u64; HASHED_SLICES as usize],
}

/// The outermost route at one end.
struct Extreme {
    end: End,
    route: Vec<u8>,
    partition: PartitionId,
    /// The route as it was one to two times [`LATE_MAX`] inserts ago, and what follows it.
    bound: Vec<u8>,
    next_bound: Vec<u8>,
}

impl Extreme {
    fn new(end: End) -> Self {
        let route = Vec::new;
        Self { end, route: route(), partition: PartitionId(0), bound: route(), next_bound: route() }
    }

    /// Begins anew: what lay further out long ago says nothing of today.
    fn begin(&mut self, route: &[u8], partition: PartitionId) {
        for kept in [&mut self.route, &mut self.bound, &mut self.next_bound] {
            copy(kept, route);
        }
        self.partition = partition;
    }

    fn take(&mut self, route: &[u8], partition: PartitionId, tally: &mut Tally) {
        let (at_end, moves) = match self.end {
            End::Low => (route <= &self.bound[..], route < &self.route[..]),
            End::High => (route >= &self.bound[..], route > &self.route[..]),
        };
        if moves {
            copy(&mut self.route, route);
            self.partition = partition;
        }
        tally.at_end += u64::from(at_end);
        tally.moves += u64::from(moves);
        tally.in_partition += u64::from(partition == self.partition);
    }

    fn advance(&mut self) {
        std::mem::swap(&mut self.bound, &mut self.next_bound);
        copy(&mut self.next_bound, &self.route);
    }
}

/// Copies into room that is there already.
fn copy(kept: &mut Vec<u8>, route: &[u8]) {
    kept.clear();
    kept.extend_from_slice(route);
}

/// The inserts of one group of keys.
struct Watch {
    low: Extreme,
    high: Extreme,
    /// Inserts since the extremes were begun.
    seen: u64,
    last_window: Window,
    window: Window,
    last_insert: Duration,
}

impl Watch {
    fn new() -> Self {
        Self {
            low: Extreme::new(End::Low),
            high: Extreme::new(End::High),
            seen: 0,
            last_window: Window::default(),
            window: Window::default(),
            last_insert: Duration::ZERO,
        }
    }

    fn note(&mut self, route: &[u8], partition: PartitionId, now: Duration) {
        let slice = usize::from(hashed_slice(route, HASHED_SLICES));
        let route = &route[..route.len().min(ROUTE_BYTES_KEPT)];
        self.last_insert = now;
        if self.seen == 0 {
            self.low.begin(route, partition);
            self.high.begin(route, partition);
        }
        self.seen += 1;
        // Until the bounds are old enough they are those of the first insert, which say nothing.
        let mut nothing = Window::default();
        let window = if self.seen > 2 * LATE_MAX { &mut self.window } else { &mut nothing };
        if window.inserts == 0 {
            window.since = now;
        }
        window.inserts += 1;
        window.slices[slice] += 1;
        self.low.take(route, partition, &mut window.low);
        self.high.take(route, partition, &mut window.high);
        if self.seen.is_multiple_of(LATE_MAX) {
            self.low.advance();
            self.high.advance();
        }
        if self.window.inserts == WINDOW_INSERTS {
            self.last_window = std::mem::take(&mut self.window);
            self.seen = 0;
        }
    }

    /// The end at which inserts land, if they do.
    fn hot_end(&self, container: ContainerId, group: &[u8]) -> Option<HotEnd> {
        let (last, now) = (&self.last_window, &self.window);
        let slices = last.slices.iter().zip(&now.slices).map(|(last, now)| last + now);
        let busiest_slice = slices.max().unwrap_or(0);
        let found = |extreme: &Extreme, last_tally: Tally, tally: Tally| HotEnd {
            container,
            group: Bytes::copy_from_slice(group),
            end: extreme.end,
            inserts: last.inserts + now.inserts,
            at_end: last_tally.at_end + tally.at_end,
            moves: last_tally.moves + tally.moves,
            partition: extreme.partition,
            in_partition: last_tally.in_partition + tally.in_partition,
            busiest_slice,
            since: if last.inserts > 0 { last.since } else { now.since },
        };
        let ends = [found(&self.low, last.low, now.low), found(&self.high, last.high, now.high)];
        ends.into_iter().find(HotEnd::is_one)
    }
}

impl HotEnd {
    fn is_one(&self) -> bool {
        self.inserts >= INSERTS_LEAST
            && self.moves >= MOVES_LEAST
            && self.at_end * 100 >= self.inserts * SHARE_LEAST
    }
}

/// All groups of keys that are watched.
#[derive(Default)]
pub(crate) struct Watches(Mutex<Watched>);

#[derive(Default)]
struct Watched {
    groups: BTreeMap<ContainerId, BTreeMap<Vec<u8>, Watch>>,
    /// How many groups there are in all containers.
    count: usize,
    /// When there are too many, idle ones are not looked for before this.
    look_again: Duration,
}

impl Watches {
    fn watched(&self) -> MutexGuard<'_, Watched> {
        // What is guarded here is whole after every statement, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Notes that something was inserted into a container on a range map. `now` is the engine's uptime.
    pub(crate) fn note(
        &self,
        container: &Container,
        partition: PartitionId,
        route: &[u8],
        now: Duration,
    ) {
        let group = container.key.leading(route);
        self.watched().note(container.id, group, partition, route, now);
    }

    pub(crate) fn forget(&self, container: ContainerId) {
        let mut watched = self.watched();
        let gone = watched.groups.remove(&container).map_or(0, |groups| groups.len());
        watched.count -= gone;
    }

    pub(crate) fn hot_ends(&self) -> Vec<HotEnd> {
        let watched = self.watched();
        let all = watched.groups.iter().flat_map(|(id, groups)| {
            groups.iter().filter_map(|(group, watch)| watch.hot_end(*id, group))
        });
        all.collect()
    }
}

impl Watched {
    fn note(
        &mut self,
        container: ContainerId,
        group: &[u8],
        partition: PartitionId,
        route: &[u8],
        now: Duration,
    ) {
        let known = self.groups.get_mut(&container).and_then(|groups| groups.get_mut(group));
        if let Some(watch) = known {
            watch.note(route, partition, now);
        } else if self.has_room(now) {
            let mut watch = Watch::new();
            watch.note(route, partition, now);
            self.groups.entry(container).or_default().insert(group.to_vec(), watch);
            self.count += 1;
        }
    }

    fn has_room(&mut self, now: Duration) -> bool {
        if self.count >= GROUPS_WATCHED_MAX && now >= self.look_again {
            for groups in self.groups.values_mut() {
                groups.retain(|_, watch| now < watch.last_insert + IDLE_AFTER);
            }
            self.groups.retain(|_, groups| !groups.is_empty());
            self.count = self.groups.values().map(BTreeMap::len).sum();
            self.look_again = now + LOOK_INTERVAL;
        }
        self.count < GROUPS_WATCHED_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTAINER: ContainerId = ContainerId(7);

    /// The hot end after inserts of these keys, one a second.
    fn watch(keys: impl IntoIterator<Item = u64>) -> Option<HotEnd> {
        let mut watch = Watch::new();
        for (second, key) in keys.into_iter().enumerate() {
            let now = Duration::from_secs(second as u64);
            watch.note(&key.to_be_bytes(), PartitionId(1), now);
        }
        watch.hot_end(CONTAINER, &[])
    }

    /// Numbers without order, the same in every run.
    fn scattered(n: u64) -> u64 {
        lazuli_env::mix(n)
    }

    const ENOUGH: u64 = INSERTS_LEAST + 2 * LATE_MAX;

    #[test]
    fn keys_that_grow_are_found_at_the_high_end_with_the_evidence() {
        let found = watch(0..ENOUGH).unwrap();
        let since = Duration::from_secs(2 * LATE_MAX);
        let expected = HotEnd {
            container: CONTAINER,
            group: Bytes::new(),
            end: End::High,
            inserts: 1_000,
            at_end: 1_000,
            moves: 1_000,
            partition: PartitionId(1),
            in_partition: 1_000,
            busiest_slice: found.busiest_slice,
            since,
        };
        assert_eq!(found, expected);
        // Even slices would have 62 each.
        assert!((63..100).contains(&found.busiest_slice), "{}", found.busiest_slice);
    }

    #[test]
    fn keys_that_shrink_are_found_at_the_low_end() {
        assert_eq!(watch((0..ENOUGH).rev()).unwrap().end, End::Low);
    }

    #[test]
    fn fewer_inserts_say_nothing() {
        assert_eq!(watch(0..ENOUGH - 1), None);
        assert_eq!(watch([]), None);
    }

    #[test]
    fn keys_without_order_have_no_hot_end() {
        for inserts in [ENOUGH, 10_000, 100_000] {
            assert_eq!(watch((0..inserts).map(scattered)), None);
        }
    }

    #[test]
    fn writers_side_by_side_do_not_hide_growth() {
        for writers in [2, 16, 64, LATE_MAX] {
            // Each group of keys that are written at once arrives in any order.
            let mut keys: Vec<u64> = (0..20_000).collect();
            for group in keys.chunks_mut(writers as usize) {
                group.sort_by_key(|key| scattered(*key));
            }
            let found = watch(keys).unwrap();
            assert_eq!((found.end, found.at_end), (End::High, found.inserts), "{writers}");
        }
    }

    #[test]
    fn many_rows_for_each_of_growing_keys_are_growth_but_few_hot_keys_are_not() {
        assert_eq!(watch((0..20_000).map(|n| n / 100)).unwrap().end, End::High);
        assert_eq!(watch((0..20_000).map(|n| n % 20)), None);
        assert_eq!(watch((0..20_000).map(|_| 7)), None);
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let scattered_first = (0..20_000).map(scattered);
        let outlier = std::iter::once(u64::MAX);
        let grown = || (0..2 * (WINDOW_INSERTS + 2 * LATE_MAX)).map(|n| 1_000_000 + n);
        let found = watch(scattered_first.chain(outlier).chain(grown())).unwrap();
        assert_eq!((found.end, found.at_end), (End::High, found.inserts));
        assert!(found.inserts <= 2 * WINDOW_INSERTS);
        let over = grown().chain((0..3 * WINDOW_INSERTS).map(scattered));
        assert_eq!(watch(over), None);
    }

    #[test]
    fn groups_that_grow_side_by_side_are_each_found() {
        let mut watched = Watched::default();
        for second in 0..2 * ENOUGH {
            let now = Duration::from_secs(second);
            let mut note = |group: &[u8], key: u64| {
                let route = [group, &key.to_be_bytes()].concat();
                watched.note(CONTAINER, group, PartitionId(1), &route, now);
            };
            note(b"grows", second);
            note(b"shrinks", u64::MAX - second);
            note(b"scatters", scattered(second));
        }
        let watches = Watches(Mutex::new(watched));
        let found: Vec<_> = watches.hot_ends().into_iter().map(|it| (it.group, it.end)).collect();
        assert_eq!(found, [("grows".into(), End::High), ("shrinks".into(), End::Low)]);
        watches.forget(CONTAINER);
        assert_eq!((watches.hot_ends(), watches.watched().count), (Vec::new(), 0));
    }

    #[test]
    fn the_number_of_groups_is_bounded_and_idle_ones_give_way() {
        let mut watched = Watched::default();
        let most = u32::try_from(GROUPS_WATCHED_MAX).unwrap();
        let mut insert = |number: u32, now| {
            let (container, group) = (ContainerId(number / 2), [number as u8 % 2]);
            watched.note(container, &group, PartitionId(1), b"key", now);
            (watched.count, watched.groups.contains_key(&container))
        };
        for number in 0..most {
            insert(number, Duration::ZERO);
        }
        assert_eq!(insert(most, IDLE_AFTER / 2), (GROUPS_WATCHED_MAX, false));
        insert(0, IDLE_AFTER / 2);
        assert_eq!(insert(most, IDLE_AFTER), (2, true));
    }
}
