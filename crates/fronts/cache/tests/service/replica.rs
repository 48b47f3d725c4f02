//! The cache as a replica of a source that the test plays: copies, streams of commands, connections that are cut.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::harness::Setup;

/// What Redis 7.0 wrote: eleven keys in two databases, and a library.
const FILE: &[u8] = include_bytes!("../../../../../fuzz/seeds/cache_file/redis");
const HISTORY: &str = "0123456789012345678901234567890123456789";
const PATIENCE: Duration = Duration::from_secs(20);

async fn serve(source_hosts: Vec<String>) -> SocketAddr {
    Setup { source_hosts, ..Setup::default() }.serve().await.address
}

/// One side of a connection.
struct Peer(BufReader<TcpStream>);

impl Peer {
    async fn line(&mut self) -> String {
        let mut line = String::new();
        timeout(PATIENCE, self.0.read_line(&mut line)).await.expect("a line in time").unwrap();
        line.trim_end().to_owned()
    }

    async fn write(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).await.unwrap();
    }

    /// The words of a command.
    async fn command(&mut self) -> Vec<String> {
        let count: usize = self.line().await.strip_prefix('*').unwrap().parse().unwrap();
        let mut words = Vec::new();
        for _ in 0..count {
            self.line().await;
            words.push(self.line().await);
        }
        words
    }

    async fn ask(&mut self, line: &str) -> String {
        self.write(format!("{line}\r\n").as_bytes()).await;
        self.reply().await
    }

    async fn reply(&mut self) -> String {
        let line = self.line().await;
        let Some(length) = line.strip_prefix('$') else { return line };
        let Ok(length) = length.parse::<usize>() else { return "nothing".to_owned() };
        let mut bytes = vec![0; length + 2];
        timeout(PATIENCE, self.0.read_exact(&mut bytes)).await.unwrap().unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    /// Asks again and again until the answer holds a text.
    async fn until(&mut self, line: &str, part: &str) {
        let mut last = String::new();
        for _ in 0..400 {
            last = self.ask(line).await;
            if last.contains(part) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{line} must answer {part}, and answers {last}");
    }

    /// As the source: lets the replica introduce itself, and gives what it asks for.
    async fn accept(listener: &TcpListener) -> (Self, Vec<String>) {
        let (stream, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
        let mut peer = Self(BufReader::new(stream));
        loop {
            let words = peer.command().await;
            match words[0].as_str() {
                "PING" => peer.write(b"+PONG\r\n").await,
                "PSYNC" => return (peer, words),
                _ => peer.write(b"+OK\r\n").await,
            }
        }
    }

    /// The next acknowledged offset that is at least this one.
    async fn acknowledged(&mut self, offset: usize) {
        loop {
            let words = self.command().await;
            assert_eq!(words[..2], ["REPLCONF", "ACK"]);
            if words[2].parse::<usize>().unwrap() >= offset {
                return assert_eq!(words[2], offset.to_string());
            }
        }
    }
}

async fn connect(address: SocketAddr) -> Peer {
    Peer(BufReader::new(TcpStream::connect(address).await.unwrap()))
}

async fn source() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

#[tokio::test]
async fn a_replica_copies_follows_goes_on_where_it_was_and_becomes_a_server_of_its_own() {
    let (listener, place) = source().await;
    let mut client = connect(serve(vec![place.clone()]).await).await;
    assert_eq!(client.ask("SET old value").await, "+OK");
    assert_eq!(client.ask(&format!("REPLICAOF {}", place.replace(':', " "))).await, "+OK");
    let (mut peer, asked) = Peer::accept(&listener).await;
    assert_eq!(asked, ["PSYNC", "?", "-1"]);
    peer.write(format!("\n+FULLRESYNC {HISTORY} 100\r\n\n${}\r\n", FILE.len()).as_bytes()).await;
    let (first, second) = FILE.split_at(333);
    peer.write(first).await;
    client.until("GET old", "LOADING").await;
    peer.write(second).await;
    client.until("INFO replication", "master_link_status:up").await;
    assert_eq!(client.ask("GET old").await, "nothing");
    assert_eq!(client.ask("GET text").await, "hello");
    assert_eq!(client.ask("DBSIZE").await, ":10");
    assert_eq!(client.ask("FCALL f 0").await, ":1");
    let stream = b"*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n*3\r\n$3\r\nSET\r\n$3\r\nnew\r\n$1\r\n1\r\n\
                   *3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n";
    peer.write(stream).await;
    peer.acknowledged(100 + stream.len()).await;
    assert_eq!(
        client.ask("SET own 1").await,
        "-READONLY You can't write against a read only replica."
    );
    assert!(client.ask("EVAL \"return redis.call('set', 'own', 1)\" 0").await.contains("READONLY"));
    // The connection is cut in the middle of a command: what was whole counts, and the database stays selected.
    peer.write(b"*3\r\n$3\r\nSET\r\n$3\r\nha").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(peer);
    let (mut peer, asked) = Peer::accept(&listener).await;
    assert_eq!(asked, ["PSYNC", HISTORY, &(101 + stream.len()).to_string()]);
    peer.write(b"+CONTINUE\r\n*2\r\n$4\r\nINCR\r\n$3\r\nnew\r\n").await;
    client.until("INFO replication", "master_link_status:up").await;
    assert_eq!(client.ask("SELECT 3").await, "+OK");
    client.until("GET new", "2").await;
    assert_eq!(client.ask("REPLICAOF NO ONE").await, "+OK");
    assert_eq!(client.ask("INCR new").await, ":3");
    let told = client.ask("INFO replication").await;
    assert!(told.contains("role:master"), "{told}");
}

#[tokio::test]
async fn keys_of_a_replica_expire_when_the_source_says_so() {
    let (listener, place) = source().await;
    let mut client = connect(serve(vec![place.clone()]).await).await;
    client.ask(&format!("REPLICAOF {}", place.replace(':', " "))).await;
    let (mut peer, _) = Peer::accept(&listener).await;
    let mark = "m".repeat(40);
    peer.write(format!("+FULLRESYNC {HISTORY} 0\r\n$EOF:{mark}\r\n").as_bytes()).await;
    // A key whose time is over already, and one that stays.
    let mut file = Vec::new();
    let mut writer = lazuli_keyspace::rdb::file::Writer::begin(10, &mut file);
    writer.key(0, b"over", Some(1000), b"\0\x01a", &mut file);
    writer.key(0, b"n", None, b"\0\x011", &mut file);
    writer.end(&mut file);
    peer.write(&file).await;
    peer.write(mark.as_bytes()).await;
    client.until("INFO replication", "master_link_status:up").await;
    assert_eq!(client.ask("GET over").await, "nothing");
    assert_eq!(client.ask("DBSIZE").await, ":2");
    // For the source the key is there, until it deletes it.
    peer.write(b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$9\r\nPEXPIREAT\r\n$4\r\nover\r\n$13\r\n4102444800000\r\n")
        .await;
    client.until("GET over", "a").await;
    peer.write(b"*2\r\n$3\r\nDEL\r\n$4\r\nover\r\n").await;
    client.until("DBSIZE", ":1").await;
}

#[tokio::test]
async fn only_named_servers_are_followed_and_what_cannot_be_followed_is_told() {
    let (listener, place) = source().await;
    let mut client = connect(serve(vec![place.clone()]).await).await;
    let refused = client.ask("REPLICAOF 127.0.0.1 1").await;
    assert!(refused.contains("cache-source-hosts"), "{refused}");
    assert_eq!(client.ask("SET k v").await, "+OK");
    client.ask(&format!("REPLICAOF {}", place.replace(':', " "))).await;
    let (mut peer, _) = Peer::accept(&listener).await;
    peer.write(format!("+FULLRESYNC {HISTORY} 0\r\n$18\r\nREDIS0010\x07\x01kmodule").as_bytes())
        .await;
    client.until("INFO replication", "holds a value of a module of Redis").await;
    assert_eq!(client.ask("REPLICAOF NO ONE").await, "+OK");
    assert_eq!(client.ask("SET k v").await, "+OK");
}
