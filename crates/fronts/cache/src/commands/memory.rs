//! MEMORY: what keys take, and what is known of the rest. There are no figures of an allocator.

use std::sync::atomic::Ordering;

use crate::call::Call;
use crate::command::Run;
use crate::failure::Failure;

pub(super) const RUNS: &[(&str, Run)] = &[
    ("memory|doctor", doctor),
    ("memory|purge", purge),
    ("memory|stats", stats),
    ("memory|usage", usage),
];

fn purge(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    call.out.ok();
    Ok(())
}

fn doctor(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let used = call.server.keyspace.used_bytes();
    let text = format!("Keys and values take {used} bytes. INFO memory has more figures.\n");
    call.out.verbatim("txt", &text);
    Ok(())
}

fn usage(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    match call.args.len() {
        3 => {}
        5 if call.args.is(3, "samples") => {
            call.integer(4).ok().filter(|it| *it >= 0).ok_or(Failure::SYNTAX)?;
        }
        _ => return Err(Failure::SYNTAX),
    }
    match call.space.peek(call.args.at(2)).map(lazuli_keyspace::Entry::bytes) {
        Some(bytes) => call.out.count(bytes),
        None => call.out.null(),
    }
    Ok(())
}

/// A percentage, as the service shows it.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

fn stats(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let keyspace = call.server.keyspace.clone();
    let used = keyspace.used_bytes();
    let peak = call.server.stats.peak_bytes.fetch_max(used, Ordering::Relaxed).max(used);
    let overheads: Vec<_> = (0..keyspace.databases())
        .map(|number| (number, call.space.counts(number).keys, call.space.table_bytes(number)))
        .filter(|(_, keys, _)| *keys > 0)
        .collect();
    let keys: usize = overheads.iter().map(|it| it.1).sum();
    let (tables, expiries) = overheads
        .iter()
        .fold((0, 0), |sum, (_, _, (table, expiry))| (sum.0 + table, sum.1 + expiry));
    let overhead = (tables + expiries) as u64 + keyspace.waiting_bytes();
    let scripts = call.server.scripts.bytes();
    let numbers = [
        ("peak.allocated", peak),
        ("total.allocated", used),
        ("replication.backlog", 0),
        ("clients.slaves", 0),
        ("cluster.links", 0),
        ("aof.buffer", keyspace.waiting_bytes()),
        ("lua.caches", scripts.0 as u64),
        ("functions.caches", scripts.1 as u64),
        ("overhead.total", overhead),
        ("keys.count", keys as u64),
        ("keys.bytes-per-key", used.checked_div(keys as u64).unwrap_or_default()),
        ("dataset.bytes", used),
    ];
    let out = &mut *call.out;
    out.map(numbers.len() + overheads.len() + 2);
    for (name, number) in numbers {
        out.text(name);
        out.integer(number as i64);
    }
    for (number, _, (table, expiry)) in overheads {
        out.text(&format!("db.{number}"));
        out.map(2);
        out.text("overhead.hashtable.main");
        out.count(table);
        out.text("overhead.hashtable.expires");
        out.count(expiry);
    }
    out.text("dataset.percentage");
    out.double(percent(used, used + overhead));
    out.text("peak.percentage");
    out.double(percent(used, peak));
    Ok(())
}
