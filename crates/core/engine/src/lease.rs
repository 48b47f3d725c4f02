//! Which background work this engine does, when several processes share the stores.
//!
//! An engine that is the only process does all of it, and writes no rows for that: the lock on the data folder is its lease.
//! Engines that share a catalog hold leases there (`shardmap/src/catalog/leases.rs`). Each writes a heartbeat and takes
//! the leases that are free or whose holder has stopped. It trusts its own leases for [`TRUSTED_BEATS`] intervals after the
//! beginning of its last heartbeat. Others take them after [`STOPPED_BEATS`] intervals without a new one. Both times are
//! measured by clocks that may differ in rate, so the second is well above the first.
//!
//! A lease saves work and lets moves come to an end; safety does not rest on it. What the holder writes has a guard of its own:
//! the lease's row for taking a move, the job epoch for what a move copies, the partition's row for sweeps and counts, the
//! garbage's row for deletions, the version of the record for jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lazuli_env::{Env, Id};
use lazuli_shardmap::MapReason;
use lazuli_shardmap::catalog::{Catalog, Lease, Work};
use lazuli_store::{Error, Result};

use crate::engine::Engine;
use crate::settings::Settings;
use crate::shard::LiveShard;

/// How many heartbeat intervals after the beginning of its last heartbeat an engine acts on its leases.
pub const TRUSTED_BEATS: u32 = 3;
/// After so many intervals without a new heartbeat others take a node's leases.
pub const STOPPED_BEATS: u32 = 5;
/// After so many intervals without a new heartbeat others remove the node's row.
const REMOVED_BEATS: u32 = 30;
/// For so many intervals after its last heartbeat an engine names blocks that it has written. Others take blocks without
/// names away once the node's row is gone, which is far later.
const NAMING_BEATS: u32 = 15;

/// Who else may do background work on the same stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leasing {
    /// This is the only process that has the stores open.
    #[default]
    Alone,
    /// Other processes share the stores: each kind of work is done by the holder of its lease.
    Shared,
}

/// The leases of one engine.
pub struct Leases {
    leasing: Leasing,
    heartbeat: Duration,
    node: Id,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of the last heartbeat that was written, and when its writing began.
    beat: Option<(u64, Duration)>,
    held: BTreeMap<Work, Lease>,
    /// The last heartbeat seen of each other node, and since when it has not changed.
    others: BTreeMap<Id, (u64, Duration)>,
    /// Whether this engine is about to stop and takes no leases any more.
    is_leaving: bool,
    /// Whether it has stopped: it writes no heartbeats either.
    is_gone: bool,
    /// How often others have taken this node for gone, though it was only silent.
    removals: u64,
}

impl Leases {
    pub(crate) fn new(env: &Env, settings: &Settings) -> Self {
        let Settings { leasing, heartbeat, .. } = *settings;
        Self { leasing, heartbeat, node: env.ids.next_id(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this engine may do the work now.
    pub(crate) fn may(&self, work: Work, now: Duration) -> bool {
        self.leasing == Leasing::Alone || self.lease(work, now).is_some()
    }

    /// The lease of this work, for as long as this engine may act on it.
    fn lease(&self, work: Work, now: Duration) -> Option<Lease> {
        let state = self.state();
        let (_, began) = state.beat?;
        (now < began + self.heartbeat * TRUSTED_BEATS).then(|| state.held.get(&work).copied())?
    }

    /// The lease as a guard of a write. None if this engine is alone. An engine that was paused, and may not do the work any
    /// more, is refused: without the guard it would take the work from its successor.
    pub(crate) fn guard_of(&self, work: Work, now: Duration) -> Result<Option<Lease>> {
        match (self.leasing, self.lease(work, now)) {
            (Leasing::Alone, _) => Ok(None),
            (Leasing::Shared, Some(lease)) => Ok(Some(lease)),
            (Leasing::Shared, None) => {
                let message = format!("this node does not hold the lease for {work:?} any more");
                Err(Error::precondition(MapReason::LeaseLost, message))
            }
        }
    }

    fn alive_count(&self, now: Duration) -> u32 {
        let state = self.state();
        let is_alive = |since: Duration| now < since + self.heartbeat * STOPPED_BEATS;
        let others = state.others.values().filter(|(_, since)| is_alive(*since)).count();
        u32::try_from(others + 1).unwrap_or(u32::MAX)
    }

    /// The nodes that beat, this one among them.
    fn alive(&self, now: Duration) -> BTreeSet<Id> {
        let state = self.state();
        let is_alive = |since: Duration| now < since + self.heartbeat * STOPPED_BEATS;
        let others = state.others.iter().filter(|(_, (_, since))| is_alive(*since));
        others.map(|(node, _)| *node).chain([self.node]).collect()
    }

    /// Writes a heartbeat and notes what other nodes did since the last one. Then takes every lease of `wanted` that is free.
    async fn renew(&self, catalog: &Catalog, wanted: &[Work], env: &Env) -> Result<()> {
        let began = env.clock.uptime();
        let last = {
            let state = self.state();
            if state.is_gone {
                return Ok(());
            }
            state.beat
        };
        match last {
            Some((beat, _)) => match catalog.beat(self.node, beat + 1).await {
                Err(error) if error.is(MapReason::NodeRemoved) => {
                    // Others have taken what this node held. It starts again with nothing.
                    let mut state = self.state();
                    let State { is_leaving, is_gone, removals, .. } = *state;
                    let removals = removals + 1;
                    *state = State { is_leaving, is_gone, removals, ..State::default() };
                    return Err(error);
                }
                outcome => outcome?,
            },
            None => catalog.add_node(self.node).await?,
        }
        let (nodes, leases) = catalog.nodes_and_leases().await?;
        let stopped = {
            let mut state = self.state();
            state.beat = Some((last.map_or(0, |(beat, _)| beat + 1), began));
            state.held = leases
                .iter()
                .filter(|lease| lease.holder() == Some(self.node))
                .map(|lease| (lease.work, *lease))
                .collect();
            state.observe(&nodes, self.node, self.heartbeat, env.clock.uptime())
        };
        let wanted = if self.state().is_leaving { &[] } else { wanted };
        for work in wanted {
            let seen = leases.iter().find(|lease| lease.work == *work);
            let is_free = seen.and_then(Lease::holder).is_none_or(|holder| stopped.is(holder));
            if is_free && let Some(lease) = catalog.take_lease(*work, seen, self.node).await? {
                self.state().held.insert(*work, lease);
            }
        }
        for node in stopped.to_remove {
            catalog.remove_node(node).await?;
        }
        Ok(())
    }

    /// Gives all leases up and takes none any more, so that other nodes need not wait. The node goes on beating.
    async fn leave(&self, catalog: &Catalog) -> Result<()> {
        let held = {
            let mut state = self.state();
            state.is_leaving = true;
            std::mem::take(&mut state.held)
        };
        for lease in held.values() {
            catalog.release_lease(lease).await?;
        }
        Ok(())
    }

    /// Gives all leases up, and the node with them.
    async fn release(&self, catalog: &Catalog) -> Result<()> {
        let gone = State { is_gone: true, ..State::default() };
        let held = std::mem::replace(&mut *self.state(), gone);
        for lease in held.held.values() {
            catalog.release_lease(lease).await?;
        }
        if held.beat.is_some() {
            catalog.remove_node(self.node).await?;
        }
        Ok(())
    }
}

/// Other nodes whose leases may be taken.
struct Stopped {
    running: BTreeSet<Id>,
    to_remove: Vec<Id>,
}

impl Stopped {
    /// A node without a row has been removed, so it has stopped too.
    fn is(&self, node: Id) -> bool {
        !self.running.contains(&node)
    }
}

impl State {
    /// Takes note of the heartbeats of others, by this engine's own clock.
    fn observe(
        &mut self,
        nodes: &[(Id, u64)],
        own: Id,
        heartbeat: Duration,
        now: Duration,
    ) -> Stopped {
        let mut stopped = Stopped { running: BTreeSet::from([own]), to_remove: Vec::new() };
        let mut others = BTreeMap::new();
        for (node, beat) in nodes.iter().filter(|(node, _)| *node != own) {
            let since = match self.others.get(node) {
                Some((seen, since)) if seen == beat => *since,
                _ => now,
            };
            if now < since + heartbeat * STOPPED_BEATS {
                stopped.running.insert(*node);
            } else if now >= since + heartbeat * REMOVED_BEATS {
                stopped.to_remove.push(*node);
            }
            others.insert(*node, (*beat, since));
        }
        self.others = others;
        stopped
    }
}

impl Engine {
    /// Whether this engine may do the work now.
    pub fn may(&self, work: Work) -> bool {
        self.leases.may(work, self.env.clock.uptime())
    }

    /// Which run of a process this is, among those that share the catalog.
    pub fn node(&self) -> Id {
        self.leases.node
    }

    /// The nodes whose heartbeats this engine has seen lately, itself among them.
    pub fn nodes_alive(&self) -> BTreeSet<Id> {
        self.leases.alive(self.env.clock.uptime())
    }

    /// How often others have taken this node for gone since it began, though it was only silent.
    pub fn removals(&self) -> u64 {
        self.leases.state().removals
    }

    /// Refuses to name blocks that this engine has written if others may take it for gone. To be asked within the
    /// transaction that names them: a store that several processes share ends transactions that pause.
    pub fn may_name(&self) -> Result<()> {
        if self.settings.leasing == Leasing::Alone {
            return Ok(());
        }
        let began = self.leases.state().beat.map(|(_, began)| began);
        let until = |began| began + self.settings.heartbeat * NAMING_BEATS;
        match began {
            Some(began) if self.env.clock.uptime() < until(began) => Ok(()),
            _ => {
                let message = "this node has written no heartbeat for a while";
                Err(Error::unavailable("node-silent", message))
            }
        }
    }

    /// What this engine may take of a rate that all nodes together have.
    pub fn share(&self, per_second: u32) -> u32 {
        let nodes = match self.settings.leasing {
            Leasing::Alone => 1,
            Leasing::Shared => self.leases.alive_count(self.env.clock.uptime()),
        };
        (per_second / nodes.max(1)).max(1)
    }

    /// The shards whose background work this engine does.
    pub(crate) fn shards_to_tend(&self) -> Vec<Arc<LiveShard>> {
        let mut shards = self.shards.all();
        shards.retain(|shard| self.may(Work::Shard(shard.id)));
        shards
    }

    /// Renews this engine's leases and takes those that are free. Does nothing for an engine that is alone.
    pub async fn renew_leases(&self) -> Result<()> {
        if self.settings.leasing == Leasing::Alone {
            return Ok(());
        }
        let of_shards = self.shards.all().into_iter().map(|shard| Work::Shard(shard.id));
        let wanted: Vec<Work> =
            [Work::Jobs, Work::Moves, Work::Reconcile, Work::Collect, Work::Balance]
                .into_iter()
                .chain(of_shards)
                .collect();
        self.leases.renew(self.manager.catalog(), &wanted, &self.env).await
    }

    /// Gives this engine's leases up for good, while it goes on answering requests.
    pub async fn leave_leases(&self) -> Result<()> {
        self.leases.leave(self.manager.catalog()).await
    }

    /// Gives this engine's leases up before it stops, so that other nodes take them at once.
    pub async fn release_leases(&self) -> Result<()> {
        self.leases.release(self.manager.catalog()).await
    }
}
