//! Raw requests in, raw replies out, over a real connection.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lazuli_azure::auth::{Accounts, Key, Keys};
use lazuli_cache::{Cache, DATABASES, Parts, Published, Settings};
use lazuli_keyspace::{Keyspace, Policy};
use lazuli_net::{Budget, Limits, Listener, Metrics, stopper};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const KEY: &str = "c2VjcmV0";

/// A server; with or without the published key, which opens it to everybody.
async fn serve(is_open: bool, disabled: &[&str]) -> std::net::SocketAddr {
    let accounts = Arc::new(Accounts::new());
    let key = Key::from_base64(KEY).unwrap();
    accounts.set("dev", Keys { first: key.clone(), second: None });
    let metrics = Arc::new(Metrics::new("cache"));
    let parts = Parts {
        keyspace: Arc::new(Keyspace::new(lazuli_env::real::env(), DATABASES, None)),
        cluster: None,
        accounts,
        published: is_open.then_some(Published { account: "dev", key }),
        budget: Budget::new(1 << 30),
        metrics: metrics.clone(),
        settings: Settings {
            memory_bytes_max: 0,
            policy: Policy::NoEviction,
            disabled: disabled.iter().map(|it| (*it).to_owned()).collect::<BTreeSet<_>>(),
            clients_max: 100,
            source_hosts: Vec::new(),
        },
    };
    let any = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(any, None, Limits::default(), metrics).await.unwrap();
    let address = listener.address();
    let (stopper, stop) = stopper();
    // The server lives as long as the test.
    std::mem::forget(stopper);
    let cache = Cache::new(parts);
    tokio::spawn(cache.tend());
    tokio::spawn(listener.serve(cache.front(), stop));
    address
}

struct Client(TcpStream);

impl Client {
    async fn connect(address: std::net::SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    async fn send(&mut self, lines: &str) {
        for line in lines.lines() {
            self.0.write_all(format!("{line}\r\n").as_bytes()).await.unwrap();
        }
    }

    /// Reads exactly what is expected.
    async fn expect(&mut self, reply: &str) {
        let expected = reply.replace('\n', "\r\n");
        let mut bytes = vec![0; expected.len()];
        let read = self.0.read_exact(&mut bytes);
        let read = tokio::time::timeout(Duration::from_secs(10), read).await;
        read.expect("a reply in time").expect("a whole reply");
        assert_eq!(String::from_utf8_lossy(&bytes), expected);
    }

    async fn ask(&mut self, lines: &str, reply: &str) {
        self.send(lines).await;
        self.expect(reply).await;
    }
}

#[tokio::test]
async fn strings_keys_and_expiry_answer_as_the_service_does() {
    let mut client = Client::connect(serve(true, &[]).await).await;
    client.ask("SET k v\nGET k\nGET none", "+OK\n$1\nv\n$-1\n").await;
    client
        .ask(
            "INCR n\nINCRBY n 4\nAPPEND n x\nINCR n",
            ":1\n:5\n:2\n-ERR value is not an integer or out of range\n",
        )
        .await;
    client
        .ask("SET e v PX 100000\nTTL e\nPERSIST e\nTTL e\nTTL none", "+OK\n:100\n:1\n:-1\n:-2\n")
        .await;
    client.ask("SET e v XX GET\nSET e w NX", "$1\nv\n$-1\n").await;
    client.ask("RENAME k l\nTYPE l\nDEL l k", "+OK\n+string\n:1\n").await;
    client
        .ask(
            "LPUSH l a\nGET l",
            ":1\n-WRONGTYPE Operation against a key holding the wrong kind of value\n",
        )
        .await;
    client
        .ask("NOSUCH a b", "-ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b' \n")
        .await;
    client.ask("GET", "-ERR wrong number of arguments for 'get' command\n").await;
    client.ask("SETBIT b 7 1\nBITCOUNT b\nGET b", ":0\n:1\n$1\n\u{1}\n").await;
    client.ask("INCRBYFLOAT f 0.1\nINCRBYFLOAT f 0.2", "$3\n0.1\n$3\n0.3\n").await;
}

#[tokio::test]
async fn a_transaction_is_discarded_when_a_watched_key_changes_or_a_command_was_refused() {
    let address = serve(true, &[]).await;
    let (mut one, mut two) = (Client::connect(address).await, Client::connect(address).await);
    one.ask("WATCH k\nMULTI\nSET k 1\nGET k", "+OK\n+OK\n+QUEUED\n+QUEUED\n").await;
    two.ask("SET k 2", "+OK\n").await;
    one.ask("EXEC\nMULTI\nINCR k\nGET k\nEXEC", "*-1\n+OK\n+QUEUED\n+QUEUED\n*2\n:3\n$1\n3\n")
        .await;
    one.ask("MULTI\nNOSUCH", "+OK\n-ERR unknown command 'NOSUCH', with args beginning with: \n")
        .await;
    one.ask("EXEC", "-EXECABORT Transaction discarded because of previous errors.\n").await;
    one.ask("EXEC", "-ERR EXEC without MULTI\n").await;
}

#[tokio::test]
async fn those_who_wait_are_served_in_their_order_before_anybody_else_sees_the_element() {
    let address = serve(true, &[]).await;
    let (mut one, mut two) = (Client::connect(address).await, Client::connect(address).await);
    let mut pusher = Client::connect(address).await;
    one.send("BLPOP l 0").await;
    wait_for_blocked(&mut pusher, 1).await;
    two.send("BLPOP l 0").await;
    wait_for_blocked(&mut pusher, 2).await;
    pusher.ask("RPUSH l a b c\nLLEN l", ":3\n:1\n").await;
    one.expect("*2\n$1\nl\n$1\na\n").await;
    two.expect("*2\n$1\nl\n$1\nb\n").await;
    one.ask("BLPOP none 0.05", "*-1\n").await;
}

async fn wait_for_blocked(client: &mut Client, count: usize) {
    for _ in 0..1000 {
        client.send("INFO clients").await;
        let mut text = vec![0; 4096];
        let length = client.0.read(&mut text).await.unwrap();
        if String::from_utf8_lossy(&text[..length]).contains(&format!("blocked_clients:{count}\r"))
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("nobody waits");
}

#[tokio::test]
async fn messages_reach_subscribers_and_keyspace_events_are_messages() {
    let address = serve(true, &[]).await;
    let (mut listener, mut other) =
        (Client::connect(address).await, Client::connect(address).await);
    listener.ask("SUBSCRIBE c", "*3\n$9\nsubscribe\n$1\nc\n:1\n").await;
    listener.ask("PSUBSCRIBE __key*", "*3\n$10\npsubscribe\n$6\n__key*\n:2\n").await;
    other.ask("PUBLISH c hello\nPUBLISH d hello", ":1\n:0\n").await;
    listener.expect("*3\n$7\nmessage\n$1\nc\n$5\nhello\n").await;
    other.ask("CONFIG SET notify-keyspace-events K$\nSET k v", "+OK\n+OK\n").await;
    let event = "*4\n$8\npmessage\n$6\n__key*\n$16\n__keyspace@0__:k\n$3\nset\n";
    listener.expect(event).await;
    let refused = "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context\n";
    listener.ask("GET k", refused).await;
}

#[tokio::test]
async fn without_the_published_key_a_client_must_show_an_access_key() {
    let address = serve(false, &["config"]).await;
    let mut client = Client::connect(address).await;
    client.ask("GET k", "-NOAUTH Authentication required.\n").await;
    client
        .ask("AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled.\n")
        .await;
    client.ask(&format!("AUTH {KEY}\nGET k"), "+OK\n$-1\n").await;
    client
        .ask(
            "CONFIG GET save",
            "-ERR unknown command 'CONFIG', with args beginning with: 'GET' 'save' \n",
        )
        .await;
    let mut client = Client::connect(address).await;
    client.ask(&format!("AUTH dev {KEY}\nACL WHOAMI"), "+OK\n$3\ndev\n").await;
}

#[tokio::test]
async fn a_scan_over_all_slots_finds_every_key_once() {
    let mut client = Client::connect(serve(true, &[]).await).await;
    for number in 0..500 {
        client.ask(&format!("SET key:{number} v"), "+OK\n").await;
    }
    client.ask("DBSIZE", ":500\n").await;
    client.send("SCAN 0 COUNT 1000").await;
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n") || text.iter().filter(|it| **it == b'$').count() < 501 {
        assert!(client.0.read_buf(&mut text).await.unwrap() > 0);
    }
    assert!(text.starts_with(b"*2\r\n$1\r\n0\r\n*500\r\n"));
}

#[tokio::test]
async fn resp3_has_its_own_shapes() {
    let mut client = Client::connect(serve(true, &[]).await).await;
    client.send("HELLO 3").await;
    client.expect("%7\n$6\nserver\n$5\nredis\n$7\nversion\n$6\n7.0.15\n$5\nproto\n:3\n").await;
    client
        .expect("$2\nid\n:1\n$4\nmode\n$10\nstandalone\n$4\nrole\n$6\nmaster\n$7\nmodules\n*0\n")
        .await;
    client.ask("GET none\nHSET h f v\nHGETALL h", "_\n:1\n%1\n$1\nf\n$1\nv\n").await;
    client.ask("HELLO 4", "-NOPROTO unsupported protocol version\n").await;
}
