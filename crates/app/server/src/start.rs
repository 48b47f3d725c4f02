//! Start and stop of a server, in one visible order.
//!
//! Start: folder and lock, catalog and shards, what a crash left half done, accounts, certificate, listeners, ready.
//! Stop: listeners, requests in progress, background work, stores, lock.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lazuli_history::Recorder;
use lazuli_http::auth::bearer::Tokens;
use lazuli_http::client::OwnAddresses;
use lazuli_http::{Budget, Door, Request, Response, Stop, Stopper, Tls, serve, stopper};
use lazuli_portal::Portal;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use crate::admin::Admin;
use crate::audit::Audit;
use crate::balance::Balancer;
use crate::core::Core;
use crate::endpoints::{AdminFile, Endpoint, ready_json, write_ready_file};
use crate::failure::{Failure, Result};
use crate::folder::Folder;
use crate::fronts::{self, Front};
use crate::keeper::Keeper;
use crate::metrics::Requests;
use crate::owner::Owner;
use crate::registry::Registry;
use crate::restores::Restores;
use crate::running::Running;
use crate::settings::{Settings, TlsMode};
use crate::{floors, health, sampler, tls, token};

/// Connections of the admin API at the same time.
const ADMIN_CONNECTIONS_MAX: usize = 64;
/// How long an admin request may take: checking all keys is the longest one.
const ADMIN_REQUEST_TIMEOUT: Duration = Duration::from_secs(3600);

/// A server that accepts requests until it is stopped.
pub struct Server {
    endpoints: Vec<Endpoint>,
    stopper: Stopper,
    serving: JoinSet<()>,
    /// What runs beside the requests: it may be cut off at any moment.
    beside: Vec<JoinHandle<()>>,
    core: Core,
    folder: Folder,
}

impl Server {
    /// Starts a server. When this returns all listeners accept.
    pub async fn start(settings: Settings) -> Result<Self> {
        refuse_unchecked_tokens(&settings)?;
        let folder = Folder::open(&settings.data)?;
        let core = Core::open(&folder, &settings).await?;
        core.recover().await;
        let loopback = settings.host.is_loopback();
        let catalog = core.engine.manager().catalog().clone();
        let given = settings.accounts.clone();
        let accounts = Arc::new(Registry::load(catalog, given, loopback).await?);
        let token = match &settings.admin_token {
            Some(token) => token.clone(),
            None => token::read_or_make(folder.path())?,
        };
        let tls = tls::load(&settings.tls, settings.host, &folder)?;
        let budget = Budget::new(settings.limits.in_flight_bytes);
        let requests = Arc::new(Requests::default());
        let mut fronts = Vec::new();
        for front in fronts::all(&settings, &core, &accounts.signing()) {
            let gate = Gate::front(&front, &settings, tls.clone(), &budget).await?;
            fronts.push((gate, front.counted(requests.clone())));
        }
        let admin = Gate::admin(&settings, &budget).await?;
        tell_addresses(&settings, fronts.iter().map(|(gate, _)| gate), &admin);
        let gates = || fronts.iter().map(|(gate, _)| gate).chain([&admin]);
        let (engine, host) = (core.engine.clone(), core.host.clone());
        let history = Arc::new(Recorder::new(engine.clone(), settings.history_partitions_max));
        let balance = settings.balance.clone();
        let balancer = Arc::new(Balancer::new(engine, history.clone(), host, balance));
        let restores = Restores::open(folder.path(), core.engine.clone(), accounts.clone());
        let running = Arc::new(Running {
            started: Instant::now(),
            durability: settings.durability,
            endpoints: gates().flat_map(Gate::endpoints).collect(),
            engine: core.engine.clone(),
            history,
            balancer,
            host: core.host.clone(),
            blobs: core.blobs.clone(),
            blocks: core.folder.clone(),
            removed: Arc::default(),
            owner: Owner::new(
                fronts.iter().map(|(gate, handler)| (gate.name, handler.clone())).collect(),
                accounts.signing(),
            ),
            accounts,
            requests,
            audit: Audit::open(folder.path())?,
            restores: Arc::new(restores),
            budget,
            doors: gates().map(|gate| (gate.name, gate.door.clone())).collect(),
        });
        core.engine.start();
        let beside = start_beside(&settings, &core, &running);
        let (stopper, stop) = stopper();
        let mut serving = JoinSet::new();
        let endpoints = running.endpoints.clone();
        for (gate, handler) in fronts {
            gate.open(&mut serving, &stop, move |request| handler(request));
        }
        let api = Arc::new(Admin::new(running, token));
        let portal = Portal::new(api.clone(), admin.address.port(), stop.clone());
        admin.open(&mut serving, &stop, move |request| api.clone().route(portal.clone(), request));
        announce(&settings, &folder, &endpoints)?;
        Ok(Self { endpoints, stopper, serving, beside, core, folder })
    }

    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Stops accepting, lets requests in progress finish for a while, and closes everything.
    pub async fn stop(mut self) {
        self.stopper.stop();
        while self.serving.join_next().await.is_some() {}
        AdminFile::remove(self.folder.path());
        // What was about to be removed is removed after the next start.
        for task in self.beside {
            task.abort();
            let _ = task.await;
        }
        self.core.close().await;
    }
}

/// Starts what runs beside the requests.
fn start_beside(settings: &Settings, core: &Core, running: &Running) -> Vec<JoinHandle<()>> {
    let (blobs, folder) = (core.blobs.clone(), core.folder.clone());
    let keeper = Keeper { blobs, folder, removed: running.removed.clone() };
    let mut beside = vec![
        keeper.start(settings.blob_collect_interval),
        floors::start(core.host.clone(), core.folder.clone()),
        sampler::start(running.history.clone()),
        health::watch(running.host.clone()),
    ];
    if settings.balance.automatic {
        beside.push(running.balancer.clone().start());
    }
    beside
}

/// Tells the front that reads from other servers which addresses are its own server's.
fn tell_addresses<'g>(settings: &Settings, fronts: impl Iterator<Item = &'g Gate>, admin: &Gate) {
    let fronts = fronts.map(|gate| gate.address).collect();
    // Nobody else sets it, and no request has come yet.
    let _ = settings.blobs.sources.own.set(OwnAddresses { fronts, admin: admin.address });
}

/// Refuses to take bearer tokens where other machines can reach the server: the signature of a token is not checked, so that
/// anybody could make one.
fn refuse_unchecked_tokens(settings: &Settings) -> Result<()> {
    if settings.tokens == Tokens::Off || settings.host.is_loopback() {
        return Ok(());
    }
    let message = "oauth is basic, which lets in whoever makes up a bearer token, \
                   and the address can be reached from other machines";
    Err(Failure::new("unchecked-tokens", message)
        .hint("serve on 127.0.0.1, or leave oauth off and use keys or shared access signatures"))
}

/// Tells commands and whoever waits where the server is.
fn announce(settings: &Settings, folder: &Folder, endpoints: &[Endpoint]) -> Result<()> {
    if let Some(admin) = endpoints.iter().find(|endpoint| endpoint.name == ADMIN) {
        AdminFile { url: admin.url() }.write(folder.path())?;
    }
    let Some(path) = &settings.ready_file else { return Ok(()) };
    let token_file = std::path::absolute(token::path(folder.path())).ok();
    let kept = token_file.filter(|_| settings.admin_token.is_none());
    write_ready_file(path, &ready_json(endpoints, kept.as_deref()))
}

const ADMIN: &str = "admin";

/// A listener that is bound and not yet served.
struct Gate {
    name: &'static str,
    listener: TcpListener,
    address: SocketAddr,
    door: Arc<Door>,
    tls: Option<Tls>,
    mode: TlsMode,
}

impl Gate {
    async fn front(
        front: &Front,
        settings: &Settings,
        tls: Option<Tls>,
        budget: &Arc<Budget>,
    ) -> Result<Self> {
        let address = SocketAddr::new(settings.host, front.port);
        let limits = lazuli_http::Limits {
            request_timeout: front.request_timeout,
            ..settings.http_limits()
        };
        let door = Door::new(limits, budget.clone());
        Self::bind(front.name, address, door, tls, settings.tls.mode).await
    }

    /// Always on loopback, always plain: the token never leaves the machine.
    async fn admin(settings: &Settings, budget: &Arc<Budget>) -> Result<Self> {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), settings.admin_port);
        let limits = lazuli_http::Limits {
            connections_max: ADMIN_CONNECTIONS_MAX,
            request_timeout: ADMIN_REQUEST_TIMEOUT,
            ..settings.http_limits()
        };
        let door = Door::new(limits, budget.clone());
        Self::bind(ADMIN, address, door, None, TlsMode::Off).await
    }

    async fn bind(
        name: &'static str,
        address: SocketAddr,
        door: Arc<Door>,
        tls: Option<Tls>,
        mode: TlsMode,
    ) -> Result<Self> {
        let cannot = |error: std::io::Error| {
            Failure::new("cannot-listen", format!("cannot listen on {address} for {name}: {error}"))
                .hint("another process may use the port; 0 takes any free one")
        };
        let listener = TcpListener::bind(address).await.map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let tls = match mode {
            TlsMode::Beside => tls.map(Tls::beside_plain),
            TlsMode::Off | TlsMode::Only => tls,
        };
        Ok(Self { name, listener, address, door, tls, mode })
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        let one = |secure| Endpoint { name: self.name, secure, address: self.address };
        match self.mode {
            TlsMode::Off => vec![one(false)],
            TlsMode::Beside => vec![one(false), one(true)],
            TlsMode::Only => vec![one(true)],
        }
    }

    fn open<H, F>(self, serving: &mut JoinSet<()>, stop: &Stop, handler: H)
    where
        H: Fn(Request) -> F + Send + Sync + 'static,
        F: Future<Output = Response> + Send + 'static,
    {
        serving.spawn(serve(self.listener, self.tls, self.door, handler, stop.clone()));
    }
}
