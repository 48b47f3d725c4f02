//! Plain connections to databases of users: the same addresses, passwords and TLS as those of stores, and nothing of a store.

use lazuli_store::{Error, Result, StoreReason};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, NoTls};

use crate::error::failed;
use crate::limits::CONNECT_TIME_MAX;
use crate::settings::{Host, Settings, TlsMode};
use crate::tls::{self, Connector};

/// What a session says of itself when it begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Session<'s> {
    pub application: &'s str,
    /// Settings as libpq's `options` has them.
    pub options: &'s str,
    /// Instead of the one that the settings name.
    pub password: Option<&'s str>,
}

/// Connects to the first host that answers. The connection ends when the client is dropped.
pub async fn connect(settings: &Settings, application: &str) -> Result<Client> {
    connect_with(settings, &Session { application, ..Session::default() }).await
}

/// The same for a session with more to say.
pub async fn connect_with(settings: &Settings, session: &Session<'_>) -> Result<Client> {
    settings.check()?;
    let mut last = None;
    for host in &settings.hosts {
        match timeout(CONNECT_TIME_MAX, connect_to(settings, host, session)).await {
            Ok(Ok(client)) => return Ok(client),
            Ok(Err(error)) => last = Some(error.context(host)),
            Err(_) => {
                let message = format!("{host}: no session in time");
                last = Some(Error::unavailable(StoreReason::Down, message));
            }
        }
    }
    Err(last.unwrap_or_else(|| Error::unavailable(StoreReason::Down, "there is no host")))
}

async fn connect_to(settings: &Settings, host: &Host, session: &Session<'_>) -> Result<Client> {
    let stream = TcpStream::connect((&*host.name, host.port)).await;
    let stream = stream.and_then(|it| it.set_nodelay(true).map(|()| it));
    let stream = stream.map_err(|error| Error::unavailable(StoreReason::Down, error))?;
    let mut config = Config::new();
    config.user(&settings.user).dbname(&settings.database).application_name(session.application);
    if !session.options.is_empty() {
        config.options(session.options);
    }
    config.ssl_mode(match settings.tls.mode {
        TlsMode::Disable => SslMode::Disable,
        TlsMode::Prefer => SslMode::Prefer,
        TlsMode::Require | TlsMode::VerifyFull => SslMode::Require,
    });
    let password = session.password.map(str::to_owned);
    if let Some(password) = password.map_or_else(|| settings.password.read(), |it| Ok(Some(it)))? {
        config.password(password);
    }
    match tls::config(&settings.tls)? {
        Some(tls) => {
            let connector = Connector::new(tls, &host.name)?;
            let connected = config.connect_raw(stream, connector).await;
            let (client, connection) = connected.map_err(|error| failed(&error))?;
            tokio::spawn(async move { drop(connection.await) });
            Ok(client)
        }
        None => {
            let connected = config.connect_raw(stream, NoTls).await;
            let (client, connection) = connected.map_err(|error| failed(&error))?;
            tokio::spawn(async move { drop(connection.await) });
            Ok(client)
        }
    }
}
