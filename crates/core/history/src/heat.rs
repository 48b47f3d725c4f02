//! Hot keys of partitions and ends of maps that take all inserts, as the nodes of a fleet tell each other of them: each node
//! watches only what it is asked for itself.
//!
//! Both are told as they are by then, not as differences, so a later row takes the place of an earlier one. In a row: a count
//! (2), and for each partition its id (8), a count (1) and for each key its length (2), the route, requests and error (8 each);
//! a count (2), and for each end its container (4), the length of its group (2), the group, 1 if it is the high end (1),
//! inserts, inserts at the end, moves, the partition, inserts into it, those of the busiest slice, and how many milliseconds
//! ago the first insert was (8 each).

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lazuli_engine::{
    ContainerId, End, Engine, HOT_KEYS_MAX, HotEnd, HotKey, PartitionId, Sample, ShardId,
};

/// The partitions whose hot keys are told, those with the most requests, and the keys of each.
const PARTITIONS_TOLD_MAX: usize = 100;
const KEYS_TOLD_MAX: usize = 4;
const ENDS_TOLD_MAX: usize = 100;
/// Longer routes and groups are not told.
const ROUTE_BYTES_MAX: usize = 256;
/// The partitions of one node that others remember hot keys of.
const PARTITIONS_KEPT_MAX: usize = 1_000;

/// What one node knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heat {
    keys: BTreeMap<PartitionId, Vec<HotKey>>,
    /// Their times are ages.
    ends: Vec<HotEnd>,
}

impl Heat {
    /// What an engine knows of the partitions that were asked for.
    pub(crate) fn of(engine: &Engine, samples: &[Sample]) -> Self {
        let mut busy: Vec<(u64, PartitionId, ShardId)> = samples
            .iter()
            .filter_map(|one| Some((one.reads + one.writes, one.partition, one.held?.shard)))
            .filter(|(requests, ..)| *requests > 0)
            .collect();
        busy.sort_unstable_by(|one, two| two.cmp(one));
        busy.truncate(PARTITIONS_TOLD_MAX);
        let hottest = |(_, id, shard): (u64, PartitionId, ShardId)| {
            let row = engine.shards().get(shard).ok()?.local().get(id).ok()??;
            let mut keys = engine.hot_keys(&row).ok()?;
            keys.retain(|key| key.sure() > 0 && key.route.len() <= ROUTE_BYTES_MAX);
            keys.truncate(KEYS_TOLD_MAX);
            Some((id, keys)).filter(|(_, keys)| !keys.is_empty())
        };
        let keys = busy.into_iter().filter_map(hottest).collect();
        let now = engine.env().clock.uptime();
        let mut ends = engine.hot_ends();
        ends.retain(|end| end.group.len() <= ROUTE_BYTES_MAX);
        ends.truncate(ENDS_TOLD_MAX);
        ends.iter_mut().for_each(|end| end.since = now.saturating_sub(end.since));
        Self { keys, ends }
    }

    /// Takes over what the same node has told later. Keys of partitions that were idle then stay as they were.
    pub(crate) fn update(&mut self, later: Self) {
        if self.keys.len() + later.keys.len() > PARTITIONS_KEPT_MAX {
            self.keys.clear();
        }
        self.keys.extend(later.keys);
        self.ends = later.ends;
    }

    pub(crate) fn write(&self, out: &mut BytesMut) {
        out.put_u16(self.keys.len() as u16);
        for (partition, keys) in &self.keys {
            out.put_u64(partition.0);
            out.put_u8(keys.len() as u8);
            for HotKey { route, requests, error } in keys {
                write_bytes(route, out);
                out.put_u64(*requests);
                out.put_u64(*error);
            }
        }
        out.put_u16(self.ends.len() as u16);
        for end in &self.ends {
            out.put_u32(end.container.0);
            write_bytes(&end.group, out);
            out.put_u8(u8::from(end.end == End::High));
            let age_ms = u64::try_from(end.since.as_millis()).unwrap_or(u64::MAX);
            let HotEnd { inserts, at_end, moves, partition, in_partition, busiest_slice, .. } = end;
            let numbers =
                [*inserts, *at_end, *moves, partition.0, *in_partition, *busiest_slice, age_ms];
            numbers.into_iter().for_each(|number| out.put_u64(number));
        }
    }

    pub(crate) fn read(row: &mut Bytes) -> Option<Self> {
        let partitions = row.try_get_u16().ok()? as usize;
        let ends = |row: &mut Bytes| {
            let count = row.try_get_u16().ok()? as usize;
            (0..count).map(|_| read_end(row)).collect::<Option<Vec<_>>>()
        };
        if partitions > PARTITIONS_TOLD_MAX {
            return None;
        }
        let keys = (0..partitions).map(|_| read_keys(row)).collect::<Option<_>>()?;
        Some(Self { keys, ends: ends(row)? }).filter(|heat| heat.ends.len() <= ENDS_TOLD_MAX)
    }
}

fn write_bytes(bytes: &[u8], out: &mut BytesMut) {
    out.put_u16(bytes.len() as u16);
    out.put_slice(bytes);
}

fn read_bytes(row: &mut Bytes) -> Option<Bytes> {
    let length = row.try_get_u16().ok()? as usize;
    (length <= ROUTE_BYTES_MAX.min(row.len())).then(|| row.split_to(length))
}

fn read_keys(row: &mut Bytes) -> Option<(PartitionId, Vec<HotKey>)> {
    let partition = PartitionId(row.try_get_u64().ok()?);
    let count = row.try_get_u8().ok()? as usize;
    let key = |row: &mut Bytes| {
        let route = read_bytes(row)?;
        Some(HotKey { route, requests: row.try_get_u64().ok()?, error: row.try_get_u64().ok()? })
    };
    let keys = (0..count).map(|_| key(row)).collect::<Option<Vec<_>>>()?;
    (count <= KEYS_TOLD_MAX).then_some((partition, keys))
}

fn read_end(row: &mut Bytes) -> Option<HotEnd> {
    let container = ContainerId(row.try_get_u32().ok()?);
    let group = read_bytes(row)?;
    let end = match row.try_get_u8().ok()? {
        0 => End::Low,
        1 => End::High,
        _ => return None,
    };
    let mut number = || row.try_get_u64().ok();
    Some(HotEnd {
        container,
        group,
        end,
        inserts: number()?,
        at_end: number()?,
        moves: number()?,
        partition: PartitionId(number()?),
        in_partition: number()?,
        busiest_slice: number()?,
        since: Duration::from_millis(number()?),
    })
}

/// The hottest keys of a partition on all nodes: what each node is sure of is added up.
pub(crate) fn hottest(own: Vec<HotKey>, id: PartitionId, others: &[Heat]) -> Vec<HotKey> {
    let told = others.iter().filter_map(|heat| heat.keys.get(&id)).flatten();
    let mut sums: BTreeMap<Bytes, HotKey> = BTreeMap::new();
    for key in own.into_iter().chain(told.cloned()) {
        let empty = HotKey { route: key.route.clone(), requests: 0, error: 0 };
        let sum = sums.entry(key.route).or_insert(empty);
        sum.requests = sum.requests.saturating_add(key.requests);
        sum.error = sum.error.saturating_add(key.error);
    }
    let mut keys: Vec<HotKey> = sums.into_values().collect();
    let heat = |key: &HotKey| (key.sure(), key.requests);
    keys.sort_by(|a, b| heat(b).cmp(&heat(a)).then(a.route.cmp(&b.route)));
    keys.truncate(HOT_KEYS_MAX);
    keys
}

/// The ends that take all inserts on any node: what nodes say of the same end is added up.
pub(crate) fn all_ends(own: Vec<HotEnd>, others: &[Heat], now: Duration) -> Vec<HotEnd> {
    let mut all = own;
    for told in others.iter().flat_map(|heat| &heat.ends) {
        let told = HotEnd { since: now.saturating_sub(told.since), ..told.clone() };
        let same = |one: &&mut HotEnd| {
            one.container == told.container && one.group == told.group && one.end == told.end
        };
        match all.iter_mut().find(same) {
            None => all.push(told),
            Some(known) => {
                known.inserts = known.inserts.saturating_add(told.inserts);
                known.at_end = known.at_end.saturating_add(told.at_end);
                known.moves = known.moves.saturating_add(told.moves);
                known.in_partition = known.in_partition.saturating_add(told.in_partition);
                known.busiest_slice = known.busiest_slice.saturating_add(told.busiest_slice);
                known.since = known.since.min(told.since);
            }
        }
    }
    all
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn key(route: &'static str, requests: u64, error: u64) -> HotKey {
        HotKey { route: Bytes::from_static(route.as_bytes()), requests, error }
    }

    fn end(container: u32, inserts: u64) -> HotEnd {
        HotEnd {
            container: ContainerId(container),
            group: Bytes::from_static(b"group"),
            end: End::High,
            inserts,
            at_end: inserts,
            moves: 60,
            partition: PartitionId(9),
            in_partition: inserts,
            busiest_slice: 70,
            since: Duration::from_secs(30),
        }
    }

    pub(crate) fn heat() -> Heat {
        let keys = BTreeMap::from([
            (PartitionId(1), vec![key("a", 50, 10), key("b", 30, 0)]),
            (PartitionId(2), vec![key("", 7, 0)]),
        ]);
        Heat { keys, ends: vec![end(1, 2_000), end(2, 1_000)] }
    }

    #[test]
    fn heat_reads_back_as_it_was_told() {
        let mut out = BytesMut::new();
        heat().write(&mut out);
        let row = out.freeze();
        assert_eq!(Heat::read(&mut row.clone()), Some(heat()));
        for length in 0..row.len() {
            assert_eq!(Heat::read(&mut row.slice(..length)), None, "{length}");
        }
    }

    #[test]
    fn what_nodes_say_of_the_same_is_added_up() {
        let own = vec![key("b", 40, 5), key("c", 60, 30)];
        let keys = hottest(own.clone(), PartitionId(1), &[heat(), heat()]);
        assert_eq!(keys, [key("b", 100, 5), key("a", 100, 20), key("c", 60, 30)]);
        assert_eq!(
            hottest(own.clone(), PartitionId(7), &[heat()]),
            [own[0].clone(), own[1].clone()]
        );
        let now = Duration::from_secs(100);
        let mine = HotEnd { since: Duration::from_secs(90), ..end(1, 500) };
        let ends = all_ends(vec![mine], &[heat()], now);
        let shown: Vec<_> = ends.iter().map(|end| (end.container.0, end.inserts)).collect();
        assert_eq!(shown, [(1, 2_500), (2, 1_000)]);
        assert_eq!(ends[0].since, Duration::from_secs(70));
    }

    #[test]
    fn a_later_row_takes_the_place_of_an_earlier_one() {
        let mut known = heat();
        let keys = BTreeMap::from([(PartitionId(2), vec![key("x", 9, 0)])]);
        known.update(Heat { keys, ends: Vec::new() });
        assert_eq!(known.keys.len(), 2);
        assert_eq!(known.keys[&PartitionId(2)], [key("x", 9, 0)]);
        assert!(known.ends.is_empty());
    }
}
