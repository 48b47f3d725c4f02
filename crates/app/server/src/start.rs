//! Start and stop of a server, in one visible order.
//!
//! Start: folder and lock, catalog and shards, what a crash left half done, accounts, certificate, listeners, ready.
//! Stop: listeners, requests in progress, background work, stores, lock.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lazuli_azure::auth::Accounts;
use lazuli_azure::auth::bearer::Tokens;
use lazuli_history::Recorder;
use lazuli_http::client::OwnAddresses;
use lazuli_http::{HttpFront, handler};
use lazuli_net::{Budget, Listener, Metrics, Stopper, Tls, stopper};
use lazuli_portal::Portal;
use tokio::task::{JoinHandle, JoinSet};

use crate::admin::{Admin, show_restore};
use crate::audit::Audit;
use crate::balance::Balancer;
use crate::core::Core;
use crate::endpoints::{AdminFile, Endpoint, NotStarted, ready_json, write_ready_file};
use crate::failure::{Failure, Result};
use crate::fleet::{Follower, Nodes};
use crate::folder::Folder;
use crate::fronts::{Mounted, Parts};
use crate::keeper::Keeper;
use crate::owner::Owner;
use crate::registry::Registry;
use crate::restores::Restores;
use crate::running::Running;
use crate::settings::{FrontSettings, Listening, Port, Settings, TlsMode};
use crate::{bus_config, floors, health, indexing, sampler, system, tls, token};

/// Connections of the admin API at the same time.
const ADMIN_CONNECTIONS_MAX: usize = 64;
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
    core: Core,
    folder: Folder,
}

impl Server {
    /// Starts a server. When this returns all listeners accept.
    pub async fn start(settings: Settings) -> Result<Self> {
        refuse_unchecked_tokens(&settings)?;
        let (folder, core) = open(&settings).await?;
        core.recover().await;
        let loopback = settings.host.is_loopback();
        let catalog = core.engine.manager().catalog().clone();
        let given = settings.accounts.clone();
        let accounts = Arc::new(Registry::load(catalog, given, loopback).await?);
        let token = match &settings.admin_token {
            Some(token) => token.clone(),
            None => token::read_or_make(folder.path())?,
        };
        bus_config::configure(&settings, &core, &accounts.signing()).await?;
        let budget = Budget::new(settings.in_flight_bytes);
        let served = bind_fronts(&settings, &folder, &core, &accounts.signing(), &budget).await?;
        let (fronts, not_started) = served;
        let admin = Gate::admin(&settings).await?;
        tell_addresses(&settings, fronts.iter().map(|(gate, _)| gate), &admin);
        let gates = || fronts.iter().map(|(gate, _)| gate).chain([&admin]);
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
            blocks: core.blocks.clone(),
            removed: Arc::default(),
            owner: Owner::new(
                fronts
                    .iter()
                    .filter_map(|(gate, front)| Some((gate.name(), front.handler.clone()?)))
                    .collect(),
                accounts.signing(),
            ),
            accounts,
            audit,
            restores: Arc::new(restores),
            budget,
            fronts: fronts.iter().map(|(gate, _)| gate.metrics.clone()).collect(),
            admin: admin.metrics.clone(),
            portal: Arc::new(Metrics::new("portal")),
        });
        core.engine.start();
        let beside = start_beside(&settings, &core, &running);
        let (stopper, stop) = stopper();
        let mut serving = JoinSet::new();
        let endpoints = running.endpoints.clone();
        for (gate, front) in fronts {
            serving.spawn(gate.listener.serve(front.protocol, stop.clone()));
        }
        let budget = running.budget.clone();
        let api = Arc::new(Admin::new(running, token));
        let portal = Portal::new(api.clone(), admin.address.port(), Portal::REFRESH, stop.clone());
        let routes = handler(move |request| api.clone().route(portal.clone(), request));
        let front = HttpFront::new(admin_limits(&settings), budget, admin.metrics.clone(), routes);
        serving.spawn(admin.listener.serve(front, stop));
        announce(&settings, &folder, &endpoints, &not_started)?;
        Ok(Self { endpoints, not_started, stopper, serving, beside, nodes, core, folder })
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
        if let Err(error) = self.nodes.leave().await {
            tracing::warn!(%error, "others take over what this node did only after a while");
        }
        self.core.close().await;
    }
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

fn admin_limits(settings: &Settings) -> lazuli_http::Limits {
    let limits = settings.listening.http.clone();
    lazuli_http::Limits { request_timeout: ADMIN_REQUEST_TIMEOUT, ..limits }
}

/// Starts what runs beside the requests.
fn start_beside(settings: &Settings, core: &Core, running: &Running) -> Vec<JoinHandle<()>> {
    core.logs.start();
    let (blobs, home) = (core.blobs.clone(), core.blocks.clone());
    let keeper = Keeper { blobs, home, removed: running.removed.clone() };
    let (host, accounts) = (core.host.clone(), running.accounts.clone());
    let follower = Follower { host, accounts, nodes: running.nodes.clone() };
    let mut beside =
        vec![keeper.start(settings.blob_collect_interval), health::watch(running.host.clone())];
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

/// Tells the front that reads from other servers which addresses are its own server's.
fn tell_addresses<'g>(settings: &Settings, fronts: impl Iterator<Item = &'g Gate>, admin: &Gate) {
    let fronts = fronts.map(|gate| gate.address).collect();
    // It is set nowhere else, and no request has come yet.
    let _ = settings.blobs.sources.own.set(OwnAddresses { fronts, admin: admin.address });
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

const ADMIN: &str = "admin";

/// Fronts that are bound, and those that were left out.
type Bound = (Vec<(Gate, Mounted)>, Vec<NotStarted>);

/// Binds the ports of all fronts. A front whose default port is taken is left out, unless none would be left.
async fn bind_fronts(
    settings: &Settings,
    folder: &Folder,
    core: &Core,
    accounts: &Arc<Accounts>,
    budget: &Arc<Budget>,
) -> Result<Bound> {
    let certificate = tls::load(settings, folder)?;
    let pem = certificate.as_ref().map(|certificate| certificate.pem.as_str());
    let tls = certificate.as_ref().map(|certificate| certificate.tls.clone());
    let (mut fronts, mut not_started, mut first) = (Vec::new(), Vec::new(), None);
    for own in &settings.fronts {
        let Some(bound) = Gate::front(own, settings.host, tls.clone()).await else { continue };
        let gate = match bound {
            Ok(gate) => gate,
            Err((failure, ErrorKind::AddrInUse)) if matches!(own.port, Port::Default(_)) => {
                let (name, reason) = (own.front.name, failure.to_string());
                tracing::warn!(front = name, reason, "a front is not started");
                not_started.push(NotStarted { name, reason });
                first.get_or_insert(failure);
                continue;
            }
            Err((failure, _)) => return Err(failure),
        };
        let accounts = match &own.accounts {
            Some(names) => Arc::new(accounts.only(names.clone())),
            None => accounts.clone(),
        };
        let metrics = &gate.metrics;
        let certificate = pem;
        let parts = Parts { settings, own, core, accounts, budget, metrics, certificate };
        let mounted = (own.front.mount)(&parts);
        fronts.push((gate, mounted));
    }
    match first {
        Some(failure) if fronts.is_empty() => Err(failure),
        _ => Ok((fronts, not_started)),
    }
}

/// A listener that is bound and not yet served.
struct Gate {
    listener: Listener,
    address: SocketAddr,
    metrics: Arc<Metrics>,
    mode: TlsMode,
}

impl Gate {
    /// None if the front is off.
    async fn front(
        own: &FrontSettings,
        host: IpAddr,
        tls: Option<Tls>,
    ) -> Option<std::result::Result<Self, (Failure, ErrorKind)>> {
        let (Port::Default(port) | Port::Asked(port)) = own.port else { return None };
        let tls = match own.listening.tls {
            TlsMode::Off => None,
            TlsMode::Beside => tls.map(Tls::beside_plain),
            TlsMode::Only => tls,
        };
        let address = SocketAddr::new(host, port);
        Some(Self::bind(own.front.name, address, &own.listening, tls).await)
    }

    /// Always on loopback, always plain: the token never leaves the machine.
    async fn admin(settings: &Settings) -> Result<Self> {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), settings.admin_port);
        let mut listening = settings.listening.clone();
        listening.tls = TlsMode::Off;
        listening.net.connections_max = ADMIN_CONNECTIONS_MAX;
        listening.net.allowed.clear();
        Self::bind(ADMIN, address, &listening, None).await.map_err(|(failure, _)| failure)
    }

    async fn bind(
        name: &'static str,
        address: SocketAddr,
        listening: &Listening,
        tls: Option<Tls>,
    ) -> std::result::Result<Self, (Failure, ErrorKind)> {
        let metrics = Arc::new(Metrics::new(name));
        let bound = Listener::bind(address, tls, listening.net.clone(), metrics.clone()).await;
        let listener = bound.map_err(|error| {
            let message = format!("cannot listen on {address} for {name}: {error}");
            let failure = Failure::new("cannot-listen", message)
                .hint("another process may use the port; 0 takes any free one");
            (failure, error.kind())
        })?;
        let address = listener.address();
        Ok(Self { listener, address, metrics, mode: listening.tls })
    }

    fn name(&self) -> &'static str {
        self.metrics.name()
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        let one = |secure| Endpoint { name: self.name(), secure, address: self.address };
        match self.mode {
            TlsMode::Off => vec![one(false)],
            TlsMode::Beside => vec![one(false), one(true)],
            TlsMode::Only => vec![one(true)],
        }
    }
}
