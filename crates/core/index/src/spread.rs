//! Over which shards the slices of an index are spread (F2): P partitions of the service are P shards here, each with as many
//! neighbouring slices. Changing their number moves slices with the engine's mover, while the index is in use.

use lazuli_engine::{
    KeyRange, MapReason, MoveOptions, MoveStatus, Partition, PartitionId, Result, ShardId,
};

use crate::index::{Scale, slices};
use crate::limits::{MOVES_AT_ONCE, SLICES};
use crate::{Index, Indexes};

/// The most partitions of a shard that are counted to compare shards.
const PARTITIONS_COUNTED_MAX: usize = 10_000;

/// Where one partition of an index is, and where it belongs.
#[derive(Clone, Debug)]
pub struct Placement {
    pub partition: PartitionId,
    pub routes: KeyRange,
    pub shard: ShardId,
    pub wanted: ShardId,
}

/// The home of a slice among the shards that an index is spread over.
fn home(slice: usize, partitions: u32, shards: &[ShardId]) -> Option<ShardId> {
    let group = slice * partitions as usize / usize::from(SLICES);
    shards.get(group % shards.len().max(1)).copied()
}

impl Indexes {
    /// The shards of a new index: as many as it has partitions, those that hold least first.
    pub(crate) async fn home_shards(&self, scale: Scale) -> Result<Vec<ShardId>> {
        self.choose(&[], scale).await
    }

    /// As many shards as an index has partitions, by their numbers: first those that hold slices of it already, then those
    /// that hold least. The choice is the same while slices are on their way, because a shard that has got one keeps its place.
    async fn choose(&self, partitions: &[Partition], scale: Scale) -> Result<Vec<ShardId>> {
        let catalog = self.engine.manager().catalog();
        let under_way = self.engine.move_statuses().await?;
        let mut loads = Vec::new();
        for shard in catalog.shards().await? {
            if self.engine.shards().get(shard.id).is_err() {
                continue;
            }
            let is_coming = |id| {
                let comes =
                    |it: &MoveStatus| it.moving.partition == id && it.moving.target == shard.id;
                under_way.iter().any(comes)
            };
            let here = |it: &&Partition| it.shard == shard.id || is_coming(it.id);
            let own = partitions.iter().filter(here).count();
            let load = catalog.partitions_on(shard.id, PARTITIONS_COUNTED_MAX).await?.len();
            loads.push((usize::MAX - own, load, shard.id));
        }
        loads.sort();
        let chosen = loads.into_iter().map(|(_, _, shard)| shard);
        let mut chosen: Vec<_> = chosen.take(scale.partitions as usize).collect();
        chosen.sort();
        Ok(chosen)
    }

    /// Where every partition of an index is, and where it belongs by the number of partitions that the index is to have.
    pub async fn placements(&self, index: &Index) -> Result<Vec<Placement>> {
        let (id, all) = (index.id(), KeyRange::all());
        let catalog = self.engine.manager().catalog();
        let partitions = catalog.partitions_in(id, &all, PARTITIONS_COUNTED_MAX).await?;
        let partitions: Vec<_> = partitions.into_iter().map(|entry| entry.partition).collect();
        let shards = self.choose(&partitions, index.scale).await?;
        let slices = slices()?;
        let placements = partitions.into_iter().filter_map(|partition| {
            let slice = slices.iter().position(|it| it.contains(&partition.routes.start))?;
            let wanted = home(slice, index.scale.partitions, &shards)?;
            let Partition { id, routes, shard, .. } = partition;
            Some(Placement { partition: id, routes, shard, wanted })
        });
        Ok(placements.collect())
    }

    /// Begins moves of partitions that are not where they belong, a few at a time. Answers how many are not there yet; with
    /// none left, the index is spread as it should be, and is left to the balancer again.
    pub async fn spread(&self, account: &str, index: &Index) -> Result<usize> {
        let placements = self.placements(index).await?;
        let astray: Vec<_> = placements.iter().filter(|it| it.shard != it.wanted).collect();
        if astray.is_empty() {
            self.end_spreading(account, &index.name).await?;
        }
        let under_way = self.engine.move_statuses().await?;
        let is_moving = |partition| under_way.iter().any(|it| it.moving.partition == partition);
        let moving = astray.iter().filter(|it| is_moving(it.partition)).count();
        let rest = astray.iter().filter(|it| !is_moving(it.partition));
        for placement in rest.take(MOVES_AT_ONCE.saturating_sub(moving)) {
            let options = MoveOptions::default();
            let begun = self.engine.move_partition(placement.partition, placement.wanted, options);
            match begun.await {
                // It changes just now, or another process moves it: the next round looks again.
                Err(error) if error.reason::<MapReason>().is_some() => {}
                begun => drop(begun?),
            }
        }
        Ok(astray.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_spread_evenly_and_in_order() {
        let shards: Vec<ShardId> = (1..=12).map(ShardId).collect();
        for partitions in crate::limits::PARTITION_COUNTS {
            let shards = &shards[..partitions as usize];
            let homes: Vec<_> = (0..12).map(|it| home(it, partitions, shards).unwrap()).collect();
            assert!(homes.is_sorted(), "{homes:?}");
            for shard in shards {
                let count = homes.iter().filter(|home| *home == shard).count();
                assert_eq!(count, 12 / partitions as usize);
            }
        }
        assert_eq!(home(11, 12, &shards[..2]), Some(ShardId(2)));
    }
}
