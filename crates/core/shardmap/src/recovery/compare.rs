//! Comparing what a shard says it holds with what the catalog says it holds.

use std::collections::BTreeMap;

use lazuli_store::Result;

use super::{Difference, is_within};
use crate::catalog::View;
use crate::{Partition, PartitionId, ShardId};

/// Rows that are not the same on both sides, and those that overlap them.
pub(super) struct Differing {
    shard: ShardId,
    catalog: BTreeMap<PartitionId, Partition>,
    local: Vec<Partition>,
    elsewhere: BTreeMap<PartitionId, Partition>,
}

impl Differing {
    pub(super) async fn of(view: View<'_>, shard: ShardId, local: Vec<Partition>) -> Result<Self> {
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
    pub(super) fn stretches(self) -> Vec<Difference> {
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
