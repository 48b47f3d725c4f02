//! Start and stop of a server, in one visible order.
//!
//! Start: folder and lock, catalog and shards, what a crash left half done, accounts, certificate, listeners, ready.
//! Stop: listeners, requests in progress, background work, stores, lock.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lazuli_azure::auth::bearer::Tokens;
use lazuli_history::Recorder;
use lazuli_http::{HttpFront, handler};
use lazuli_net::{Budget, Metrics, SheetMaker, Stop, Stopper, stopper};
use lazuli_portal::Portal;
use lazuli_shardmap::catalog::Work;
use tokio::task::{JoinHandle, JoinSet};

use crate::admin::{Admin, show_restore};
use crate::audit::Audit;
use crate::balance::Balancer;
use crate::cache::OpenedCache;
use crate::core::Core;
use crate::endpoints::{AdminFile, Endpoint, NotStarted, ready_json, write_ready_file};
use crate::failure::{Failure, Result};
use crate::fleet::{Follower, Nodes};
use crate::folder::Folder;
use crate::fronts::Mounted;
use crate::gates::{ADMIN, Gate, bind_fronts, tell_addresses};
use crate::keeper::Keeper;
use crate::owner::Owner;
use crate::registry::Registry;
use crate::restores::Restores;
use crate::running::Running;
use crate::secret::Secret;
use crate::settings::Settings;
use crate::{bus_config, capture, floors, health, indexing, sampler, system, tls, token};

/// How long an admin request may take: checking all keys is the longest one.
const ADMIN_REQUEST_TIMEOUT: Duration = Duration::from_secs(3600);

/// A server that accepts requests until it is stopped.
pub struct Server {
    endpoints: Vec<Endpoint>,
    not_started: Vec<NotStarted>,
    stopper: Stopper,
    serving: JoinSet<()>,
    /// What runs beside the requests: it may be cut off at any moment.
    beside: Vec<JoinHandle<()>>,
    nodes: Arc<Nodes>,
    /// The keys of the cache, if it is served.
    cache: Option<OpenedCache>,
    core: Core,
    folder: Folder,
}

impl Server {
    /// Starts a server. When this returns all listeners accept.
    pub async fn start(settings: Settings) -> Result<Self> {
        refuse_unchecked_tokens(&settings)?;
        let (folder, core) = open(&settings).await?;
        core.recover().await;
        let accounts = Arc::new(accounts(&settings, &core).await?);
        let token = admin_token(&settings, &folder)?;
        bus_config::configure(&settings, &core, &accounts.signing()).await?;
        let budget = Budget::new(settings.in_flight_bytes);
        let certificate = tls::load(&settings, &folder)?;
        let (pair, signing) = (certificate.as_ref(), accounts.signing());
        let mut cache = OpenedCache::open(&settings, &core).await?;
        let parts = (&core, cache.as_ref(), &signing);
        let (fronts, not_started) = bind_fronts(&settings, pair, parts, &budget).await?;
        let admin = Gate::admin(&settings).await?;
        let remote = Gate::remote_admin(&settings, pair, &admin).await?;
        let admins = || [&admin].into_iter().chain(&remote);
        tell_addresses(&settings, fronts.iter().map(|(gate, _)| gate), admins());
        let gates = || fronts.iter().map(|(gate, _)| gate).chain(admins());
        let (history, balancer) = watchers(&settings, &core);
        let restores = restores(&settings, &core, &folder, &accounts);
        let endpoints: Vec<_> = gates().flat_map(Gate::endpoints).collect();
        let nodes = Arc::new(nodes(&settings, &core, &endpoints));
        let audit = audit(&settings, &core, &folder)?;
        nodes.tell().await?;
        let running = Arc::new(Running {
            started: Instant::now(),
            durability: settings.durability,
            endpoints,
            nodes: nodes.clone(),
            not_started: not_started.clone(),
            engine: core.engine.clone(),
            history,
            balancer,
            host: core.host.clone(),
            blobs: core.blobs.clone(),
            bus: core.bus.clone(),
            logs: core.logs.clone(),
            blocks: core.blocks.clone(),
            removed: Arc::default(),
            owner: owner(&fronts, &accounts),
            accounts,
            audit,
            restores: Arc::new(restores),
            sql: core.sql.clone(),
            budget,
            fronts: metrics(&fronts),
            sheets: sheets(&fronts),
            settings: settings.in_force.clone(),
            admin: admin.metrics.clone(),
            portal: Arc::new(Metrics::new("portal")),
        });
        core.engine.start();
        let mut beside = start_beside(&settings, &core, &running);
        cache.iter_mut().for_each(OpenedCache::start);
        let (stopper, stop) = stopper();
        let mut serving = JoinSet::new();
        let endpoints = running.endpoints.clone();
        for (gate, front) in fronts {
            beside.extend(front.beside.map(tokio::spawn));
            serving.spawn(gate.listener.serve(front.protocol, stop.clone()));
        }
        let front = admin_front(&settings, running, token, &admin, &stop);
        if let Some(remote) = remote {
            serving.spawn(remote.listener.serve(front.clone(), stop.clone()));
        }
        serving.spawn(admin.listener.serve(front, stop));
        announce(&settings, &folder, &endpoints, &not_started)?;
        Ok(Self { endpoints, not_started, stopper, serving, beside, nodes, cache, core, folder })
    }

    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Fronts that were left out because their default ports are taken.
    pub fn not_started(&self) -> &[NotStarted] {
        &self.not_started
    }

    /// Stops accepting, lets requests in progress finish for a while, and closes everything.
    pub async fn stop(mut self) {
        self.nodes.stop();
        self.stopper.stop();
        while self.serving.join_next().await.is_some() {}
        AdminFile::remove(self.folder.path());
        // What was about to be removed is removed after the next start.
        for task in self.beside {
            task.abort();
            let _ = task.await;
        }
        if let Some(cache) = self.cache {
            cache.close().await;
        }
        if let Err(error) = self.nodes.leave().await {
            tracing::warn!(%error, "others take over what this node did only after a while");
        }
        self.core.close().await;
    }
}

/// What asks the fronts that speak HTTP from within the process.
fn owner(fronts: &[(Gate, Mounted)], accounts: &Arc<Registry>) -> Owner {
    let handler = |(gate, front): &(Gate, Mounted)| Some((gate.name(), front.handler.clone()?));
    Owner::new(fronts.iter().filter_map(handler).collect(), accounts.clone())
}

/// What is counted for each front: listeners of one front share it.
fn metrics(fronts: &[(Gate, Mounted)]) -> Vec<Arc<Metrics>> {
    let mut all: Vec<_> = fronts.iter().map(|(gate, _)| gate.metrics.clone()).collect();
    all.dedup_by(|one, other| Arc::ptr_eq(one, other));
    all
}

/// What fronts tell of themselves.
fn sheets(fronts: &[(Gate, Mounted)]) -> Vec<(&'static str, SheetMaker)> {
    let sheet = |(gate, front): &(Gate, Mounted)| Some((gate.name(), front.sheet.clone()?));
    fronts.iter().filter_map(sheet).collect()
}

/// Opens what everything is kept in: a data folder, or the databases of a fleet.
async fn open(settings: &Settings) -> Result<(Folder, Core)> {
    match &settings.fleet {
        None => {
            let folder = Folder::open(&settings.data)?;
            let core = Core::open(&folder, settings).await?;
            Ok((folder, core))
        }
        Some(fleet) => {
            let folder = Folder::open_for_node(&settings.data)?;
            Ok((folder, Core::join(fleet, settings).await?))
        }
    }
}

async fn accounts(settings: &Settings, core: &Core) -> Result<Registry> {
    let catalog = core.engine.manager().catalog().clone();
    let given = settings.accounts.clone();
    Registry::load(catalog, given, settings.host.is_loopback()).await
}

fn restores(
    settings: &Settings,
    core: &Core,
    folder: &Folder,
    accounts: &Arc<Registry>,
) -> Restores {
    let (engine, is_fleet) = (core.engine.clone(), settings.fleet.is_some());
    Restores::open(folder.path(), engine, accounts.clone(), is_fleet)
}

fn audit(settings: &Settings, core: &Core, folder: &Folder) -> Result<Audit> {
    let Some(fleet) = &settings.fleet else { return Audit::open(folder.path()) };
    let catalog = core.engine.manager().catalog().clone();
    Ok(Audit::of_fleet(catalog, format!("{} {}", fleet.node_name, core.engine.node())))
}

fn nodes(settings: &Settings, core: &Core, endpoints: &[Endpoint]) -> Nodes {
    let name = settings.fleet.as_ref().map_or_else(system::host_name, |it| it.node_name.clone());
    Nodes::new(core.engine.clone(), settings.fleet.is_some(), name, endpoints.to_vec())
}

/// What watches the partitions, and what acts on it.
fn watchers(settings: &Settings, core: &Core) -> (Arc<Recorder>, Arc<Balancer>) {
    let (engine, host) = (core.engine.clone(), core.host.clone());
    let partitions_max = settings.history_partitions_max;
    let history = Arc::new(match settings.fleet {
        Some(_) => Recorder::of_fleet(engine.clone(), partitions_max),
        None => Recorder::new(engine.clone(), partitions_max),
    });
    let balancer = Balancer::new(engine, history.clone(), host, settings.balance.clone());
    (history, Arc::new(balancer))
}

fn admin_token(settings: &Settings, folder: &Folder) -> Result<Secret> {
    let given = settings.admin_token.clone();
    given.map_or_else(|| token::read_or_make(folder.path()), Ok)
}

/// What answers requests to the admin API and the portal.
fn admin_front(
    settings: &Settings,
    running: Arc<Running>,
    token: Secret,
    gate: &Gate,
    stop: &Stop,
) -> Arc<HttpFront> {
    let budget = running.budget.clone();
    let api = Arc::new(Admin::new(running, token));
    let (port, names) = (gate.address.port(), portal_names(settings));
    let portal = Portal::new(api.clone(), port, names, Portal::REFRESH, stop.clone());
    let routes = handler(move |request| api.clone().route(portal.clone(), request));
    HttpFront::new(admin_limits(settings), budget, gate.metrics.clone(), routes)
}

fn admin_limits(settings: &Settings) -> lazuli_http::Limits {
    let limits = settings.listening.http.clone();
    lazuli_http::Limits { request_timeout: ADMIN_REQUEST_TIMEOUT, ..limits }
}

/// Starts what runs beside the requests.
fn start_beside(settings: &Settings, core: &Core, running: &Arc<Running>) -> Vec<JoinHandle<()>> {
    core.logs.start();
    let engine = core.engine.clone();
    let sql = core.sql.start(move || engine.may(Work::Moves));
    let (blobs, home) = (core.blobs.clone(), core.blocks.clone());
    let keeper = Keeper { blobs, home, removed: running.removed.clone() };
    let (host, accounts) = (core.host.clone(), running.accounts.clone());
    let follower = Follower { host, accounts, nodes: running.nodes.clone() };
    let mut beside =
        vec![keeper.start(settings.blob_collect_interval), health::watch(running.host.clone())];
    beside.push(sql);
    beside.push(capture::start(running.clone()));
    beside.extend(sampler::start(running.history.clone()));
    beside.extend(indexing::start(core.engine.clone(), settings.document_sizing));
    beside.extend(follower.start());
    if let Some(folder) = core.blocks.folder() {
        beside.push(floors::start(core.host.clone(), folder.clone()));
    }
    if settings.fleet.is_some() {
        let (own, nodes) = (running.restores.clone(), running.nodes.clone());
        beside.push(crate::restores::tell(own, nodes, show_restore));
    }
    if settings.balance.automatic {
        beside.push(running.balancer.clone().start());
    }
    beside
}

/// What browsers may call the portal, beside the names of loopback.
fn portal_names(settings: &Settings) -> Vec<String> {
    let address = settings.admin_remote.map(|address| match address.ip() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    });
    settings.admin_names.iter().cloned().chain(address).collect()
}

/// Refuses to accept bearer tokens where other machines can reach the server: the signature of a token is not checked, so
/// every client could make one.
fn refuse_unchecked_tokens(settings: &Settings) -> Result<()> {
    if settings.tokens == Tokens::Off || settings.host.is_loopback() {
        return Ok(());
    }
    let message = "oauth is basic, which lets in whoever makes up a bearer token, \
                   and the address can be reached from other machines";
    Err(Failure::new("unchecked-tokens", message)
        .hint("serve on 127.0.0.1, or leave oauth off and use keys or shared access signatures"))
}

/// Tells commands, and programs that wait for the ready file, where the server is.
fn announce(
    settings: &Settings,
    folder: &Folder,
    endpoints: &[Endpoint],
    not_started: &[NotStarted],
) -> Result<()> {
    if let Some(admin) = endpoints.iter().find(|endpoint| endpoint.name == ADMIN) {
        AdminFile { url: admin.url() }.write(folder.path())?;
    }
    let Some(path) = &settings.ready_file else { return Ok(()) };
    let token_file = std::path::absolute(token::path(folder.path())).ok();
    let kept = token_file.filter(|_| settings.admin_token.is_none());
    write_ready_file(path, &ready_json(endpoints, not_started, kept.as_deref()))
}
