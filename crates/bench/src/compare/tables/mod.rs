//! Tables against Azurite: what is measured, in which order, and the bounds.

mod entity;
mod requests;

use super::load::{self, Figure, nonce};
use super::report::{self, Bound, Row};
use super::server::{Kind, Server};
use super::{Options, Result, start};
use crate::report::Report;
use requests::{TableOperation, TableRequests};

const CONNECTIONS: [usize; 3] = [1, 16, 64];
/// At this many most bounds are set.
const CONNECTIONS_BOUND: usize = 16;
/// A cold start takes at most this share of the emulator's.
const START_SHARE_MAX: f64 = 1.0 / 20.0;
/// How often the small and the large table take turns.
const GROWTH_ROUNDS: usize = 3;

/// Tables that are filled with entities before they are measured. What is merged is not what is read: older versions
/// that wait for their collection would be read over, by us, and are not there at the emulator.
const FILLED: &str = "filled";
const MERGED: &str = "merged";

const OPERATIONS: [TableOperation; 7] = [
    TableOperation::Bare,
    TableOperation::Insert,
    TableOperation::Get,
    TableOperation::Merge,
    TableOperation::QueryPartition,
    TableOperation::FilteredScan,
    TableOperation::Transaction,
];

/// Measures everything. The report says whether the bounds are met.
pub fn run(options: &Options) -> Result<Report> {
    let mut report = Report::default();
    start::cold_starts(options, START_SHARE_MAX, &mut report)?;
    let ours = Server::start(Kind::Synced, options, &options.folder.join("ours"))?;
    let peer = Server::start(Kind::Peer, options, &options.folder.join("peer"))?;
    for server in [&ours, &peer] {
        server.settle();
    }
    report::memory(&mut report, "memory after start", ours.memory()?, peer.memory()?);
    report.say(Row::HEAD);
    for server in [&ours, &peer] {
        fill(server, FILLED, options.entities_few)?;
        fill(server, MERGED, options.entities_few)?;
    }
    for connections in CONNECTIONS {
        for operation in OPERATIONS.into_iter().filter(|it| options.wants(it.name())) {
            let name = format!("{}, {connections} connections", operation.name());
            let bound = bound(operation, connections);
            let (theirs, figure) = in_turns(operation, connections, options, &ours, &peer)?;
            Row::measured(&mut report, name, bound, figure, theirs);
        }
    }
    if options.only.is_some() {
        return Ok(report);
    }
    let relaxed = Server::start(Kind::Relaxed, options, &options.folder.join("relaxed"))?;
    let name = format!("insert, relaxed, {CONNECTIONS_BOUND} connections");
    let operation = TableOperation::Insert;
    let (theirs, figure) = in_turns(operation, CONNECTIONS_BOUND, options, &relaxed, &peer)?;
    Row::measured(&mut report, name, Bound(8.0), figure, theirs);
    drop(relaxed);
    let full = growth(options, &ours, &mut report)?;
    drop(ours);
    // The entities that it has so far are few against those that follow.
    let (few, many) = (options.entities_few, options.entities);
    let reached = requests::fill(&peer, FILLED, few, many)?;
    report.say(format_args!("full: {many} entities, peer {reached}"));
    report::memory(&mut report, "memory when full", full, peer.memory()?);
    Ok(report)
}

/// What is asked of this front, as a multiple of the emulator's.
fn bound(operation: TableOperation, connections: usize) -> Bound {
    let least = match (operation, connections) {
        (TableOperation::Insert | TableOperation::Merge, 16) => 4.0,
        (TableOperation::Insert | TableOperation::Merge, 64) => 6.0,
        (TableOperation::Transaction | TableOperation::Get, 16) => 8.0,
        (TableOperation::QueryPartition, 16) => 15.0,
        _ => 0.0,
    };
    Bound(least)
}

/// The emulator first, ours right after it, so that other load on the machine affects both.
fn in_turns(
    operation: TableOperation,
    connections: usize,
    options: &Options,
    ours: &Server,
    peer: &Server,
) -> Result<(Figure, Figure)> {
    let theirs = measure(operation, connections, options, peer)?;
    Ok((theirs, measure(operation, connections, options, ours)?))
}

fn measure(
    operation: TableOperation,
    connections: usize,
    options: &Options,
    server: &Server,
) -> Result<Figure> {
    let table = match operation {
        TableOperation::Insert | TableOperation::Transaction => {
            // A new one for each figure: what was inserted before must not weigh on it.
            let table = format!("empty{}", nonce());
            requests::create(server, &table)?;
            table
        }
        TableOperation::Merge => MERGED.to_owned(),
        TableOperation::Get
        | TableOperation::QueryPartition
        | TableOperation::FilteredScan
        | TableOperation::Bare => FILLED.to_owned(),
    };
    server.settle();
    load::run(server, connections, options.time, || {
        Ok(TableRequests::new(operation, &table, options.entities_few))
    })
}

fn fill(server: &Server, table: &str, entities: u64) -> Result {
    requests::create(server, table)?;
    match requests::fill(server, table, 0, entities)? {
        reached if reached >= entities => Ok(()),
        reached => Err(format!("only {reached} of {entities} entities in time")),
    }
}

/// The same requests to a server with few entities and to one with many, in turns. Returns the memory of the second.
fn growth(options: &Options, few: &Server, report: &mut Report) -> Result<u64> {
    let folder = options.folder.join("large");
    let many = Server::start(Kind::Synced, options, &folder)?;
    fill(&many, FILLED, options.entities)?;
    many.settle();
    let memory = many.memory()?;
    for operation in [TableOperation::Insert, TableOperation::Get, TableOperation::QueryPartition] {
        let (mut small, mut large) = (Vec::new(), Vec::new());
        for _ in 0..GROWTH_ROUNDS {
            for (server, entities, figures) in
                [(few, options.entities_few, &mut small), (&many, options.entities, &mut large)]
            {
                server.settle();
                figures.push(load::run(server, CONNECTIONS_BOUND, options.time, || {
                    Ok(TableRequests::new(operation, FILLED, entities))
                })?);
            }
        }
        report::growth(report, operation.name(), report::GROWTH_MAX, &small, &large);
    }
    Ok(memory)
}
