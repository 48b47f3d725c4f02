//! Recovery: where a shard and the catalog differ after a restore, and what an operator decides about it.
//!
//! Nothing here happens by itself. A repair is an operation like any other, but one that replaces whatever rows it finds,
//! and its epochs are above all that either side has seen, so no router and no writer mistakes the old for the new.

use std::collections::BTreeMap;

use lazuli_store::{Error, KeyRange, Result};

use crate::catalog::{
    Change, ContainerChange, Decision, Draft, DroppedRow, Entry, Operation, View,
};
use crate::manager::{Manager, unclaimed};
use crate::{ContainerId, Epoch, Partition, PartitionId, ShardId};

/// How often a rebuild looks again after repairing.
const REBUILD_ROUNDS_MAX: usize = 4;

/// A stretch of routes on which a shard and the catalog do not agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub shard: ShardId,
    pub container: ContainerId,
    pub routes: KeyRange,
    /// What the catalog says the shard holds.
    pub catalog: Vec<Partition>,
    /// What the shard says it holds.
    pub local: Vec<Partition>,
    /// What the catalog says other shards hold of the same routes.
    pub elsewhere: Vec<Partition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DifferenceKind {
    /// The catalog says the shard holds it, the shard does not know it.
    CatalogOnly,
    /// The shard says it holds it, the catalog does not know it, or has it elsewhere.
    ShardOnly,
    /// Both know these routes, with other bounds, another epoch or another state.
    Both,
}

/// Who is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    Ignore,
    /// The shard takes over the catalog's rows. Data of routes that are not there becomes garbage.
    KeepCatalog,
    /// The catalog takes over the shard's rows.
    KeepShard,
}

impl Difference {
    pub fn kind(&self) -> DifferenceKind {
        match (self.catalog.is_empty(), self.local.is_empty()) {
            (false, true) => DifferenceKind::CatalogOnly,
            (true, _) => DifferenceKind::ShardOnly,
            (false, false) => DifferenceKind::Both,
        }
    }

    /// An epoch above all that anybody has seen here.
    fn next_epoch(&self) -> Epoch {
        let all = self.catalog.iter().chain(&self.local).chain(&self.elsewhere);
        all.map(|partition| partition.epoch).max().unwrap_or(Epoch(0)).next()
    }
}

impl Manager {
    /// Where the shard and the catalog differ, but for what operations are changing just now.
    pub async fn detect(&self, shard: ShardId) -> Result<Vec<Difference>> {
        let first = self.compare(shard).await?;
        if first.is_empty() {
            return Ok(first);
        }
        // An operation between the two readings looks like a difference once, but not the same one twice.
        let second = self.compare(shard).await?;
        Ok(second.into_iter().filter(|difference| first.contains(difference)).collect())
    }

    async fn compare(&self, shard: ShardId) -> Result<Vec<Difference>> {
        let snapshot = self.catalog().snapshot();
        let view = View::of(&*snapshot);
        view.shard(shard).await?;
        let local = self.local(shard)?.partitions()?;
        let differing = Differing::of(view, shard, local).await?;
        let mut settled = Vec::new();
        for difference in differing.stretches() {
            if view.claim(difference.container, &difference.routes).await?.is_none() {
                settled.push(difference);
            }
        }
        Ok(settled)
    }

    /// Settles a difference. If it is no longer as it was detected: `difference-changed`. An operation on the same routes
    /// that cannot be finished has to be forced first.
    pub async fn resolve(&self, difference: &Difference, resolution: Resolution) -> Result<()> {
        if resolution == Resolution::Ignore {
            return Ok(());
        }
        let local = self.local(difference.shard)?;
        let rows = local.partitions()?;
        let mut here: Vec<_> = rows.iter().filter(|row| is_within(row, difference)).collect();
        here.sort_by(|a, b| a.routes.start.cmp(&b.routes.start).then(a.id.cmp(&b.id)));
        if !here.iter().copied().eq(&difference.local) {
            return Err(changed());
        }
        let garbage = local.garbage().await?;
        let repair = Repair {
            difference,
            resolution,
            seen: local.seen()?,
            last_partition: rows.iter().map(|row| row.id).max().unwrap_or(PartitionId(0)),
            last_garbage: garbage.iter().map(|garbage| garbage.id).max().unwrap_or(0),
        };
        self.run(&repair).await
    }

    /// Makes a pending operation go through although a shard is not as it expects, and finishes it.
    pub async fn force_operation(&self, number: u64) -> Result<()> {
        self.run(&Force { number }).await?;
        self.finish_pending(number).await
    }

    /// Makes a shard's local map what the catalog says. Answers what could not be settled.
    pub async fn rebuild_local(&self, shard: ShardId) -> Result<Vec<Difference>> {
        self.rebuild(shard, Resolution::KeepCatalog).await
    }

    /// Makes the catalog's rows of a shard what the shard's local map says. Answers what could not be settled: routes that
    /// the catalog has on another shard, and those of containers that it does not know.
    pub async fn rebuild_catalog(&self, shard: ShardId) -> Result<Vec<Difference>> {
        self.rebuild(shard, Resolution::KeepShard).await
    }

    async fn rebuild(&self, shard: ShardId, keep: Resolution) -> Result<Vec<Difference>> {
        for operation in self.catalog().operations().await? {
            if operation.shards().contains(&shard)
                && let Err(error) = self.finish(&operation).await
            {
                if error.code() != "local-map-differs" {
                    return Err(error);
                }
                self.force_operation(operation.number).await?;
            }
        }
        for _ in 0..REBUILD_ROUNDS_MAX {
            let mut progress = false;
            for difference in self.detect(shard).await? {
                progress |= self.resolve(&difference, keep).await.is_ok();
            }
            if !progress {
                break;
            }
        }
        self.detect(shard).await
    }
}

fn changed() -> Error {
    Error::precondition("difference-changed", "it has changed since it was detected: detect again")
}

fn is_within(row: &Partition, difference: &Difference) -> bool {
    row.container == difference.container && row.routes.overlaps(&difference.routes)
}

/// Rows that are not the same on both sides, and those that overlap them.
struct Differing {
    shard: ShardId,
    catalog: BTreeMap<PartitionId, Partition>,
    local: Vec<Partition>,
    elsewhere: BTreeMap<PartitionId, Partition>,
}

impl Differing {
    async fn of(view: View<'_>, shard: ShardId, local: Vec<Partition>) -> Result<Self> {
        let entries = view.entries_on(shard, usize::MAX).await?;
        let both: BTreeMap<PartitionId, Partition> =
            entries.into_iter().map(|entry| (entry.partition.id, entry.partition)).collect();
        let mut catalog = both.clone();
        let (mut same, mut differing) = (BTreeMap::new(), Vec::new());
        for row in local {
            if both.get(&row.id) == Some(&row) {
                catalog.remove(&row.id);
                same.insert(row.id, row);
            } else {
                differing.push(row);
            }
        }
        let mut elsewhere = BTreeMap::new();
        let mut drawn_in = BTreeMap::new();
        for row in &differing {
            for entry in view.entries(row.container, &row.routes, usize::MAX).await? {
                let partition = entry.partition;
                if partition.shard != shard {
                    elsewhere.insert(partition.id, partition);
                } else if let Some(row) = same.get(&partition.id) {
                    drawn_in.insert(row.id, row.clone());
                    catalog.insert(partition.id, partition);
                }
            }
        }
        differing.extend(drawn_in.into_values());
        Ok(Self { shard, catalog, local: differing, elsewhere })
    }

    /// Rows that overlap each other belong together.
    fn stretches(self) -> Vec<Difference> {
        let Self { shard, catalog, local, elsewhere } = self;
        let catalog = catalog.into_values().map(|row| (row, Side::Catalog));
        let local = local.into_iter().map(|row| (row, Side::Local));
        let elsewhere = elsewhere.into_values().map(|row| (row, Side::Elsewhere));
        let mut rows: Vec<_> = catalog.chain(local).chain(elsewhere).collect();
        rows.sort_by(|(a, _), (b, _)| {
            let place = |row: &Partition| (row.container, row.routes.start.clone(), row.id);
            place(a).cmp(&place(b))
        });
        let mut found: Vec<Difference> = Vec::new();
        for (row, side) in rows {
            let container = row.container;
            let joins = found.last().is_some_and(|last| is_within(&row, last));
            if !joins {
                let (routes, catalog) = (row.routes.clone(), vec![]);
                let (local, elsewhere) = (vec![], vec![]);
                found.push(Difference { shard, container, routes, catalog, local, elsewhere });
            }
            let last = found.last_mut().expect("there is one, or it was just pushed");
            last.routes.end = match (last.routes.end.take(), &row.routes.end) {
                (Some(a), Some(b)) => Some(a.max(b.clone())),
                _ => None,
            };
            match side {
                Side::Catalog => last.catalog.push(row),
                Side::Local => last.local.push(row),
                Side::Elsewhere => last.elsewhere.push(row),
            }
        }
        found
    }
}

#[derive(Clone, Copy)]
enum Side {
    Catalog,
    Local,
    Elsewhere,
}

struct Force {
    number: u64,
}

impl Change for Force {
    type Output = ();

    async fn decide(&self, draft: &mut Draft) -> Decision<()> {
        if let Some(operation) = draft.view().operation(self.number).await? {
            draft.force(operation);
        }
        Ok(())
    }
}

struct Repair<'a> {
    difference: &'a Difference,
    resolution: Resolution,
    seen: u64,
    last_partition: PartitionId,
    last_garbage: u64,
}

impl Change for Repair<'_> {
    type Output = ();

    async fn decide(&self, draft: &mut Draft) -> Decision<()> {
        let Difference { shard, container, routes, catalog, local, elsewhere } = self.difference;
        unclaimed(draft.view(), *container, routes).await?;
        let entries = draft.view().entries(*container, routes, usize::MAX).await?;
        let on_shard = |entry: &&Entry| entry.partition.shard == *shard;
        let mine: Vec<Entry> = entries.iter().filter(on_shard).cloned().collect();
        let others = entries.iter().filter(|entry| !on_shard(entry)).map(|entry| &entry.partition);
        if !mine.iter().map(|entry| &entry.partition).eq(catalog) || !others.eq(elsewhere) {
            return Err(changed().into());
        }
        draft.advance(self.seen, self.last_partition, self.last_garbage);
        let mut operation = Operation::new("repair", *container);
        operation.forced = true;
        operation.claims.push(routes.clone());
        operation.removes = catalog.iter().map(|row| row.id).collect();
        operation.drops = local
            .iter()
            .map(|row| DroppedRow { shard: *shard, partition: row.id, epoch: row.epoch })
            .collect();
        match self.resolution {
            Resolution::Ignore => return Ok(()),
            Resolution::KeepCatalog => self.keep_catalog(draft, &mut operation, mine).await?,
            Resolution::KeepShard => self.keep_shard(draft, &mut operation).await?,
        }
        draft.begin(operation);
        Ok(())
    }
}

impl Repair<'_> {
    async fn keep_catalog(
        &self,
        draft: &mut Draft,
        operation: &mut Operation,
        mine: Vec<Entry>,
    ) -> Result<()> {
        let Difference { shard, container, local, catalog, .. } = self.difference;
        let epoch = self.difference.next_epoch();
        for Entry { partition, lock } in mine {
            operation.puts.push(Entry { partition: Partition { epoch, ..partition }, lock });
        }
        for orphan in local.iter().flat_map(|row| uncovered(&row.routes, catalog)) {
            operation.garbage.push(draft.new_garbage(*shard, *container, orphan));
        }
        // A container that is gone has no version to grow.
        if draft.view().container(*container).await.is_err() {
            operation.change = ContainerChange::None;
        }
        Ok(())
    }

    async fn keep_shard(&self, draft: &mut Draft, operation: &mut Operation) -> Result<()> {
        let Difference { shard, container, local, elsewhere, .. } = self.difference;
        draft.view().container(*container).await?;
        if let Some(other) = elsewhere.first() {
            let message = format!(
                "the catalog has routes of shard {shard} on shard {}: delete or move partition {} \
                 first, or keep the catalog's",
                other.shard, other.id
            );
            return Err(Error::precondition("mapped-elsewhere", message));
        }
        if local.windows(2).any(|pair| pair[0].routes.overlaps(&pair[1].routes)) {
            let message = format!("partitions of shard {shard} overlap: keep the catalog's");
            return Err(Error::precondition("local-map-overlaps", message));
        }
        let epoch = self.difference.next_epoch();
        for row in local {
            let mut partition = Partition { epoch, ..row.clone() };
            // A catalog that lost its memory may have given the number away again.
            if !operation.removes.contains(&row.id) && draft.view().entry(row.id).await.is_ok() {
                partition.id = draft.new_partition_id();
            }
            operation.puts.push(Entry { partition, lock: None });
        }
        Ok(())
    }
}

/// The parts of `routes` that none of the rows, which are in order, covers.
fn uncovered(routes: &KeyRange, rows: &[Partition]) -> Vec<KeyRange> {
    let mut parts = Vec::new();
    let mut rest = routes.clone();
    for row in rows.iter().filter(|row| row.routes.overlaps(routes)) {
        let before = KeyRange::new(rest.start.clone(), Some(row.routes.start.clone()));
        if !before.is_empty() {
            parts.push(before);
        }
        match &row.routes.end {
            Some(end) => rest.start = end.clone(),
            None => return parts,
        }
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}
