//! The SQL endpoint against PgBouncer and a direct connection, with pgbench as the client of all, in turns.
//!
//! One private PostgreSQL server has everything: a plain database with all rows, which the direct connection and PgBouncer
//! use, and the databases that are shards of ours, each with its part of the same rows. `world` makes that, `pgbench` runs one figure, `moves` moves
//! a range under writes (`writers`) beside `pg_dump | pg_restore`, `fanout` asks four shards and one.

mod fanout;
mod moves;
mod pgbench;
mod world;
mod writers;

use std::time::Duration;

use super::{Options, Result};
use crate::figures::median;
use crate::report::{Report, Turns};
use pgbench::{Figure, Script};
use world::{Side, World};

const ROUNDS: usize = 5;
const ROUNDS_QUICK: usize = 3;

/// Branches of pgbench, 100,000 accounts each. Shards get the same number of them.
const BRANCHES: u32 = 30;
const BRANCHES_QUICK: u32 = 12;

/// Against PgBouncer, selects by 16 clients.
const SELECT_SHARE_LEAST: f64 = 0.7;
const CPU_SHARE_MAX: f64 = 2.5;
/// Against PgBouncer, what a select of one client takes longer than directly.
const ADDED_SHARE_MAX: f64 = 1.5;
const TPCB_SHARE_LEAST: f64 = 0.8;

/// How pgbench asks, and how PgBouncer gives connections out: 1.18 knows no prepared statements in transactions' mode.
const MODES: [(&str, Side); 2] =
    [("prepared", Side::BouncerSessions), ("extended", Side::BouncerTransactions)];

pub fn run(options: &Options) -> Result<Report> {
    let mut report = Report::default();
    let branches = if is_quick(options) { BRANCHES_QUICK } else { BRANCHES };
    let world = World::start(options)?;
    if ["select", "tpcb"].iter().any(|name| options.wants(name)) {
        world.make_accounts(branches)?;
        against_bouncer(&world, options, &mut report)?;
    }
    if options.wants("fanout") {
        fanout::run(&world, options, &mut report)?;
    }
    if options.wants("move") {
        moves::run(&world, options, &mut report)?;
    }
    Ok(report)
}

fn is_quick(options: &Options) -> bool {
    options.time < Duration::from_secs(2)
}

fn rounds(options: &Options) -> usize {
    if is_quick(options) { ROUNDS_QUICK } else { ROUNDS }
}

const HEAD: &str = "| pgbench | ours/s | PgBouncer/s | direct/s | ours / PgBouncer | bound | ours CPU us | PgBouncer CPU us | ours ms | PgBouncer ms | direct ms | |\n\
                    |---|---|---|---|---|---|---|---|---|---|---|---|";

fn against_bouncer(world: &World, options: &Options, report: &mut Report) -> Result {
    report.say(HEAD);
    for (mode, bouncer) in MODES {
        for (script, clients, least) in [
            (Script::Select, 1, None),
            (Script::Select, 16, Some(SELECT_SHARE_LEAST)),
            (Script::TpcB, 1, None),
            (Script::TpcB, 16, Some(TPCB_SHARE_LEAST)),
        ] {
            if !options.wants(script.name()) {
                continue;
            }
            let sides = [Side::Ours, bouncer, Side::Direct];
            let mut figures: [Vec<Figure>; 3] = Default::default();
            for round in 0..rounds(options) {
                for turn in 0..sides.len() {
                    let at = (round + turn) % sides.len();
                    let figure =
                        pgbench::run(world, sides[at], script, mode, clients, options.time)?;
                    figures[at].push(figure);
                }
            }
            let name = format!("{}, {mode}, {clients} clients", script.name());
            judge(&name, script, clients, &figures, least, report);
        }
    }
    Ok(())
}

fn judge(
    name: &str,
    script: Script,
    clients: usize,
    figures: &[Vec<Figure>; 3],
    least: Option<f64>,
    report: &mut Report,
) {
    let of = |side: usize, what: fn(&Figure) -> f64| median(figures[side].iter().map(what));
    let rates = |side: usize| figures[side].iter().map(|it| it.per_second).collect();
    let share = Turns { ours: rates(0), theirs: rates(1) }.share();
    let [ours, bouncer, direct] = [0, 1, 2].map(|side| of(side, |it| it.per_second));
    let cpu = [0, 1].map(|side| of(side, |it| it.cpu_us));
    let latency = [0, 1, 2].map(|side| of(side, |it| it.latency_ms));
    let bound = least.map(|it| it.to_string()).unwrap_or_default();
    let line = format!(
        "| {name} | {ours:.0} | {bouncer:.0} | {direct:.0} | {share:.2} | {bound} | {:.1} | {:.1} | {:.3} | {:.3} | {:.3} |",
        cpu[0], cpu[1], latency[0], latency[1], latency[2]
    );
    eprintln!("{line}");
    match least {
        Some(least) => report.judge(line, share >= least),
        None => report.say(line),
    }
    if script == Script::Select && clients > 1 {
        report.at_most(format!("{name}: CPU, ours / PgBouncer"), cpu[0] / cpu[1], CPU_SHARE_MAX);
    }
    if script == Script::Select && clients == 1 {
        // The sides of one round are compared, since the machine drifts.
        let added = |side: usize, round: usize| {
            figures[side][round].latency_ms - figures[2][round].latency_ms
        };
        let shares = (0..figures[0].len()).map(|round| added(0, round) / added(1, round));
        report.at_most(
            format!("{name}: added latency, ours / PgBouncer"),
            median(shares),
            ADDED_SHARE_MAX,
        );
    }
}
