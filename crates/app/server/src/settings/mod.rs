//! Settings: one table of names, four places a value can come from, one typed struct that the server is started with.
//!
//! Settings are data; what is built from them is in `start`. Every value remembers its origin, so that `lazuli config`
//! can say which file or variable is in force, and every error can say which one to change.

mod balance;
mod cache;
mod doc;
mod documents;
mod fleet;
mod messaging;
mod nearest;
mod print;
mod search;
mod sources;
mod storage;
pub mod table;
mod value;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

pub use balance::Balance;
pub use cache::CacheSettings;
pub use doc::page;
pub use fleet::{BlocksAt, Fleet};
pub use print::{json, lines};
pub use sources::{FILE_DEFAULT, Origin, Sources, Texts};
pub use table::{Row, TABLE};
pub use value::{
    bytes as parse_bytes, goals as parse_goals, number as parse_number, time as parse_time,
    window as parse_window,
};

use lazuli_azure::auth::bearer::Tokens;

use crate::accounts::{self, Account};
use crate::fronts::{FRONTS, FrontRow};
use crate::secret::Secret;

/// Everything the server is told. Made by [`Settings::read`].
#[derive(Debug)]
pub struct Settings {
    pub data: PathBuf,
    /// The fleet that this node joins; none if it is alone.
    pub fleet: Option<Fleet>,
    pub host: IpAddr,
    /// What each front is told, in the order of [`FRONTS`].
    pub fronts: Vec<FrontSettings>,
    pub admin_port: u16,
    /// Where else the admin API listens, over TLS.
    pub admin_remote: Option<SocketAddr>,
    /// What browsers may call the portal, beside loopback and the address above.
    pub admin_names: Vec<String>,
    pub ready_file: Option<PathBuf>,
    /// Quotas of the bus.
    pub bus: lazuli_bus_shape::BusSettings,
    /// Entities of the bus to make at start.
    pub servicebus_config: Option<PathBuf>,
    /// Hubs to make at start.
    pub eventhubs_config: Option<PathBuf>,
    pub durability: Durability,
    pub cache_bytes: u64,
    /// Files of certificate chain and private key; none means a self-signed certificate in the data folder.
    pub tls_files: Option<(PathBuf, PathBuf)>,
    /// Whether bearer tokens are taken.
    pub tokens: Tokens,
    /// What a client of all fronts together may take: memory of requests and responses in flight.
    pub in_flight_bytes: u64,
    /// What a client of a front may take that is told nothing else.
    pub listening: Listening,
    /// What these fronts take; by default what the originals take.
    pub blobs: lazuli_blobs::Limits,
    /// How often garbage of blobs is looked for.
    pub blob_collect_interval: Duration,
    pub queues: lazuli_queues::Limits,
    pub tables: lazuli_tables::Limits,
    pub documents: lazuli_documents::Limits,
    /// What the Kafka front does.
    pub kafka: lazuli_kafka::Settings,
    pub cache: CacheSettings,
    pub search: lazuli_search::Settings,
    pub document_sizing: lazuli_shapes::document::Sizing,
    pub balance: Balance,
    /// How many partitions have a history.
    pub history_partitions_max: usize,
    pub log: Log,
    pub admin_token: Option<Secret>,
    pub accounts: Option<Vec<Account>>,
    /// All of them as JSON, each with where it comes from; secrets are masked.
    pub in_force: serde_json::Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// An answered write is on disk.
    Synced,
    /// An answered write is with the operating system: a crash of the machine may lose the last ones.
    Relaxed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    Off,
    Beside,
    Only,
}

/// How to listen: TLS, and what a client may take.
#[derive(Clone, Debug)]
pub struct Listening {
    pub tls: TlsMode,
    pub net: lazuli_net::Limits,
    pub http: lazuli_http::Limits,
}

/// What one front is told.
#[derive(Debug)]
pub struct FrontSettings {
    pub front: &'static FrontRow,
    pub port: Port,
    pub listening: Listening,
    /// The accounts that it serves; none means all.
    pub accounts: Option<Vec<String>>,
}

/// Where a front listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    Off,
    /// The default: if it is taken, the front is left out.
    Default(u16),
    /// Asked for: if it is taken, the server does not start.
    Asked(u16),
}

#[derive(Clone, Copy, Debug)]
pub struct Log {
    pub level: LogLevel,
    pub format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// A setting that cannot be taken as it is: a sentence, never with the content of a secret.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong(String);

pub type Result<T> = std::result::Result<T, Wrong>;

impl Wrong {
    pub(crate) fn new(sentence: String) -> Self {
        Self(sentence)
    }

    /// Adds what was probably meant.
    fn meant(mut self, nearest: Option<&str>) -> Self {
        match nearest {
            Some(name) => self.0.push_str(&format!(": did you mean {name}?")),
            None => self.0.push_str(" (`lazuli config` lists the known ones)"),
        }
        self
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Wrong {}

impl Settings {
    /// Ports on which a front listens beside its own.
    pub(crate) fn more_ports(&self, front: &str) -> &[u16] {
        if front == crate::cache::FRONT { &self.cache.cluster_ports } else { &[] }
    }

    /// Whether the front of this name is to be served.
    pub(crate) fn serves(&self, name: &str) -> bool {
        let is_on = |it: &FrontSettings| it.front.name == name && !matches!(it.port, Port::Off);
        self.fronts.iter().any(is_on)
    }

    /// How long a request to any front may take.
    pub(crate) fn longest_request(&self) -> Duration {
        let each = self.fronts.iter().map(|front| front.listening.http.request_timeout);
        each.max().unwrap_or(self.listening.http.request_timeout)
    }

    /// Reads all settings, or says what is wrong with the first one that cannot be read.
    pub fn read(texts: &Texts) -> Result<Self> {
        let one = Reader(texts);
        Ok(Self {
            data: one.path("data"),
            fleet: fleet::fleet(&one)?,
            host: one.need("host", value::host)?,
            fronts: FRONTS.iter().map(|front| of_front(&one, front)).collect::<Result<_>>()?,
            admin_port: admin_port(&one)?,
            admin_remote: one.may("admin-remote", value::socket)?,
            admin_names: one.may("admin-names", value::hosts)?.unwrap_or_default(),
            ready_file: one.file("ready-file"),
            bus: messaging::bus(&one)?,
            servicebus_config: one.file("servicebus-config"),
            eventhubs_config: one.file("eventhubs-config"),
            durability: one.need("durability", |text| value::choice(text, DURABILITIES))?,
            cache_bytes: one.need("cache-size", value::bytes)?,
            tls_files: tls_files(&one)?,
            tokens: one.need("oauth", |text| value::choice(text, TOKENS))?,
            in_flight_bytes: one.need("in-flight-bytes-max", value::bytes)?,
            listening: listening(&one, None)?,
            blobs: storage::blobs(&one)?,
            blob_collect_interval: one.need("blob-collect-interval", value::time)?,
            queues: storage::queues(&one)?,
            tables: storage::tables(&one)?,
            documents: documents::limits(&one)?,
            kafka: messaging::kafka(&one)?,
            cache: cache::cache(&one)?,
            search: search::settings(&one)?,
            document_sizing: documents::sizing(&one)?,
            balance: balance::balance(&one)?,
            history_partitions_max: one.need("history-partitions-max", value::count)?,
            log: Log {
                level: one.need("log-level", |text| value::choice(text, LOG_LEVELS))?,
                format: one.need("log-format", |text| value::choice(text, LOG_FORMATS))?,
            },
            admin_token: one.may("admin-token", admin_token)?,
            accounts: one.may("accounts", accounts::parse)?,
            in_force: json(texts),
        })
    }
}

/// What one front is told, each value its own or that of all fronts.
fn of_front(one: &Reader<'_>, front: &'static FrontRow) -> Result<FrontSettings> {
    let name = front.own("port");
    let port = match one.need(&name, value::port_or_off)? {
        None => Port::Off,
        Some(port) if one.is_set(&name) => Port::Asked(port),
        Some(_) if one.takes_free_ports()? => Port::Asked(0),
        Some(port) => Port::Default(port),
    };
    let accounts = one.may(&front.own("accounts"), value::names)?;
    Ok(FrontSettings { front, port, listening: listening(one, Some(front))?, accounts })
}

fn admin_port(one: &Reader<'_>) -> Result<u16> {
    let port = one.need("admin-port", value::port)?;
    Ok(if !one.is_set("admin-port") && one.takes_free_ports()? { 0 } else { port })
}

fn listening(one: &Reader<'_>, front: Option<&FrontRow>) -> Result<Listening> {
    let header_timeout = one.need_of(front, "header-timeout", value::time)?;
    let allowed = one.may(&one.name_of(front, "allow-addresses"), value::addresses)?;
    Ok(Listening {
        tls: one.need_of(front, "tls", |text| value::choice(text, TLS_MODES))?,
        net: lazuli_net::Limits {
            connections_max: one.need_of(front, "connections-max", value::count)?,
            handshake_timeout: header_timeout,
            drain_timeout: one.need("stop-timeout", value::time)?,
            allowed: allowed.unwrap_or_default(),
        },
        http: lazuli_http::Limits {
            header_bytes_max: one.need_of(front, "header-bytes-max", memory_bytes)?,
            header_timeout,
            body_timeout: one.need_of(front, "body-timeout", value::time)?,
            body_rate_min: one.need_of(front, "body-rate-min", value::bytes)?,
            idle_timeout: one.need_of(front, "idle-timeout", value::time)?,
            request_timeout: one.need_of(front, "request-timeout", value::time)?,
            ..lazuli_http::Limits::default()
        },
    })
}

const DURABILITIES: &[(&str, Durability)] =
    &[("synced", Durability::Synced), ("relaxed", Durability::Relaxed)];
const TLS_MODES: &[(&str, TlsMode)] =
    &[("off", TlsMode::Off), ("beside", TlsMode::Beside), ("only", TlsMode::Only)];
const TOKENS: &[(&str, Tokens)] = &[("off", Tokens::Off), ("basic", Tokens::Basic)];
const LOG_LEVELS: &[(&str, LogLevel)] = &[
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
    ("trace", LogLevel::Trace),
];
const LOG_FORMATS: &[(&str, LogFormat)] = &[("text", LogFormat::Text), ("json", LogFormat::Json)];

/// The least length of a token that an operator sets.
pub const ADMIN_TOKEN_CHARS_MIN: usize = 16;

fn admin_token(text: &str) -> value::Parsed<Secret> {
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    if text.len() < ADMIN_TOKEN_CHARS_MIN || !plain {
        return Err(format!("at least {ADMIN_TOKEN_CHARS_MIN} visible ASCII characters"));
    }
    Ok(Secret::new(text))
}

/// Bytes that are held in memory at once, so they must fit there.
fn memory_bytes(text: &str) -> value::Parsed<usize> {
    usize::try_from(value::bytes(text)?).map_err(|_| "fewer bytes than memory holds".to_owned())
}

/// The files of the certificate. They make sense only if some front speaks TLS.
fn tls_files(one: &Reader<'_>) -> Result<Option<(PathBuf, PathBuf)>> {
    let files = match (one.file("tls-cert"), one.file("tls-key")) {
        (Some(cert), Some(key)) => (cert, key),
        (None, None) => return Ok(None),
        (Some(_), None) => return Err(Wrong::new("tls-cert needs tls-key beside it".to_owned())),
        (None, Some(_)) => return Err(Wrong::new("tls-key needs tls-cert beside it".to_owned())),
    };
    let mut names = FRONTS.iter().map(|front| one.name_of(Some(front), "tls"));
    if names.all(|name| one.0.get(&name).is_some_and(|(text, _)| text == "off")) {
        let sentence = "tls-cert is set but tls is off: set tls to beside or only";
        return Err(Wrong::new(sentence.to_owned()));
    }
    Ok(Some(files))
}

/// Reads single settings.
struct Reader<'a>(&'a Texts);

impl Reader<'_> {
    fn may<T>(&self, name: &str, parse: impl Fn(&str) -> value::Parsed<T>) -> Result<Option<T>> {
        let Some((text, origin)) = self.0.get(name) else { return Ok(None) };
        let parsed = parse(text).map_err(|expected| {
            let shown = match table::find(name) {
                Some(row) if row.secret => "the value given is no such thing".to_owned(),
                _ => format!("not `{text}`"),
            };
            Wrong::new(format!("{name} takes {expected}, {shown} ({})", origin.describe(name)))
        })?;
        Ok(Some(parsed))
    }

    /// A setting that the table gives a default, so there is always a text.
    fn need<T>(&self, name: &str, parse: impl Fn(&str) -> value::Parsed<T>) -> Result<T> {
        let missing = || Wrong::new(format!("{name} has no value"));
        self.may(name, parse)?.ok_or_else(missing)
    }

    /// Whether somebody has set it, so that it is not the default.
    fn is_set(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|(_, origin)| *origin != Origin::Default)
    }

    /// Whether a port that nobody has set is any free one.
    fn takes_free_ports(&self) -> Result<bool> {
        self.need("ports", |text| value::choice(text, &[("usual", false), ("free", true)]))
    }

    /// The name under which a front finds a setting: its own where that is set, else the one for all fronts. A default of
    /// its own stands back behind what somebody has set for all.
    fn name_of(&self, front: Option<&FrontRow>, name: &str) -> String {
        let own = front.map(|front| front.own(name)).filter(|own| self.0.get(own).is_some());
        // All nodes of a fleet show one certificate. A node without it speaks TLS only where it is told to.
        let is_bare_node = name == "tls" && self.is_set("catalog") && !self.is_set("tls-cert");
        own.filter(|own| self.is_set(own) || !(self.is_set(name) || is_bare_node))
            .unwrap_or_else(|| name.to_owned())
    }

    fn need_of<T>(
        &self,
        front: Option<&FrontRow>,
        name: &str,
        parse: impl Fn(&str) -> value::Parsed<T>,
    ) -> Result<T> {
        self.need(&self.name_of(front, name), parse)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.get(name).map(|(text, _)| PathBuf::from(text)).unwrap_or_default()
    }

    /// A file that may be left out; an empty text leaves it out too.
    fn file(&self, name: &str) -> Option<PathBuf> {
        let (text, _) = self.0.get(name)?;
        (!text.is_empty()).then(|| PathBuf::from(text))
    }
}

#[cfg(test)]
mod tests;
