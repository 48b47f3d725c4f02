//! The cache against Debian's redis-server, with its redis-benchmark as the client of both, in turns on the same keys.
//!
//! `peers` starts the servers and says what they take, `client` fills them and has redis-benchmark ask them. A figure is a
//! run of one command at one size and pipeline; what a command collects (a list, a set, a hash) is deleted before it, so that both sides
//! begin with the same keys.

mod client;
mod peers;

use std::time::Duration;

use super::{Options, Result};
use crate::figures::median;
use crate::report::{Report, Turns};
use client::{Figure, Run};
use peers::{Kind, Peer};

/// Keys that are there before anything is measured, if `--entities` says nothing else.
const SIZES: [usize; 2] = [64, 1_024];
/// How many rounds there are; the sides take turns within each.
const ROUNDS: usize = 5;
const ROUNDS_QUICK: usize = 3;
/// The share of Redis' 168 bytes for each key that 130 bytes are.
const BYTES_SHARE_MAX: f64 = 130.0 / 168.0;
/// What persistence may leave at least.
const EVERYSEC_SHARE_LEAST: f64 = 0.85;
/// Unpipelined, the client is the limit.
const ALONE_SHARE_LEAST: f64 = 0.95;

/// A command of redis-benchmark.
struct Load {
    name: &'static str,
    /// About how many requests a second Redis takes, without and with a pipeline: it makes a figure as long as it should be.
    rates: [u64; 2],
    /// The share of Redis' rate that is asked for with a pipeline of 16.
    least: f64,
    /// The key under which it collects.
    collects: Option<&'static str>,
}

const fn load(name: &'static str, rates: [u64; 2], least: f64) -> Load {
    Load { name, rates, least, collects: None }
}

const LOADS: [Load; 7] = [
    load("set", [80_000, 400_000], 1.3),
    load("get", [80_000, 450_000], 1.3),
    load("mset", [40_000, 60_000], 1.5),
    load("incr", [80_000, 600_000], 1.0),
    Load { collects: Some("mylist"), ..load("lpush", [80_000, 500_000], 1.0) },
    Load { collects: Some("myzset"), ..load("zadd", [80_000, 200_000], 1.5) },
    Load { collects: Some("myhash"), ..load("hset", [80_000, 400_000], 1.3) },
];

/// Requests on their way on each connection.
const PIPELINES: [usize; 2] = [1, 16];

/// What is also measured with persistence.
const PERSISTED: [&str; 3] = ["set", "incr", "hset"];

pub fn run(options: &Options) -> Result<Report> {
    let mut report = Report::default();
    for size in SIZES {
        if options.wants(&size.to_string()) {
            sized(options, size, &mut report)?;
        }
    }
    if options.wants("persistence") {
        persistence(options, &mut report)?;
    }
    Ok(report)
}

fn rounds(options: &Options) -> usize {
    if is_quick(options) { ROUNDS_QUICK } else { ROUNDS }
}

fn is_quick(options: &Options) -> bool {
    options.time < Duration::from_secs(2)
}

/// All commands with values of one size, on servers of their own.
fn sized(options: &Options, size: usize, report: &mut Report) -> Result {
    let ours = Peer::start(options, Kind::Ours { is_persistent: false })?;
    let theirs = Peer::start(options, Kind::Redis { is_persistent: false })?;
    let keys = options.entities;
    report.say(format_args!("\nvalues of {size} bytes, {keys} keys in place"));
    bytes(&ours, &theirs, keys, size, report)?;
    report.say(HEAD);
    for load in &LOADS {
        for (at, pipeline) in PIPELINES.into_iter().enumerate() {
            let run = Run::new(load, at, pipeline, size, options);
            let mut sides: [Vec<Figure>; 2] = [Vec::new(), Vec::new()];
            for round in 0..rounds(options) {
                in_turn(round, |side| {
                    let peer = [&ours, &theirs][side];
                    sides[side].push(client::measure(peer, &run)?);
                    Ok(())
                })?;
            }
            let least = if pipeline == 1 { ALONE_SHARE_LEAST } else { load.least };
            row(&run.name(), &sides, least, report);
        }
    }
    Ok(())
}

/// Both sides, a different one first in every round.
fn in_turn(round: usize, mut measure: impl FnMut(usize) -> Result) -> Result {
    for turn in 0..2 {
        measure((round + turn) % 2)?;
    }
    Ok(())
}

const HEAD: &str = "| command | ours/s | Redis/s | share | bound | ours CPU us | Redis CPU us | ours p99 ms | Redis p99 ms | |\n\
                    |---|---|---|---|---|---|---|---|---|---|";

/// One line of the table with the medians of both sides, judged by the share of the rates.
fn row(name: &str, [ours, theirs]: &[Vec<Figure>; 2], least: f64, report: &mut Report) {
    let rates = |side: &[Figure]| side.iter().map(|it| it.per_second).collect();
    let turns = Turns { ours: rates(ours), theirs: rates(theirs) };
    let [own, others] = turns.medians();
    let of = |side: &[Figure], what: fn(&Figure) -> f64| median(side.iter().map(what));
    let cpu = [ours, theirs].map(|side| of(side, |it| it.cpu_us));
    let p99 = [ours, theirs].map(|side| of(side, |it| it.p99_ms));
    let share = turns.share();
    let line = format!(
        "| {name} | {own:.0} | {others:.0} | {share:.2} | {least:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
        cpu[0], cpu[1], p99[0], p99[1]
    );
    eprintln!("{line}");
    report.judge(line, share >= least);
}

/// Fills both, and compares what a key takes, by the process and by the server's own count.
fn bytes(ours: &Peer, theirs: &Peer, keys: u64, size: usize, report: &mut Report) -> Result {
    let mut each = Vec::new();
    for peer in [ours, theirs] {
        let before = (peer.memory()?, client::used_memory(peer.address)?);
        client::fill(peer.address, keys, size)?;
        peer.settle();
        let after = (peer.memory()?, client::used_memory(peer.address)?);
        let for_key = |before: u64, after: u64| after.saturating_sub(before) as f64 / keys as f64;
        each.push((for_key(before.0, after.0), for_key(before.1, after.1)));
    }
    let [(ours, ours_told), (theirs, theirs_told)] = [each[0], each[1]];
    report.say(format_args!(
        "bytes for a key: ours {ours:.0} by RSS, {ours_told:.0} by INFO; Redis {theirs:.0} and {theirs_told:.0}"
    ));
    if size == SIZES[0] {
        // The bound was found on values of 64 bytes.
        report.at_most("bytes for a key, RSS, ours / Redis", ours / theirs, BYTES_SHARE_MAX);
    }
    Ok(())
}

/// The price of persistence: servers with and without it, in turns, each with all keys in place.
fn persistence(options: &Options, report: &mut Report) -> Result {
    let kinds = [
        Kind::Ours { is_persistent: false },
        Kind::Ours { is_persistent: true },
        Kind::Redis { is_persistent: false },
        Kind::Redis { is_persistent: true },
    ];
    let peers = kinds.map(|kind| Peer::start(options, kind));
    let peers = peers.into_iter().collect::<Result<Vec<Peer>>>()?;
    for peer in &peers {
        client::fill(peer.address, options.entities, SIZES[0])?;
        peer.settle();
    }
    report.say(
        "\npersistence: the rate with everysec, as a share of that without, values of 64 bytes",
    );
    report.say("| command | ours | bound | Redis | ours/s | ours everysec/s | Redis/s | Redis everysec/s | |");
    report.say("|---|---|---|---|---|---|---|---|---|");
    for load in LOADS.iter().filter(|it| PERSISTED.contains(&it.name)) {
        for (at, pipeline) in PIPELINES.into_iter().enumerate() {
            let run = Run::new(load, at, pipeline, SIZES[0], options);
            let mut rates = vec![Vec::new(); peers.len()];
            for round in 0..rounds(options) {
                for turn in 0..peers.len() {
                    let number = (round + turn) % peers.len();
                    rates[number].push(client::measure(&peers[number], &run)?.per_second);
                    peers[number].settle();
                }
            }
            let share = |with: usize, without: usize| {
                let turns = Turns { ours: rates[with].clone(), theirs: rates[without].clone() };
                turns.share()
            };
            let (ours, theirs) = (share(1, 0), share(3, 2));
            let each: Vec<String> = rates
                .iter()
                .map(|side| format!(" {:.0} |", median(side.iter().copied())))
                .collect();
            let line = format!(
                "| {} | {ours:.2} | {EVERYSEC_SHARE_LEAST} | {theirs:.2} |{}",
                run.name(),
                each.concat()
            );
            eprintln!("{line}");
            report.judge(line, ours >= EVERYSEC_SHARE_LEAST);
        }
    }
    Ok(())
}
