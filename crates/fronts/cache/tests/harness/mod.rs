//! A server of the cache in the process of a test, and a client that compares bytes.

#![allow(dead_code, reason = "each suite uses a part of it")]

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lazuli_azure::auth::{Accounts, Key, Keys};
use lazuli_cache::{Cache, ClusterParts, DATABASES, KeptUsers, Parts, Published, Settings};
use lazuli_engine::Engine;
use lazuli_keyspace::{Journal, Keyspace, Persistence, Policy, Shelf, UserShelf};
use lazuli_net::{Budget, Limits, Listener, Metrics, Tls, stopper};
use lazuli_resp::{Answer, read_answer};
use lazuli_shardmap::manager::NewShard;
use lazuli_store::Store;
use lazuli_store::mem::MemStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The access key of the account `dev`.
pub(crate) const KEY: &str = "c2VjcmV0";
const REPLY_MAX: Duration = Duration::from_secs(60);

pub(crate) struct Setup {
    /// Whether the account has the published key, which opens the server to everybody.
    pub(crate) is_open: bool,
    pub(crate) disabled: BTreeSet<String>,
    pub(crate) memory_bytes_max: u64,
    pub(crate) policy: Policy,
    pub(crate) tls: Option<Tls>,
    /// The stores of the shards, where the cache is durable or a cluster.
    pub(crate) stores: Vec<Arc<dyn Store>>,
    pub(crate) persistence: Persistence,
    /// How many listeners there are for the nodes of a cluster.
    pub(crate) nodes: usize,
    /// Servers that it may follow.
    pub(crate) source_hosts: Vec<String>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            is_open: true,
            disabled: BTreeSet::new(),
            memory_bytes_max: 0,
            policy: Policy::NoEviction,
            tls: None,
            stores: Vec::new(),
            persistence: Persistence::None,
            nodes: 0,
            source_hosts: Vec::new(),
        }
    }
}

/// A server that runs as long as the test.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    pub(crate) nodes: Vec<SocketAddr>,
    pub(crate) engine: Option<Arc<Engine>>,
    pub(crate) keyspace: Arc<Keyspace>,
}

impl Setup {
    pub(crate) async fn serve(mut self) -> Service {
        let env = lazuli_env::real::env();
        let stores = std::mem::take(&mut self.stores);
        let engine = match stores.is_empty() {
            true => None,
            false => Some(engine(stores).await),
        };
        self.settings(engine, env).await
    }

    /// The same on the shards of a server before this one.
    pub(crate) async fn serve_on(self, engine: Arc<Engine>) -> Service {
        self.settings(Some(engine), lazuli_env::real::env()).await
    }
}

impl Setup {
    async fn settings(self, engine: Option<Arc<Engine>>, env: lazuli_env::Env) -> Service {
        let shelf = match &engine {
            Some(engine) => Some(Arc::new(Shelf::open(engine.clone()).await.unwrap())),
            None => None,
        };
        let is_durable = self.persistence != Persistence::None;
        let kept = shelf.clone().filter(|_| is_durable);
        let journal = kept.map(|it| Arc::new(Journal::new(it, self.persistence)));
        let keyspace = Arc::new(Keyspace::new(env, DATABASES, journal));
        keyspace.load().await.unwrap();
        tokio::spawn(keyspace.clone().keep());
        let users = match &engine {
            Some(engine) => {
                let shelf = Arc::new(UserShelf::new(engine.clone()));
                let rules = shelf.load().await.unwrap();
                Some(KeptUsers { shelf, rules })
            }
            None => None,
        };
        let accounts = Arc::new(Accounts::new());
        let key = Key::from_base64(KEY).unwrap();
        accounts.set("dev", Keys { first: key.clone(), second: None });
        let metrics = Arc::new(Metrics::new("cache"));
        let mut listeners = Vec::new();
        for _ in 0..=self.nodes {
            let any = "127.0.0.1:0".parse().unwrap();
            let tls = self.tls.clone().map(Tls::beside_plain);
            let listener = Listener::bind(any, tls, Limits::default(), metrics.clone());
            listeners.push(listener.await.unwrap());
        }
        let addresses: Vec<SocketAddr> = listeners.iter().map(Listener::address).collect();
        let nodes = addresses[1..].to_vec();
        let cluster = shelf.filter(|_| !nodes.is_empty());
        let cache = Cache::new(Parts {
            keyspace: keyspace.clone(),
            cluster: cluster.map(|shelf| ClusterParts { shelf, nodes: nodes.clone() }),
            accounts,
            users,
            published: self.is_open.then_some(Published { account: "dev", key }),
            budget: Budget::new(1 << 30),
            metrics,
            settings: Settings {
                memory_bytes_max: self.memory_bytes_max,
                policy: self.policy,
                disabled: self.disabled,
                clients_max: 100,
                source_hosts: self.source_hosts,
            },
        });
        let (stopper, stop) = stopper();
        // The server lives as long as the test.
        std::mem::forget(stopper);
        tokio::spawn(cache.tend());
        let fronts = std::iter::once(cache.front()).chain(cache.nodes());
        for (listener, front) in listeners.into_iter().zip(fronts) {
            tokio::spawn(listener.serve(front, stop.clone()));
        }
        Service { address: addresses[0], nodes, engine, keyspace }
    }
}

/// An engine on these shards.
pub(crate) async fn engine(stores: Vec<Arc<dyn Store>>) -> Arc<Engine> {
    let settings = lazuli_engine::Settings::default();
    let catalog = Arc::new(MemStore::new());
    let engine = Engine::on(lazuli_env::real::env(), settings, catalog).await.unwrap();
    for (number, store) in stores.into_iter().enumerate() {
        let name = format!("shard-{number}");
        let (location, region) = (name.clone(), "here".to_owned());
        let new = NewShard { name, location, region, labels: Default::default() };
        engine.add_shard(&new, store).await.unwrap();
    }
    engine.start();
    engine
}

pub(crate) fn memory_stores(count: usize) -> Vec<Arc<dyn Store>> {
    (0..count).map(|_| -> Arc<dyn Store> { Arc::new(MemStore::new()) }).collect()
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    pub(crate) async fn send(&mut self, lines: &str) {
        for line in lines.lines() {
            self.stream.write_all(format!("{line}\r\n").as_bytes()).await.unwrap();
        }
    }

    /// Reads exactly what is expected.
    pub(crate) async fn expect(&mut self, reply: &str) {
        let expected = reply.replace('\n', "\r\n");
        let mut bytes = vec![0; expected.len()];
        let read = self.stream.read_exact(&mut bytes);
        let read = tokio::time::timeout(REPLY_MAX, read).await;
        if !matches!(read, Ok(Ok(_))) {
            panic!("got only {:?} of {expected:?}", String::from_utf8_lossy(&bytes));
        }
        assert_eq!(String::from_utf8_lossy(&bytes), expected);
    }

    pub(crate) async fn ask(&mut self, lines: &str, reply: &str) {
        self.send(lines).await;
        self.expect(reply).await;
    }

    /// The next reply, whatever it is.
    pub(crate) async fn reply(&mut self) -> Answer {
        loop {
            if let Ok(Some((answer, length))) = read_answer(&self.buffer) {
                self.buffer.drain(..length);
                return answer;
            }
            let read = self.stream.read_buf(&mut self.buffer);
            let read = tokio::time::timeout(REPLY_MAX, read).await;
            assert!(read.expect("a reply in time").unwrap() > 0, "the connection was closed");
        }
    }

    /// Waits until the server closes the connection.
    pub(crate) async fn expect_end(&mut self) {
        let read = self.stream.read_buf(&mut self.buffer);
        let read = tokio::time::timeout(REPLY_MAX, read).await;
        assert!(!matches!(read.expect("an end in time"), Ok(1..)), "the connection goes on");
    }

    /// Sends a command of words, which may have any bytes, and reads its reply.
    pub(crate) async fn call(&mut self, words: &[&str]) -> Answer {
        let mut bytes = format!("*{}\r\n", words.len());
        for word in words {
            bytes.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.stream.write_all(bytes.as_bytes()).await.unwrap();
        self.reply().await
    }

    /// The same as text: arrays as lists in brackets.
    pub(crate) async fn text(&mut self, words: &[&str]) -> String {
        shown(&self.call(words).await)
    }
}

/// A reply as text.
pub(crate) fn shown(answer: &Answer) -> String {
    let list = |items: &[Answer]| items.iter().map(shown).collect::<Vec<_>>().join(" ");
    match answer {
        Answer::Simple(text) | Answer::Bulk(text) | Answer::Verbatim(_, text) => {
            String::from_utf8_lossy(text).into_owned()
        }
        Answer::Error(text) => format!("-{}", String::from_utf8_lossy(text)),
        Answer::Integer(number) => number.to_string(),
        Answer::Null(_) => "nil".to_owned(),
        Answer::Array(items) | Answer::Set(items) => format!("[{}]", list(items)),
        Answer::Push(items) => format!(">[{}]", list(items)),
        Answer::Map(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| format!("{} {}", shown(key), shown(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(" "))
        }
        other => format!("{other:?}"),
    }
}
