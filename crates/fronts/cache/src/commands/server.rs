//! The server itself: databases as a whole, parameters, the log of slow commands, memory.

use std::sync::atomic::Ordering;
use std::time::Duration;

use lazuli_resp::parse_integer;

use crate::call::{After, Call};
use crate::command::Run;
use crate::commands::keys::database;
use crate::config::{Obeys, Refused};
use crate::failure::Failure;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("bgsave", bgsave),
    ("config|get", config_get),
    ("config|resetstat", config_resetstat),
    ("config|set", config_set),
    ("debug", debug),
    ("failover", no_replica),
    ("flushall", flushall),
    ("flushdb", flushdb),
    ("lastsave", lastsave),
    ("lolwut", lolwut),
    ("monitor", monitor),
    ("object|encoding", object_encoding),
    ("object|freq", object_freq),
    ("object|idletime", object_idletime),
    ("object|refcount", object_refcount),
    ("save", save),
    ("shutdown", shutdown),
    ("slowlog|get", slowlog_get),
    ("slowlog|len", slowlog_len),
    ("slowlog|reset", slowlog_reset),
    ("swapdb", swapdb),
    ("time", time),
    ("wait", wait),
];

fn no_replica(_: &mut Call<'_, '_>) -> Result<(), Failure> {
    Err(Failure::of("ERR FAILOVER requires connected replicas."))
}

fn flush_mode(call: &Call<'_, '_>) -> Result<(), Failure> {
    match call.args.len() {
        1 => Ok(()),
        2 if call.args.is(1, "async") || call.args.is(1, "sync") => Ok(()),
        _ => Err(Failure::SYNTAX),
    }
}

fn flushdb(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    flush_mode(call)?;
    let cleared = call.space.clear(call.space.database);
    call.server.free(cleared);
    call.out.ok();
    Ok(())
}

fn flushall(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    flush_mode(call)?;
    for number in 0..call.server.keyspace.databases() {
        let cleared = call.space.clear(number);
        call.server.free(cleared);
    }
    call.out.ok();
    Ok(())
}

fn swapdb(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let number = |index: usize, text: &'static str| {
        parse_integer(call.args.at(index)).ok_or(Failure::of(text))
    };
    number(1, "ERR invalid first DB index")?;
    number(2, "ERR invalid second DB index")?;
    if call.session.cluster_node.is_some() {
        return Err(Failure::of("ERR SWAPDB is not allowed in cluster mode"));
    }
    let (first, second) = (database(call, 1)?, database(call, 2)?);
    call.space.swap(first, second);
    call.out.ok();
    Ok(())
}

fn time(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let now = call.now_ms();
    call.out.array(2);
    call.out.text(&(now / 1000).to_string());
    call.out.text(&(now % 1000 * 1000).to_string());
    Ok(())
}

fn config_get(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let patterns: Vec<&[u8]> = call.args.from(2).iter().collect();
    let found = call.server.config.get(&patterns);
    call.out.map(found.len());
    for (name, value) in found {
        call.out.text(&name);
        call.out.text(&value);
    }
    Ok(())
}

fn config_set(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let args = call.args;
    if !args.len().is_multiple_of(2) {
        return Err(crate::dispatch::wrong_arity(call.command));
    }
    let obeys = Obeys { keyspace: &call.server.keyspace, latency: &call.server.latency };
    for at in (2..args.len()).step_by(2) {
        let name = String::from_utf8_lossy(args.at(at)).into_owned();
        let value = String::from_utf8_lossy(args.at(at + 1)).into_owned();
        let why = match call.server.config.set(obeys, &name, &value) {
            Ok(()) => continue,
            Err(Refused::Unknown) => {
                let text = "ERR Unknown option or number of arguments for CONFIG SET";
                return Err(Failure::new(format!("{text} - '{name}'")));
            }
            Err(Refused::Fixed) => "can't set immutable config",
            Err(Refused::Invalid(why)) => why,
        };
        let text = "ERR CONFIG SET failed (possibly related to argument";
        return Err(Failure::new(format!("{text} '{name}') - {why}")));
    }
    call.out.ok();
    Ok(())
}

fn config_resetstat(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let stats = &call.server.stats;
    for counts in &stats.by_command {
        for count in [&counts.calls, &counts.micros, &counts.rejected, &counts.failed] {
            count.store(0, Ordering::Relaxed);
        }
    }
    stats.errors.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
    stats.connections.store(0, Ordering::Relaxed);
    call.server.latency.reset_histograms();
    call.out.ok();
    Ok(())
}

fn slowlog_get(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let most = match call.args.get(2) {
        None => 10,
        Some(text) => {
            let most = parse_integer(text).filter(|it| *it >= -1);
            let most =
                most.ok_or(Failure::of("ERR count should be greater than or equal to -1"))?;
            usize::try_from(most).unwrap_or(usize::MAX)
        }
    };
    let log = call.server.stats.slow();
    call.out.array(log.1.len().min(most));
    for slow in log.1.iter().take(most) {
        call.out.array(6);
        call.out.integer(slow.id as i64);
        call.out.integer((slow.at_ms / 1000) as i64);
        call.out.integer(slow.micros as i64);
        call.out.array(slow.args.len());
        slow.args.iter().for_each(|it| call.out.bulk(it));
        call.out.text(&slow.peer);
        call.out.text(&slow.name);
    }
    Ok(())
}

fn slowlog_len(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let length = call.server.stats.slow().1.len();
    call.out.count(length);
    Ok(())
}

fn slowlog_reset(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    call.server.stats.slow().1.clear();
    call.out.ok();
    Ok(())
}

fn object_encoding(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let found = call.space.peek(call.args.at(2)).map(lazuli_keyspace::Entry::encoding);
    call.out.bulk_or_null(found.map(str::as_bytes));
    Ok(())
}

fn object_refcount(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    match call.space.peek(call.args.at(2)) {
        Some(_) => call.out.integer(1),
        None => call.out.null(),
    }
    Ok(())
}

fn object_idletime(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let keyspace = call.server.keyspace.clone();
    if keyspace.policy().is_by_frequency() {
        return Err(Failure::of(
            "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when \
             switching between policies at runtime LRU and LFU data will take some time to adjust.",
        ));
    }
    match call.space.peek(call.args.at(2)).map(lazuli_keyspace::Entry::clock) {
        Some(clock) => call.out.integer(keyspace.idle_s(clock) as i64),
        None => call.out.null(),
    }
    Ok(())
}

fn object_freq(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let keyspace = call.server.keyspace.clone();
    if !keyspace.policy().is_by_frequency() {
        return Err(Failure::of(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note \
             that when switching between policies at runtime LRU and LFU data will take some time \
             to adjust.",
        ));
    }
    match call.space.peek(call.args.at(2)).map(lazuli_keyspace::Entry::clock) {
        Some(clock) => call.out.integer(i64::from(keyspace.frequency(clock))),
        None => call.out.null(),
    }
    Ok(())
}

/// There are no replicas: the store is what makes writes durable.
fn wait(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    if call.server.replication.is_replica() {
        return Err(Failure::of(
            "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 \
             if a replica is configured to be writable (which is not the default) writes to replicas \
             are just local and are not propagated.",
        ));
    }
    call.integer(1)?;
    let time = call.integer(2)?;
    if time < 0 {
        return Err(Failure::NEGATIVE_TIMEOUT);
    }
    call.out.integer(0);
    Ok(())
}

/// Puts all that was written on disk before it answers.
fn save(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    persistent(call)?;
    call.after = After::Flush;
    call.out.ok();
    Ok(())
}

fn bgsave(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    persistent(call)?;
    call.out.simple("Background saving started");
    Ok(())
}

fn persistent(call: &Call<'_, '_>) -> Result<(), Failure> {
    match call.server.keyspace.is_persistent() {
        true => Ok(()),
        false => Err(Failure::of("ERR persistence is off (the setting cache-persistence)")),
    }
}

fn lastsave(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let at = call.server.keyspace.saved_at_ms().unwrap_or(call.server.began_ms);
    call.out.integer((at / 1000) as i64);
    Ok(())
}

/// The process serves more than the cache: it is ended by the means of its system.
fn shutdown(_: &mut Call<'_, '_>) -> Result<(), Failure> {
    Err(Failure::of("ERR Errors trying to SHUTDOWN. Check logs."))
}

fn monitor(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    call.server.monitors.add(&call.session.client);
    call.session.is_monitor = true;
    call.out.ok();
    Ok(())
}

fn lolwut(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let text = format!("Lazuli speaks Redis ver. {}\n", super::connection::VERSION);
    call.out.verbatim("txt", &text);
    Ok(())
}

/// What test suites need of DEBUG.
fn debug(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let args = call.args;
    if args.is(1, "sleep") && args.len() == 3 {
        let seconds = call.double(2)?.clamp(0.0, 60.0);
        call.after = After::Sleep(Duration::from_secs_f64(seconds));
        call.out.ok();
        return Ok(());
    }
    if args.is(1, "object") && args.len() == 3 {
        let found = call.space.peek(args.at(2)).map(|it| (it.encoding(), it.bytes()));
        let (encoding, bytes) = found.ok_or(Failure::NO_SUCH_KEY)?;
        let text = "Value at:0x0 refcount:1 encoding:";
        call.out
            .simple(&format!("{text}{encoding} serializedlength:{bytes} lru:0 lru_seconds_idle:0"));
        return Ok(());
    }
    let switches =
        ["set-active-expire", "jmap", "quicklist-packed-threshold", "set-disable-deny-scripts"];
    if switches.iter().any(|it| args.is(1, it)) && args.len() == 3 && !args.is(1, "jmap") {
        if args.is(1, "set-active-expire") {
            let is_on = args.at(2) == b"1";
            call.server.expires_actively.store(is_on, Ordering::Relaxed);
        }
        call.out.ok();
        return Ok(());
    }
    let name = String::from_utf8_lossy(args.at(1)).into_owned();
    Err(Failure::new(format!("ERR unknown subcommand '{name}'. Try DEBUG HELP.")))
}
