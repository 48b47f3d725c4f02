//! The table of fronts: settings, listeners, metrics, `status`, the ready line and the portal learn of a front here.

use std::net::SocketAddr;
use std::sync::Arc;

use lazuli_azure::auth::{Accounts, Key};
use lazuli_http::{Handler, HttpFront, counted};
use lazuli_keyspace::Keyspace;
use lazuli_net::{BoxFuture, Budget, Metrics, Protocol, SheetMaker, Tls};
use lazuli_shapes::document::Documents;
use lazuli_shapes::queue::Queues;
use lazuli_shapes::record::Records;

use crate::accounts::{PUBLISHED_BUS_KEY, PUBLISHED_DOCUMENT_KEY, PUBLISHED_KEY, PUBLISHED_NAME};
use crate::cache::OpenedCache;
use crate::core::Core;
use crate::settings::table::row;
use crate::settings::{FrontSettings, Row, Settings, TlsMode};

/// The folder with the text indexes of the Search front. What is in it can be deleted while no server runs.
const SEARCH_FOLDER: &str = "search";

/// One front.
#[derive(Debug)]
pub struct FrontRow {
    /// In endpoints, metrics, the ready file and the portal.
    pub name: &'static str,
    /// What the names of its settings begin with.
    pub setting: &'static str,
    /// What it is called in sentences.
    pub title: &'static str,
    pub port_default: &'static str,
    /// Whether it speaks TLS if nothing is set for it alone; none means as all fronts do.
    pub tls_default: Option<&'static str>,
    /// What stands before its address, without TLS and with it.
    pub schemes: (&'static str, &'static str),
    /// What a client takes to find and use it: made of the URL, the account and its key.
    pub connection_string: fn(url: &str, account: &str, key: &str) -> String,
    /// Puts it together.
    pub(crate) mount: fn(&Parts<'_>) -> Mounted,
}

/// Those of fronts that speak HTTP.
pub(crate) const HTTP_SCHEMES: (&str, &str) = ("http://", "https://");

/// All fronts, in the order in which they are listed to users.
pub const FRONTS: &[FrontRow] = &[
    FrontRow {
        name: "blobs",
        setting: "blob",
        title: "Blobs",
        port_default: "10000",
        tls_default: None,
        schemes: HTTP_SCHEMES,
        connection_string: |url, account, key| storage("BlobEndpoint", url, account, key),
        mount: |parts| {
            let (blobs, limits) = (parts.core.blobs.clone(), parts.settings.blobs.clone());
            let (accounts, tokens) = (parts.accounts.clone(), parts.settings.tokens);
            parts.http(lazuli_blobs::handler(blobs, accounts, tokens, limits))
        },
    },
    FrontRow {
        name: "queues",
        setting: "queue",
        title: "Queues",
        port_default: "10001",
        tls_default: None,
        schemes: HTTP_SCHEMES,
        connection_string: |url, account, key| storage("QueueEndpoint", url, account, key),
        mount: |parts| {
            let queues = Queues::new(parts.core.engine.clone());
            let (accounts, tokens) = (parts.accounts.clone(), parts.settings.tokens);
            let limits = parts.settings.queues.clone();
            parts.http(lazuli_queues::handler(queues, accounts, tokens, limits))
        },
    },
    FrontRow {
        name: "tables",
        setting: "table",
        title: "Tables",
        port_default: "10002",
        tls_default: None,
        schemes: HTTP_SCHEMES,
        connection_string: |url, account, key| storage("TableEndpoint", url, account, key),
        mount: |parts| {
            let records = Records::new(parts.core.engine.clone());
            let (accounts, tokens) = (parts.accounts.clone(), parts.settings.tokens);
            let limits = parts.settings.tables.clone();
            parts.http(lazuli_tables::handler(records, accounts, tokens, limits))
        },
    },
    FrontRow {
        name: "documents",
        setting: "document",
        title: "Documents",
        port_default: "8081",
        // Some of the official SDKs insist on HTTPS and others are easier to use without.
        tls_default: Some("beside"),
        schemes: HTTP_SCHEMES,
        connection_string: documents,
        mount: |parts| {
            let documents = Documents::new(parts.core.engine.clone());
            let documents = documents.sized(parts.settings.document_sizing);
            parts.http(lazuli_documents::handler(documents, parts.documents()))
        },
    },
    FrontRow {
        name: "kafka",
        setting: "kafka",
        title: "Kafka",
        port_default: "9092",
        tls_default: Some("beside"),
        schemes: ("", ""),
        connection_string: bus,
        mount: |parts| Mounted::of(lazuli_kafka::front(parts.kafka())),
    },
    FrontRow {
        name: "bus",
        setting: "bus",
        title: "Bus",
        port_default: "5672",
        // The official SDKs speak AMQP without TLS to emulators, but insist on HTTPS for administration.
        tls_default: Some("beside"),
        schemes: ("sb://", "amqps://"),
        connection_string: bus,
        mount: |parts| {
            let bus = parts.core.bus.clone();
            bus.start();
            let (protocol, handler) = lazuli_bus::protocol(bus, parts.bus());
            Mounted { handler: Some(handler), ..Mounted::of(protocol) }
        },
    },
    FrontRow {
        name: "cache",
        setting: "cache",
        title: "Cache",
        port_default: "6379",
        tls_default: Some("beside"),
        schemes: ("redis://", "rediss://"),
        connection_string: cache,
        mount: |parts| {
            let cache = lazuli_cache::Cache::new(parts.cache());
            let (nodes, beside) = (cache.nodes(), Some(cache.tend()));
            let sheet = Some(cache.sheet());
            Mounted { nodes, beside, sheet, ..Mounted::of(cache.front()) }
        },
    },
    FrontRow {
        name: "search",
        setting: "search",
        title: "Search",
        // No emulator of the service has set a custom, so it stands beside the storage services.
        port_default: "10003",
        // The JavaScript SDK insists on HTTPS, and the others are easier to use without.
        tls_default: Some("beside"),
        schemes: HTTP_SCHEMES,
        connection_string: |url, _account, key| format!("Endpoint={url};Key={key};"),
        mount: |parts| {
            let (handler, feeding) = lazuli_search::handler(parts.search());
            Mounted { beside: Some(feeding), ..parts.http(handler) }
        },
    },
    FrontRow {
        name: "sql",
        setting: "sql",
        title: "SQL",
        port_default: "5433",
        // Clients of PostgreSQL begin without TLS and ask for it.
        tls_default: Some("beside"),
        schemes: ("postgresql://", "postgresql://"),
        connection_string: |url, _, _| {
            let host = url.split("://").nth(1).unwrap_or(url);
            format!("postgresql://USER@{host}/DATABASE")
        },
        mount: |parts| {
            let (protocol, recovery) = lazuli_sql::front(lazuli_sql::Parts {
                databases: parts.core.sql.clone(),
                tls: parts.tls.clone(),
                requires_tls: parts.own.listening.tls == TlsMode::Only,
                metrics: parts.metrics.clone(),
            });
            Mounted { beside: Some(recovery), ..Mounted::of(protocol) }
        },
    },
];

/// The front of this name.
pub(crate) fn find(name: &str) -> Option<&'static FrontRow> {
    FRONTS.iter().find(|front| front.name == name)
}

/// The connection string of a storage service, as the official SDKs take it.
fn storage(field: &str, url: &str, account: &str, key: &str) -> String {
    let protocol = url.split("://").next().unwrap_or("http");
    format!(
        "DefaultEndpointsProtocol={protocol};AccountName={account};AccountKey={key};\
         {field}={url}/{account};"
    )
}

/// The connection string of the document service, which knows an account by its key alone.
fn documents(url: &str, _account: &str, key: &str) -> String {
    let key = if key == PUBLISHED_KEY { PUBLISHED_DOCUMENT_KEY } else { key };
    format!("AccountEndpoint={url}/;AccountKey={key};")
}

/// The connection string of the bus. Without TLS it must say that it is for development, or clients insist on it.
fn bus(url: &str, _account: &str, key: &str) -> String {
    let host = url.split("://").nth(1).unwrap_or(url);
    let key = if key == PUBLISHED_KEY { PUBLISHED_BUS_KEY } else { key };
    format!(
        "Endpoint=sb://{host};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey={key};\
         UseDevelopmentEmulator=true;"
    )
}

/// The address of the cache, as its clients take it. The published key is no secret and need not be named.
fn cache(url: &str, account: &str, key: &str) -> String {
    let (scheme, host) = url.split_once("://").unwrap_or(("redis", url));
    if key == PUBLISHED_KEY {
        return format!("{scheme}://{host}");
    }
    // Keys are base64: these are the characters of it that mean something in an address.
    let key = key.replace('/', "%2F").replace('+', "%2B").replace('=', "%3D");
    format!("{scheme}://{account}:{key}@{host}")
}

/// What a front is put together from.
pub(crate) struct Parts<'s> {
    pub(crate) settings: &'s Settings,
    pub(crate) own: &'s FrontSettings,
    pub(crate) core: &'s Core,
    /// The keys of the cache, if it is served.
    pub(crate) cache: Option<&'s OpenedCache>,
    /// Where the further listeners of this front are.
    pub(crate) nodes: Vec<SocketAddr>,
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) budget: &'s Arc<Budget>,
    pub(crate) metrics: &'s Arc<Metrics>,
    /// The certificate of the listeners (PEM), if some front speaks TLS.
    pub(crate) certificate: Option<&'s str>,
    /// TLS for a front whose clients ask for it within the protocol.
    pub(crate) tls: Option<Tls>,
}

/// A front that is ready to be served.
pub(crate) struct Mounted {
    pub(crate) protocol: Arc<dyn Protocol>,
    /// What answers its requests, if it speaks HTTP: the explorer asks it from within the process.
    pub(crate) handler: Option<Handler>,
    /// What is served on its further listeners.
    pub(crate) nodes: Vec<Arc<dyn Protocol>>,
    /// Its background work. It begins when the server serves, and is dropped when it stops: it may be cut off at any moment.
    pub(crate) beside: Option<BoxFuture<()>>,
    /// What it tells of itself beside what all fronts count.
    pub(crate) sheet: Option<SheetMaker>,
}

impl Mounted {
    /// A front that does not speak HTTP.
    pub(crate) fn of(protocol: Arc<dyn Protocol>) -> Self {
        Self { protocol, handler: None, nodes: Vec::new(), beside: None, sheet: None }
    }
}

impl Parts<'_> {
    /// A front that speaks HTTP.
    fn http(&self, handler: Handler) -> Mounted {
        let handler = counted(self.metrics.clone(), handler);
        let limits = self.own.listening.http.clone();
        let (budget, metrics) = (self.budget.clone(), self.metrics.clone());
        let protocol = HttpFront::new(limits, budget, metrics, handler.clone());
        Mounted { handler: Some(handler), ..Mounted::of(protocol) }
    }
}

impl Parts<'_> {
    fn documents(&self) -> lazuli_documents::Parts {
        let key = |text| Key::from_base64(text).ok();
        let published = key(PUBLISHED_KEY).zip(key(PUBLISHED_DOCUMENT_KEY));
        lazuli_documents::Parts {
            accounts: self.accounts.clone(),
            published: published.map(|(key, other)| lazuli_documents::Published {
                account: PUBLISHED_NAME,
                key,
                other,
            }),
            certificate: self.certificate.map(str::to_owned),
            limits: self.settings.documents.clone(),
        }
    }
}

impl Parts<'_> {
    fn kafka(&self) -> lazuli_kafka::Parts {
        let key = Key::from_base64(PUBLISHED_KEY).ok();
        lazuli_kafka::Parts {
            logs: self.core.logs.clone(),
            accounts: self.accounts.clone(),
            published: key.map(|key| lazuli_kafka::Published {
                account: PUBLISHED_NAME,
                key,
                text: PUBLISHED_BUS_KEY,
            }),
            budget: self.budget.clone(),
            metrics: self.metrics.clone(),
            settings: self.settings.kafka.clone(),
        }
    }

    fn cache(&self) -> lazuli_cache::Parts {
        let (settings, env) = (&self.settings.cache, self.core.engine.env().clone());
        let empty = || Arc::new(Keyspace::new(env, lazuli_cache::DATABASES, None));
        let keyspace = self.cache.map(|it| it.keyspace.clone()).unwrap_or_else(empty);
        let published = Key::from_base64(PUBLISHED_KEY).ok();
        lazuli_cache::Parts {
            keyspace,
            cluster: self
                .cache
                .and_then(|it| it.shelf.clone())
                .map(|shelf| lazuli_cache::ClusterParts { shelf, nodes: self.nodes.clone() }),
            accounts: self.accounts.clone(),
            users: self.cache.map(|it| lazuli_cache::KeptUsers {
                shelf: it.users.clone(),
                rules: it.rules.clone(),
            }),
            published: published
                .map(|key| lazuli_cache::Published { account: PUBLISHED_NAME, key }),
            budget: self.budget.clone(),
            metrics: self.metrics.clone(),
            settings: lazuli_cache::Settings {
                memory_bytes_max: settings.memory_bytes_max,
                policy: settings.policy,
                disabled: settings.disabled.clone(),
                clients_max: self.own.listening.net.connections_max,
                source_hosts: settings.source_hosts.clone(),
            },
        }
    }

    fn bus(&self) -> lazuli_bus::Parts {
        let published = Key::from_base64(PUBLISHED_KEY).ok();
        lazuli_bus::Parts {
            logs: self.core.logs.clone(),
            accounts: self.accounts.clone(),
            published: published.map(|key| lazuli_bus::Published {
                account: PUBLISHED_NAME,
                key,
                other: Key::from_text(PUBLISHED_BUS_KEY),
            }),
            tokens: self.settings.tokens,
            limits: lazuli_bus::Limits::default(),
            http: self.own.listening.http.clone(),
            budget: self.budget.clone(),
            metrics: self.metrics.clone(),
        }
    }
}

impl Parts<'_> {
    fn search(&self) -> lazuli_search::Parts {
        lazuli_search::Parts {
            indexes: self.core.indexes.clone(),
            accounts: self.accounts.clone(),
            tokens: self.settings.tokens,
            settings: self.settings.search.clone(),
            folder: self.settings.data.join(SEARCH_FOLDER),
        }
    }
}

impl FrontRow {
    /// Whether its clients begin without TLS and ask for it, so that its listener takes both whatever is set.
    pub(crate) fn upgrades(&self) -> bool {
        self.name == "sql"
    }

    /// The name of a setting of this front alone.
    pub(crate) fn own(&self, setting: &str) -> String {
        format!("{}-{setting}", self.setting)
    }

    pub(crate) fn port_row(&self) -> Row {
        let help = format!(
            "The port of the {} front; 0 takes any free one, off leaves it out",
            self.title
        );
        let default = Some(self.port_default);
        row(self.own("port").leak(), "PORT|off", default, help.leak())
    }

    pub(crate) fn accounts_row(&self) -> Row {
        let help = format!("The accounts that the {} front serves; without it all", self.title);
        let names = row(self.own("accounts").leak(), "NAME,…", None, help.leak());
        Row { is_override: true, ..names }
    }
}
