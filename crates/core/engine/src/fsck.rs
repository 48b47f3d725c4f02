//! Looks at every key of a shard: whether it decodes, whether a partition of this shard holds it, whether its container
//! is known, whether items and bytes are as many as the partition's figures say, and whether items and indexes agree.
//!
//! Everything is read from one snapshot, in which keys, local map and figures belong together, so a shard can be checked
//! while it is in use.

use std::collections::BTreeMap;

use bytes::Bytes;
use lazuli_shardmap::catalog::Catalog;
use lazuli_shardmap::layout::{self, Space};
use lazuli_shardmap::lineage::Standing;
use lazuli_shardmap::local::{Arrival, Garbage};
use lazuli_shardmap::record::{self, Record};
use lazuli_shardmap::{Container, ContainerId, Partition, PartitionId, PartitionState};
use lazuli_store::{Direction, KeyRange, PageLimit, Reader, Reads, Result, after_key};

use crate::fsck_entries::EntryCheck;
use crate::item::Item;
use crate::moving::Progress;
use crate::outside::Outside;
use crate::shard::LiveShard;
use crate::stats::{Counts, Delta};
use crate::{changes, derived, expiry};

/// How many findings of a shard are listed; the rest are only counted.
pub const FINDINGS_MAX: usize = 1_000;

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub code: &'static str,
    /// The key it is about, if it is about one.
    pub key: Option<Bytes>,
    pub message: String,
}

/// What a look at a shard found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Without those that a shard keeps of the catalog.
    pub keys: u64,
    /// Of those keys, the items of containers.
    pub items: u64,
    pub findings: Vec<Finding>,
    /// Findings beyond [`FINDINGS_MAX`].
    pub findings_unlisted: u64,
}

impl Report {
    fn find(&mut self, code: &'static str, key: Option<&Bytes>, message: impl Into<String>) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { code, key: key.cloned(), message: message.into() });
        } else {
            self.findings_unlisted += 1;
        }
    }
}

impl LiveShard {
    /// Checks all keys against the shard's own local map and the catalog's containers.
    pub async fn check(&self, catalog: &Catalog) -> Result<Report> {
        // Containers come and go meanwhile: those before and after the snapshot are all that it can name.
        let before = known(catalog).await?;
        let snapshot = self.store.snapshot(&[], Reads::Long).await?;
        let mut containers = before.clone();
        containers.append(&mut known(catalog).await?);
        let outside = self.settings.outside;
        let entries = EntryCheck::new(&self.settings.deriving, [&before, &containers])?;
        let mut check = Check { containers, outside, entries, ..Check::default() };
        check.read_system(&*snapshot).await?;
        let mut rest = KeyRange::all();
        loop {
            let page = snapshot.scan(&rest, Direction::Forward, PageLimit::MAX).await?;
            let last = page.items.last().map(|(key, _)| after_key(key));
            for (key, value) in page.items {
                check.key(&key, value);
            }
            match last {
                Some(next) if page.more => rest.start = next,
                _ => break,
            }
        }
        check.compare_counts();
        for (id, message) in check.entries.differences() {
            // What a restore has left half done stays shut until it is restored again.
            let is_shut = |it: &&Partition| it.id == id && it.state == PartitionState::Offline;
            let is_exact = check.figures.get(&id).is_some_and(|figures| figures.exact);
            if !is_exact && check.held.values().any(|it| is_shut(&it)) {
                continue;
            }
            check.report.find("index-differs", None, format!("partition {id} {message}"));
        }
        Ok(check.report)
    }
}

/// All containers, also those that are being deleted.
async fn known(catalog: &Catalog) -> Result<BTreeMap<ContainerId, Container>> {
    let mut all = catalog.containers().await?;
    all.extend(catalog.containers_deleting().await?);
    Ok(all.into_iter().map(|container| (container.id, container)).collect())
}

/// What is known while the keys go by.
#[derive(Default)]
struct Check {
    containers: BTreeMap<ContainerId, Container>,
    /// The partitions that the shard says it holds, by container and first route.
    held: BTreeMap<(ContainerId, Bytes), Partition>,
    garbage: Vec<Garbage>,
    arrivals: Vec<Arrival>,
    figures: BTreeMap<PartitionId, Counts>,
    counted: BTreeMap<PartitionId, Delta>,
    outside: Outside,
    entries: EntryCheck,
    report: Report,
}

impl Check {
    /// Reads what the shard says about itself. Rows that do not decode are found later, when their keys go by.
    async fn read_system(&mut self, reader: &dyn Reader) -> Result<()> {
        for (_, row) in all(reader, Space::LOCAL_MAP).await? {
            if let Ok(partition) = record::decode::<Partition>(row) {
                let place = (partition.container, partition.routes.start.clone());
                if let Some(other) = self.held.insert(place, partition.clone()) {
                    let message =
                        format!("partitions {} and {} begin alike", other.id, partition.id);
                    self.report.find("partitions-overlap", None, message);
                }
            }
        }
        for (_, row) in all(reader, Space::GARBAGE).await? {
            self.garbage.extend(record::decode::<Garbage>(row));
        }
        for (_, row) in all(reader, Space::ARRIVALS).await? {
            self.arrivals.extend(record::decode::<Arrival>(row));
        }
        for (key, row) in all(reader, Space::STATS).await? {
            if let (Some(id), Ok(counts)) = (last_number(&key), Counts::decode(row)) {
                self.figures.insert(PartitionId(id), counts);
            }
        }
        self.overlaps();
        Ok(())
    }

    /// Two partitions of a container must not hold the same route.
    fn overlaps(&mut self) {
        let mut before: Option<&Partition> = None;
        let mut found = Vec::new();
        for partition in self.held.values() {
            if let Some(before) = before
                && before.container == partition.container
                && before.routes.overlaps(&partition.routes)
            {
                found.push(format!("partitions {} and {} overlap", before.id, partition.id));
            }
            before = Some(partition);
        }
        for message in found {
            self.report.find("partitions-overlap", None, message);
        }
    }

    fn key(&mut self, key: &Bytes, value: Bytes) {
        let Some((container, space, rest)) = layout::split(key) else {
            self.report.keys += 1;
            return self.report.find("key-short", Some(key), "the key is shorter than its prefix");
        };
        // How many of these there are depends on when the catalog was last copied.
        let is_counted =
            container != ContainerId::SYSTEM || ![Space::STANDING, Space::COPIES].contains(&space);
        self.report.keys += u64::from(is_counted);
        if container == ContainerId::SYSTEM {
            return self.system_row(key, space, value);
        }
        match space {
            Space::CHANGES | Space::MOVING => match changes::decode(key, value) {
                Ok(change) => drop(self.owner(key, container, change.key.route())),
                Err(error) => self.report.find(error.code(), Some(key), error.message()),
            },
            Space::INDEX => match derived::decode(key, &value) {
                Ok((entry, item)) => {
                    if let Some(owner) = self.owner(key, container, item.route()) {
                        self.entries.found(owner, container, &entry, key);
                    }
                }
                Err(error) => self.report.find(error.code(), Some(key), error.message()),
            },
            Space::EXPIRY => match expiry::decode(key, value) {
                Ok(expiry) => drop(self.owner(key, container, expiry.key.route())),
                Err(error) => self.report.find(error.code(), Some(key), error.message()),
            },
            space if Space::KEY_ORDERED.contains(&space) => self.item(key, container, rest, value),
            Space(other) => {
                let message = format!("there is no space {other:#04x}");
                self.report.find("space-unknown", Some(key), message);
            }
        }
    }

    fn item(&mut self, key: &Bytes, container: ContainerId, rest: &[u8], value: Bytes) {
        self.report.items += 1;
        let weight = self.outside.weigh(key, &value);
        let item = Item::decode(value);
        if let Err(error) = &item {
            self.report.find(error.code(), Some(key), error.message());
        }
        if let Some(known) = self.containers.get(&container)
            && let Err(error) =
                known.kind.split(&known.key, rest).and_then(|(r, _)| known.kind.key(&known.key, r))
        {
            self.report.find(error.code(), Some(key), error.message());
        }
        if let Some(owner) = self.owner(key, container, rest) {
            if let (Some(known), Ok(item)) = (self.containers.get(&container), item)
                && let Err(error) = self.entries.expect(owner, known, key, &item)
            {
                self.report.find(error.code(), Some(key), error.message());
            }
            self.counted.entry(owner).or_default().put(weight);
        }
    }

    /// The partition of this shard that holds a route, or a finding.
    fn owner(&mut self, key: &Bytes, container: ContainerId, route: &[u8]) -> Option<PartitionId> {
        let place = (container, Bytes::copy_from_slice(route));
        let below = self.held.range(..=place).next_back();
        let found =
            below.filter(|(_, one)| one.container == container && one.routes.contains(route));
        if let Some((_, partition)) = found {
            let id = partition.id;
            if !self.containers.contains_key(&container) {
                let message = format!("container {container} is not in the catalog");
                self.report.find("container-unknown", Some(key), message);
            }
            return Some(id);
        }
        // Garbage has no owner, and rows that arrive by a move belong to another shard: both are fine.
        let waits = |one: &Garbage| one.container == container && one.routes.contains(route);
        let comes = |one: &Arrival| one.container == container && one.routes.contains(route);
        if !self.garbage.iter().any(waits) && !self.arrivals.iter().any(comes) {
            let message = format!("no partition of this shard holds this key of {container}");
            self.report.find("key-orphaned", Some(key), message);
        }
        None
    }

    fn system_row(&mut self, key: &Bytes, space: Space, value: Bytes) {
        let read = match space {
            Space::LOCAL_MAP => decodes::<Partition>(value),
            Space::GARBAGE => decodes::<Garbage>(value),
            Space::ARRIVALS => decodes::<Arrival>(value),
            Space::STATS => Counts::decode(value).map(drop),
            Space::PROGRESS => Progress::decode(value).map(drop),
            Space::STANDING => decodes::<Standing>(value),
            Space::IDENTITY
            | Space::APPLIED
            | Space::REFERENCE
            | Space::LOCAL_HEAD
            | Space::COPIES => Ok(()),
            Space(other) => {
                let message = format!("the system has no space {other:#04x}");
                return self.report.find("space-unknown", Some(key), message);
            }
        };
        if let Err(error) = read {
            self.report.find(error.code(), Some(key), error.message());
        }
    }

    fn compare_counts(&mut self) {
        let held: Vec<PartitionId> = self.held.values().map(|partition| partition.id).collect();
        for id in held {
            let mut counted = Counts::default();
            self.counted.get(&id).copied().unwrap_or_default().add_to(&mut counted);
            // After a split there may be no figures until the partition is counted.
            let Some(figures) = self.figures.get(&id) else { continue };
            let of = |counts: &Counts| (counts.items, counts.bytes, counts.outside);
            if figures.exact && of(figures) != of(&counted) {
                let message = format!(
                    "partition {id} holds {} items of {} bytes, {} of them in files, its figures \
                     say {} of {}, {} of them in files",
                    counted.items,
                    counted.bytes,
                    counted.outside,
                    figures.items,
                    figures.bytes,
                    figures.outside
                );
                self.report.find("counts-differ", None, message);
            }
        }
    }
}

fn decodes<T: Record>(row: Bytes) -> Result<()> {
    record::decode::<T>(row).map(drop)
}

fn last_number(key: &[u8]) -> Option<u64> {
    key.split_last_chunk::<8>().map(|(_, number)| u64::from_be_bytes(*number))
}

/// All rows of a space of the system.
async fn all(reader: &dyn Reader, space: Space) -> Result<Vec<(Bytes, Bytes)>> {
    let mut rest = KeyRange::prefix(layout::prefix(ContainerId::SYSTEM, space));
    let mut rows = Vec::new();
    loop {
        let page = reader.scan(&rest, Direction::Forward, PageLimit::MAX).await?;
        rows.extend(page.items);
        match rows.last() {
            Some((key, _)) if page.more => rest.start = after_key(key),
            _ => return Ok(rows),
        }
    }
}
