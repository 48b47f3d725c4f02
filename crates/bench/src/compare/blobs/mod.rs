//! Blobs against Azurite, and large ones against plain files: what is measured, in which order, and the bounds.

mod plain;
mod requests;

use std::sync::Arc;
use std::time::Duration;

use super::load::{self, nonce};
use super::report::{Bound, Row};
use super::server::{Kind, Server};
use super::{Options, Result};
use crate::figures::mebibytes;
use crate::report::{Report, Turns};
use requests::{BLOCK_BYTES, BlobOperation, BlobRequests, LARGE_BLOCKS, READ_BLOBS};

const CONNECTIONS: [usize; 3] = [1, 16, 64];
/// At this many the bounds are set.
const CONNECTIONS_BOUND: usize = 16;
/// Connections that share a large upload or download.
const CONNECTIONS_LARGE: usize = 4;
/// How often they and plain files are measured, in turns.
const LARGE_ROUNDS: usize = 3;

const KIB: usize = 1024;
const MIB: usize = 1024 * 1024;
const PUT_BYTES: [usize; 3] = [4 * KIB, 256 * KIB, 8 * MIB];
const GET_BYTES: [usize; 4] = [4 * KIB, 256 * KIB, MIB, 8 * MIB];
/// Names in a container that is listed.
const LIST_NAMES: [u64; 2] = [10_000, 100_000];

/// The share of what plain files give that large transfers must reach.
const PLAIN_SHARE_LEAST: f64 = 0.75;
/// The most resident memory of the server at any time.
const PEAK_BYTES_MAX: u64 = 150 * 1024 * 1024;

/// Measures everything. The report says whether the bounds are met.
pub fn run(options: &Options) -> Result<Report> {
    let mut report = Report::default();
    report.say(Row::HEAD);
    let ours = Server::start(Kind::Synced, options, &options.folder.join("ours"))?;
    let peer = Server::start(Kind::Peer, options, &options.folder.join("peer"))?;
    for bytes in PUT_BYTES {
        let content = requests::content(bytes);
        compare("put", bytes, options, &mut report, &ours, &peer, |server| {
            let container = format!("container-{}", nonce());
            requests::create(server, &container)?;
            Ok((BlobOperation::Put(bytes), container, content.clone()))
        })?;
    }
    for bytes in GET_BYTES {
        let content = requests::content(bytes);
        compare("get", bytes, options, &mut report, &ours, &peer, |server| {
            let container = format!("get-{bytes}");
            // There already, after the first figure of this size.
            if requests::create(server, &container).is_ok() {
                let name = |number| format!("{number:04}");
                requests::fill(server, &container, READ_BLOBS, &content, name)?;
            }
            Ok((BlobOperation::Get(bytes), container, requests::content(0)))
        })?;
    }
    for names in LIST_NAMES {
        if options.wants(&format!("list of {names}")) {
            lists(names, options, &mut report, &ours, &peer)?;
        }
    }
    if options.wants("large") {
        large(options, &mut report, &ours)?;
    }
    let [ours, peer] = [ours.peak_memory()?, peer.peak_memory()?].map(mebibytes);
    report.at_most("memory at its peak, MiB", ours, mebibytes(PEAK_BYTES_MAX));
    report.figure("memory of the peer at its peak, MiB", peer);
    Ok(report)
}

/// One operation with blobs of one size, at all numbers of connections.
fn compare(
    verb: &str,
    bytes: usize,
    options: &Options,
    report: &mut Report,
    ours: &Server,
    peer: &Server,
    prepare: impl Fn(&Server) -> Result<(BlobOperation, String, Arc<[u8]>)>,
) -> Result {
    let size = if bytes < MIB { (bytes / KIB, "KiB") } else { (bytes / MIB, "MiB") };
    let what = format!("{verb} {} {}", size.0, size.1);
    for connections in CONNECTIONS {
        let name = format!("{what}, {connections} connections");
        if !options.wants(&what) && !options.wants(&name) {
            continue;
        }
        let measure = |server: &Server| {
            let (operation, container, content) = prepare(server)?;
            settle(ours, peer);
            load::run(server, connections, options.time, || {
                Ok(BlobRequests::new(operation, &container, content.clone()))
            })
        };
        // The emulator first, ours right after it, so that other load on the machine affects both.
        let theirs = measure(peer)?;
        let bound = bound(verb, bytes, connections);
        Row::measured(report, name, bound, measure(ours)?, theirs);
    }
    Ok(())
}

/// Background work of either server would affect the figure of the other one.
fn settle(ours: &Server, peer: &Server) {
    peer.settle();
    ours.settle();
}

/// What is asked of this front, as a multiple of the emulator's.
fn bound(verb: &str, bytes: usize, connections: usize) -> Bound {
    const MIB_8: usize = 8 * MIB;
    Bound(match (verb, bytes, connections) {
        ("put", 4096, CONNECTIONS_BOUND) => 5.0,
        ("get", 4096, CONNECTIONS_BOUND) => 10.0,
        ("get", MIB | MIB_8, CONNECTIONS_BOUND) => 3.0,
        _ => 0.0,
    })
}

/// Pages of 5,000 names, one after another through the whole container. Each side has as many names as it takes within a
/// bounded time: fewer of them are to its advantage.
fn lists(
    names: u64,
    options: &Options,
    report: &mut Report,
    ours: &Server,
    peer: &Server,
) -> Result {
    let container = format!("list-{names}");
    let nothing = requests::content(0);
    let measure = |server: &Server| {
        requests::create(server, &container)?;
        let name = |number| format!("folder-{:03}/name-{number:08}", number % 100);
        let filled = requests::fill(server, &container, names, &nothing, name)?;
        settle(ours, peer);
        let figure = load::run(server, CONNECTIONS_BOUND, options.time, || {
            Ok(BlobRequests::new(BlobOperation::List, &container, nothing.clone()))
        })?;
        Ok::<_, String>((figure, filled))
    };
    let (theirs, filled) = measure(peer)?;
    let (figure, filled_ours) = measure(ours)?;
    if filled_ours < names {
        return Err(format!("ours took only {filled_ours} of {names} names in time"));
    }
    let mut name = format!("list of {names} names, {CONNECTIONS_BOUND} connections");
    if filled < names {
        name += &format!(" (peer: {filled} names)");
    }
    let bound = Bound(if names == LIST_NAMES[1] { 10.0 } else { 0.0 });
    Row::measured(report, name, bound, figure, theirs);
    Ok(())
}

/// A gigabyte up and down in blocks, beside what plain files give, in turns.
fn large(options: &Options, report: &mut Report, ours: &Server) -> Result {
    let content = requests::content(BLOCK_BYTES);
    let bytes = LARGE_BLOCKS * BLOCK_BYTES as u64;
    let plain = plain::start(&options.folder.join("plain"), bytes, &content)?;
    let container = format!("container-{}", nonce());
    requests::create(ours, &container)?;
    requests::put_large(ours, &container, &content)?;
    for (name, operation) in
        [("upload", BlobOperation::PutBlock), ("download", BlobOperation::GetRange)]
    {
        let made = || Ok(BlobRequests::new(operation, &container, content.clone()));
        let mut turns = Turns::default();
        for _ in 0..LARGE_ROUNDS {
            ours.settle();
            let figure =
                load::run_at(plain, CONNECTIONS_LARGE, options.time, || Duration::ZERO, made)?;
            turns.theirs.push(figure.per_second);
            ours.settle();
            turns.ours.push(load::run(ours, CONNECTIONS_LARGE, options.time, made)?.per_second);
        }
        let [ours, plain] = turns.medians().map(|rate| rate * mebibytes(BLOCK_BYTES as u64));
        report.say(format_args!("{name}: {ours:.0} MiB/s, plain files {plain:.0} MiB/s"));
        report.at_least(format!("{name}, share"), turns.share(), PLAIN_SHARE_LEAST);
    }
    Ok(())
}
