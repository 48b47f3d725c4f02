//! Splitting and merging in place: new bounds and epochs, no data touched.

use bytes::Bytes;
use lazuli_store::{Error, KeyRange, Result};

use super::placing::check_bounds;
use super::{Known, Manager, known};
use crate::Partition;
use crate::catalog::{CatalogChange, Decision, Draft, Entry, MapOperation};

impl Manager {
    /// Splits a partition in two, at a route that lies inside it and at the edge of a shardlet. Both halves are new
    /// partitions in the state of the old one, on its shard, under its lock.
    pub async fn split(&self, partition: Known, at: Bytes) -> Result<(Partition, Partition)> {
        self.run(&Split { partition, at }).await
    }

    /// Makes one partition of two neighbours on one shard that are in one state. It keeps the left one's lock.
    pub async fn merge(&self, left: Known, right: Known) -> Result<Partition> {
        self.run(&Merge { left, right }).await
    }
}

struct Split {
    partition: Known,
    at: Bytes,
}

impl CatalogChange for Split {
    type Output = (Partition, Partition);

    async fn decide(&self, draft: &mut Draft) -> Decision<(Partition, Partition)> {
        let entry = known(draft.view(), self.partition).await?;
        let whole = entry.partition;
        let KeyRange { start, end } = &whole.routes;
        if self.at <= *start || !whole.routes.contains(&self.at) {
            let message = format!("the route to split at is not inside partition {}", whole.id);
            return Err(Error::invalid("split-point-outside", message).into());
        }
        let container = draft.view().container(whole.container).await?;
        let low = KeyRange::new(start.clone(), Some(self.at.clone()));
        let high = KeyRange::new(self.at.clone(), end.clone());
        check_bounds(&container, &low)?;
        check_bounds(&container, &high)?;
        let epoch = whole.epoch.next();
        let left = draft.new_partition_id();
        let right = draft.new_partition_id();
        let left = Partition { id: left, routes: low, epoch, ..whole.clone() };
        let right = Partition { id: right, routes: high, epoch, ..whole.clone() };
        let mut operation = MapOperation::new("split", whole.container);
        operation.claims.push(whole.routes.clone());
        operation.remove(&whole);
        for half in [&left, &right] {
            operation.puts.push(Entry { partition: half.clone(), lock: entry.lock });
        }
        draft.begin(operation)?;
        Ok((left, right))
    }
}

struct Merge {
    left: Known,
    right: Known,
}

impl CatalogChange for Merge {
    type Output = Partition;

    async fn decide(&self, draft: &mut Draft) -> Decision<Partition> {
        let Entry { partition: left, lock } = known(draft.view(), self.left).await?;
        let Entry { partition: right, .. } = known(draft.view(), self.right).await?;
        check_neighbours(&left, &right)?;
        let id = draft.new_partition_id();
        let routes = KeyRange::new(left.routes.start.clone(), right.routes.end.clone());
        let epoch = left.epoch.max(right.epoch).next();
        let merged = Partition { id, routes, epoch, ..left.clone() };
        let mut operation = MapOperation::new("merge", left.container);
        for half in [&left, &right] {
            operation.claims.push(half.routes.clone());
            operation.remove(half);
        }
        operation.puts.push(Entry { partition: merged.clone(), lock });
        draft.begin(operation)?;
        Ok(merged)
    }
}

fn check_neighbours(left: &Partition, right: &Partition) -> Result<()> {
    let refuse = |code, why: &str| {
        let message = format!("partitions {} and {} {why}", left.id, right.id);
        Err(Error::precondition(code, message))
    };
    if left.container != right.container || left.routes.end.as_ref() != Some(&right.routes.start) {
        return refuse("not-adjacent", "are not neighbours, the left one first");
    }
    if left.shard != right.shard {
        return refuse("different-shards", "are on different shards");
    }
    if left.state != right.state {
        return refuse("different-states", "are in different states");
    }
    Ok(())
}
