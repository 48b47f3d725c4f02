//! Costs that are known only afterwards: what a query read, what a write did to indexes.

use lazuli_shardmap::ContainerId;
use lazuli_store::{KeyRange, Result};

use crate::engine::Engine;

impl Engine {
    /// Refuses with `Throttled` if a partition that holds some of these routes is over its budget.
    pub async fn admit(&self, container: ContainerId, routes: &KeyRange) -> Result<()> {
        let throughput = self.router.container(container).await?.policies.throughput;
        if throughput.is_none() {
            return Ok(());
        }
        let now = self.env.clock.uptime();
        for place in self.places(container, routes).await? {
            let shard = self.shards.get(place.placed.shard)?;
            shard.partition(place.placed.partition).charge(throughput, 0, now)?;
        }
        Ok(())
    }

    /// Takes a cost from the budgets of the partitions that hold these routes, from each the same, whether they have as
    /// much left or not: who comes next waits until it is paid off.
    pub async fn charge_after(
        &self,
        container: ContainerId,
        routes: &KeyRange,
        cost: u32,
    ) -> Result<()> {
        let throughput = self.router.container(container).await?.policies.throughput;
        if throughput.is_none() || cost == 0 {
            return Ok(());
        }
        let now = self.env.clock.uptime();
        let places = self.places(container, routes).await?;
        let share = cost.div_ceil(u32::try_from(places.len()).unwrap_or(1).max(1));
        for place in places {
            let shard = self.shards.get(place.placed.shard)?;
            shard.partition(place.placed.partition).take(throughput, share, now);
        }
        Ok(())
    }
}
