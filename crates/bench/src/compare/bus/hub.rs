//! Hubs against streams of NATS: one publisher and eight, readers from the first event on.

use std::path::Path;
use std::time::{Duration, Instant};

use lazuli_trial::amqp;
use tokio::task::LocalSet;

use super::load::{self, Flow, Measured, Target};
use super::nats::{self, Connection};
use super::peers::Nats;
use super::{CONNECTIONS, MANY, MESSAGES, MESSAGES_ALONE, TURNS};
use crate::compare::server::{Kind, Server};
use crate::compare::{Options, Result};
use crate::figures::{Latency, mebibytes};
use crate::report::Report;

/// A hub of its own for each figure, so that readers read what was written for them.
const PARTITIONS: usize = 4;

pub fn run(options: &Options) -> Result<Report> {
    let mut report = Report::default();
    let scale = if options.time < Duration::from_secs(2) { 4 } else { 1 };
    let ours = Server::start(Kind::Synced, options, &options.folder.join("ours"))?;
    let nats = Nats::start(&options.peer, &options.folder.join("nats"))?;
    report.say("| load | ours | NATS |");
    report.say("|---|---|---|");
    let steps = [
        ("1 publisher, 500 in flight", 1, MANY, MESSAGES),
        ("8 publishers, 500 in flight", CONNECTIONS, MANY, MESSAGES),
        ("1 publisher, 1 in flight", 1, 1, MESSAGES_ALONE),
    ];
    for (number, (name, publishers, in_flight, messages)) in steps.into_iter().enumerate() {
        if !options.wants(name) {
            continue;
        }
        let messages = (messages / scale).max(100);
        let flow = Flow { senders: publishers, receivers: 0, in_flight, messages };
        let mut own = Vec::new();
        let mut theirs = Vec::new();
        for turn in 0..TURNS {
            let hub = format!("bench-{number}-{turn}");
            own.push(measure_ours(&ours, &hub, &flow)?);
            let folder = options.folder.join(format!("nats-{number}-{turn}"));
            theirs.push(measure_nats(&options.peer, &folder, &flow)?);
        }
        let (own, theirs) = (middle(own), middle(theirs));
        let line = format!("| {name} | {own} | {theirs} |");
        eprintln!("{line}");
        report.say(line);
        report.figure(format!("published, ours / NATS, {name}"), own.sent / theirs.sent);
        report.figure(format!("read, ours / NATS, {name}"), own.received / theirs.received);
    }
    let (own, theirs) = (mebibytes(ours.memory()?), mebibytes(nats.memory()?));
    report.say(format_args!("memory: ours {own:.0} MiB after this, NATS {theirs:.0} MiB idle"));
    Ok(report)
}

fn middle(mut all: Vec<Measured>) -> Measured {
    all.sort_by(|one, other| one.sent.total_cmp(&other.sent));
    all.swap_remove(all.len() / 2)
}

/// Publishes, then reads all partitions.
fn measure_ours(server: &Server, hub: &str, flow: &Flow) -> Result<Measured> {
    let inside = format!("<PartitionCount>{PARTITIONS}</PartitionCount>");
    amqp::make(server.address, hub, "EventHubDescription", &inside)?;
    let target = Target::ours(server.address, hub);
    let before = server.cpu();
    let sent = load::run(&target, flow)?;
    let paths = (0..PARTITIONS).map(|number| {
        let path = format!("{hub}/ConsumerGroups/$Default/Partitions/{number}");
        Target::ours(server.address, &path)
    });
    let paths: Vec<Target> = paths.collect();
    let read = Flow { senders: 0, receivers: PARTITIONS, in_flight: MANY, ..*flow };
    let read = load::run_on(&paths, &paths, &read)?;
    let cpu = (server.cpu() - before) / (2 * flow.messages) as u32;
    Ok(Measured { received: read.received, cpu, ..sent })
}

/// The same on a server of its own, because a stream is read from its start.
fn measure_nats(program: &Path, folder: &Path, flow: &Flow) -> Result<Measured> {
    let nats = Nats::start(program, folder)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let local = LocalSet::new();
    let address = nats.address;
    local.block_on(&runtime, async {
        Connection::open(address, "_INBOX.make").await?.make("_INBOX.make").await?;
        let began = Instant::now();
        let mut publishers = Vec::new();
        for nth in 0..flow.senders {
            let (count, in_flight) = (flow.messages / flow.senders, flow.in_flight as usize);
            let inbox = format!("_INBOX.p{nth}");
            publishers
                .push(tokio::task::spawn_local(nats::publish(address, inbox, count, in_flight)));
        }
        let mut took = Vec::new();
        for publisher in publishers {
            took.extend(publisher.await.map_err(|error| error.to_string())??);
        }
        let count = took.len();
        let sent = count as f64 / began.elapsed().as_secs_f64();
        let began = Instant::now();
        nats::read(address, "_INBOX.r".to_owned(), count).await?;
        let received = count as f64 / began.elapsed().as_secs_f64();
        let cpu = nats.cpu() / (2 * count.max(1)) as u32;
        Ok(Measured { sent, received, latency: Latency::of(took), cpu })
    })
}
