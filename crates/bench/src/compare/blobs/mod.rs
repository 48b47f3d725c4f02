//! Blobs against Azurite, and large ones against plain files: what is measured, in which order, and the bounds.

mod plain;
mod requests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::load::{self, Figure};
use super::report::{Bound, Row, megabytes, verdict};
use super::server::{Kind, Server};
use super::{Options, Result};
use requests::{BLOCK_BYTES, BlobRequests, LARGE_BLOCKS, Operation, READ_BLOBS};

const CONNECTIONS: [usize; 3] = [1, 16, 64];
/// At this many the bounds are set.
const CONNECTIONS_BOUND: usize = 16;
/// Connections that share a large upload or download.
const CONNECTIONS_LARGE: usize = 4;

const KIB: usize = 1024;
const MIB: usize = 1024 * 1024;
const PUT_BYTES: [usize; 3] = [4 * KIB, 256 * KIB, 8 * MIB];
const GET_BYTES: [usize; 4] = [4 * KIB, 256 * KIB, MIB, 8 * MIB];
/// Names in a container that is listed.
const LIST_NAMES: [u64; 2] = [10_000, 100_000];

/// The share of what plain files give that large transfers must reach.
const PLAIN_SHARE_LEAST: f64 = 0.75;
/// What the server may hold at its peak, whatever it was sent.
const PEAK_BYTES_MAX: u64 = 150 * 1024 * 1024;

/// A large transfer, in blocks a second.
struct Large {
    name: &'static str,
    ours: Figure,
    plain: Figure,
}

impl Large {
    fn share(&self) -> f64 {
        self.ours.per_second / self.plain.per_second
    }
}

#[derive(Default)]
pub struct Report {
    rows: Vec<Row>,
    large: Vec<Large>,
    peak_ours: u64,
    peak_peer: u64,
}

impl Report {
    pub fn is_met(&self) -> bool {
        self.rows.iter().all(Row::is_met)
            && self.large.iter().all(|large| large.share() >= PLAIN_SHARE_LEAST)
            && self.peak_ours <= PEAK_BYTES_MAX
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", Row::HEAD)?;
        for row in &self.rows {
            writeln!(f, "{row}")?;
        }
        writeln!(f)?;
        let speed = |figure: &Figure| figure.per_second * megabytes(BLOCK_BYTES as u64);
        for large in &self.large {
            let (ours, plain, share) = (speed(&large.ours), speed(&large.plain), large.share());
            let met = verdict(share >= PLAIN_SHARE_LEAST);
            let name = large.name;
            writeln!(f, "{name}: {ours:.0} MiB/s, plain files {plain:.0} MiB/s, {share:.2} {met}")?;
        }
        let met = verdict(self.peak_ours <= PEAK_BYTES_MAX);
        let (ours, peer) = (megabytes(self.peak_ours), megabytes(self.peak_peer));
        writeln!(f, "memory at its peak: {ours:.0} MiB, peer {peer:.0} MiB {met}")
    }
}

/// Measures everything. The report says whether the bounds are met.
pub fn run(options: &Options) -> Result<Report> {
    let mut report = Report::default();
    let ours = Server::start(Kind::Synced, options, &options.folder.join("ours"))?;
    let peer = Server::start(Kind::Azurite, options, &options.folder.join("peer"))?;
    for bytes in PUT_BYTES {
        let content = requests::content(bytes);
        compare("put", bytes, options, &mut report, &ours, &peer, |server| {
            let container = requests::new_container();
            requests::create(server, &container)?;
            Ok((Operation::Put(bytes), container, content.clone()))
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
            Ok((Operation::Get(bytes), container, requests::content(0)))
        })?;
    }
    for names in LIST_NAMES.into_iter().filter(|_| options.wants("list")) {
        lists(names, options, &mut report, &ours, &peer)?;
    }
    if options.wants("large") {
        large(options, &mut report, &ours)?;
    }
    report.peak_ours = ours.peak_memory()?;
    report.peak_peer = peer.peak_memory()?;
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
    prepare: impl Fn(&Server) -> Result<(Operation, String, Arc<[u8]>)>,
) -> Result {
    let size = if bytes < MIB { (bytes / KIB, "KiB") } else { (bytes / MIB, "MiB") };
    let what = format!("{verb} {} {}", size.0, size.1);
    for connections in CONNECTIONS.into_iter().filter(|_| options.wants(&what)) {
        let measure = |server: &Server| {
            let (operation, container, content) = prepare(server)?;
            server.settle();
            load::run(server, connections, options.time, || {
                Ok(BlobRequests::new(operation, &container, content.clone()))
            })
        };
        let name = format!("{what}, {connections} connections");
        // The emulator first, ours right after it, so that whatever else the machine does hits both.
        let theirs = measure(peer)?;
        let bound = bound(verb, bytes, connections);
        let row = Row { name, bound, ours: measure(ours)?, peer: theirs };
        eprintln!("{row}");
        report.rows.push(row);
    }
    Ok(())
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

/// Pages of 5,000 names, one after another through the whole container.
fn lists(
    names: u64,
    options: &Options,
    report: &mut Report,
    ours: &Server,
    peer: &Server,
) -> Result {
    let container = format!("list-{names}");
    let measure = |server: &Server| {
        requests::create(server, &container)?;
        let nothing = requests::content(0);
        let name = |number| format!("folder-{:03}/name-{number:08}", number % 100);
        requests::fill(server, &container, names, &nothing, name)?;
        server.settle();
        load::run(server, CONNECTIONS_BOUND, options.time, || {
            Ok(BlobRequests::new(Operation::List, &container, nothing.clone()))
        })
    };
    let name = format!("list of {names} names, {CONNECTIONS_BOUND} connections");
    let theirs = measure(peer)?;
    let bound = Bound(if names == LIST_NAMES[1] { 10.0 } else { 0.0 });
    let row = Row { name, bound, ours: measure(ours)?, peer: theirs };
    eprintln!("{row}");
    report.rows.push(row);
    Ok(())
}

/// A gigabyte up and down in blocks, beside what plain files give.
fn large(options: &Options, report: &mut Report, ours: &Server) -> Result {
    let content = requests::content(BLOCK_BYTES);
    let bytes = LARGE_BLOCKS * BLOCK_BYTES as u64;
    let plain = plain::start(&options.folder.join("plain"), bytes, &content)?;
    let container = requests::new_container();
    requests::create(ours, &container)?;
    requests::put_large(ours, &container, &content)?;
    for (name, operation) in [("upload", Operation::PutBlock), ("download", Operation::GetRange)] {
        let made = || Ok(BlobRequests::new(operation, &container, content.clone()));
        ours.settle();
        let plain = load::run_at(plain, CONNECTIONS_LARGE, options.time, || Duration::ZERO, made)?;
        ours.settle();
        let figure = load::run(ours, CONNECTIONS_LARGE, options.time, made)?;
        let large = Large { name, ours: figure, plain };
        eprintln!("{name}: {:.2} of plain files", large.share());
        report.large.push(large);
    }
    Ok(())
}
