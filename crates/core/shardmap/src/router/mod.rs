//! The router: from a container and a route to a partition, an epoch and a shard, by cached maps.
//!
//! A router never decides who owns what: the shard's local map does, with every operation. So a
//! cached map may be old, and the catalog may be away, and nothing goes wrong: what is stale is
//! refused with `Moved`, and only then is the catalog asked for what has changed. `cache` keeps the
//! maps within bounds, `slot` refreshes one of them for many waiting requests at once, `health`
//! holds requests back from shards that do not answer, `retry` puts it all together.

mod cache;
mod health;
mod slot;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lazuli_env::Env;
use lazuli_store::{Error, KeyRange, Kind, Result};

use crate::map::{Map, Placed};
use crate::source::{MapDelta, MapSource};
use crate::{Container, ContainerId, Epoch, MapReason, PartitionId, ShardId};
use cache::Cache;
use health::{Gate, Health};
use slot::{Loaded, Slot};

/// What a router may use and how patient it is.
#[derive(Clone, Debug)]
pub struct RouterSettings {
    /// The most containers whose maps are kept; those unused for longest go first.
    pub containers_max: usize,
    /// The most partitions of all kept maps together. A single map above it is refused.
    pub entries_max: usize,
    /// How often one request asks again after `Moved`.
    pub moved_retries_max: u32,
    /// The wait before the second of these retries; the first comes at once, later ones double it.
    pub moved_backoff_first: Duration,
    pub moved_backoff_max: Duration,
    /// How long a shard is left alone after its second failure in a row; each further one doubles
    /// it.
    pub backoff_first: Duration,
    pub backoff_max: Duration,
}

impl Default for RouterSettings {
    fn default() -> Self {
        Self {
            containers_max: 10_000,
            entries_max: 8_000_000,
            moved_retries_max: 10,
            moved_backoff_first: Duration::from_millis(2),
            moved_backoff_max: Duration::from_millis(250),
            backoff_first: Duration::from_millis(200),
            backoff_max: Duration::from_secs(10),
        }
    }
}

/// Routes requests. Shared by all of them.
pub struct Router {
    env: Env,
    source: Arc<dyn MapSource>,
    settings: RouterSettings,
    cache: Cache,
    health: Health,
}

impl Router {
    pub fn new(env: Env, source: Arc<dyn MapSource>) -> Self {
        Self::with_settings(env, source, RouterSettings::default())
    }

    pub fn with_settings(env: Env, source: Arc<dyn MapSource>, settings: RouterSettings) -> Self {
        let health = Health::new(settings.backoff_first, settings.backoff_max);
        let cache = Cache::new(settings.containers_max, settings.entries_max);
        Self { env, source, settings, cache, health }
    }

    pub fn settings(&self) -> &RouterSettings {
        &self.settings
    }

    /// The place of a route if the cached map has one. None means: ask [`Router::place`].
    pub fn cached(&self, container: ContainerId, route: &[u8]) -> Option<Placed> {
        self.cache.look(container, |slot| slot.read(|loaded| loaded.map.find(route))).flatten()?
    }

    /// The place of a route. Asks the catalog only if the cached map has none: a key may have been
    /// added since. Fails with `mapping-not-found` if there is no place in the catalog either.
    pub async fn place(&self, container: ContainerId, route: &[u8]) -> Result<Placed> {
        if let Some(placed) = self.cached(container, route) {
            return Ok(placed);
        }
        let found = |loaded: &Loaded| loaded.map.find(route).is_some();
        let mut slot = self.catch_up(container, found).await?;
        if !self.cache.keeps(container, &slot) {
            // It was let go while it was read. What is kept by now may be older, and callers ask it for the container.
            slot = self.catch_up(container, found).await?;
        }
        slot.read(|loaded| loaded.map.find(route)).flatten().ok_or_else(|| {
            let message = format!("no partition of container {container} holds this key");
            Error::not_found("mapping-not-found", message)
        })
    }

    /// All partitions that hold any of these routes, in order, each with all routes it holds. Asks
    /// the catalog only if the cached map has gaps there, and goes by the cached one if it is away.
    pub async fn partitions(
        &self,
        container: ContainerId,
        routes: &KeyRange,
    ) -> Result<Vec<(KeyRange, Placed)>> {
        let cached = self.cache.get(container).filter(|slot| slot.version().is_some());
        let slot = match (self.catch_up(container, |at| at.map.covers(routes)).await, cached) {
            (Ok(slot), _) => slot,
            (Err(error), Some(slot)) if matches!(error.kind(), Kind::Unavailable { .. }) => slot,
            (Err(error), _) => return Err(error),
        };
        Ok(slot.read(|loaded| loaded.map.overlapping(routes).collect()).unwrap_or_default())
    }

    /// Brings the cached map up to date. Where the caller was refused with an epoch, `stale` says
    /// which: if the cached map knows better by now, the catalog is not asked.
    pub async fn refresh(
        &self,
        container: ContainerId,
        stale: Option<(PartitionId, Epoch)>,
    ) -> Result<()> {
        let newer = |loaded: &Loaded| {
            stale.is_some_and(|(partition, epoch)| {
                loaded.map.get(partition).is_none_or(|placed| placed.epoch > epoch)
            })
        };
        self.catch_up(container, newer).await.map(|_| ())
    }

    /// What is known of a container.
    pub async fn container(&self, id: ContainerId) -> Result<Arc<Container>> {
        let slot = self.catch_up(id, |_| true).await?;
        slot.container().ok_or_else(|| no_container(id))
    }

    /// A container by its name, for a caller that knows its schema. Refuses any other schema with
    /// `schema-mismatch` (S13).
    pub async fn open(&self, name: &str, schema: &str) -> Result<Arc<Container>> {
        if let Some(container) = self.cache.named(name)
            && container.schema == schema
        {
            return Ok(container);
        }
        // Not known, or no longer what is known: the catalog has the last word.
        let id = self.source.container_named(name).await?.id;
        self.refresh(id, None).await?;
        let container = self.container(id).await?;
        if container.schema != schema {
            let message = format!("{name} has schema {:?}, not {schema:?}", container.schema);
            return Err(Error::invalid("schema-mismatch", message));
        }
        Ok(container)
    }

    /// Brings those of these containers up to date whose maps are cached; none means all of them. So what other processes
    /// changed is known here without a request that meets it. A container that is gone is dropped.
    pub async fn follow(&self, changed: Option<&BTreeSet<ContainerId>>) -> Result<()> {
        for id in self.cache.ids() {
            if changed.is_some_and(|changed| !changed.contains(&id)) {
                continue;
            }
            match self.refresh(id, None).await {
                Err(error) if error.kind() != Kind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Drops what is cached of a container.
    pub fn forget(&self, container: ContainerId) {
        self.cache.remove(container);
    }

    /// Tells that a shard did not do its part of a request.
    pub fn shard_failed(&self, shard: ShardId) {
        self.health.failed(shard, self.env.clock.uptime());
    }

    /// Tells that a shard answered, whatever the answer.
    pub fn shard_answered(&self, shard: ShardId) {
        self.health.answered(shard);
    }

    /// Refuses with `shard-down` while a failing shard is left alone. Of those who ask once that
    /// time is over, one is let through to probe, and the others wait for what it reports.
    pub fn shard_ready(&self, shard: ShardId) -> Result<()> {
        self.health.gate(shard, self.env.clock.uptime()).map(|_| ())
    }

    /// The slot of a container once what is cached is enough. Otherwise the catalog is read: by one
    /// of all who wait, after this call began, so that what the caller saw happen is seen.
    async fn catch_up(
        &self,
        id: ContainerId,
        enough: impl Fn(&Loaded) -> bool,
    ) -> Result<Arc<Slot>> {
        let slot = self.cache.get_or_insert(id);
        let is_enough = || slot.read(&enough).unwrap_or(false);
        if !is_enough() {
            let turn = slot.turn().await;
            if !is_enough() {
                let outcome = match turn.outcome() {
                    Some(outcome) => outcome,
                    None => {
                        let number = turn.begin();
                        let outcome = self.read(id, &slot).await;
                        turn.end(number, &outcome);
                        outcome
                    }
                };
                outcome?;
            }
        }
        Ok(slot)
    }

    /// One reading of the catalog, into the slot.
    async fn read(&self, id: ContainerId, slot: &Arc<Slot>) -> Result<()> {
        let outcome = self.read_into(id, slot).await;
        let outcome = outcome.and_then(|()| self.check_size(id, slot.entries()));
        match &outcome {
            Ok(()) => self.cache.admit(id, slot),
            Err(error) if matches!(error.kind(), Kind::NotFound | Kind::TooLarge) => {
                self.cache.remove(id);
            }
            Err(_) => {}
        }
        outcome
    }

    fn check_size(&self, id: ContainerId, entries: usize) -> Result<()> {
        let most = self.settings.entries_max;
        if entries > most {
            let message = format!("container {id} has {entries} partitions, above {most}");
            return Err(Error::too_large("map-too-large", message));
        }
        Ok(())
    }

    /// The map first, then the container: what is known of a container is never older than the epochs of its partitions.
    /// Where it changes together with them, who is routed by a new epoch goes by what the container says since then.
    async fn read_into(&self, id: ContainerId, slot: &Slot) -> Result<()> {
        let delta = match slot.version() {
            Some(version) => self.source.changes_since(id, version).await?,
            None => MapDelta::Reload,
        };
        match delta {
            MapDelta::Changes { version, removed, put } => {
                let container = Arc::new(self.source.container(id).await?);
                slot.apply(container, version, &removed, &put)
            }
            MapDelta::Reload => {
                let (version, partitions) = self.source.partitions(id).await?;
                self.check_size(id, partitions.len())?;
                let container = Arc::new(self.source.container(id).await?);
                slot.replace(Loaded { container, version, map: Map::build(&partitions)? });
                Ok(())
            }
        }
    }
}

fn no_container(id: ContainerId) -> Error {
    Error::not_found(MapReason::ContainerNotFound, format!("there is no container {id}"))
}

impl Router {
    /// Runs an operation where its route is placed. After `Moved` the map is refreshed and the
    /// operation run again, a bounded number of times; then the answer is `map-unsettled`.
    ///
    /// The operation itself calls [`Router::shard_failed`] when the shard did not do its part: only
    /// it can tell that from a partition that is offline or a lane that is full.
    pub async fn routed<T, F>(
        &self,
        container: ContainerId,
        route: &[u8],
        operation: impl Fn(Placed) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        for attempt in 0..=self.settings.moved_retries_max {
            let placed = self.ready(container, route).await?;
            let outcome = operation(placed).await;
            match &outcome {
                Err(error) if error.is_moved() => {
                    self.shard_answered(placed.shard);
                    self.env.clock.sleep(self.pause(attempt)).await;
                    self.refresh(container, Some((placed.partition, placed.epoch))).await?;
                }
                Err(error) if matches!(error.kind(), Kind::Unavailable { .. }) => return outcome,
                _ => {
                    self.shard_answered(placed.shard);
                    return outcome;
                }
            }
        }
        Err(unsettled(container))
    }

    /// For an operation on several routes at once: waits after its `attempt`-th try met an old map, counted from zero,
    /// and refreshes the map; or gives up as [`Router::routed`] does.
    pub async fn before_retry(&self, container: ContainerId, attempt: u32) -> Result<()> {
        if attempt >= self.settings.moved_retries_max {
            return Err(unsettled(container));
        }
        self.env.clock.sleep(self.pause(attempt)).await;
        self.refresh(container, None).await
    }

    /// The place of a route, on a shard that may be asked. Before a failing shard is probed, the
    /// catalog is asked whether the route is still there: so it is asked once per probe, not once
    /// per request, and a partition that was given to another shard is found.
    async fn ready(&self, container: ContainerId, route: &[u8]) -> Result<Placed> {
        let placed = self.place(container, route).await?;
        if self.health.gate(placed.shard, self.env.clock.uptime())? == Gate::Open {
            return Ok(placed);
        }
        // The catalog may be away as well; then the shard is probed by the map that there is.
        if self.refresh(container, None).await.is_err() {
            return Ok(placed);
        }
        let found = self.place(container, route).await?;
        if found.shard != placed.shard {
            self.shard_ready(found.shard)?;
        }
        Ok(found)
    }

    /// The wait after so many attempts: none at first, then doubling, each between half and all of
    /// it.
    fn pause(&self, attempt: u32) -> Duration {
        let Some(doublings) = attempt.checked_sub(1) else { return Duration::ZERO };
        let whole = self.settings.moved_backoff_first.saturating_mul(1 << doublings.min(31));
        let half = whole.min(self.settings.moved_backoff_max) / 2;
        let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX - 1);
        half + Duration::from_nanos(self.env.random.below(nanos + 1))
    }
}

fn unsettled(container: ContainerId) -> Error {
    let message = format!("the map of container {container} did not settle in time");
    Error::unavailable("map-unsettled", message)
}
