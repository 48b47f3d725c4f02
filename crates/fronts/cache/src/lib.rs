//! The cache front: Redis and Redis Cluster on the shape `keyspace` (C1-C3).
//!
//! `connection` reads requests and writes replies, `dispatch` is the order of the steps of every command: the table
//! (`command`, `commands.txt`), access, the client's state, locks, then the function in `commands`. `docs/cache.md` says what
//! differs from the original.

mod acl;
mod blocking;
mod bounds;
mod call;
mod clients;
mod cluster;
mod command;
mod commands;
mod config;
mod connection;
mod dispatch;
mod extended;
mod failure;
mod gate;
mod glob;
mod keys;
mod latency;
mod libraries;
mod limits;
mod monitor;
mod pubsub;
mod range;
mod replica;
mod room;
mod scan;
mod scripts;
mod server;
mod session;
mod sheet;
mod stats;
mod stream_ids;
mod tracking;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use lazuli_azure::auth::Accounts;
use lazuli_keyspace::{Keyspace, Policy, Shelf, UserShelf};
use lazuli_net::{BoxFuture, Budget, Connection, Metrics, Protocol, SheetMaker};

pub use gate::Published;
pub use limits::DATABASES;

use gate::Gate;
use server::Server;

/// What an operator chooses about the front.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The most that keys and values may take; zero is no limit.
    pub memory_bytes_max: u64,
    /// Which keys go when memory is full.
    pub policy: Policy,
    /// Commands that are unknown to clients, in lower case.
    pub disabled: BTreeSet<String>,
    /// The most connections at once, for INFO.
    pub clients_max: usize,
    /// The servers that may be followed, as `HOST` or `HOST:PORT`; on this machine itself only with a port.
    pub source_hosts: Vec<String>,
}

/// What cluster mode is made of.
pub struct ClusterParts {
    /// Knows which shard each slot is on.
    pub shelf: Arc<Shelf>,
    /// The addresses of the nodes' listeners.
    pub nodes: Vec<SocketAddr>,
}

/// Users as the store has them.
pub struct KeptUsers {
    pub shelf: Arc<UserShelf>,
    /// Names and rules.
    pub rules: Vec<(String, String)>,
}

/// What the front is put together from.
pub struct Parts {
    pub keyspace: Arc<Keyspace>,
    /// Only where there are listeners for the nodes of a cluster.
    pub cluster: Option<ClusterParts>,
    pub accounts: Arc<Accounts>,
    /// Where users with rules are kept, and those that are there; none keeps them in memory.
    pub users: Option<KeptUsers>,
    /// The published key; only where no other machine can connect.
    pub published: Option<Published>,
    pub budget: Arc<Budget>,
    pub metrics: Arc<Metrics>,
    pub settings: Settings,
}

pub(crate) struct Front {
    server: Arc<Server>,
    /// Which node of the cluster its listener is, if it is one.
    cluster_node: Option<usize>,
}

/// The cache, for one listener or several.
pub struct Cache {
    server: Arc<Server>,
}

impl Cache {
    pub fn new(parts: Parts) -> Self {
        let server = Arc::new(make(parts));
        server.load_libraries();
        Self { server }
    }

    /// Its background work: deletes expired keys, takes samples, follows the map of the slots and, if it is told to, another
    /// server. Runs until it is dropped.
    pub fn tend(&self) -> BoxFuture<()> {
        let (server, other) = (self.server.clone(), self.server.clone());
        Box::pin(async move {
            tokio::join!(server.tend(), other.follow());
        })
    }

    /// What it tells people of itself.
    pub fn sheet(&self) -> SheetMaker {
        let server = self.server.clone();
        Arc::new(move || Box::pin(server.clone().sheet()))
    }

    /// As a protocol on a listener that answers any key.
    pub fn front(&self) -> Arc<dyn Protocol> {
        Arc::new(Front { server: self.server.clone(), cluster_node: None })
    }

    /// As protocols on the listeners of the nodes of a cluster, one each.
    pub fn nodes(&self) -> Vec<Arc<dyn Protocol>> {
        let count = self.server.cluster.as_ref().map_or(0, |it| it.nodes.len());
        let node = |number| -> Arc<dyn Protocol> {
            Arc::new(Front { server: self.server.clone(), cluster_node: Some(number) })
        };
        (0..count).map(node).collect()
    }
}

fn make(parts: Parts) -> Server {
    let Parts { keyspace, cluster, accounts, users, published, budget, metrics, settings } = parts;
    keyspace.set_policy(settings.policy);
    keyspace.set_memory_max(settings.memory_bytes_max);
    let shown = [
        ("maxmemory", settings.memory_bytes_max.to_string()),
        ("maxmemory-policy", settings.policy.name().to_owned()),
        ("databases", keyspace.databases().to_string()),
        ("maxclients", settings.clients_max.to_string()),
        ("appendonly", if keyspace.is_persistent() { "yes" } else { "no" }.to_owned()),
        (
            "appendfsync",
            match keyspace.promise() {
                "none" => "no".to_owned(),
                other => other.to_owned(),
            },
        ),
        ("cluster-enabled", "no".to_owned()),
    ];
    let cluster = cluster
        .filter(|it| !it.nodes.is_empty())
        .map(|parts| cluster::Cluster::new(parts.shelf, parts.nodes, || keyspace.random()));
    let acl = match users {
        Some(KeptUsers { shelf, rules }) => acl::Acl::new(Some(shelf), &rules),
        None => acl::Acl::new(None, &[]),
    };
    let run_id = (0..5).map(|_| format!("{:08x}", keyspace.random() as u32)).collect();
    Server {
        config: config::Config::new(shown),
        clients: Default::default(),
        waiters: Default::default(),
        pubsub: Default::default(),
        stats: Default::default(),
        latency: Default::default(),
        sheet: Default::default(),
        scripts: Default::default(),
        gate: Gate { accounts, published },
        monitors: Default::default(),
        tracking: Default::default(),
        budget,
        metrics,
        began_ms: keyspace.now_ms(),
        run_id,
        paused_until_ms: AtomicU64::new(0),
        pauses_writes_only: AtomicBool::new(false),
        expires_actively: AtomicBool::new(true),
        clients_max: settings.clients_max,
        disabled: settings.disabled,
        cluster,
        acl,
        replication: replica::Replication::new(settings.source_hosts),
        keyspace,
    }
}

impl Protocol for Front {
    fn serve(self: Arc<Self>, connection: Connection) -> BoxFuture<()> {
        Box::pin(connection::serve(self, connection))
    }

    fn busy(&self) -> &'static [u8] {
        b"-ERR max number of clients reached\r\n"
    }
}
