//! Queues against Azurite: what is measured, in which order, and the bounds.

mod requests;

use super::load::{self, Figure};
use super::report::{self, Bound, Row};
use super::server::{Kind, Server};
use super::{Options, Result};
use crate::report::Report;
use requests::{QueueOperation, QueueRequests};

const CONNECTIONS: [usize; 3] = [1, 16, 64];
/// At this many the bounds are set.
const CONNECTIONS_BOUND: usize = 16;
/// How often the short and the long queue take turns.
const GROWTH_ROUNDS: usize = 3;
/// Messages of the short queue.
const FEW: u64 = 1_000;
/// The backlog that the emulator works off: more would take it minutes for a few messages.
const BACKLOG_PEER: u64 = 10_000;
/// Ours, which must last for as long as is measured.
const BACKLOG_PER_SECOND: u64 = 25_000;

/// The long queues come last: the emulator gets slower with every message in any queue.
const OPERATIONS: [QueueOperation; 3] =
    [QueueOperation::Cycle, QueueOperation::Put, QueueOperation::GetDelete];
/// The name under which only the short and the long queue are compared.
const GROWTH: &str = "growth";

/// Measures everything. The report says whether the bounds are met.
pub fn run(options: &Options) -> Result<Report> {
    let mut report = Report::default();
    report.say(Row::HEAD);
    let ours = Server::start(Kind::Synced, options, &options.folder.join("ours"))?;
    let peer = Server::start(Kind::Peer, options, &options.folder.join("peer"))?;
    for operation in OPERATIONS.into_iter().filter(|it| options.wants(it.name())) {
        for connections in CONNECTIONS {
            // The emulator first, ours right after it, so that other load on the machine affects both.
            let theirs = measure(operation, connections, options, &peer, BACKLOG_PEER)?;
            let backlog = BACKLOG_PER_SECOND * (options.time.as_secs() + 1);
            let figure = measure(operation, connections, options, &ours, backlog)?;
            let name = format!("{}, {connections} connections", operation.name());
            let bound = bound(operation, connections);
            Row::measured(&mut report, name, bound, figure, theirs);
        }
    }
    drop(peer);
    if options.wants(GROWTH) {
        growth(options, &ours, &mut report)?;
    }
    Ok(report)
}

/// What is asked of this front, as a multiple of the emulator's.
fn bound(operation: QueueOperation, connections: usize) -> Bound {
    Bound(match (operation, connections) {
        (QueueOperation::Put | QueueOperation::Cycle, CONNECTIONS_BOUND) => 5.0,
        (QueueOperation::GetDelete, CONNECTIONS_BOUND) => 100.0,
        _ => 0.0,
    })
}

/// One figure, on a queue of its own: what was put before must not weigh on it.
fn measure(
    operation: QueueOperation,
    connections: usize,
    options: &Options,
    server: &Server,
    backlog: u64,
) -> Result<Figure> {
    let messages = if operation == QueueOperation::GetDelete { backlog } else { 0 };
    let queue = requests::fill(server, messages)?;
    let figure = figure(operation, connections, options, server, &queue)?;
    requests::remove(server, &queue)?;
    Ok(figure)
}

fn figure(
    operation: QueueOperation,
    connections: usize,
    options: &Options,
    server: &Server,
    queue: &str,
) -> Result<Figure> {
    server.settle();
    let made = || Ok(QueueRequests::new(operation, queue));
    let mut figure = load::run(server, connections, options.time, made)?;
    figure.per_second /= operation.requests();
    figure.per_cpu /= operation.requests();
    Ok(figure)
}

/// The same requests to a queue in which few messages wait and to one in which many do, in turns.
fn growth(options: &Options, few: &Server, report: &mut Report) -> Result {
    let many = Server::start(Kind::Synced, options, &options.folder.join("large"))?;
    let short = requests::fill(few, FEW)?;
    let long = requests::fill(&many, options.entities)?;
    for operation in [QueueOperation::Put, QueueOperation::Cycle] {
        let (mut small, mut large) = (Vec::new(), Vec::new());
        for _ in 0..GROWTH_ROUNDS {
            for (server, queue, figures) in [(few, &short, &mut small), (&many, &long, &mut large)]
            {
                figures.push(figure(operation, CONNECTIONS_BOUND, options, server, queue)?);
            }
        }
        report::growth(report, operation.name(), report::GROWTH_MAX, &small, &large);
    }
    Ok(())
}
