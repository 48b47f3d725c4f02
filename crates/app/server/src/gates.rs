//! The listeners of a server, bound before anything is served: one for each front, and those of the admin API.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use lazuli_azure::auth::Accounts;
use lazuli_http::client::OwnAddresses;
use lazuli_net::{Budget, Listener, Metrics, Tls};

use crate::cache::{self, OpenedCache};
use crate::core::Core;
use crate::endpoints::{Endpoint, NotStarted};
use crate::failure::{Failure, Result};
use crate::fronts::{Mounted, Parts};
use crate::settings::{FrontSettings, Listening, Port, Settings, TlsMode};
use crate::tls::Certificate;

/// Connections of the admin API at the same time.
const ADMIN_CONNECTIONS_MAX: usize = 64;

pub(crate) const ADMIN: &str = "admin";

/// Fronts that are bound, and those that were left out.
pub(crate) type Bound = (Vec<(Gate, Mounted)>, Vec<NotStarted>);

/// Binds the ports of all fronts. A front whose default port is taken is left out, unless none would be left.
pub(crate) async fn bind_fronts(
    settings: &Settings,
    certificate: Option<&Certificate>,
    (core, cache, accounts): (&Core, Option<&OpenedCache>, &Arc<Accounts>),
    budget: &Arc<Budget>,
) -> Result<Bound> {
    let pem = certificate.map(|certificate| certificate.pem.as_str());
    let tls = certificate.map(|certificate| certificate.tls.clone());
    let (mut fronts, mut not_started, mut first) = (Vec::new(), Vec::new(), None);
    for own in &settings.fronts {
        if own.front.name == cache::FRONT && settings.fleet.is_some() {
            not_started.extend(cache::leave_out(own)?);
            continue;
        }
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
        let mut more = Vec::new();
        for port in settings.more_ports(own.front.name) {
            let bound = Gate::on(own, settings.host, *port, &gate.metrics, tls.clone()).await;
            more.push(bound.map_err(|(failure, _)| failure)?);
        }
        let nodes = more.iter().map(|it| it.address).collect();
        let inner = tls.clone().filter(|_| own.listening.tls != TlsMode::Off);
        let parts = Parts {
            settings,
            own,
            core,
            cache,
            accounts,
            budget,
            metrics,
            certificate,
            nodes,
            tls: inner,
        };
        let mut mounted = (own.front.mount)(&parts);
        let others = std::mem::take(&mut mounted.nodes);
        fronts.push((gate, mounted));
        let others = others.into_iter().map(Mounted::of);
        fronts.extend(more.into_iter().zip(others));
    }
    match first {
        Some(failure) if fronts.is_empty() => Err(failure),
        _ => Ok((fronts, not_started)),
    }
}

fn admin_listening(settings: &Settings, tls: TlsMode) -> Listening {
    let mut listening = settings.listening.clone();
    listening.tls = tls;
    listening.net.connections_max = ADMIN_CONNECTIONS_MAX;
    listening.net.allowed.clear();
    listening
}

/// A listener that is bound and not yet served.
pub(crate) struct Gate {
    pub(crate) listener: Listener,
    pub(crate) address: SocketAddr,
    pub(crate) metrics: Arc<Metrics>,
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
        let metrics = Arc::new(Metrics::new(own.front.name));
        Some(Self::on(own, host, port, &metrics, tls).await)
    }

    /// A listener of a front on this port.
    async fn on(
        own: &FrontSettings,
        host: IpAddr,
        port: u16,
        metrics: &Arc<Metrics>,
        tls: Option<Tls>,
    ) -> std::result::Result<Self, (Failure, ErrorKind)> {
        let tls = match own.listening.tls {
            TlsMode::Off => None,
            TlsMode::Beside => tls.map(Tls::beside_plain),
            TlsMode::Only if own.front.upgrades() => tls.map(Tls::beside_plain),
            TlsMode::Only => tls,
        };
        let address = SocketAddr::new(host, port);
        Self::bind_as(metrics.clone(), address, &own.listening, tls).await
    }

    /// On loopback and plain: this way the token never leaves the machine.
    pub(crate) async fn admin(settings: &Settings) -> Result<Self> {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), settings.admin_port);
        let listening = admin_listening(settings, TlsMode::Off);
        Self::bind(ADMIN, address, &listening, None).await.map_err(|(failure, _)| failure)
    }

    /// Where other machines reach the admin API, if they may: over TLS alone. `allow-addresses` holds here as for the fronts.
    pub(crate) async fn remote_admin(
        settings: &Settings,
        certificate: Option<&Certificate>,
        admin: &Self,
    ) -> Result<Option<Self>> {
        let Some(address) = settings.admin_remote else { return Ok(None) };
        let tls = certificate.map(|certificate| certificate.tls.clone()).ok_or_else(|| {
            Failure::new("no-certificate", "the admin API is served to others over TLS only")
        })?;
        let mut listening = admin_listening(settings, TlsMode::Only);
        listening.net.allowed = settings.listening.net.allowed.clone();
        let bound = Self::bind_as(admin.metrics.clone(), address, &listening, Some(tls)).await;
        bound.map(Some).map_err(|(failure, _)| failure)
    }

    async fn bind(
        name: &'static str,
        address: SocketAddr,
        listening: &Listening,
        tls: Option<Tls>,
    ) -> std::result::Result<Self, (Failure, ErrorKind)> {
        Self::bind_as(Arc::new(Metrics::new(name)), address, listening, tls).await
    }

    async fn bind_as(
        metrics: Arc<Metrics>,
        address: SocketAddr,
        listening: &Listening,
        tls: Option<Tls>,
    ) -> std::result::Result<Self, (Failure, ErrorKind)> {
        let name = metrics.name();
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

    pub(crate) fn name(&self) -> &'static str {
        self.metrics.name()
    }

    pub(crate) fn endpoints(&self) -> Vec<Endpoint> {
        let one = |secure| Endpoint { name: self.name(), secure, address: self.address };
        match self.mode {
            TlsMode::Off => vec![one(false)],
            TlsMode::Beside => vec![one(false), one(true)],
            TlsMode::Only => vec![one(true)],
        }
    }
}

/// Tells the front that reads from other servers which addresses are its own server's.
pub(crate) fn tell_addresses<'g>(
    settings: &Settings,
    fronts: impl Iterator<Item = &'g Gate>,
    admins: impl Iterator<Item = &'g Gate>,
) {
    let fronts = fronts.map(|gate| gate.address).collect();
    let admins = admins.map(|gate| gate.address).collect();
    // It is set nowhere else, and no request has come yet.
    let _ = settings.blobs.sources.own.set(OwnAddresses { fronts, admins });
}
