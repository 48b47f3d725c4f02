//! One connection to one server, looked over before it is used, with the statements that it has prepared.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use lazuli_store::{Error, Result, StoreReason};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage, SimpleQueryRow, Statement};
use tokio_rustls::rustls::ClientConfig;

use crate::error::{DatabaseReason, failed, is};
use crate::limits::{
    CLIENT_CHECK_INTERVAL, CONNECT_TIME_MAX, IDLE_TRANSACTION_TIME_MAX, KEEPALIVE_COUNT,
    KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, LOCK_TIME_MAX, SERVER_VERSION_LEAST, STATEMENT_TIME_MAX,
    UNACKNOWLEDGED_TIME_MAX,
};
use crate::settings::{Settings, TlsMode};
use crate::sql::Sql;
use crate::tls::Connector;

const POOLER: &str = "a pooler such as PgBouncer stands between Lazuli and PostgreSQL and does not \
     keep the settings of a session; give the address of PostgreSQL itself: the store pools its \
     connections by itself";

/// One life of one server. A transaction id means the same transaction only within one: ids that were given but not written
/// down are given again after a crash, and after a failover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) timeline: u32,
    started: String,
    /// Counters of the server are reset after a crash, also when the postmaster goes on.
    counters_reset: String,
}

pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) life: Life,
    /// How far a standby had come when it was asked; 0 for a primary.
    pub(crate) replayed: u64,
    /// The place of its host among those of the address.
    pub(crate) host: usize,
    pub(crate) idle_since: Instant,
    schema: Arc<str>,
    statements: [OnceCell<Statement>; Sql::COUNT],
    connection: AbortHandle,
}

/// What a host is found to be.
pub(crate) enum Answer {
    Primary(Box<Session>),
    Standby(Box<Session>),
    /// A database that is set to read only.
    ReadOnly,
}

impl Session {
    /// Connects to a host and looks it over.
    pub(crate) async fn open(
        settings: &Settings,
        tls: Option<&Arc<ClientConfig>>,
        place: usize,
    ) -> Result<Answer> {
        let host = &settings.hosts[place];
        let opening = Self::connect(settings, tls, place);
        match timeout(CONNECT_TIME_MAX, opening).await {
            Ok(opened) => opened.map_err(|error| error.context(host)),
            Err(_) => {
                let seconds = CONNECT_TIME_MAX.as_secs();
                let message = format!("{host}: no session within {seconds} s");
                Err(Error::unavailable(StoreReason::Down, message))
            }
        }
    }

    async fn connect(
        settings: &Settings,
        tls: Option<&Arc<ClientConfig>>,
        place: usize,
    ) -> Result<Answer> {
        let host = &settings.hosts[place];
        let stream = TcpStream::connect((&*host.name, host.port)).await;
        let stream = stream.and_then(|it| prepare_socket(&it).map(|()| it));
        let stream = stream.map_err(|error| Error::unavailable(StoreReason::Down, error))?;
        let config = config(settings)?;
        let refused = |error: tokio_postgres::Error| match is_pooler(&error) {
            true => Error::unavailable(DatabaseReason::Pooler, POOLER),
            false => failed(&error),
        };
        let (client, connection) = match tls {
            Some(tls) => {
                let connector = Connector::new(tls.clone(), &host.name)?;
                let (client, connection) =
                    config.connect_raw(stream, connector).await.map_err(refused)?;
                (client, tokio::spawn(async move { drop(connection.await) }).abort_handle())
            }
            None => {
                let (client, connection) =
                    config.connect_raw(stream, NoTls).await.map_err(refused)?;
                (client, tokio::spawn(async move { drop(connection.await) }).abort_handle())
            }
        };
        let (role, life, replayed) = look_over(&client).await?;
        let session = Box::new(Self {
            client,
            life,
            replayed,
            host: place,
            idle_since: Instant::now(),
            schema: Arc::from(&*settings.schema),
            statements: [const { OnceCell::const_new() }; Sql::COUNT],
            connection,
        });
        Ok(match role {
            Role::Primary => Answer::Primary(session),
            Role::Standby => Answer::Standby(session),
            Role::ReadOnly => Answer::ReadOnly,
        })
    }

    /// Statements that are ready to be sent in a pipeline. Each is prepared once per connection.
    pub(crate) async fn prepared<const N: usize>(
        &self,
        wanted: [Sql; N],
    ) -> Result<[Statement; N], tokio_postgres::Error> {
        if wanted.iter().all(|sql| self.statements[*sql as usize].initialized()) {
            return Ok(wanted.map(|sql| self.statement(sql)));
        }
        let prepare = wanted.iter().map(|sql| {
            let prepare = async || self.client.prepare(&sql.text(&self.schema)).await;
            self.statements[*sql as usize].get_or_try_init(prepare)
        });
        try_join_all(prepare).await?;
        Ok(wanted.map(|sql| self.statement(sql)))
    }

    fn statement(&self, sql: Sql) -> Statement {
        self.statements[sql as usize].get().expect("it was prepared just now").clone()
    }

    /// Closes the connection whatever is under way. The server may still do what it was sent.
    pub(crate) fn kill(self) {
        self.connection.abort();
    }
}

fn is_pooler(error: &tokio_postgres::Error) -> bool {
    let text = error.as_db_error().map_or("", |told| told.message());
    is(error, &SqlState::PROTOCOL_VIOLATION) && text.contains("startup parameter")
}

fn config(settings: &Settings) -> Result<Config> {
    let mut config = Config::new();
    config.user(&*settings.user).dbname(&*settings.database).application_name("lazuli");
    config.options(options()).ssl_mode(match settings.tls.mode {
        TlsMode::Disable => SslMode::Disable,
        TlsMode::Prefer => SslMode::Prefer,
        TlsMode::Require | TlsMode::VerifyFull => SslMode::Require,
    });
    if let Some(password) = settings.password.read()? {
        config.password(password);
    }
    Ok(config)
}

/// The settings of every session: limits of time, and plans that use the index whatever the statistics say. They are part of
/// the first message, because poolers refuse them there or forget them, and so can be told apart.
fn options() -> String {
    let times = [
        ("lock_timeout", LOCK_TIME_MAX),
        ("statement_timeout", STATEMENT_TIME_MAX),
        ("idle_in_transaction_session_timeout", IDLE_TRANSACTION_TIME_MAX),
        ("tcp_user_timeout", UNACKNOWLEDGED_TIME_MAX),
        ("client_connection_check_interval", CLIENT_CHECK_INTERVAL),
    ];
    let mut options = String::new();
    let mut set = |name: &str, value: &str| options.push_str(&format!(" -c {name}={value}"));
    for (name, time) in times {
        set(name, &time.as_millis().to_string());
    }
    set("tcp_keepalives_idle", &KEEPALIVE_IDLE.as_secs().to_string());
    set("tcp_keepalives_interval", &KEEPALIVE_INTERVAL.as_secs().to_string());
    set("tcp_keepalives_count", &KEEPALIVE_COUNT.to_string());
    for name in
        ["enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_bitmapscan", "jit"]
    {
        set(name, "off");
    }
    set("max_parallel_workers_per_gather", "0");
    set("plan_cache_mode", "force_generic_plan");
    set("default_transaction_isolation", "read\\ committed");
    set("search_path", "pg_catalog");
    options
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Primary,
    Standby,
    ReadOnly,
}

/// What is asked of every new session, by one statement.
///
/// The timeline of a standby is the highest of three that may each be behind: what is received, and what two records of
/// the control file say. If all are, the standby is left alone until it has written a newer record.
const LOOK: &str = "SELECT current_setting('server_version_num'), \
     current_setting('plan_cache_mode') || current_setting('lock_timeout'), \
     CASE WHEN pg_is_in_recovery() THEN 'standby' \
     WHEN current_setting('transaction_read_only')::bool THEN 'read only' ELSE 'primary' END, \
     CASE WHEN pg_is_in_recovery() THEN to_hex(greatest( \
     (SELECT received_tli FROM pg_stat_get_wal_receiver()), \
     (SELECT timeline_id FROM pg_control_checkpoint()), \
     (SELECT min_recovery_end_timeline FROM pg_control_recovery()))) \
     ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END, \
     pg_postmaster_start_time()::text, coalesce((SELECT stats_reset FROM pg_stat_bgwriter)::text, ''), \
     CASE current_setting('synchronous_commit') WHEN 'off' \
     THEN set_config('synchronous_commit', 'on', false) ELSE '' END, \
     coalesce((pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::int8, 0)::text";

/// Refuses servers and poolers that cannot be used, and says what it is and how far a standby has come.
async fn look_over(client: &Client) -> Result<(Role, Life, u64)> {
    let answer = client.simple_query(LOOK).await.map_err(|error| failed(&error))?;
    let row = answer.into_iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let odd = || Error::unavailable(StoreReason::Failed, "the server does not say what it is");
    let row = row.ok_or_else(odd)?;
    let text = |column| SimpleQueryRow::get(&row, column).ok_or_else(odd);
    let version: i32 = text(0)?.parse().map_err(|_| odd())?;
    if version < SERVER_VERSION_LEAST {
        let (have, least) = (version / 10_000, SERVER_VERSION_LEAST / 10_000);
        let message = format!("this is PostgreSQL {have}, and {least} is the oldest that is taken");
        return Err(Error::unavailable(DatabaseReason::TooOld, message));
    }
    if text(1)? != format!("force_generic_plan{}s", LOCK_TIME_MAX.as_secs()) {
        return Err(Error::unavailable(DatabaseReason::Pooler, POOLER));
    }
    let role = match text(2)? {
        "primary" => Role::Primary,
        "standby" => Role::Standby,
        _ => Role::ReadOnly,
    };
    let timeline = u32::from_str_radix(text(3)?, 16).map_err(|_| odd())?;
    let (started, counters_reset) = (text(4)?.to_owned(), text(5)?.to_owned());
    let replayed = text(7)?.parse().map_err(|_| odd())?;
    Ok((role, Life { timeline, started, counters_reset }, replayed))
}

fn prepare_socket(stream: &TcpStream) -> std::io::Result<()> {
    use rustix::net::sockopt;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_COUNT)?;
    set_user_timeout(stream, UNACKNOWLEDGED_TIME_MAX)
}

#[cfg(target_os = "linux")]
fn set_user_timeout(stream: &TcpStream, time: Duration) -> std::io::Result<()> {
    let milliseconds = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    Ok(rustix::net::sockopt::set_tcp_user_timeout(stream, milliseconds)?)
}

#[cfg(not(target_os = "linux"))]
fn set_user_timeout(_: &TcpStream, _: Duration) -> std::io::Result<()> {
    Ok(())
}
