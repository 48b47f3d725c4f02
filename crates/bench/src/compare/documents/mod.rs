//! Documents against the emulator that people run from npm: what is measured, in which order, and the bounds.

mod item;
mod points;
mod requests;

use super::load::{self, Figure, nonce};
use super::report::{self, Bound, Row};
use super::server::{Kind, Server};
use super::{Options, Result, start};
use crate::figures::mebibytes;
use crate::report::Report;
use requests::{DocumentOperation, DocumentRequests};

const CONNECTIONS: [usize; 3] = [1, 4, 16];
/// At this many the bounds are set.
const CONNECTIONS_BOUND: usize = 16;
/// A cold start takes at most this share of the emulator's.
const START_SHARE_MAX: f64 = 1.0 / 5.0;
/// How often the small and the large container take turns.
const GROWTH_ROUNDS: usize = 3;
/// A request to a large container costs at most so much of one to a small one.
const GROWTH_MAX: f64 = 1.5;

/// Containers that are filled with items before they are measured. What is replaced is not what is read: older versions
/// that wait for their collection would be read over, by us, and are not there at the emulator.
const FILLED: &str = "filled";
const REPLACED: &str = "replaced";
/// The name under which only the small and the large container are compared.
const GROWTH: &str = "growth";

const OPERATIONS: [DocumentOperation; 8] = [
    DocumentOperation::Bare,
    DocumentOperation::Create,
    DocumentOperation::Read,
    DocumentOperation::Replace,
    DocumentOperation::QueryKey,
    DocumentOperation::QueryIndexed,
    DocumentOperation::Top,
    DocumentOperation::Count,
];

const GROWING: [DocumentOperation; 5] = [
    DocumentOperation::Read,
    DocumentOperation::QueryKey,
    DocumentOperation::QueryIndexed,
    DocumentOperation::Top,
    DocumentOperation::Create,
];

/// Measures everything. The report says whether the bounds are met.
pub fn run(options: &Options) -> Result<Report> {
    let mut report = Report::default();
    if options.only.is_none() {
        start::cold_starts(options, START_SHARE_MAX, &mut report)?;
    }
    let ours = Server::start(Kind::Synced, options, &options.folder.join("ours"))?;
    let peer = Server::start(Kind::Peer, options, &options.folder.join("peer"))?;
    for server in [&ours, &peer] {
        server.settle();
    }
    memory(&mut report, "memory after start", &ours, &peer)?;
    report.say(Row::HEAD);
    for server in [&ours, &peer] {
        for container in [FILLED, REPLACED] {
            requests::create(server, container)?;
            requests::fill(server, container, options.entities_few)?;
        }
    }
    for connections in CONNECTIONS {
        for operation in OPERATIONS.into_iter().filter(|it| options.wants(it.name())) {
            let name = format!("{}, {connections} connections", operation.name());
            let bound = bound(operation, connections);
            // The emulator first, ours right after it, so that other load on the machine affects both.
            let theirs = measure(operation, connections, options, &peer)?;
            let figure = measure(operation, connections, options, &ours)?;
            Row::measured(&mut report, name, bound, figure, theirs);
        }
    }
    memory(&mut report, "memory after all of this", &ours, &peer)?;
    drop(peer);
    keeping(options, &ours, &mut report)?;
    if options.wants(GROWTH) {
        growth(options, &ours, &mut report)?;
    }
    Ok(report)
}

/// The emulator as no command starts it: with connections that it keeps, which is much to its advantage where requests are
/// short. No bound is set by it.
fn keeping(options: &Options, ours: &Server, report: &mut Report) -> Result {
    let short = [DocumentOperation::Create, DocumentOperation::Read, DocumentOperation::Replace];
    let wanted = short.into_iter().filter(|it| options.wants(it.name()));
    let peer = Server::start(Kind::KeepingPeer, options, &options.folder.join("keeping"))?;
    for container in [FILLED, REPLACED] {
        requests::create(&peer, container)?;
        requests::fill(&peer, container, options.entities_few)?;
    }
    for operation in wanted {
        let name = format!("{}, {CONNECTIONS_BOUND} kept connections", operation.name());
        let theirs = measure(operation, CONNECTIONS_BOUND, options, &peer)?;
        let figure = measure(operation, CONNECTIONS_BOUND, options, ours)?;
        Row::measured(report, name, Bound(0.0), figure, theirs);
    }
    Ok(())
}

fn memory(report: &mut Report, name: &str, ours: &Server, peer: &Server) -> Result {
    let [now, peak] = [ours.memory()?, ours.peak_memory()?].map(mebibytes);
    let [peer_now, peer_peak] = [peer.memory()?, peer.peak_memory()?].map(mebibytes);
    report.say(format_args!(
        "{name}: {now:.0} MiB (peak {peak:.0}), peer {peer_now:.0} MiB (peak {peer_peak:.0})"
    ));
    Ok(())
}

/// What is asked of this front, as a multiple of the emulator's.
fn bound(operation: DocumentOperation, connections: usize) -> Bound {
    Bound(match (operation, connections) {
        (DocumentOperation::Create, CONNECTIONS_BOUND) => 2.0,
        (DocumentOperation::Read, CONNECTIONS_BOUND) => 5.0,
        (DocumentOperation::QueryKey, CONNECTIONS_BOUND) => 200.0,
        (DocumentOperation::Top | DocumentOperation::Count, CONNECTIONS_BOUND) => 30.0,
        _ => 0.0,
    })
}

fn measure(
    operation: DocumentOperation,
    connections: usize,
    options: &Options,
    server: &Server,
) -> Result<Figure> {
    let container = match operation {
        DocumentOperation::Create => {
            // A new one for each figure: what was created before must not weigh on it.
            let container = format!("empty-{}", nonce());
            requests::create(server, &container)?;
            container
        }
        DocumentOperation::Replace => REPLACED.to_owned(),
        _ => FILLED.to_owned(),
    };
    figure(operation, connections, options, server, &container, options.entities_few)
}

fn figure(
    operation: DocumentOperation,
    connections: usize,
    options: &Options,
    server: &Server,
    container: &str,
    items: u64,
) -> Result<Figure> {
    server.settle();
    load::run(server, connections, options.time, || {
        Ok(DocumentRequests::new(operation, container, items))
    })
}

/// The same requests to a container with few items and to one with many, in turns.
fn growth(options: &Options, few: &Server, report: &mut Report) -> Result {
    let many = Server::start(Kind::Synced, options, &options.folder.join("large"))?;
    requests::create(&many, FILLED)?;
    let filling = std::time::Instant::now();
    requests::fill(&many, FILLED, options.entities)?;
    let took = filling.elapsed().as_secs_f64();
    let (items, rate) = (options.entities, options.entities as f64 / took);
    report.say(format_args!("{items} items in batches of 100: {took:.0} s, {rate:.0} a second"));
    many.settle();
    let [now, peak] = [many.memory()?, many.peak_memory()?].map(mebibytes);
    report.say(format_args!("memory with {items} items: {now:.0} MiB (peak {peak:.0})"));
    for operation in GROWING {
        let (mut small, mut large) = (Vec::new(), Vec::new());
        for _ in 0..GROWTH_ROUNDS {
            for (server, items, figures) in
                [(few, options.entities_few, &mut small), (&many, options.entities, &mut large)]
            {
                let connections = CONNECTIONS_BOUND;
                figures.push(figure(operation, connections, options, server, FILLED, items)?);
            }
        }
        report::growth(report, operation.name(), GROWTH_MAX, &small, &large);
    }
    points::run(&many, FILLED, report)
}
