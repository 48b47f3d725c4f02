//! A sharded database on a private PostgreSQL server, served by the real program, with one table of tenants' counters and
//! one of their events.

use std::time::Duration;

use lazuli_client::{Access, Login, ShardedDatabase};
use lazuli_postgres_server::Server as Postgres;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

use crate::program::{Server, lazuli, stderr};

pub(crate) const PASSWORD: &str = "correct-horse";

/// Tables whose rows are on two shards, and two databases more.
pub(crate) struct Shop {
    pub(crate) server: Option<Server>,
    pub(crate) postgres: Postgres,
    pub(crate) folder: TempDir,
}

const SCHEMA: &str = "CREATE TABLE counter (tenant bigint PRIMARY KEY, value bigint NOT NULL); \
     CREATE TABLE event (tenant bigint, writer bigint, number bigint, PRIMARY KEY (tenant, writer, number))";

impl Shop {
    /// None if PostgreSQL is not installed.
    pub(crate) fn start(shards: &[&str], settings: &[&str]) -> Option<Self> {
        let lines = [&["fsync=off", "max_prepared_transactions=50"], settings].concat();
        let postgres = Postgres::start_with(&lines).unwrap()?;
        let folder = tempfile::tempdir().unwrap();
        let server = Some(Server::start(folder.path()));
        let shop = Self { server, postgres, folder };
        let mut init = vec!["sql".to_owned(), "init".into(), "shop".into()];
        for shard in shards {
            shop.postgres.psql("postgres", &format!("CREATE DATABASE {shard}")).unwrap();
            init.extend(["--shard".into(), format!("{shard}={}", shop.postgres.address(shard))]);
        }
        let init: Vec<&str> = init.iter().map(String::as_str).collect();
        shop.lazuli(&init);
        shop.lazuli(&["sql", "ddl", "shop", SCHEMA]);
        let add = ["sql", "map", "add", "shop", "tenants", "--kind", "range", "--key", "bigint"];
        shop.lazuli(&[&add[..], &["--on", shards[0]]].concat());
        for table in ["counter", "event"] {
            let add = ["sql", "table", "add", "shop", table, "--by", "tenant", "--map", "tenants"];
            shop.lazuli(&add);
        }
        let mut add = lazuli(shop.folder.path(), &["sql", "user", "add", "shop", "ann"]);
        let added = add.env("LAZULI_SQL_PASSWORD", PASSWORD).output().unwrap();
        assert!(added.status.success(), "{}", stderr(&added));
        Some(shop)
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().expect("the server runs")
    }

    /// A command that must succeed.
    pub(crate) fn lazuli(&self, arguments: &[&str]) -> String {
        self.server().command(arguments)
    }

    pub(crate) fn access(&self) -> Access {
        let token = self.folder.path().join("lazuli-data/admin-token");
        let token = std::fs::read_to_string(token).unwrap();
        Access::new(&format!("http://{}", self.server().endpoint("admin")), &token).unwrap()
    }

    pub(crate) async fn open(&self) -> ShardedDatabase {
        ShardedDatabase::open(self.access(), "shop", Login::default()).await.unwrap()
    }

    /// Cuts the mapping of a tenant there, and moves the upper part.
    pub(crate) fn split(&self, at: &str, to: &str) -> String {
        let on = ["sql", "split", "shop", "--map", "tenants", "--key", at, "--at", at];
        self.lazuli(&[&on[..], &["--to", to]].concat())
    }

    pub(crate) fn sql(&self, shard: &str, statement: &str) -> String {
        self.postgres.psql(shard, statement).unwrap()
    }
}

/// A session at the endpoint.
pub(crate) async fn connect(endpoint: &str) -> Result<Client, tokio_postgres::Error> {
    let (host, port) = endpoint.rsplit_once(':').unwrap();
    let mut config = tokio_postgres::Config::new();
    config.host(host).port(port.parse().unwrap()).user("ann").password(PASSWORD).dbname("shop");
    let (client, connection) =
        config.connect_timeout(Duration::from_secs(5)).connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
