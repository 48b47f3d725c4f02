//! A repair: an operation that makes a shard and the catalog agree on a stretch of routes.

use lazuli_store::{Error, KeyRange, Result};

use super::{Difference, Resolution, changed};
use crate::catalog::{
    CatalogChange, ContainerChange, Decision, Draft, DroppedRow, Entry, MapOperation,
};
use crate::manager::{at_rest, unclaimed};
use crate::{Partition, PartitionId};

pub(super) struct Repair<'a> {
    pub(super) difference: &'a Difference,
    pub(super) resolution: Resolution,
    /// The highest numbers that the shard has seen. The catalog goes on above them.
    pub(super) seen: u64,
    pub(super) last_partition: PartitionId,
    pub(super) last_garbage: u64,
}

impl CatalogChange for Repair<'_> {
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
        let mut operation = MapOperation::new("repair", *container);
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
        draft.begin(operation)?;
        Ok(())
    }
}

impl Repair<'_> {
    async fn keep_catalog(
        &self,
        draft: &mut Draft,
        operation: &mut MapOperation,
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

    async fn keep_shard(&self, draft: &mut Draft, operation: &mut MapOperation) -> Result<()> {
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
        let moves = draft.view().moves().await?;
        for row in local {
            // A move that the catalog does not know will not be led to its end.
            let is_known = moves.iter().any(|moving| moving.partition == row.id);
            let state = if is_known { row.state } else { at_rest(row.state) };
            let mut partition = Partition { epoch, state, ..row.clone() };
            // A catalog that lost its memory may have given the number away again.
            if !operation.removes.contains(&row.id) && draft.view().entry(row.id).await.is_ok() {
                partition.id = draft.new_partition_id();
            }
            operation.puts.push(Entry { partition, lock: None });
            // What the shard holds is no garbage, whatever the catalog remembers.
            let routes = &row.routes;
            for garbage in draft.view().garbage_in(*container, *shard, routes, usize::MAX).await? {
                draft.drop_garbage(&garbage);
            }
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
