//! What routing costs: time of a lookup, memory of a cached entry, time of a change.
//!
//! Three maps: a list of single tenants under text keys, ranges of 64-bit numbers, and ranges of
//! names that have long parts in common; the ranges tile their space. A lookup is all that a
//! request pays: encoding the key and finding it by the router. A change is what a move does to the
//! cached map, and is held against a copy of the whole map.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use lazuli_env::BoxFuture;
use lazuli_shardmap::map::Map;
use lazuli_shardmap::{
    Container, ContainerId, Epoch, KeyPart, KeySchema, KeyType, MapDelta, MapKind, MapSource,
    Partition, PartitionId, PartitionState, Policies, Router, ShardId,
};
use lazuli_store::{KeyRange, Result};

use crate::figures::resident_bytes;
use crate::report::Report;

/// A lookup must take less at the median.
pub const LOOKUP_NS_MAX: f64 = 1_000.0;
/// An entry must take less beyond its key: the one of a list entry, the two bounds of a range.
pub const ENTRY_BYTES_MAX: f64 = 100.0;
/// A change must take a smaller part of the time that a copy of the map takes.
pub const CHANGE_PER_COPY_MAX: f64 = 0.01;

/// Lookups and changes are timed in batches, because a clock costs as much as a lookup.
const BATCH: usize = 64;

/// How large the maps are and how often they are asked.
#[derive(Clone, Copy)]
pub struct Scale {
    pub list_keys: u32,
    pub ranges: u32,
    pub batches: usize,
}

impl Scale {
    pub const FULL: Self = Self { list_keys: 1_000_000, ranges: 100_000, batches: 10_000 };
    pub const TINY: Self = Self { list_keys: 1_000, ranges: 100, batches: 10 };
}

/// A map to measure.
struct Subject {
    container: Container,
    partitions: Vec<Partition>,
}

impl Subject {
    fn new(id: u32, kind: MapKind, key_type: KeyType, count: u32) -> Self {
        let container = Container {
            id: ContainerId(id),
            name: format!("{kind:?} map, {count} entries, keys of type {}", key_type.name()),
            kind,
            key: KeySchema::one(key_type),
            schema: String::new(),
            placement: Vec::new(),
            policies: Policies::default(),
            version: 1,
        };
        let route = |nth: u32| route(&container, nth);
        let routes = |nth: u32| match kind {
            MapKind::List => KeyRange::prefix(route(nth)),
            _ => {
                let start = if nth == 0 { Bytes::new() } else { route(nth) };
                KeyRange::new(start, (nth + 1 < count).then(|| route(nth + 1)))
            }
        };
        let partition = |nth: u32| Partition {
            id: PartitionId(u64::from(nth) + 1),
            container: container.id,
            routes: routes(nth),
            shard: ShardId(nth % 16),
            epoch: Epoch::FIRST,
            state: PartitionState::Online,
        };
        let partitions = (0..count).map(partition).collect();
        Self { container, partitions }
    }
}

/// The key that the nth partition begins with.
fn key(container: &Container, nth: u32) -> KeyPart {
    match container.kind {
        // Names of tenants do not come in order.
        MapKind::List => KeyPart::Text(format!("tenant-{:08x}", nth.wrapping_mul(0x9e37_79b1))),
        _ if container.key.types() == [KeyType::Int64] => {
            KeyPart::Int64(i64::from(nth) * 1_000_000)
        }
        _ => KeyPart::Text(format!("account-{}/photos/{nth:08}.jpeg", nth / 20_000)),
    }
}

fn route(container: &Container, nth: u32) -> Bytes {
    let route = container.kind.route(&container.key, &[key(container, nth)]);
    route.expect("the key is of the schema that was made for it")
}

/// A catalog of this one map.
impl MapSource for Subject {
    fn container(&self, _: ContainerId) -> BoxFuture<'_, Result<Container>> {
        Box::pin(async { Ok(self.container.clone()) })
    }

    fn container_named<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Container>> {
        self.container(self.container.id)
    }

    fn partitions(&self, _: ContainerId) -> BoxFuture<'_, Result<(u64, Vec<Partition>)>> {
        Box::pin(async { Ok((1, self.partitions.clone())) })
    }

    fn changes_since(&self, _: ContainerId, _: u64) -> BoxFuture<'_, Result<MapDelta>> {
        Box::pin(async { Ok(MapDelta::Reload) })
    }
}

/// Measures all maps.
pub async fn run(scale: Scale) -> Result<Report> {
    let list = Subject::new(1, MapKind::List, KeyType::Text, scale.list_keys);
    let numbers = Subject::new(2, MapKind::Range, KeyType::Int64, scale.ranges);
    let names = Subject::new(3, MapKind::Range, KeyType::Text, scale.ranges);
    // Memory comes first and nothing is given back in between: what a process once freed and took
    // again would not show.
    let (list_map, list_bytes) = build(&list)?;
    let (number_map, number_bytes) = build(&numbers)?;
    let (name_map, name_bytes) = build(&names)?;
    let mut report = Report::default();
    measure(&mut report, list, list_map, list_bytes, scale).await?;
    measure(&mut report, numbers, number_map, number_bytes, scale).await?;
    measure(&mut report, names, name_map, name_bytes, scale).await?;
    Ok(report)
}

fn build(subject: &Subject) -> Result<(Map, Option<f64>)> {
    let before = resident_bytes();
    let map = Map::build(&subject.partitions)?;
    let after = resident_bytes();
    let is_list = subject.container.kind == MapKind::List;
    let key_bytes = |held: &Partition| {
        let end = held.routes.end.as_ref().filter(|_| !is_list);
        held.routes.start.len() + end.map_or(0, Bytes::len)
    };
    let keys: usize = subject.partitions.iter().map(key_bytes).sum();
    let grown = before.zip(after).map(|(before, after)| after.saturating_sub(before));
    let beyond = grown.map(|grown| (grown as f64 - keys as f64) / subject.partitions.len() as f64);
    Ok((map, beyond))
}

async fn measure(
    report: &mut Report,
    subject: Subject,
    mut map: Map,
    entry_bytes: Option<f64>,
    scale: Scale,
) -> Result<()> {
    let env = lazuli_env::real::env();
    let partitions = subject.partitions.clone();
    let container = subject.container.clone();
    let router = Router::new(env.clone(), Arc::new(subject));
    router.refresh(container.id, None).await?;

    let draw = || env.random.below(partitions.len() as u64) as usize;
    let mut lookups = Vec::with_capacity(scale.batches);
    for _ in 0..scale.batches {
        let keys: [_; BATCH] = std::array::from_fn(|_| [key(&container, draw() as u32)]);
        let start = Instant::now();
        for key in &keys {
            let route = container.kind.route(&container.key, key)?;
            assert!(black_box(router.cached(container.id, &route)).is_some());
        }
        lookups.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
    }

    let mut changes = Vec::with_capacity(scale.batches);
    for _ in 0..scale.batches {
        let moved: [_; BATCH] = std::array::from_fn(|_| {
            let held = partitions[draw()].clone();
            Partition { epoch: held.epoch.next(), shard: ShardId(99), ..held }
        });
        let start = Instant::now();
        for partition in &moved {
            map.put(partition)?;
        }
        changes.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
    }

    let copy = || {
        let start = Instant::now();
        black_box(map.clone());
        start.elapsed().as_nanos() as f64
    };
    let lookup_ns = percentile(&mut lookups, 0.5);
    let (change_ns, copy_ns) =
        (percentile(&mut changes, 0.5), percentile(&mut [copy(), copy(), copy()], 0.5));
    report.say(&container.name);
    let name = |what: &str| format!("  {what} ({})", container.id.0);
    report.at_most(name("lookup, median of batches, ns"), lookup_ns, LOOKUP_NS_MAX);
    report.figure(name("lookup, p99 of batches, ns"), percentile(&mut lookups, 0.99));
    // Some systems do not say how much memory a process has.
    if let Some(bytes) = entry_bytes {
        report.at_most(name("bytes of an entry beyond key"), bytes, ENTRY_BYTES_MAX);
    }
    report.figure(name("one change of the map, ns"), change_ns);
    report.figure(name("a copy of the whole map, ns"), copy_ns);
    let percent = change_ns / copy_ns * 100.0;
    report.at_most(name("a change, % of a copy"), percent, CHANGE_PER_COPY_MAX * 100.0);
    Ok(())
}

fn percentile(samples: &mut [f64], part: f64) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    samples[((samples.len() - 1) as f64 * part) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_tiny_run_measures_all_maps() {
        let report = run(Scale::TINY).await.unwrap();
        for name in ["  lookup, median", "  one change", "  a copy"] {
            let values = report.values(name);
            assert!(values.len() == 3 && values.iter().all(|value| *value > 0.0), "{report}");
        }
    }
}
