//! The engine as shapes and the server see it: routed writes, reads and transactions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_env::Env;
use lazuli_shardmap::local::Access;
use lazuli_shardmap::manager::Manager;
use lazuli_shardmap::map::Placed;
use lazuli_shardmap::router::Router;
use lazuli_shardmap::{ContainerId, Epoch, MapKind, MapReason, PartitionId, ShardId};
use lazuli_store::{Error, KeyRange, Reads, Result, StoreReason};
use tokio::sync::Notify;

use crate::Settings;
use crate::backup::FiledShapes;
use crate::expiry::Expirers;
use crate::freshness::Freshness;
use crate::hot_end::{HotEnd, Watches};
use crate::item::{Item, ItemKey};
use crate::lane::{Routed, TypedJob, run_in_turns, submit};
use crate::lease::Leases;
use crate::limits::{FENCE_POLL, FENCE_WAIT_MAX, TRANSACTION_PARTITIONS_MAX};
use crate::moving::Moves;
use crate::partition::LivePartition;
use crate::shard::LiveShard;
use crate::shards::Shards;
use crate::troubles::Troubles;
use crate::tx::Transaction;
use crate::view::{Timing, View};

/// Where a slice of a container is.
pub(crate) struct PlacedRoutes {
    pub(crate) routes: KeyRange,
    pub(crate) placed: Placed,
}

/// A clone is the same engine.
#[derive(Clone)]
pub struct Engine {
    pub(crate) freshness: Freshness,
    pub(crate) env: Env,
    pub(crate) settings: Settings,
    pub(crate) router: Arc<Router>,
    pub(crate) manager: Arc<Manager>,
    pub(crate) shards: Arc<Shards>,
    /// Tells the background work that there is reference data to spread.
    pub(crate) spread_wanted: Arc<Notify>,
    /// Tells the background work that there are jobs to go on with.
    pub(crate) jobs_wanted: Arc<Notify>,
    /// Held by the task that goes on with the jobs: one at a time does.
    pub(crate) jobs_turn: Arc<tokio::sync::Mutex<()>>,
    pub(crate) troubles: Arc<Troubles>,
    /// Where inserts land, since this engine began.
    pub(crate) watches: Arc<Watches>,
    pub(crate) expirers: Arc<Expirers>,
    pub(crate) filed: Arc<FiledShapes>,
    /// The moves that this engine leads.
    pub(crate) moves: Arc<Moves>,
    pub(crate) leases: Arc<Leases>,
}

impl Engine {
    pub fn new(
        env: Env,
        settings: Settings,
        router: Arc<Router>,
        manager: Arc<Manager>,
        shards: Arc<Shards>,
    ) -> Self {
        let leases = Arc::new(Leases::new(&env, &settings));
        Self {
            freshness: Freshness::Newest,
            env,
            settings,
            router,
            manager,
            shards,
            spread_wanted: Arc::default(),
            jobs_wanted: Arc::default(),
            jobs_turn: Arc::default(),
            troubles: Arc::default(),
            watches: Arc::default(),
            expirers: Arc::default(),
            filed: Arc::default(),
            moves: Arc::default(),
            leases,
        }
    }

    /// The containers whose inserts all land at one end of their keys.
    pub fn hot_ends(&self) -> Vec<HotEnd> {
        self.watches.hot_ends()
    }

    pub fn env(&self) -> &Env {
        &self.env
    }

    pub fn router(&self) -> &Arc<Router> {
        &self.router
    }

    pub fn manager(&self) -> &Arc<Manager> {
        &self.manager
    }

    pub fn shards(&self) -> &Arc<Shards> {
        &self.shards
    }

    /// Runs a transaction in the partition that holds the route.
    pub async fn write<T: Transaction>(
        &self,
        container: ContainerId,
        route: &[u8],
        transaction: T,
    ) -> Result<T::Output> {
        let transaction = Arc::new(transaction);
        let run = |placed| self.write_at(container, route, placed, transaction.clone());
        self.router.routed(container, route, run).await
    }

    async fn write_at<T: Transaction>(
        &self,
        container: ContainerId,
        route: &[u8],
        placed: Placed,
        transaction: Arc<T>,
    ) -> Result<T::Output> {
        // Read after the place: policies are never older than the epoch that the write is routed by.
        let container = self.router.container(container).await?;
        let shard = self.shard(placed.shard)?;
        let partition = shard.partition(placed.partition);
        let now = self.env.clock.uptime();
        let throughput = container.policies.throughput.map(|rate| self.share(rate));
        partition.charge(throughput, transaction.cost(), now)?;
        let rules = self.settings.deriving.rules(&container)?;
        let routed = Routed {
            epoch: placed.epoch,
            records_changes: container.policies.changes,
            rules: rules.into_iter().map(|rules| (container.id, rules)).collect(),
        };
        let (job, answer) = TypedJob::pair(transaction, routed);
        submit(&shard, &partition, job)?;
        let answer = answer.await.map_err(|_| stopped())?;
        self.count_write(&answer, [(&partition, route)], now);
        if is_fenced(&answer) {
            self.wait_for_fence(&shard, [(placed.partition, placed.epoch)]).await;
        }
        let done = self.heard(placed.shard, answer)?;
        // Hashed routes have no end to land at, and those of a list are listed one by one.
        if done.inserted && container.kind == MapKind::Range {
            self.watches.note(&container, placed.partition, route, now);
        }
        Ok(done.output)
    }

    /// Runs a transaction over several routes, also of several containers, as long as all live on one shard (S14).
    pub async fn write_many<T: Transaction>(
        &self,
        targets: &[(ContainerId, Bytes)],
        transaction: T,
    ) -> Result<T::Output> {
        let transaction = Arc::new(transaction);
        let mut attempt = 0;
        loop {
            let mut places = Vec::with_capacity(targets.len());
            for (container, route) in targets {
                places.push((*container, self.router.place(*container, route).await?));
            }
            match self.write_many_at(targets, &places, transaction.clone()).await {
                Err(error) if error.is_moved() => {
                    let containers: BTreeSet<_> = targets.iter().map(|(id, _)| *id).collect();
                    for container in containers {
                        self.router.before_retry(container, attempt).await?;
                    }
                    attempt += 1;
                }
                answer => return answer,
            }
        }
    }

    async fn write_many_at<T: Transaction>(
        &self,
        targets: &[(ContainerId, Bytes)],
        places: &[(ContainerId, Placed)],
        transaction: Arc<T>,
    ) -> Result<T::Output> {
        let shard_id = one_shard(places)?;
        self.router.shard_ready(shard_id)?;
        let shard = self.shard(shard_id)?;
        let partitions: BTreeSet<(PartitionId, Epoch)> =
            places.iter().map(|(_, placed)| (placed.partition, placed.epoch)).collect();
        if partitions.len() > TRANSACTION_PARTITIONS_MAX {
            let message = format!("a transaction over {} partitions", partitions.len());
            return Err(Error::too_large("too-many-partitions", message));
        }
        let mut records_changes = false;
        let mut rules = Vec::new();
        let mut asked = Vec::with_capacity(targets.len());
        let now = self.env.clock.uptime();
        for ((container, route), (_, placed)) in targets.iter().zip(places) {
            let container = self.router.container(*container).await?;
            let policies = &container.policies;
            records_changes |= policies.changes;
            let derived = self.settings.deriving.rules(&container)?;
            rules.extend(derived.map(|derived| (container.id, derived)));
            let partition = shard.partition(placed.partition);
            let throughput = policies.throughput.map(|rate| self.share(rate));
            partition.charge(throughput, transaction.cost(), now)?;
            asked.push((partition, route));
        }
        let routed = Routed { epoch: Epoch::FIRST, records_changes, rules };
        let (job, answer) = TypedJob::pair(transaction, routed);
        let run = run_in_turns(shard.clone(), partitions.clone(), job);
        self.env.spawn.spawn("transaction over partitions", Box::pin(run));
        let answer = answer.await.map_err(|_| stopped())?;
        self.count_write(&answer, asked.iter().map(|(one, route)| (one, &route[..])), now);
        if is_fenced(&answer) {
            self.wait_for_fence(&shard, partitions).await;
        }
        let done = self.heard(shard_id, answer)?;
        Ok(done.output)
    }

    /// Counts a write and how long it took, unless it has only begun: what was sent elsewhere is tried again there.
    fn count_write<'a, T>(
        &self,
        answer: &Result<T>,
        asked: impl IntoIterator<Item = (&'a Arc<LivePartition>, &'a [u8])>,
        began: Duration,
    ) {
        if answer.as_ref().is_err_and(Error::is_moved) {
            return;
        }
        let timed = self.settings.latencies;
        let took = timed.then(|| self.env.clock.uptime().saturating_sub(began));
        for (partition, route) in asked {
            partition.count_write(route);
            took.into_iter().for_each(|took| partition.time_write(took));
        }
    }

    /// Where a fence has refused a write: waits until it has gone, for a bounded time, so that the caller that asks the catalog
    /// then gets an answer that leads on.
    async fn wait_for_fence(
        &self,
        shard: &LiveShard,
        partitions: impl IntoIterator<Item = (PartitionId, Epoch)>,
    ) {
        self.moves.count_fenced();
        let gone = async {
            for (partition, epoch) in partitions {
                let mut unfenced = std::pin::pin!(shard.local.unfenced(partition, epoch));
                loop {
                    tokio::select! {
                        biased;
                        () = &mut unfenced => break,
                        () = self.env.clock.sleep(FENCE_POLL) => {}
                    }
                    // Another process may have taken the fence down. A store that does not answer is asked again.
                    let _ = shard.local.refresh().await;
                }
            }
        };
        tokio::select! {
            biased;
            () = gone => {}
            () = self.env.clock.sleep(FENCE_WAIT_MAX) => {}
        }
    }

    /// A snapshot of the partition that holds the route, for several reads within
    /// [`lazuli_store::limits::SNAPSHOT_LIFE_MAX`].
    pub async fn read(&self, container: ContainerId, route: &[u8], cost: u32) -> Result<View> {
        let read = |placed| self.read_at(container, route, placed, cost, Reads::Several);
        self.router.routed(container, route, read).await
    }

    /// One item, unless it is absent or expired.
    pub async fn get(&self, key: &ItemKey, cost: u32) -> Result<Option<Item>> {
        let (container, route) = (key.container(), key.route());
        let get = |placed| async move {
            let view = self.read_at(container, route, placed, cost, Reads::One).await?;
            view.get(key).await
        };
        self.router.routed(container, route, get).await
    }

    async fn read_at(
        &self,
        container: ContainerId,
        route: &[u8],
        placed: Placed,
        cost: u32,
        reads: Reads,
    ) -> Result<View> {
        let mut view = self.view_at(container, &placed, reads).await?;
        let partition = self.shard(placed.shard)?.partition(placed.partition);
        let throughput = self.router.container(container).await?.policies.throughput;
        let throughput = throughput.map(|rate| self.share(rate));
        let now = self.env.clock.uptime();
        partition.charge(throughput, cost, now)?;
        partition.count_read(route);
        view.timing = self.timing(partition, now);
        Ok(view)
    }

    /// Measures a read of a partition that began at this time.
    fn timing(&self, partition: Arc<LivePartition>, began: Duration) -> Option<Timing> {
        let clock = self.env.clock.clone();
        self.settings.latencies.then(|| Timing { partition, clock, began })
    }

    /// A snapshot of a partition for a read of many of its keys.
    pub(crate) async fn view_to_scan(
        &self,
        container: ContainerId,
        placed: &Placed,
        reads: Reads,
    ) -> Result<View> {
        let mut view = self.view_at(container, placed, reads).await?;
        let partition = self.shard(placed.shard)?.partition(placed.partition);
        partition.count_scan();
        view.timing = self.timing(partition, self.env.clock.uptime());
        Ok(view)
    }

    /// A snapshot of a partition, if its shard holds it at the epoch given.
    async fn view_at(&self, container: ContainerId, placed: &Placed, reads: Reads) -> Result<View> {
        let shard = self.shard(placed.shard)?;
        let held = shard.local.held(placed.partition, placed.epoch, Access::Read).await?;
        if held.container != container {
            return Err(Error::moved("the partition belongs to another container"));
        }
        // The check may rest on a stale cache. The guard makes sure that the snapshot shows a state in which it is true.
        let reader = self.snapshot(&shard, &held.guard, reads).await?;
        let now_ms = self.env.clock.now_ms();
        let Placed { partition, shard, .. } = *placed;
        Ok(View { partition, shard, held, reader, now_ms, timing: None })
    }

    /// All partitions that hold some of these routes, in the order of routes.
    pub(crate) async fn places(
        &self,
        container: ContainerId,
        routes: &KeyRange,
    ) -> Result<Vec<PlacedRoutes>> {
        let partitions = self.router.partitions(container, routes).await?;
        Ok(partitions.into_iter().map(|(routes, placed)| PlacedRoutes { routes, placed }).collect())
    }

    /// A shard to ask; the router hears of it if it is not there.
    fn shard(&self, id: ShardId) -> Result<Arc<LiveShard>> {
        self.shards.get(id).inspect_err(|error| {
            // One that was removed is not down: the map that led here is old.
            if !error.is_moved() {
                self.router.shard_failed(id);
            }
        })
    }

    /// Tells the router if the store of a shard did not do its part.
    fn heard<T>(&self, shard: ShardId, answer: Result<T>) -> Result<T> {
        answer.inspect_err(|error| {
            // An offline partition or a full lane is no failure of the shard.
            if error.reason::<StoreReason>().is_some() {
                self.router.shard_failed(shard);
            }
        })
    }
}

fn is_fenced<T>(answer: &Result<T>) -> bool {
    answer.as_ref().is_err_and(|error| error.is(MapReason::PartitionFenced))
}

fn stopped() -> Error {
    Error::unavailable("stopping", "the lane ended before it answered")
}

/// The shard of all places, or the refusal that names them.
fn one_shard(places: &[(ContainerId, Placed)]) -> Result<ShardId> {
    let shards: BTreeSet<ShardId> = places.iter().map(|(_, placed)| placed.shard).collect();
    match shards.first() {
        Some(shard) if shards.len() == 1 => Ok(*shard),
        _ => {
            let names: Vec<String> = shards.iter().map(ShardId::to_string).collect();
            let names = names.join(", ");
            let message = format!(
                "a transaction cannot span the shards {names}; use a multi-step job instead"
            );
            Err(Error::invalid(crate::EngineReason::CrossShard, message))
        }
    }
}
