//! Kill -9 under load, round after round on the same data: no answered write may be lost, no transaction torn.
//!
//! Each round starts the server, checks what the round before wrote, lets writers insert, merge and make transactions over
//! the wire, kills the server at a random moment, and has `lazuli fsck` look at what it left behind. Run by
//! `cargo xtask crash`.

mod check;
mod report;
mod writers;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use lazuli_env::Random;
use lazuli_trial::Result;
use lazuli_trial::client::Client;
use lazuli_trial::options::Options;
use lazuli_trial::server::{self, Server};

use check::Expected;
use report::Report;
use writers::Log;

const TABLE: &str = "crash";
const WRITERS: usize = 16;

/// The server dies this long after the first writer starts, at least and at most.
const LIFE_MS_MIN: u64 = 30;
const LIFE_MS_MAX: u64 = 700;

/// All writes of all rounds are looked at after every so many rounds; in between only those of the last one.
const FULL_CHECK_ROUNDS: u64 = 10;

fn main() -> ExitCode {
    match Options::read().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("crash: {message}");
            ExitCode::from(1)
        }
    }
}

fn run(options: &Options) -> Result {
    let rounds: u64 = options.value("--rounds")?;
    let random = lazuli_env::real::env().random;
    let mut report = Report::default();
    let mut expected = Expected::new();
    let mut last = Vec::new();
    for round in 0..rounds {
        let server = start(options, &mut report)?;
        if round == 0 {
            Client::connect(server.address())?.create_table(TABLE)?;
        }
        settle(&server, std::mem::take(&mut last), &mut expected, &mut report)?;
        if round % FULL_CHECK_ROUNDS == FULL_CHECK_ROUNDS - 1 {
            check::everything(server.address(), &expected)?;
        }
        last = write_until_killed(server, round, random.as_ref(), &mut report)?;
        server::fsck(&options.binary, &options.folder)?;
    }
    let server = start(options, &mut report)?;
    settle(&server, last, &mut expected, &mut report)?;
    check::everything(server.address(), &expected)?;
    server.stop()?;
    server::fsck(&options.binary, &options.folder)?;
    println!("{report}");
    Ok(())
}

fn start(options: &Options, report: &mut Report) -> Result<Server> {
    let before = Instant::now();
    let server = Server::start(&options.binary, &options.folder)?;
    report.started(before.elapsed());
    Ok(server)
}

fn settle(server: &Server, logs: Vec<Log>, expected: &mut Expected, report: &mut Report) -> Result {
    let (mut rows, doubts) = check::settle(server.address(), logs)?;
    expected.append(&mut rows);
    report.settled(&doubts);
    Ok(())
}

/// One life of the server: writers write as fast as they are answered, until it is killed.
fn write_until_killed(
    server: Server,
    round: u64,
    random: &dyn Random,
    report: &mut Report,
) -> Result<Vec<Log>> {
    let life = LIFE_MS_MIN + random.below(LIFE_MS_MAX - LIFE_MS_MIN);
    let writers = lazuli_trial::writers::start(server.address(), round, WRITERS, writers::write);
    std::thread::sleep(Duration::from_millis(life));
    server.kill()?;
    let logs = lazuli_trial::writers::join(writers)?;
    report.round(Duration::from_millis(life), &logs);
    Ok(logs)
}
