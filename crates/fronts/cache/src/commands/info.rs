//! INFO: figures in sections, as tools read them.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use crate::call::Call;
use crate::command::{Run, TABLE};
use crate::commands::connection::VERSION;
use crate::failure::Failure;
use crate::pubsub::Kind;

pub(super) const RUNS: &[(&str, Run)] = &[("info", info)];

/// The sections of INFO without arguments, in their order.
const DEFAULT: [&str; 11] = [
    "server",
    "clients",
    "memory",
    "persistence",
    "stats",
    "replication",
    "cpu",
    "modules",
    "errorstats",
    "cluster",
    "keyspace",
];
const OTHERS: [&str; 2] = ["commandstats", "latencystats"];

fn info(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let mut wanted: Vec<&str> = Vec::new();
    for argument in call.args.from(1).iter() {
        let name = String::from_utf8_lossy(argument).to_ascii_lowercase();
        match name.as_str() {
            "default" => wanted.extend(DEFAULT),
            "all" | "everything" => wanted.extend(DEFAULT.iter().chain(&OTHERS)),
            name => wanted.extend(DEFAULT.iter().chain(&OTHERS).filter(|it| **it == name)),
        }
    }
    if call.args.len() == 1 {
        wanted.extend(DEFAULT);
    }
    let mut text = String::new();
    for section in DEFAULT.iter().chain(&OTHERS).filter(|it| wanted.contains(it)) {
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let mut title = (*section).to_owned();
        title[..1].make_ascii_uppercase();
        let title = match *section {
            "cpu" => "CPU".to_owned(),
            _ => title,
        };
        let _ = write!(text, "# {title}\r\n");
        let fields = fields(call, section);
        for (name, value) in fields {
            let _ = write!(text, "{name}:{value}\r\n");
        }
    }
    call.out.verbatim("txt", &text);
    Ok(())
}

type Fields = Vec<(String, String)>;

fn fields(call: &mut Call<'_, '_>, section: &str) -> Fields {
    match section {
        "server" => server(call),
        "clients" => clients(call),
        "memory" => memory(call),
        "persistence" => persistence(call),
        "stats" => stats(call),
        "replication" => replication(call),
        "cpu" => cpu(),
        "errorstats" => errors(call),
        "commandstats" => commands(call),
        "cluster" => {
            let is_on = u8::from(call.session.cluster_node.is_some());
            let mut fields = vec![named("cluster_enabled", is_on)];
            // Which listener has which slots, for `lazuli cache map`.
            for range in call.server.cluster.iter().flat_map(|it| it.ranges().to_vec()) {
                let host = call.server.cluster.as_ref().map(|it| it.host(call.session, range.node));
                let (host, port) = host.unwrap_or_default();
                let value = format!("{}-{}@{host}:{port}", range.first, range.last);
                fields.push(named("lazuli_slots", value));
            }
            fields
        }
        "keyspace" => keyspace(call),
        _ => Vec::new(),
    }
}

fn named(name: &str, value: impl ToString) -> (String, String) {
    (name.to_owned(), value.to_string())
}

fn server(call: &Call<'_, '_>) -> Fields {
    let uptime_s = call.now_ms().saturating_sub(call.server.began_ms) / 1000;
    let mode = if call.session.cluster_node.is_some() { "cluster" } else { "standalone" };
    vec![
        named("redis_version", VERSION),
        named("server_name", "lazuli"),
        named("redis_mode", mode),
        named("os", std::env::consts::OS),
        named("arch_bits", 64),
        named("process_id", std::process::id()),
        named("run_id", &call.server.run_id),
        named("tcp_port", call.session.local.port()),
        named("server_time_usec", call.now_ms() * 1000),
        named("uptime_in_seconds", uptime_s),
        named("uptime_in_days", uptime_s / 86_400),
        named("hz", 10),
    ]
}

fn clients(call: &Call<'_, '_>) -> Fields {
    vec![
        named("connected_clients", call.server.clients.count()),
        named("maxclients", call.server.clients_max),
        named("blocked_clients", call.server.waiters.count()),
        named("tracking_clients", call.server.tracking.count.load(Ordering::Relaxed)),
    ]
}

/// A number of bytes for people.
fn human(bytes: u64) -> String {
    let bytes = bytes as f64;
    let units = [("G", 1u64 << 30), ("M", 1 << 20), ("K", 1 << 10)];
    let unit = units.iter().find(|(_, size)| bytes >= *size as f64);
    unit.map_or(format!("{bytes}B"), |(name, size)| format!("{:.2}{name}", bytes / *size as f64))
}

fn memory(call: &Call<'_, '_>) -> Fields {
    let keyspace = &call.server.keyspace;
    let (used, max) = (keyspace.used_bytes(), keyspace.memory_max());
    let peak = call.server.stats.peak_bytes.fetch_max(used, Ordering::Relaxed).max(used);
    let rss = resident_bytes().unwrap_or(used);
    let ratio = if used == 0 { 0.0 } else { rss as f64 / used as f64 };
    vec![
        named("used_memory", used),
        named("used_memory_human", human(used)),
        named("used_memory_rss", rss),
        named("used_memory_rss_human", human(rss)),
        named("used_memory_peak", peak),
        named("used_memory_peak_human", human(peak)),
        named("used_memory_dataset", used),
        named("maxmemory", max),
        named("maxmemory_human", human(max)),
        named("maxmemory_policy", keyspace.policy().name()),
        named("mem_fragmentation_ratio", format!("{ratio:.2}")),
        named("mem_allocator", "mimalloc"),
        named("lazyfree_pending_objects", 0),
    ]
}

/// What the process takes of the machine's memory.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

fn persistence(call: &Call<'_, '_>) -> Fields {
    let keyspace = &call.server.keyspace;
    let is_on = u8::from(keyspace.is_persistent());
    let saved_s = keyspace.saved_at_ms().unwrap_or(call.server.began_ms) / 1000;
    vec![
        named("loading", u8::from(call.server.replication.is_loading())),
        named("lazuli_persistence", keyspace.promise()),
        named("rdb_changes_since_last_save", keyspace.waiting_bytes()),
        named("rdb_bgsave_in_progress", 0),
        named("rdb_last_save_time", saved_s),
        named("rdb_last_bgsave_status", if keyspace.is_failing() { "err" } else { "ok" }),
        named("aof_enabled", is_on),
        named("aof_rewrite_in_progress", 0),
        named("aof_last_write_status", if keyspace.is_failing() { "err" } else { "ok" }),
    ]
}

fn stats(call: &mut Call<'_, '_>) -> Fields {
    let counts = call.space.totals();
    let (stats, server) = (&call.server.stats, call.server);
    let (traffic, copies) = (server.metrics.counts(), server.keyspace.copy_counts());
    vec![
        named("total_connections_received", stats.connections.load(Ordering::Relaxed)),
        named("total_commands_processed", stats.commands.load(Ordering::Relaxed)),
        named("instantaneous_ops_per_sec", stats.commands_per_second()),
        named("total_net_input_bytes", traffic.received_bytes),
        named("total_net_output_bytes", traffic.sent_bytes),
        named("rejected_connections", 0),
        named("expired_keys", counts.expired),
        named("evicted_keys", counts.evicted),
        named("keyspace_hits", counts.hits),
        named("keyspace_misses", counts.misses),
        named("pubsub_channels", server.pubsub.count(Kind::Channel)),
        named("pubsub_patterns", server.pubsub.count(Kind::Pattern)),
        named("pubsubshard_channels", server.pubsub.count(Kind::Shard)),
        named("tracking_total_keys", copies.keys),
        named("tracking_total_items", copies.items),
        named("tracking_total_prefixes", server.tracking.prefix_count()),
        named("latest_fork_usec", 0),
        named("migrate_cached_sockets", 0),
        named("total_error_replies", errors(call).len()),
    ]
}

fn replication(call: &Call<'_, '_>) -> Fields {
    let followed = super::replication::figures(call);
    followed.unwrap_or_else(|| alone(call))
}

fn alone(call: &Call<'_, '_>) -> Fields {
    vec![
        named("role", "master"),
        named("connected_slaves", 0),
        named("master_failover_state", "no-failover"),
        named("master_replid", &call.server.run_id),
        named("master_repl_offset", 0),
        named("repl_backlog_active", 0),
    ]
}

fn cpu() -> Fields {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name of the program, which may hold blanks, user and system time are the 12th and 13th field, in ticks.
    let after = text.rsplit(')').next().unwrap_or_default();
    let mut fields = after.split_whitespace().skip(11);
    let mut seconds =
        || fields.next().and_then(|it| it.parse::<f64>().ok()).unwrap_or_default() / 100.0;
    let (user, system) = (seconds(), seconds());
    vec![
        named("used_cpu_sys", format!("{system:.6}")),
        named("used_cpu_user", format!("{user:.6}")),
    ]
}

fn errors(call: &Call<'_, '_>) -> Fields {
    let errors = call.server.stats.errors.lock();
    let errors = errors.unwrap_or_else(std::sync::PoisonError::into_inner);
    let one =
        |(code, count): (&String, &u64)| (format!("errorstat_{code}"), format!("count={count}"));
    errors.iter().map(one).collect()
}

fn commands(call: &Call<'_, '_>) -> Fields {
    let all = call.server.stats.by_command.iter().zip(&TABLE.commands);
    let get = |it: &std::sync::atomic::AtomicU64| it.load(Ordering::Relaxed);
    let used = all.filter(|(counts, _)| get(&counts.calls) + get(&counts.rejected) > 0);
    let line = |(counts, command): (&crate::stats::CommandCounts, &crate::command::Command)| {
        let (calls, micros) = (get(&counts.calls), get(&counts.micros));
        let each = if calls == 0 { 0.0 } else { micros as f64 / calls as f64 };
        let (rejected, failed) = (get(&counts.rejected), get(&counts.failed));
        let value = format!(
            "calls={calls},usec={micros},usec_per_call={each:.2},rejected_calls={rejected},\
             failed_calls={failed}"
        );
        (format!("cmdstat_{}", command.name), value)
    };
    used.map(line).collect()
}

fn keyspace(call: &mut Call<'_, '_>) -> Fields {
    let databases = call.server.keyspace.databases();
    let all: Vec<_> = (0..databases).map(|number| (number, call.space.counts(number))).collect();
    let used = all.into_iter().filter(|(_, counts)| counts.keys > 0);
    let line = |(number, counts): (usize, lazuli_keyspace::DatabaseCounts)| {
        let value = format!(
            "keys={},expires={},avg_ttl={}",
            counts.keys, counts.expires, counts.average_ttl_ms
        );
        (format!("db{number}"), value)
    };
    used.map(line).collect()
}
