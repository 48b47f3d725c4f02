//! Keys on their way between Debian's redis-server and the cache: its RDB file is imported, ours is loaded by it, and the
//! cache follows it while it is written to, over connections that are cut. Each time both must hold the same.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lazuli_trial::Result;
use lazuli_trial::server::Server as Lazuli;

use crate::Options;
use crate::differential::{Generator, Reply, Server};

/// How long a server may take to start, and the cache to have followed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Keys of each type that are there at first.
const KEYS: u64 = 300;
/// How long the source is written to while the cache follows it.
const LOAD: Duration = Duration::from_secs(6);
/// Commands of the load that are sent at once.
const BATCH: usize = 50;
const DATABASES: [&str; 2] = ["0", "3"];

/// A redis-server of its own. Killed when dropped.
struct Redis {
    child: Child,
    address: String,
}

impl Redis {
    fn start(folder: &Path, file: &str) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let address = free.map_err(|error| error.to_string())?;
        let child = Command::new("redis-server")
            .args(["--port", &address.port().to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(["--repl-diskless-sync-delay", "0", "--dbfilename", file])
            // Long enough for what is written while the cache is away.
            .args(["--repl-backlog-size", "256mb", "--dir"])
            .arg(folder)
            .stdout(Stdio::null())
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| format!("redis-server: {error}"))?;
        let redis = Self { child, address: address.to_string() };
        wait("redis-server accepts", || {
            let Ok(mut server) = Server::connect(&redis.address) else { return Ok(false) };
            Ok(!text(&server.ask(&["PING"])?).contains("LOADING"))
        })?;
        Ok(redis)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // Both fail only if it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait(what: &str, mut is_done: impl FnMut() -> Result<bool>) -> Result {
    let began = Instant::now();
    while !is_done()? {
        if began.elapsed() > PATIENCE {
            return Err(format!("not in time: {what}"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn text(reply: &Reply) -> String {
    match reply {
        Reply::Line(_, bytes) | Reply::Bulk(_, bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        Reply::Null(_) => String::new(),
        Reply::Many(_, all) => all.iter().map(text).collect::<Vec<_>>().join(" "),
    }
}

pub(crate) fn run(options: &Options) -> Result {
    let folder = &options.folder;
    let redis = Redis::start(&folder.join("redis"), "dump.rdb")?;
    let mut theirs = Server::connect(&redis.address)?;
    fill(&mut theirs)?;
    let ours = folder.join("ours");
    std::fs::create_dir_all(&ours).map_err(|error| error.to_string())?;
    let hosts = format!("--cache-source-hosts={}", redis.address);
    let lazuli = Lazuli::start_with(&options.binary, &ours, &[&hosts])?;
    let mut cache = Server::connect(&lazuli.endpoint("cache")?.to_string())?;

    theirs.ask(&["SAVE"])?;
    let dumped = folder.join("redis/dump.rdb").display().to_string();
    told(&options.binary, &ours, &["import", &dumped])?;
    println!("imported: {} keys are the same", same(&mut cache, &mut theirs)?);

    let exported = folder.join("second/exported.rdb").display().to_string();
    std::fs::create_dir_all(folder.join("second")).map_err(|error| error.to_string())?;
    told(&options.binary, &ours, &["export", &exported])?;
    let second = Redis::start(&folder.join("second"), "exported.rdb")?;
    let keys = same(&mut cache, &mut Server::connect(&second.address)?)?;
    println!("exported: {keys} keys are the same");
    drop(second);

    follow(&redis, &mut theirs, &mut cache)?;
    told(&options.binary, &ours, &["import", "--from", &format!("redis://{}", redis.address)])?;
    println!("copied: {} keys are the same", same(&mut cache, &mut theirs)?);
    lazuli.stop()
}

/// Runs `lazuli cache …`, which must succeed.
fn told(binary: &Path, folder: &Path, words: &[&str]) -> Result {
    let mut command = Command::new(binary);
    command.arg("cache").args(words).arg("--data").arg(folder.join("data")).stdin(Stdio::null());
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("lazuli cache {words:?}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Keys of every type in small and large forms, some of them with an end far away.
fn fill(redis: &mut Server) -> Result {
    for database in DATABASES {
        redis.ask(&["SELECT", database])?;
        for number in 0..KEYS {
            let large = if number.is_multiple_of(50) { 2000 } else { number % 7 + 1 };
            let long = "y".repeat(if number.is_multiple_of(20) { 20_000 } else { number as usize });
            let key = |kind: &str| format!("{kind}:{number}");
            redis.ask(&["SET", &key("string"), &long])?;
            redis.ask(&["SET", &key("integer"), &(number * 7919).to_string()])?;
            for each in 0..large {
                let item = format!("item{}", each * number);
                redis.push(&["RPUSH", &key("list"), &item, &each.to_string()])?;
                redis.push(&["SADD", &key("set"), &item])?;
                redis.push(&["SADD", &key("integers"), &each.to_string()])?;
                redis.push(&["HSET", &key("hash"), &item, &long[..long.len().min(90)]])?;
                redis.push(&["ZADD", &key("zset"), &format!("{}.5", each), &item])?;
                redis.push(&[
                    "XADD",
                    &key("stream"),
                    &format!("{}-{each}", each / 3 + 1),
                    "f",
                    &item,
                ])?;
            }
            redis.settle(6 * large)?;
            // Where the width of a length in a listpack changes.
            let edge = "z".repeat(16_370 + (number % 16) as usize);
            redis.ask(&["XADD", &key("stream"), "90000-1", "g", &edge])?;
            redis.ask(&["XGROUP", "CREATE", &key("stream"), "group", "0"])?;
            redis.ask(&[
                "XREADGROUP",
                "GROUP",
                "group",
                "one",
                "COUNT",
                "2",
                "STREAMS",
                &key("stream"),
                ">",
            ])?;
            if number.is_multiple_of(3) {
                for kind in ["string", "list", "stream"] {
                    redis.ask(&[
                        "PEXPIREAT",
                        &key(kind),
                        &(4_102_444_800_000 + number).to_string(),
                    ])?;
                }
            }
        }
    }
    let code = "#!lua name=moved\nredis.register_function('answer', function() return 42 end)";
    redis.ask(&["FUNCTION", "LOAD", "REPLACE", code]).map(drop)
}

/// The cache follows a server under load, whose connection to it is cut, and is one of its own in the end.
fn follow(redis: &Redis, theirs: &mut Server, cache: &mut Server) -> Result {
    let stop = Arc::new(AtomicBool::new(false));
    let load = {
        let (stop, address) = (stop.clone(), redis.address.clone());
        std::thread::spawn(move || write(&address, &stop))
    };
    let port = redis.address.rsplit(':').next().unwrap_or_default();
    let refused = text(&cache.ask(&["REPLICAOF", "127.0.0.2", port])?);
    if !refused.contains("cache-source-hosts") {
        return Err(format!("a server that nobody has named is followed: {refused}"));
    }
    cache.ask(&["REPLICAOF", "127.0.0.1", port])?;
    let is_up = |cache: &mut Server| -> Result<bool> {
        Ok(text(&cache.ask(&["INFO", "replication"])?).contains("master_link_status:up"))
    };
    wait("the cache follows", || is_up(cache))?;
    let copies = |theirs: &mut Server| -> Result<String> {
        let told = text(&theirs.ask(&["INFO", "stats"])?);
        let of = |name: &str| told.lines().find(|line| line.starts_with(name)).map(str::to_owned);
        Ok(format!(
            "{} {}",
            of("sync_full").unwrap_or_default(),
            of("sync_partial_ok").unwrap_or_default()
        ))
    };
    let before = copies(theirs)?;
    for _ in 0..3 {
        std::thread::sleep(LOAD / 3);
        theirs.ask(&["CLIENT", "KILL", "TYPE", "replica"])?;
    }
    wait("the cache follows again", || is_up(cache))?;
    let refused = text(&cache.ask(&["SET", "own", "write"])?);
    if !refused.starts_with("READONLY") {
        return Err(format!("a replica takes a write: {refused}"));
    }
    stop.store(true, Ordering::Relaxed);
    let commands = load.join().map_err(|_| "the load ended".to_owned())??;
    // The source's own WAIT says that the replica has told of everything up to this write.
    theirs.ask(&["SET", "last", "write"])?;
    let acknowledged = text(&theirs.ask(&["WAIT", "1", "60000"])?);
    if acknowledged != "1" {
        return Err(format!("the cache does not say how far it is: {acknowledged}"));
    }
    let after = copies(theirs)?;
    let keys = same(cache, theirs)?;
    println!("followed {commands} commands ({before}, then {after}): {keys} keys are the same");
    if before.split(' ').next() != after.split(' ').next() {
        return Err("a connection that was cut made the cache copy everything anew".into());
    }
    let answered = text(&cache.ask(&["FCALL", "answer", "0"])?);
    if answered != "42" {
        return Err(format!("a function did not come along: {answered}"));
    }
    let role = text(&cache.ask(&["ROLE"])?);
    cache.ask(&["REPLICAOF", "NO", "ONE"])?;
    let written = text(&cache.ask(&["SET", "own", "write"])?);
    if written != "OK" || !role.starts_with("slave 127.0.0.1") {
        return Err(format!("after {role} a write is answered by {written}"));
    }
    cache.ask(&["DEL", "own"]).map(drop)
}

/// Writes random commands until it is told to stop, and says how many.
fn write(address: &str, stop: &AtomicBool) -> Result<u64> {
    let mut server = Server::connect(address)?;
    let (mut generator, mut count) = (Generator::new(7), 0);
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..BATCH {
            let command = generator.command();
            // What waits would never end here, and what empties everything leaves little to compare.
            let name = command[0].to_ascii_uppercase();
            let is_left_out = name.starts_with(b"B") && name != b"BITOP"
                || [
                    &b"FLUSHALL"[..],
                    b"FLUSHDB",
                    b"XREAD",
                    b"XREADGROUP",
                    b"SUBSCRIBE",
                    b"MULTI",
                    b"EXEC",
                    b"DISCARD",
                    b"RESET",
                    b"HELLO",
                    b"QUIT",
                    b"CLIENT",
                ]
                .contains(&name.as_slice());
            if is_left_out {
                continue;
            }
            server.push_words(&command)?;
            count += 1;
            server.settle(1)?;
        }
    }
    Ok(count)
}

/// Compares all keys of two servers, and says how many there are.
fn same(ours: &mut Server, theirs: &mut Server) -> Result<usize> {
    let mut count = 0;
    for database in DATABASES {
        let mut listed = Vec::new();
        for server in [&mut *ours, &mut *theirs] {
            server.ask(&["SELECT", database])?;
            listed.push(sorted(server.ask(&["KEYS", "*"])?));
        }
        if listed[0] != listed[1] {
            return Err(format!(
                "database {database} has other keys:\n{}\n{}",
                listed[0], listed[1]
            ));
        }
        let Reply::Many(_, keys) = &listed[0] else { return Err("KEYS gives no list".into()) };
        for key in keys {
            let Reply::Bulk(_, key) = key else { continue };
            let (one, other) = (content(ours, key)?, content(theirs, key)?);
            if one != other {
                let key = key.escape_ascii();
                return Err(format!("{key} of database {database} is\n{one:?}\n{other:?}"));
            }
            count += 1;
        }
    }
    for server in [ours, theirs] {
        server.ask(&["SELECT", "0"])?;
    }
    Ok(count)
}

/// All that a key holds, in an order that does not depend on how it is kept.
fn content(server: &mut Server, key: &[u8]) -> Result<Vec<Reply>> {
    let mut ask = |words: &[&[u8]]| server.ask_bytes(words);
    let kind = ask(&[b"TYPE", key])?;
    let expiry = ask(&[b"PEXPIRETIME", key])?;
    let value = match text(&kind).as_str() {
        "string" => ask(&[b"GET", key])?,
        "list" => ask(&[b"LRANGE", key, b"0", b"-1"])?,
        "set" => sorted(ask(&[b"SMEMBERS", key])?),
        "zset" => ask(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"])?,
        "hash" => sorted(pairs(ask(&[b"HGETALL", key])?)),
        "stream" => {
            let told = ask(&[b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"])?;
            // How it is kept is each server's own.
            let is_own = |it: &Reply| text(it).starts_with("radix-tree");
            let Reply::Many(kind, parts) = pairs(told) else {
                return Err("XINFO gives no list".into());
            };
            let kept = parts.into_iter().filter(|it| match it {
                Reply::Many(_, pair) => !is_own(&pair[0]),
                _ => true,
            });
            timeless(Reply::Many(kind, kept.collect()))
        }
        other => return Err(format!("a key is of type {other}")),
    };
    Ok(vec![kind, expiry, value])
}

fn sorted(reply: Reply) -> Reply {
    match reply {
        Reply::Many(kind, mut all) => {
            all.sort();
            Reply::Many(kind, all)
        }
        other => other,
    }
}

/// The same without when consumers were seen last: a replica has its own clock.
fn timeless(reply: Reply) -> Reply {
    let Reply::Many(kind, mut all) = reply else { return reply };
    for at in 1..all.len() {
        if matches!(&all[at - 1], Reply::Bulk(_, name) if name == b"seen-time") {
            all[at] = Reply::Null(b'$');
        }
    }
    Reply::Many(kind, all.into_iter().map(timeless).collect())
}

/// A flat list in pairs.
fn pairs(reply: Reply) -> Reply {
    match reply {
        Reply::Many(kind, all) => {
            let pairs = all.chunks(2).map(|pair| Reply::Many(kind, pair.to_vec()));
            Reply::Many(kind, pairs.collect())
        }
        other => other,
    }
}
