//! Queues of the bus against RabbitMQ's, classic and quorum, over AMQP 1.0 by one load generator; and hubs against streams
//! of NATS, which speaks a protocol of its own.
//!
//! All of them answer when a message is on disk. `load` sends and receives, `peers` starts the others, `nats` speaks to
//! that one. Figures are in turns: every server gets the same load before the next kind of load begins.

mod hub;
mod load;
mod nats;
mod peers;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use lazuli_trial::amqp;

use super::server::{Kind, Server};
use super::{Options, Result};
use crate::figures::mebibytes;
use crate::report::Report;
use load::{Flow, Login, Measured, Target};
use peers::Rabbit;

pub use hub::run as run_hub;

/// Messages of one figure with many in flight, and with one.
const MESSAGES: usize = 40_000;
const MESSAGES_ALONE: usize = 3_000;
/// In flight on each connection.
const MANY: u32 = 500;
/// How many senders and receivers there are at the most.
const CONNECTIONS: usize = 8;
/// How often each figure is taken; the median counts.
const TURNS: usize = 3;
/// The small number of messages that wait.
const FEW_WAITING: usize = 1_000;

const QUEUE: &str = "bench";
const PARTS: &str = "bench-parts";
const DEEP: &str = "bench-deep";
/// The fragments of the partitioned queue.
const FRAGMENTS: u32 = 4;

/// What a figure is called, and what is done.
struct Step {
    name: &'static str,
    flow: Flow,
}

fn steps(scale: usize) -> Vec<Step> {
    let flow = |senders, receivers, in_flight, messages: usize| Flow {
        senders,
        receivers,
        in_flight,
        messages: (messages / scale).max(100),
    };
    vec![
        Step { name: "1 sender, 500 in flight", flow: flow(1, 0, MANY, MESSAGES) },
        Step { name: "1 receiver, 500 in flight", flow: flow(0, 1, MANY, MESSAGES) },
        Step { name: "1 + 1, 500 in flight", flow: flow(1, 1, MANY, MESSAGES) },
        Step { name: "8 senders, 500 in flight", flow: flow(CONNECTIONS, 0, MANY, MESSAGES) },
        Step { name: "8 receivers, 500 in flight", flow: flow(0, CONNECTIONS, MANY, MESSAGES) },
        Step { name: "8 + 8, 500 in flight", flow: flow(CONNECTIONS, CONNECTIONS, MANY, MESSAGES) },
        Step { name: "1 sender, 1 in flight", flow: flow(1, 0, 1, MESSAGES_ALONE) },
        Step { name: "1 receiver, 1 in flight", flow: flow(0, 1, 1, MESSAGES_ALONE) },
    ]
}

/// Measures one server, several times, and keeps the median of each.
fn measure(target: &Target, flow: &Flow, used: &dyn Fn() -> Duration) -> Result<Measured> {
    let mut all = Vec::new();
    for _ in 0..TURNS {
        let before = used();
        let mut one = load::run(target, flow)?;
        let ways = usize::from(flow.senders > 0) + usize::from(flow.receivers > 0);
        one.cpu = (used() - before) / (flow.messages * ways) as u32;
        all.push(one);
    }
    all.sort_by(|one, other| one.rate().total_cmp(&other.rate()));
    Ok(all.swap_remove(TURNS / 2))
}

pub fn run(options: &Options) -> Result<Report> {
    let mut report = Report::default();
    let scale = if options.time < Duration::from_secs(2) { 4 } else { 1 };
    let folder = options.folder.join("ours");
    let ours = Server::start(Kind::Synced, options, &folder)?;
    let one = |name: &str, inside: &str| amqp::make(ours.address, name, "QueueDescription", inside);
    one(QUEUE, "")?;
    one(DEEP, "")?;
    partitioned(options, &folder)?;
    let rabbit = Rabbit::start(&options.peer, &options.folder.join("rabbit"))?;
    let login = Login::Plain("guest", "guest");
    let targets = [
        (true, Target::ours(ours.address, QUEUE)),
        (true, Target::ours(ours.address, PARTS)),
        (false, Target { address: rabbit.address, login, path: "/amq/queue/classic".into() }),
        (false, Target { address: rabbit.address, login, path: "/amq/queue/quorum".into() }),
    ];
    report.say("| load | ours | ours, 4 fragments | RabbitMQ classic | RabbitMQ quorum |");
    report.say("|---|---|---|---|---|");
    let mut table: Vec<(&str, Vec<Measured>)> = Vec::new();
    for step in steps(scale) {
        if !options.wants(step.name) {
            continue;
        }
        let mut row = Vec::new();
        for (is_ours, target) in &targets {
            let used = || if *is_ours { ours.cpu() } else { rabbit.cpu() };
            row.push(measure(target, &step.flow, &used)?);
        }
        let cells: Vec<String> = row.iter().map(|one| format!(" {one} |")).collect();
        let line = format!("| {} |{}", step.name, cells.concat());
        eprintln!("{line}");
        report.say(line);
        table.push((step.name, row));
    }
    if options.only.is_none() {
        judge(&mut report, &table);
        let (own, theirs) = (ours.memory()?, rabbit.memory());
        let (own, theirs) = (mebibytes(own), mebibytes(theirs));
        report.say(format_args!("memory after this: ours {own:.0} MiB, RabbitMQ {theirs:.0} MiB"));
        report.at_most("memory, ours / RabbitMQ", own / theirs, 0.25);
        let target = Target::ours(ours.address, DEEP);
        growth(&mut report, &target, options.entities as usize, &|| ours.cpu())?;
    }
    Ok(report)
}

/// Makes a queue of several fragments by the command: the administration of the service knows no number of them.
fn partitioned(options: &Options, folder: &Path) -> Result {
    let mut command = Command::new(&options.binary);
    command.args(["bus", "create", "queue", PARTS, "--partitions", &FRAGMENTS.to_string()]);
    command.arg("--data").arg(folder.join("data")).stdout(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("{command:?}: {other:?}")),
    }
}

/// The bounds of the comparison.
fn judge(report: &mut Report, table: &[(&str, Vec<Measured>)]) {
    let find = |name: &str| table.iter().find(|(its, _)| *its == name).map(|(_, row)| row);
    if let Some(row) = find("1 + 1, 500 in flight") {
        let (ours, parts, quorum) = (&row[0], &row[1], &row[3]);
        report.at_least("sent, ours / quorum, 1 + 1", ours.sent / quorum.sent, 1.2);
        report.at_least("received, ours / quorum, 1 + 1", ours.received / quorum.received, 1.5);
        report.at_least("sent, 4 fragments / 1", parts.sent / ours.sent, 1.0);
        report.at_least("received, 4 fragments / 1", parts.received / ours.received, 1.0);
    }
    for (name, least) in [("1 sender, 500 in flight", 1.2), ("1 receiver, 500 in flight", 1.5)] {
        if let Some(row) = find(name) {
            report.at_least(format!("ours / quorum, {name}"), row[0].rate() / row[3].rate(), least);
        }
    }
    if let Some(row) = find("1 sender, 1 in flight") {
        let (ours, theirs) = (row[0].latency.p50, row[3].latency.p50);
        let share = ours.as_secs_f64() / theirs.as_secs_f64();
        report.at_most("p50 of a send, ours / quorum", share, 1.0);
    }
}

/// What it costs to send and to receive while many messages wait, against few.
fn growth(
    report: &mut Report,
    target: &Target,
    many: usize,
    used: &dyn Fn() -> Duration,
) -> Result {
    let fill = |messages| Flow { senders: 4, receivers: 0, in_flight: MANY, messages };
    let both = Flow { senders: 1, receivers: 1, in_flight: MANY, messages: MESSAGES / 2 };
    load::run(target, &fill(FEW_WAITING))?;
    let few = measure(target, &both, used)?;
    load::run(target, &fill(many.saturating_sub(FEW_WAITING)))?;
    let deep = measure(target, &both, used)?;
    report.say(format_args!("with {FEW_WAITING} waiting: {few}; with {many}: {deep}"));
    report.at_most("sent, few waiting / many", few.sent / deep.sent, super::report::GROWTH_MAX);
    let share = few.received / deep.received;
    report.at_most("received, few waiting / many", share, super::report::GROWTH_MAX);
    Ok(())
}
