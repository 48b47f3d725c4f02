//! A fleet for tests: databases on private servers, and nodes that share them.

use std::path::Path;
use std::time::{Duration, Instant};

use lazuli_postgres_server::Server as Postgres;
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Server, ask};

/// How long anything here may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A database of its own on a server, as an address.
pub(crate) fn database(postgres: &Postgres, name: &str) -> String {
    postgres.psql("postgres", &format!("CREATE DATABASE {name}")).unwrap();
    postgres.address(name)
}

pub(crate) struct Node {
    pub(crate) server: Server,
    folder: TempDir,
}

impl Node {
    pub(crate) fn join(catalog: &str, name: &str) -> Self {
        Self::join_with(catalog, name, &[])
    }

    /// The same with further flags.
    pub(crate) fn join_with(catalog: &str, name: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let flags = ["--catalog", catalog, "--node-name", name, "--blob-collect-interval", "1s"];
        let server = Server::start_with(folder.path(), &[&flags, more].concat(), &[]);
        Self { server, folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What the admin API answers on an open page.
    pub(crate) fn page(&self, path: &str) -> (u16, String) {
        ask(&self.server.endpoint("admin"), "GET", path, &[], "")
    }

    /// What the admin API answers to an operator.
    pub(crate) fn admin(&self, path: &str) -> Value {
        let token = self.folder().join("lazuli-data/admin-token");
        let token = format!("Bearer {}", std::fs::read_to_string(token).unwrap().trim());
        let headers = [("authorization", token.as_str())];
        let (status, body) = ask(&self.server.endpoint("admin"), "GET", path, &headers, "");
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// The nodes that this one knows, by name.
    pub(crate) fn nodes(&self) -> Vec<(String, String, Vec<String>)> {
        let list = self.server.json(&["node", "list"]);
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        let nodes = list["nodes"].as_array().unwrap().iter();
        let mut nodes: Vec<_> = nodes
            .map(|node| {
                let work = node["work"].as_array().unwrap().iter().map(text).collect();
                (text(&node["name"]), text(&node["state"]), work)
            })
            .collect();
        nodes.sort();
        nodes
    }
}

/// Two nodes on one catalog, with a shard in a database of its own.
pub(crate) struct Fleet {
    pub(crate) one: Node,
    pub(crate) other: Node,
    pub(crate) catalog: String,
    pub(crate) postgres: Postgres,
}

impl Fleet {
    /// None if there is no PostgreSQL here.
    pub(crate) fn start() -> Option<Self> {
        let postgres = Postgres::start().unwrap()?;
        let catalog = database(&postgres, "catalog");
        let shard = database(&postgres, "first");
        let one = Node::join(&catalog, "one");
        let told = one.server.command(&["shard", "add", "first", "--at", &shard]);
        assert!(told.contains("added shard first"), "{told}");
        let other = Node::join(&catalog, "other");
        Some(Self { one, other, catalog, postgres })
    }

    pub(crate) fn nodes(&self) -> [&Server; 2] {
        [&self.one.server, &self.other.server]
    }

    /// Adds a shard, and waits until both nodes have it.
    pub(crate) fn add_shard(&self, name: &str) {
        let address = database(&self.postgres, name);
        self.one.server.command(&["shard", "add", name, "--at", &address, "--region", "east"]);
        until("both nodes have the shard", || {
            self.nodes().iter().all(|node| shard_state(node, name) == "online")
        });
    }
}

pub(crate) fn shard_state(server: &Server, name: &str) -> String {
    let list = server.json(&["shard", "list"]);
    let shards = list["shards"].as_array().unwrap();
    let shard = shards.iter().find(|shard| shard["name"] == name);
    shard.map_or("none".to_owned(), |shard| shard["state"].as_str().unwrap().to_owned())
}

/// Waits until something holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "not so in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
    began.elapsed()
}
