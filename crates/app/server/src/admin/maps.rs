//! Maps and partitions in the admin API.

use std::collections::BTreeMap;

use bytes::Bytes;
use lazuli_shardmap::{
    Container, ContainerId, MapKind, MapReason, Partition, PartitionState, Shard, ShardId,
};
use lazuli_store::KeyRange;
use serde_json::{Value, json};

use super::refusal::{Refusal, Result};
use super::request::{MapFilter, PartitionFilter};
use super::shards;
use crate::running::Running;

/// Up to here the partitions of a map are counted when maps are listed.
const COUNTED_MAX: usize = 1_000;

/// Containers that are read from the catalog at a time.
const CONTAINERS_AT_ONCE: usize = 1_000;

/// A page of maps, in the order of their ids.
pub(super) async fn list(running: &Running, filter: &MapFilter) -> Result<Value> {
    let mut maps = Vec::new();
    let mut rest = Containers::from(filter.first);
    while let Some(container) = rest.next(running).await? {
        if !filter.name.as_deref().is_none_or(|part| container.name.contains(part)) {
            continue;
        }
        if maps.len() == filter.limit {
            return Ok(json!({ "maps": maps, "next": container.id.0.to_string() }));
        }
        maps.push(show_counted(running, &container).await?);
    }
    Ok(json!({ "maps": maps, "next": null }))
}

async fn show_counted(running: &Running, container: &Container) -> Result<Value> {
    let every = KeyRange::new(Bytes::new(), None);
    let most = COUNTED_MAX + 1;
    let counted = running.catalog().partitions_in(container.id, &every, most).await?.len();
    let mut map = show_container(container);
    map["partitions"] = match counted {
        0..=COUNTED_MAX => json!(counted),
        _ => json!(format!("over {COUNTED_MAX}")),
    };
    Ok(map)
}

/// Containers by id, read a few at a time, so that the start of a list costs the same however many follow.
struct Containers {
    read: std::vec::IntoIter<Container>,
    /// Where the next reading begins; none if there is nothing behind what was read.
    first: Option<ContainerId>,
}

impl Containers {
    fn from(first: ContainerId) -> Self {
        Self { read: Vec::new().into_iter(), first: Some(first) }
    }

    /// One container alone.
    fn only(container: Container) -> Self {
        Self { read: vec![container].into_iter(), first: None }
    }

    async fn next(&mut self, running: &Running) -> Result<Option<Container>> {
        if self.read.as_slice().is_empty()
            && let Some(first) = self.first.take()
        {
            let read = running.catalog().containers_from(first, CONTAINERS_AT_ONCE).await?;
            let last = read.last().filter(|_| read.len() == CONTAINERS_AT_ONCE);
            self.first = last.and_then(|last| last.id.0.checked_add(1)).map(ContainerId);
            self.read = read.into_iter();
        }
        Ok(self.read.next())
    }
}

/// The name of a container of this account that holds items, if there is one. A container is named by its service, its
/// account and what else tells it apart.
pub(super) async fn with_items_of(running: &Running, account: &str) -> Result<Option<String>> {
    let mut containers = Containers::from(ContainerId(0));
    let every = KeyRange::new(Bytes::new(), None);
    while let Some(container) = containers.next(running).await? {
        if container.name.split('/').nth(1) != Some(account) {
            continue;
        }
        for entry in running.catalog().partitions_in(container.id, &every, usize::MAX).await? {
            let Partition { id, shard, .. } = entry.partition;
            if running.engine.partition_stats(id, shard).await?.counts.items > 0 {
                return Ok(Some(container.name));
            }
        }
    }
    Ok(None)
}

pub(super) async fn show(running: &Running, name: &str) -> Result<Value> {
    Ok(show_container(&find(running, name).await?))
}

/// A page of partitions with their figures, in the order of containers and routes.
pub(super) async fn partitions(running: &Running, filter: &PartitionFilter) -> Result<Value> {
    let catalog = running.catalog();
    let shards: BTreeMap<ShardId, Shard> =
        catalog.shards().await?.into_iter().map(|shard| (shard.id, shard)).collect();
    let only = match &filter.shard {
        Some(name) => Some(shards::find(running, name).await?.id),
        None => None,
    };
    let (first, from) = match &filter.after {
        Some(text) => parse_place(text)?,
        None => (ContainerId(0), Bytes::new()),
    };
    let mut containers = match &filter.map {
        Some(name) => Containers::only(find(running, name).await?),
        None => Containers::from(first),
    };
    let mut shown = Vec::new();
    let mut left = filter.limit;
    while let Some(container) = containers.next(running).await? {
        if container.id < first {
            continue;
        }
        let start = if container.id == first { from.clone() } else { Bytes::new() };
        let rest = KeyRange::new(start, None);
        let mut entries = catalog.partitions_in(container.id, &rest, left + 1).await?;
        let beyond = (entries.len() > left).then(|| entries.pop()).flatten();
        left -= entries.len();
        for partition in entries.iter().map(|entry| &entry.partition) {
            if only.is_none_or(|only| only == partition.shard) {
                let shard = shards.get(&partition.shard);
                shown.push(show_partition(running, &container, partition, shard).await);
            }
        }
        if let Some(beyond) = beyond {
            let next = print_place(container.id, &beyond.partition.routes.start);
            return Ok(json!({ "partitions": shown, "next": next }));
        }
    }
    Ok(json!({ "partitions": shown, "next": null }))
}

pub(super) async fn find(running: &Running, name: &str) -> Result<Container> {
    let found = running.catalog().container_named(name).await;
    found.map_err(|error| match error.reason() {
        Some(MapReason::ContainerNotFound) => Refusal::not_found("map", name, "lazuli map list"),
        _ => error.into(),
    })
}

fn show_container(container: &Container) -> Value {
    let Container { id, name, kind, key, schema, placement, policies, version } = container;
    let types: Vec<String> = key.types().iter().map(|one| one.name().to_owned()).collect();
    let rule = |rule: &lazuli_shardmap::placement::Rule| {
        let (from, to) = show_bounds(container, &rule.routes);
        json!({ "from": from, "to": to, "region": rule.region, "labels": rule.labels })
    };
    json!({
        "id": id.0,
        "name": name,
        "kind": match kind {
            MapKind::List => "list",
            MapKind::Range => "range",
            MapKind::Hash => "hash",
            MapKind::EpkV1 => "epk-v1",
            MapKind::EpkV2 => "epk-v2",
            MapKind::EpkMulti => "epk-multi",
        },
        "key": types,
        "schema": schema,
        "placement": placement.iter().map(rule).collect::<Vec<_>>(),
        "changes": policies.changes,
        "throughput": policies.throughput,
        "version": version,
    })
}

/// A partition with its figures, as far as its shard answers.
pub(super) async fn show_partition(
    running: &Running,
    container: &Container,
    partition: &Partition,
    shard: Option<&Shard>,
) -> Value {
    let (from, to) = show_bounds(container, &partition.routes);
    let mut shown = json!({
        "id": partition.id.0,
        "map": container.name,
        "from": from,
        "to": to,
        "from_route": hex(&partition.routes.start),
        "to_route": partition.routes.end.as_ref().map(|end| hex(end)),
        "shard": shard.map(|shard| &shard.name),
        "epoch": partition.epoch.0,
        "state": state_name(partition.state),
    });
    if let Ok(stats) = running.engine.partition_stats(partition.id, partition.shard).await {
        // A sketch knows bounds and no counts.
        let hot = |one: &lazuli_engine::HotKey| {
            let key = show_bound(container, &one.route);
            json!({ "key": key, "at_least": one.sure(), "at_most": one.requests })
        };
        shown["items"] = json!(stats.counts.items);
        shown["bytes"] = json!(stats.counts.bytes);
        let elsewhere = running.history.history().elsewhere(partition.id);
        shown["reads"] = json!(stats.reads.saturating_add(elsewhere.reads));
        shown["writes"] = json!(stats.writes.saturating_add(elsewhere.writes));
        shown["throttled"] = json!(stats.throttled.saturating_add(elsewhere.throttled));
        let hottest = running.history.hot_keys(partition).unwrap_or(stats.hot);
        shown["hottest"] = hottest.iter().map(hot).collect();
    }
    shown
}

pub(super) fn state_name(state: PartitionState) -> &'static str {
    match state {
        PartitionState::Online => "online",
        PartitionState::ReadOnly => "read-only",
        PartitionState::Offline => "offline",
        PartitionState::Sending => "sending",
        PartitionState::Fenced => "fenced",
    }
}

/// The bounds of routes for people; none is the end of the space.
pub(super) fn show_bounds(
    container: &Container,
    routes: &KeyRange,
) -> (Option<String>, Option<String>) {
    let start = Some(&routes.start).filter(|start| !start.is_empty());
    let show = |bound: &Bytes| show_bound(container, bound);
    (start.map(show), routes.end.as_ref().map(show))
}

pub(super) fn show_bound(container: &Container, bound: &[u8]) -> String {
    container.kind.print(&container.key, bound)
}

/// Bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// Where the next page goes on: `container:route`, the route in hexadecimal.
fn print_place(container: ContainerId, route: &[u8]) -> String {
    format!("{container}:{}", hex(route))
}

fn parse_place(text: &str) -> Result<(ContainerId, Bytes)> {
    let wrong = || Refusal::bad_request("after must be the `next` of the page before");
    let (container, hex) = text.split_once(':').ok_or_else(wrong)?;
    let container = container.parse().map(ContainerId).map_err(|_| wrong())?;
    let digits = hex.as_bytes();
    if digits.len() % 2 != 0 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(wrong());
    }
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).unwrap_or_default();
        u8::from_str_radix(text, 16).map_err(|_| wrong())
    };
    let route: Result<Vec<u8>> = digits.chunks(2).map(byte).collect();
    Ok((container, route?.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_read_back_as_they_were_printed() {
        for route in [&b""[..], b"\x00\xff", b"abc"] {
            let text = print_place(ContainerId(7), route);
            let read = parse_place(&text).unwrap_or_else(|_| panic!("{text} must be read"));
            assert_eq!(read, (ContainerId(7), Bytes::copy_from_slice(route)));
        }
        for bad in ["", "7", ":00", "x:00", "7:0", "7:+1", "7:0g"] {
            assert!(parse_place(bad).is_err(), "{bad}");
        }
    }
}
