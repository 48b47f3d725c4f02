//! `lazuli cache` with the real program.

use std::io::{Read, Write};
use std::net::TcpStream;

use lazuli_resp::{Answer, read_answer};

use crate::program::{Server, run, stderr};

/// A client of the cache.
struct Client(TcpStream);

impl Client {
    fn connect(server: &Server) -> Self {
        Self(TcpStream::connect(server.endpoint("cache")).unwrap())
    }

    fn ask(&mut self, words: &[&str]) -> Answer {
        let mut bytes = format!("*{}\r\n", words.len());
        words.iter().for_each(|it| bytes.push_str(&format!("${}\r\n{it}\r\n", it.len())));
        self.0.write_all(bytes.as_bytes()).unwrap();
        let mut received = Vec::new();
        loop {
            let mut piece = [0; 4096];
            let length = self.0.read(&mut piece).unwrap();
            assert!(length > 0, "the server closed the connection");
            received.extend_from_slice(&piece[..length]);
            if let Some((answer, _)) = read_answer(&received).unwrap() {
                return answer;
            }
        }
    }
}

const LIBRARY: &str = "#!lua name=lib\nredis.register_function('answer', function() return 42 end)";

/// Keys of all types, in two databases.
fn fill(client: &mut Client) {
    for number in 0..300 {
        client.ask(&["SET", &format!("user:{number}"), &"x".repeat(number)]);
    }
    client.ask(&["RPUSH", "list", "a", "b"]);
    client.ask(&["SADD", "set", "a", "b"]);
    client.ask(&["ZADD", "zset", "1.5", "a"]);
    client.ask(&["HSET", "hash", "f", "v"]);
    client.ask(&["XADD", "stream", "1-1", "f", "v"]);
    client.ask(&["PEXPIREAT", "list", "4102444800000"]);
    client.ask(&["SELECT", "3"]);
    client.ask(&["SET", "three", "3"]);
    client.ask(&["SELECT", "0"]);
    client.ask(&["FUNCTION", "LOAD", LIBRARY]);
}

#[test]
fn keys_are_listed_ranked_and_deleted_by_pattern() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let mut client = Client::connect(&server);
    fill(&mut client);
    let map = server.json(&["cache", "map"]);
    assert_eq!((&map["slots"][0]["first"], &map["slots"][0]["last"]), (&0.into(), &16383.into()));
    assert_eq!(map["slots"][0]["address"], server.endpoint("cache"));
    let scanned = server.json(&["cache", "scan", "--match", "user:*", "--limit", "1000"]);
    assert_eq!(scanned["keys"].as_array().unwrap().len(), 300);
    assert_eq!(server.command(&["cache", "scan", "--type", "stream"]), "stream\n");
    let some = server.json(&["cache", "scan", "--limit", "7"]);
    assert_eq!((some["keys"].as_array().unwrap().len(), &some["more"]), (7, &true.into()));
    let top = server.json(&["cache", "top", "--count", "3"]);
    assert_eq!((&top["keys"], top["biggest"].as_array().unwrap().len()), (&305.into(), 3));
    let biggest = top["biggest"].as_array().unwrap();
    assert!(biggest[0]["bytes"].as_u64() >= biggest[1]["bytes"].as_u64());
    assert!(biggest.iter().any(|it| it["key"] == "user:299"), "{biggest:?}");
    client.ask(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lfu"]);
    (0..2000).for_each(|_| drop(client.ask(&["GET", "user:5"])));
    let top = server.json(&["cache", "top", "--count", "3"]);
    assert_eq!(top["most_used"][0]["key"], "user:5");
    let deleted = server.json(&["cache", "delete", "--match", "user:1*", "--yes"]);
    assert_eq!(deleted["deleted"], 111);
    assert_eq!(client.ask(&["DBSIZE"]), Answer::Integer(194));
    let three = server.json(&["cache", "scan", "--database", "3"]);
    assert_eq!(three["keys"], serde_json::json!(["three"]));
}

#[test]
fn what_is_exported_is_imported_into_another_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let mut client = Client::connect(&server);
    fill(&mut client);
    let exported = server.json(&["cache", "export", "all.rdb"]);
    assert_eq!((&exported["keys"], &exported["libraries"]), (&306.into(), &1.into()));
    let again = run(folder.path(), &["cache", "export", "all.rdb"]);
    assert!(stderr(&again).contains("is there already"), "{}", stderr(&again));
    let bytes = std::fs::read(folder.path().join("all.rdb")).unwrap();
    assert!(bytes.starts_with(b"REDIS0010"));

    let kept = server.json(&["cache", "import", "all.rdb"]);
    assert_eq!((&kept["keys"], &kept["kept"]), (&0.into(), &307.into()));
    client.ask(&["FLUSHALL"]);
    client.ask(&["FUNCTION", "FLUSH"]);
    let imported = server.json(&["cache", "import", "all.rdb"]);
    assert_eq!((&imported["keys"], &imported["libraries"]), (&306.into(), &1.into()));
    assert_eq!(client.ask(&["PEXPIRETIME", "list"]), Answer::Integer(4_102_444_800_000));
    assert_eq!(client.ask(&["FCALL", "answer", "0"]), Answer::Integer(42));
    assert_eq!(client.ask(&["XLEN", "stream"]), Answer::Integer(1));

    client.ask(&["HPEXPIREAT", "hash", "4102444800000", "FIELDS", "1", "f"]);
    let refused = run(folder.path(), &["cache", "export", "fields.rdb"]);
    assert!(stderr(&refused).contains("`hash` is a hash with fields"), "{}", stderr(&refused));
    server.command(&["cache", "export", "fields.rdb", "--rdb-version", "12"]);
    client.ask(&["FLUSHALL"]);
    server.command(&["cache", "import", "fields.rdb"]);
    let times = client.ask(&["HPEXPIRETIME", "hash", "FIELDS", "1", "f"]);
    assert_eq!(times, Answer::Array(vec![Answer::Integer(4_102_444_800_000)]));

    std::fs::write(folder.path().join("cut.rdb"), &bytes[..bytes.len() / 2]).unwrap();
    let cut = run(folder.path(), &["cache", "import", "cut.rdb", "--replace"]);
    assert!(stderr(&cut).contains("ends too early"), "{}", stderr(&cut));
    let unnamed = run(folder.path(), &["cache", "import", "--from", "redis://127.0.0.1:1"]);
    assert!(stderr(&unnamed).contains("cache-source-hosts"), "{}", stderr(&unnamed));
}

#[test]
fn functions_of_a_durable_cache_survive_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let durable = ["--cache-persistence", "always"];
    let mut server = Server::start_with(folder.path(), &durable, &[]);
    let mut client = Client::connect(&server);
    let code = |name: &str| LIBRARY.replace("lib", name).replace("answer", &format!("of_{name}"));
    for name in ["one", "two", "three"] {
        let loaded = client.ask(&["FUNCTION", "LOAD", &code(name)]);
        assert_eq!(loaded, Answer::Bulk(name.into()));
    }
    client.ask(&["FUNCTION", "DELETE", "two"]);
    server.signal("-KILL");
    server.wait();
    let server = Server::start_with(folder.path(), &durable, &[]);
    let mut client = Client::connect(&server);
    assert_eq!(client.ask(&["FCALL", "of_one", "0"]), Answer::Integer(42));
    assert_eq!(client.ask(&["FCALL", "of_three", "0"]), Answer::Integer(42));
    assert!(matches!(client.ask(&["FCALL", "of_two", "0"]), Answer::Error(_)));
}
