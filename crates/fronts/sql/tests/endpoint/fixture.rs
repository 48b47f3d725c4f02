//! Three shards on a private PostgreSQL server, an endpoint over them, and one plain database with the same tables.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use lazuli_net::{Limits, Listener, Metrics, Stopper, Tls, stopper};
use lazuli_pg::scram::Secret;
use lazuli_postgres_server::Server;
use lazuli_sharded_sql::{
    ColumnType, Databases, LEDGER_SCHEMA, Login, MapKind, Mapping, MappingState, Refreshed, Shard,
    ShardMap, ShardServer, Snapshot, Table, TableKind, TableName, TlsMode, next_id_sql,
};
use lazuli_shardmap::KeyPart;
use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};

pub(crate) const SHARDS: [&str; 3] = ["one", "two", "three"];

/// The tables on every shard. `orders` and `items` are sharded by tenant, `events` by a text, `countries` is a reference table.
pub(crate) const TABLES: &str = "
CREATE TABLE orders (tenant int, id int, amount int, note text, at timestamptz, PRIMARY KEY (tenant, id));
CREATE TABLE items (tenant int, order_id int, sku text, qty int, price numeric(10,2), PRIMARY KEY (tenant, order_id, sku));
CREATE TABLE events (source text, number bigint, body jsonb, PRIMARY KEY (source, number));
CREATE TABLE countries (code text PRIMARY KEY, name text);
CREATE VIEW large AS SELECT o.tenant, o.id, o.note, o.amount FROM orders o WHERE o.id > 10;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
";

/// Answers the snapshot that it was given last.
pub(crate) struct Fixed(pub(crate) Mutex<Arc<Snapshot>>);

impl Databases for Fixed {
    fn snapshot(&self, name: &str) -> Option<Arc<Snapshot>> {
        let snapshot = self.0.lock().unwrap().clone();
        (snapshot.name == name).then_some(snapshot)
    }

    fn refresh<'a>(&'a self, name: &'a str) -> Refreshed<'a> {
        Box::pin(async move { self.snapshot(name) })
    }

    fn names(&self) -> Vec<String> {
        vec![self.0.lock().unwrap().name.clone()]
    }
}

pub(crate) struct Endpoint {
    pub(crate) server: &'static Server,
    pub(crate) number: usize,
    pub(crate) port: u16,
    pub(crate) databases: Arc<Fixed>,
    _stop: Stopper,
}

pub(crate) fn int_map(bounds: &[i64]) -> ShardMap {
    let mut map = ShardMap {
        id: 1,
        name: "tenants".into(),
        kind: MapKind::Range,
        key: vec![ColumnType::Int4],
        mappings: Vec::new(),
        is_in_transit: false,
    };
    let route = |value: i64| map.route(&[KeyPart::Int64(value)]).unwrap();
    let routes: Vec<Bytes> = bounds.iter().map(|bound| route(*bound)).collect();
    map.mappings = (0..=routes.len())
        .map(|index| Mapping {
            id: index as u64 + 1,
            low: index.checked_sub(1).map(|it| routes[it].clone()).unwrap_or_default(),
            high: routes.get(index).cloned(),
            shard: index,
            epoch: 1,
            state: MappingState::Online,
        })
        .collect();
    map
}

fn hash_map() -> ShardMap {
    let bound = |slot: u32| Bytes::copy_from_slice(&(slot as u16).to_be_bytes());
    let mapping = |index: u32| Mapping {
        id: u64::from(index) + 10,
        low: bound(index * 21_846),
        high: (index < 2).then(|| bound((index + 1) * 21_846)),
        shard: index as usize,
        epoch: 1,
        state: MappingState::Online,
    };
    ShardMap {
        id: 2,
        name: "sources".into(),
        kind: MapKind::Hash,
        key: vec![ColumnType::Text],
        mappings: (0..3).map(mapping).collect(),
        is_in_transit: false,
    }
}

pub(crate) fn snapshot(port: u16, number: usize) -> Snapshot {
    let shard = |(index, name): (usize, &&str)| {
        Arc::new(Shard {
            id: index as u32 + 1,
            name: (*name).to_owned(),
            server: ShardServer {
                host: "127.0.0.1".into(),
                port,
                database: format!("{name}_{number}"),
                user: "postgres".into(),
                password: None,
                tls: TlsMode::Off,
            },
        })
    };
    let sharded = |map, column: &str, kind| Table {
        kind: TableKind::Sharded { map, key: vec![(column.to_owned(), kind)] },
    };
    let name = |table: &str| TableName::new("public", table);
    let secret = Secret::of_password("secret", b"0123456789abcdef").print();
    Snapshot {
        name: "shop".into(),
        version: 1,
        tables: BTreeMap::from([
            (name("orders"), sharded(0, "tenant", ColumnType::Int4)),
            (name("items"), sharded(0, "tenant", ColumnType::Int4)),
            (name("events"), sharded(1, "source", ColumnType::Text)),
            (name("countries"), Table { kind: TableKind::Reference }),
            (name("config"), Table { kind: TableKind::Single { shard: 1 } }),
        ]),
        maps: vec![Arc::new(int_map(&[100, 200])), Arc::new(hash_map())],
        shards: SHARDS.iter().enumerate().map(shard).collect(),
        catalog_shard: 0,
        logins: BTreeMap::from([("ada".to_owned(), Login { secret, role: None })]),
    }
}

impl Endpoint {
    /// None if PostgreSQL is not installed.
    pub(crate) async fn start() -> Option<Self> {
        static SERVER: OnceCell<Option<Server>> = OnceCell::const_new();
        static LAST: AtomicUsize = AtomicUsize::new(0);
        let lines = ["fsync=off", "max_prepared_transactions=50"];
        let begin = || async {
            tokio::task::spawn_blocking(move || Server::start_with(&lines).unwrap()).await.unwrap()
        };
        let server = SERVER.get_or_init(begin).await.as_ref()?;
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        tokio::task::spawn_blocking(move || make_databases(server, number)).await.unwrap();
        let (port, databases, stopper) = serve(server.port(), number, None).await;
        Some(Self { server, number, port, databases, _stop: stopper })
    }

    /// An endpoint over databases that another process has made. It lives as long as this one.
    pub(crate) async fn serve_on(server: u16, number: usize) -> u16 {
        let (port, _, stopper) = serve(server, number, None).await;
        std::mem::forget(stopper);
        port
    }

    /// Another endpoint over the same databases, over TLS only. The answer is its port.
    pub(crate) async fn serve_tls(&self) -> u16 {
        let made = lazuli_net::self_signed(&["localhost".into()]).unwrap();
        let tls = Tls::from_pem(made.certificate.as_bytes(), made.key.as_bytes()).unwrap();
        let (port, _, stopper) = serve(self.server.port(), self.number, Some(tls)).await;
        std::mem::forget(stopper);
        port
    }

    /// A session through the endpoint.
    pub(crate) async fn connect(&self) -> Client {
        self.connect_with("").await
    }

    pub(crate) async fn connect_with(&self, more: &str) -> Client {
        let port = self.port;
        open(&format!("host=127.0.0.1 port={port} user=ada password=secret dbname=shop {more}"))
            .await
    }

    /// A session on the plain database.
    pub(crate) async fn plain(&self) -> Client {
        let (port, number) = (self.server.port(), self.number);
        open(&format!("host=127.0.0.1 port={port} user=postgres dbname=plain_{number}")).await
    }

    /// What a shard itself answers.
    pub(crate) fn on_shard(&self, shard: &str, statement: &str) -> String {
        self.server.psql(&format!("{shard}_{}", self.number), statement).unwrap()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Snapshot)) {
        let mut current = self.databases.0.lock().unwrap();
        let mut next = Snapshot::clone(&current);
        next.version += 1;
        change(&mut next);
        *current = Arc::new(next);
    }
}

/// An endpoint over the databases with this number.
async fn serve(server: u16, number: usize, tls: Option<Tls>) -> (u16, Arc<Fixed>, Stopper) {
    let databases = Arc::new(Fixed(Mutex::new(Arc::new(snapshot(server, number)))));
    let metrics = Arc::new(Metrics::new("sql"));
    let (protocol, recovery) = lazuli_sql::front(lazuli_sql::Parts {
        databases: databases.clone(),
        tls: tls.clone(),
        requires_tls: tls.is_some(),
        metrics: metrics.clone(),
    });
    let address = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(address, tls.map(Tls::beside_plain), Limits::default(), metrics)
        .await
        .unwrap();
    let port = listener.address().port();
    let (stopper, stop) = stopper();
    tokio::spawn(recovery);
    tokio::spawn(listener.serve(protocol, stop));
    (port, databases, stopper)
}

/// The shards' databases and the plain one. The catalog shard has every table, because it describes them.
fn make_databases(server: &Server, number: usize) {
    let config = "CREATE TABLE config (name text PRIMARY KEY, value text);";
    for (index, name) in SHARDS.iter().enumerate() {
        let name = format!("{name}_{number}");
        server.psql("postgres", &format!("CREATE DATABASE {name}")).unwrap();
        // Numbers of types differ from shard to shard.
        let padding = if index > 0 { "CREATE TYPE padding AS ENUM ('a');" } else { "" };
        let next_id = next_id_sql(index as u32 + 1).unwrap();
        let own = if index < 2 { config } else { "" };
        server.psql(&name, &format!("{padding}{TABLES}{LEDGER_SCHEMA}{next_id};{own}")).unwrap();
    }
    server.psql("postgres", &format!("CREATE DATABASE plain_{number}")).unwrap();
    server.psql(&format!("plain_{number}"), &format!("{TABLES}{config}")).unwrap();
}

async fn open(config: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(config, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The rows of a simple query as text, columns joined by `|`.
pub(crate) async fn rows(client: &Client, text: &str) -> Result<Vec<String>, String> {
    use tokio_postgres::SimpleQueryMessage;
    let answer = client.simple_query(text).await.map_err(|error| match error.as_db_error() {
        Some(error) => format!("{} {}", error.code().code(), error.message()),
        None => format!("{error:?}"),
    })?;
    let line = |message| match message {
        SimpleQueryMessage::Row(row) => {
            let values = (0..row.len()).map(|index| row.get(index).unwrap_or("∅").to_owned());
            Some(values.collect::<Vec<_>>().join("|"))
        }
        _ => None,
    };
    Ok(answer.into_iter().filter_map(line).collect())
}
