//! The fleet as the planner wants it: where everything is from the catalog, what it holds from the shards' statistics,
//! what is asked of it from the history.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use lazuli_balance::{Fleet, Goal, Load, PartitionFigures, Pin, ShardFigures, ShardState};
use lazuli_engine::{Outcome, Size};
use lazuli_shardmap::catalog::Entry;
use lazuli_shardmap::{
    Container, MapKind, Partition, PartitionId, PartitionState, Shard, ShardId, drained,
};
use lazuli_store::{KeyRange, Result};

use super::Balancer;

/// Partitions of one page of the catalog.
const PAGE: usize = 10_000;
/// How long a plan waits for partitions of unknown size to be counted. Those that are not counted by then are left alone.
const COUNT_TIME_MAX: Duration = Duration::from_secs(5);
const MINUTE_MS: u64 = 60_000;
/// For how long a piece must have been watched before what was seen counts more than what was expected.
pub(super) const WATCH_MS: u64 = MINUTE_MS;

/// What is known of all partitions at once.
struct PartitionFacts {
    sizes: BTreeMap<PartitionId, Size>,
    moving: BTreeMap<PartitionId, ShardId>,
    changed: BTreeMap<PartitionId, u64>,
    expected: BTreeMap<PartitionId, (f64, u64)>,
    /// Whether the history is long enough to tell which partitions are cold: right after a start all seem to be.
    knows_cold: bool,
}

impl Balancer {
    /// What the planner is told at this moment, and how many partitions could not be counted.
    pub(super) async fn fleet(&self, now_ms: u64) -> Result<(Fleet, usize)> {
        let catalog = self.engine.manager().catalog();
        let shards = catalog.shards().await?;
        let drained = drained::list(catalog).await?;
        let mut fleet = Fleet::default();
        fleet.shards.extend(shards.iter().map(|shard| self.shard(shard, &drained)));
        let known = self.known(now_ms).await?;
        let mut partitions = Vec::new();
        for container in catalog.containers().await? {
            let mut rest = KeyRange::new(Bytes::new(), None);
            loop {
                let mut entries = catalog.partitions_in(container.id, &rest, PAGE + 1).await?;
                let beyond = (entries.len() > PAGE).then(|| entries.pop()).flatten();
                for entry in entries {
                    let figures = self.figures(&mut fleet, &container, &entry, &shards, &known);
                    fleet.partitions.push(figures);
                    partitions.push(entry.partition);
                }
                match beyond {
                    Some(entry) => rest.start = entry.partition.routes.start,
                    None => break,
                }
            }
        }
        mark_neighbours(&mut fleet, &partitions);
        self.look_closer(&mut fleet, &partitions).await;
        let uncounted = partitions.iter().filter(|one| !known.sizes.contains_key(&one.id)).count();
        Ok((fleet, uncounted))
    }

    fn shard(&self, shard: &Shard, drained: &BTreeSet<ShardId>) -> ShardFigures {
        let is_away =
            self.host.why_down(shard.id).is_some() || self.engine.shards().get(shard.id).is_err();
        let state = match () {
            () if is_away => ShardState::Away,
            () if drained.contains(&shard.id) => ShardState::Draining,
            () => ShardState::Online,
        };
        ShardFigures { state, ..ShardFigures::new(shard.id) }
    }

    async fn known(&self, now_ms: u64) -> Result<PartitionFacts> {
        let moving = self.engine.manager().catalog().moves().await?;
        let mut changed = BTreeMap::new();
        for finished in self.engine.moves_finished().await? {
            if finished.outcome == Outcome::Arrived {
                changed.insert(finished.moving.partition, finished.ended_ms);
            }
        }
        let expected = {
            let mut state = self.state();
            state.forget(self.settings.planner.rest_ms, WATCH_MS, now_ms);
            changed.extend(state.changed.iter().map(|(id, at)| (*id, *at)));
            state.expected.clone()
        };
        let average_ms = u64::from(self.settings.average_minutes) * MINUTE_MS;
        let knows_cold = self.history.history().age_ms() >= average_ms;
        Ok(PartitionFacts {
            knows_cold,
            sizes: self.sizes().await?,
            moving: moving.into_iter().map(|it| (it.partition, it.target)).collect(),
            changed,
            expected,
        })
    }

    /// What every partition holds. Those that were never counted are, as far as that is quick.
    async fn sizes(&self) -> Result<BTreeMap<PartitionId, Size>> {
        let mut known = BTreeMap::new();
        let begun = self.engine.env().clock.uptime();
        for shard in self.engine.shards().all() {
            for (id, (_, size)) in shard.sizes().await? {
                let size = match size {
                    Some(size) => Some(size),
                    None => self.count(id, shard.id, begun).await,
                };
                known.extend(size.map(|size| (id, size)));
            }
        }
        Ok(known)
    }

    /// Counts a partition. One that cannot be counted now is left alone by this plan.
    async fn count(&self, id: PartitionId, shard: ShardId, begun: Duration) -> Option<Size> {
        if self.engine.env().clock.uptime().saturating_sub(begun) > COUNT_TIME_MAX {
            self.engine.count_soon(id, shard);
            return None;
        }
        self.engine.partition_size(id, shard).await.ok()
    }

    fn figures(
        &self,
        fleet: &mut Fleet,
        container: &Container,
        entry: &Entry,
        shards: &[Shard],
        known: &PartitionFacts,
    ) -> PartitionFigures {
        let Partition { id, shard, routes, state, .. } = &entry.partition;
        let size = known.sizes.get(id);
        let rates = self.history.history().rates(*id, self.settings.average_minutes);
        let seen = rates.map_or(0.0, |rates| rates.reads + rates.writes + rates.throttled);
        let requests = known.expected.get(id).map_or(seen, |(requests, _)| *requests);
        let Size { items, bytes, outside } = size.copied().unwrap_or_default();
        let load = Load { bytes, requests, items };
        let moving_to = known.moving.get(id).copied();
        let pin = Pin::of(&container.placement, routes, shards).map(|pin| fleet.pin(pin));
        PartitionFigures {
            outside,
            pin,
            moving_to,
            locked: size.is_none() || entry.lock.is_some() || *state != PartitionState::Online,
            changed_at_ms: known.changed.get(id).copied(),
            // Hash maps keep the partitions they were made with: that many can work at once.
            joins_next: container.kind == MapKind::Range && known.knows_cold,
            ..PartitionFigures::new(*id, container.id, *shard, load)
        }
    }

    /// Finds out of those that may have to be cut whether there is anything to cut between, and what makes them busy.
    async fn look_closer(&self, fleet: &mut Fleet, partitions: &[Partition]) {
        let settings = &self.settings.planner;
        let online = fleet.shards.iter().filter(|shard| shard.state == ShardState::Online).count();
        let total = fleet.loads().into_iter().fold(Load::default(), |sum, load| sum + load);
        let coarse = |load: &Load, goal: Goal| {
            load.of(goal) > total.of(goal) / online.max(1) as f64 * settings.split_share
        };
        for (figures, partition) in fleet.partitions.iter_mut().zip(partitions) {
            let load = figures.load;
            let is_large =
                load.bytes > settings.split_bytes || load.requests > settings.split_requests;
            if !is_large && !Goal::ALL.iter().any(|goal| coarse(&load, *goal)) {
                continue;
            }
            // What cannot be asked now is left open: the cut itself finds out.
            if let Ok(true) = self.engine.is_one_shardlet(partition).await {
                figures.shardlets = Some(1);
            }
            if load.requests > 0.0 {
                figures.hot_share = self.hot_share(partition);
            }
        }
    }

    /// The share of the busiest key, as far as it is sure.
    fn hot_share(&self, partition: &Partition) -> Option<f64> {
        let keys = self.history.hot_keys(partition).ok()?;
        let elsewhere = self.history.history().elsewhere(partition.id);
        let all = self.engine.requests(partition).ok()? + elsewhere.reads + elsewhere.writes;
        // Other nodes may have counted a key before this one began to hear of requests.
        let share = keys.first()?.sure() as f64 / all.max(1) as f64;
        Some(share.min(1.0)).filter(|_| all > 0)
    }
}

/// Partitions of one container join the next one where their routes touch and both are there to be merged.
fn mark_neighbours(fleet: &mut Fleet, partitions: &[Partition]) {
    for at in 0..partitions.len() {
        let touches = partitions.get(at + 1).is_some_and(|next| {
            let this = &partitions[at];
            this.container == next.container
                && this.routes.end.as_ref() == Some(&next.routes.start)
                && this.state == next.state
        });
        fleet.partitions[at].joins_next &= touches;
    }
}
