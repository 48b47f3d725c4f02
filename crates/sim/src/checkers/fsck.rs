//! Checks every key on every disk: it decodes, a partition owns it, and the figures add up.
//!
//! Catalog and local maps agree; items are in a partition of their shard; every expiry has one row, and its item has
//! that expiry; an item's state is its newest change; the statistics of a partition equal a recount.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use lazuli_engine::{Counts, Engine, Item};
use lazuli_shardmap::layout::{self, Space};
use lazuli_shardmap::reconcile::Report;
use lazuli_shardmap::{Container, ContainerId, Garbage, Partition, ShardId};
use lazuli_store::{KeyRange, Result as StoreResult};

use crate::client::Client;
use crate::cluster::Cluster;
use crate::disk::Disk;
use crate::ensure;
use crate::scenario::Found;

/// The first byte of a change record of a write.
const PUT: u8 = 1;

/// The state of the catalog and the shards, while nothing runs.
struct Books {
    containers: BTreeMap<ContainerId, Container>,
    /// From the catalog.
    partitions: Vec<Partition>,
    /// From each shard's local map.
    local: Vec<(ShardId, String, Vec<Partition>)>,
    counts: BTreeMap<u64, Counts>,
    /// What the reconciler could not finish or decide.
    report: Report,
    garbage: Vec<Garbage>,
    /// What the shards' own checks say, among them that of indexes.
    findings: Vec<String>,
}

async fn read_books(engine: Arc<Engine>) -> StoreResult<Books> {
    let report = engine.manager().reconcile().await?;
    engine.delete_garbage().await?;
    let catalog = engine.manager().catalog();
    let containers = catalog.containers().await?;
    let mut partitions = Vec::new();
    for container in &containers {
        let entries = catalog.partitions_in(container.id, &KeyRange::all(), usize::MAX).await?;
        partitions.extend(entries.into_iter().map(|entry| entry.partition));
    }
    let mut local = Vec::new();
    let mut counts = BTreeMap::new();
    let mut findings = Vec::new();
    for shard in engine.shards().all() {
        let report = shard.check(catalog).await?;
        findings.extend(report.findings.iter().map(|finding| finding.message.clone()));
        let held = shard.local().partitions()?;
        for partition in &held {
            let stats = engine.partition_stats(partition.id, shard.id).await?;
            counts.insert(partition.id.0, stats.counts);
        }
        local.push((shard.id, catalog.shard(shard.id).await?.location, held));
    }
    Ok(Books {
        containers: containers.into_iter().map(|container| (container.id, container)).collect(),
        partitions,
        local,
        counts,
        report,
        garbage: catalog.garbage().await?,
        findings,
    })
}

/// Checks everything. Nothing may be running.
pub async fn check(cluster: &Cluster) -> Found {
    let books = Client::outside(cluster)
        .ask_surely("fsck", || |engine| async move { read_books(engine).await })
        .await?;
    ensure!(books.report.is_clean(), "the reconciler is left with {:?}", books.report);
    ensure!(books.garbage.is_empty(), "never cleaned: {:?}", books.garbage);
    ensure!(books.findings.is_empty(), "shards say: {:?}", books.findings);
    for (shard, location, held) in &books.local {
        let expected: Vec<_> = books.partitions.iter().filter(|it| it.shard == *shard).collect();
        ensure!(
            same(held, &expected),
            "shard {shard} holds {held:?}, the catalog says {expected:?}"
        );
        let disk = cluster.disks().shards.iter().find(|disk| *disk.name == **location);
        let disk = disk.ok_or(format!("shard {shard} has no disk"))?;
        check_disk(disk, &books, held).map_err(|found| format!("{location}: {found}"))?;
    }
    Ok(())
}

fn same(held: &[Partition], expected: &[&Partition]) -> bool {
    held.len() == expected.len() && expected.iter().all(|partition| held.contains(partition))
}

/// The rows of containers on a disk, sorted by kind.
#[derive(Default)]
struct Contents {
    items: BTreeMap<Bytes, Bytes>,
    /// The expiry of an item, by the item's key.
    expiries: BTreeMap<Bytes, u64>,
    /// The last change of an item: its LSN and whether it was a write.
    changes: BTreeMap<Bytes, (u64, bool)>,
}

fn read_disk(disk: &Disk) -> Result<Contents, String> {
    let mut contents = Contents::default();
    for (key, value) in disk.items(&KeyRange::all()) {
        let (container, space, rest) = layout::split(&key).ok_or("a key without a prefix")?;
        if container == ContainerId::SYSTEM {
            continue;
        }
        if Space::KEY_ORDERED.contains(&space) {
            contents.items.insert(key, value);
            continue;
        }
        // The shards' own checks compare them with items.
        if space == Space::INDEX {
            continue;
        }
        // Time-ordered rows: time or LSN, then the space and the rest of the item's key.
        let (number, rest) = rest.split_first_chunk::<8>().ok_or("a short time-ordered key")?;
        let number = u64::from_be_bytes(*number);
        let item = Bytes::from([&container.0.to_be_bytes()[..], rest].concat());
        if space == Space::EXPIRY {
            let twice = contents.expiries.insert(item, number);
            ensure!(twice.is_none(), "two expiries of one item: {key:?}");
        } else if space == Space::MOVING {
            return Err(format!("written down for a move that is over: {key:?}"));
        } else {
            contents.changes.insert(item, (number, value.first() == Some(&PUT)));
        }
    }
    Ok(contents)
}

fn check_disk(disk: &Disk, books: &Books, held: &[Partition]) -> Found {
    let Contents { items, expiries, changes } = read_disk(disk)?;
    let mut counted: BTreeMap<u64, Figures> = BTreeMap::new();
    let outside = lazuli_shapes::blob::outside();
    for (key, value) in &items {
        let (id, space, rest) = layout::split(key).ok_or("a key without a prefix")?;
        let container = books.containers.get(&id).ok_or(format!("unowned item: {key:?}"))?;
        let damaged = |error| format!("{key:?}: {error}");
        let item = Item::decode(value.clone()).map_err(damaged)?;
        let (route, _) = container.kind.split(&container.key, rest).map_err(damaged)?;
        let owns = |it: &&Partition| it.container == id && it.routes.contains(route);
        let owner = held.iter().find(owns).ok_or(format!("an item without owner: {key:?}"))?;
        let figures = counted.entry(owner.id.0).or_default();
        figures.items += 1;
        figures.rows += (key.len() + value.len()) as i64;
        figures.outside += (outside.bytes)(space, rest, &item.payload);
        let expiry = expiries.get(key).copied();
        let expires = item.expires_ms;
        ensure!(expiry == expires, "{key:?} expires at {expires:?}, its row says {expiry:?}");
        if container.policies.changes {
            let (change, version) = (changes.get(key), item.version);
            let told = change == Some(&(version.0, true));
            ensure!(told, "{key:?} has version {version}, its last change is {change:?}");
        }
    }
    let stray = expiries.keys().find(|key| !items.contains_key(*key));
    ensure!(stray.is_none(), "an expiry without item: {stray:?}");
    let stray = changes.iter().find(|(key, (_, put))| *put && !items.contains_key(*key));
    ensure!(stray.is_none(), "written last, and not there: {stray:?}");
    check_counts(books, held, &counted)
}

/// The recount of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Figures {
    items: i64,
    rows: i64,
    /// Its bytes in block files.
    outside: i64,
}

fn check_counts(books: &Books, held: &[Partition], counted: &BTreeMap<u64, Figures>) -> Found {
    for partition in held {
        let Some(counts) = books.counts.get(&partition.id.0).filter(|counts| counts.exact) else {
            continue;
        };
        let counted = counted.get(&partition.id.0).copied().unwrap_or_default();
        let (items, bytes) = (counts.items as i64, counts.bytes as i64);
        let outside = counts.outside as i64;
        let said = Figures { items, rows: bytes - outside, outside };
        ensure!(
            said == counted,
            "partition {} says that it holds {said:?}, counting gives {counted:?}",
            partition.id
        );
    }
    Ok(())
}
