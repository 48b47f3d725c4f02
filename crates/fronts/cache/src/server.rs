//! What all connections share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lazuli_keyspace::{Cleared, Effects, Keyspace, STRIPES, slot_of};
use lazuli_net::{Budget, Metrics};
use lazuli_resp::Args;

use crate::blocking::{Waiter, Waiters};
use crate::clients::Clients;
use crate::command::{Flags, TABLE};
use crate::config::Config;
use crate::gate::Gate;
use crate::monitor::Monitors;
use crate::pubsub::PubSub;
use crate::session::Session;
use crate::sheet::Sheet;
use crate::stats::Stats;

pub(crate) struct Server {
    pub(crate) keyspace: Arc<Keyspace>,
    pub(crate) config: Config,
    pub(crate) clients: Clients,
    pub(crate) waiters: Waiters,
    pub(crate) pubsub: PubSub,
    pub(crate) stats: Stats,
    pub(crate) latency: crate::latency::Latency,
    pub(crate) sheet: Sheet,
    pub(crate) scripts: crate::scripts::Scripts,
    pub(crate) gate: Gate,
    pub(crate) monitors: Monitors,
    /// Who is told of changed keys by their prefixes.
    pub(crate) tracking: crate::tracking::Listeners,
    pub(crate) budget: Arc<Budget>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) began_ms: u64,
    /// Names this run of the process.
    pub(crate) run_id: String,
    /// Until when commands wait (CLIENT PAUSE), and whether only those that write.
    pub(crate) paused_until_ms: AtomicU64,
    pub(crate) pauses_writes_only: AtomicBool,
    /// Whether keys are removed when their time has come, and not only when they are used then.
    pub(crate) expires_actively: AtomicBool,
    /// The most connections at once.
    pub(crate) clients_max: usize,
    /// Commands that the operator has turned off, by their names in lower case.
    pub(crate) disabled: BTreeSet<String>,
    /// The shards of the map as nodes of a cluster, where there are listeners for them.
    pub(crate) cluster: Option<crate::cluster::Cluster>,
    pub(crate) acl: crate::acl::Acl,
    /// Which server this one follows, if it does.
    pub(crate) replication: crate::replica::Replication,
}

/// How many keys are removed at a time while their stripe is locked.
const EXPIRED_AT_ONCE: usize = 200;
/// How often keys are looked for whose time has come.
const PERIOD: Duration = Duration::from_millis(100);

impl Server {
    /// What a new connection is allowed: everything, where clients need not say who they are.
    pub(crate) fn greet(&self, session: &mut Session) {
        session.user = self.open_user();
    }

    /// A connection has ended.
    pub(crate) fn forget(self: &Arc<Self>, session: &mut Session) {
        let watches = std::mem::take(&mut session.watches);
        if !watches.keys.is_empty() {
            let slots = watches.keys.iter().map(|it| slot_of(&it.1));
            let mut space = self.keyspace.space_of_slots(0, self.keyspace.now_ms(), slots);
            for (number, key) in &watches.keys {
                space.database = *number;
                space.unwatch(key, &watches.flag);
            }
            space.finish();
        }
        self.unsubscribe_all(session);
        self.track_no_more(&session.client);
        self.monitors.remove(session.client.id);
        self.clients.remove(session.client.id);
    }

    /// A client does not wait any more, served or not.
    pub(crate) fn wait_no_more(&self, waiter: &Waiter) {
        self.waiters.remove(waiter.client.id);
        let slots = waiter.keys.iter().map(|it| slot_of(it));
        let mut space = self.keyspace.space_of_slots(waiter.database, 0, slots);
        for key in &waiter.keys {
            space.wait_no_more(key, waiter.client.id);
        }
    }

    /// Frees what was cleared without keeping anybody waiting.
    pub(crate) fn free(&self, cleared: Cleared) {
        tokio::task::spawn_blocking(move || drop(cleared));
    }

    pub(crate) fn pause(&self, until_ms: u64, only_writes: bool) {
        self.pauses_writes_only.store(only_writes, Ordering::Relaxed);
        self.paused_until_ms.store(until_ms, Ordering::Relaxed);
    }

    /// How long a command must wait because clients are paused.
    pub(crate) fn paused_for(&self, args: Args<'_>) -> Option<Duration> {
        let until = self.paused_until_ms.load(Ordering::Relaxed);
        if until == 0 {
            return None;
        }
        let left = until.checked_sub(self.keyspace.now_ms()).filter(|it| *it > 0)?;
        let command = crate::dispatch::find(&TABLE, args).ok()?;
        let only_writes = self.pauses_writes_only.load(Ordering::Relaxed);
        let is_write = command.has(Flags::WRITE) || matches!(command.name, "exec" | "publish");
        let is_held = if only_writes { is_write } else { !command.name.starts_with("client") };
        // Looked at again soon: the pause may be called off.
        is_held.then(|| Duration::from_millis(left.min(20)))
    }

    /// How long a command must wait because a script holds all keys; when that takes too long it is refused instead.
    pub(crate) fn held_by_script(&self) -> Option<Duration> {
        let running_ms = self.scripts.running_ms(self.keyspace.now_ms())?;
        (running_ms < crate::scripts::BUSY_AFTER_MS).then_some(Duration::from_millis(1))
    }

    /// Whether a script has been holding all keys for too long.
    pub(crate) fn is_busy_with_script(&self) -> bool {
        let running_ms = self.scripts.running_ms(self.keyspace.now_ms());
        running_ms.is_some_and(|it| it >= crate::scripts::BUSY_AFTER_MS)
    }

    /// What happens by itself; never ends.
    pub(crate) async fn tend(self: Arc<Self>) {
        tokio::join!(self.tick(), self.acl.keep());
    }

    /// What happens a few times a second.
    async fn tick(self: &Arc<Self>) {
        let mut ticks = tokio::time::interval(PERIOD);
        let mut count = 0u64;
        loop {
            ticks.tick().await;
            self.keyspace.tick();
            count += 1;
            if let Some(cluster) = self.cluster.as_ref().filter(|_| count % 10 == 1) {
                cluster.refresh().await;
            }
            if count.is_multiple_of(10) {
                self.tell_counts();
            }
            self.stats.sample(self.keyspace.now_ms());
            self.stats.peak_bytes.fetch_max(self.keyspace.used_bytes(), Ordering::Relaxed);
            if !self.expires_actively.load(Ordering::Relaxed) || self.keyspace.is_replica() {
                continue;
            }
            let began = Instant::now();
            for stripe in 0..STRIPES {
                let now_ms = self.keyspace.now_ms();
                while self.expire(stripe, now_ms) {
                    tokio::task::yield_now().await;
                }
            }
            self.latency.took("expire-cycle", began.elapsed(), self.keyspace.now_ms());
        }
    }

    fn expire(self: &Arc<Self>, stripe: usize, now_ms: u64) -> bool {
        let mut space = self.keyspace.space_of_stripe(stripe, now_ms);
        let is_more = space.expire_due(EXPIRED_AT_ONCE);
        self.settle(space);
        is_more
    }

    /// Tells of what a command did, to those who listen.
    pub(crate) fn tell(&self, effects: &Effects) {
        if effects.changes > 0 {
            self.stats.changes.fetch_add(effects.changes, Ordering::Relaxed);
        }
        if effects.is_cleared || !effects.invalid.is_empty() {
            self.invalidate(&effects.invalid, effects.is_cleared);
        }
        if !effects.events.is_empty() {
            let classes = self.keyspace.classes();
            effects.events.iter().for_each(|event| self.pubsub.notify(classes, event));
        }
    }
}
