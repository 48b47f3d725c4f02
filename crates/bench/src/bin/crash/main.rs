//! Kill -9 under load, round after round on the same data: no answered write may be lost.
//!
//! Each round starts the server, checks what the rounds before wrote, lets writers insert entities over the wire, kills
//! the server at a random moment, and has `lazuli fsck` look at what it left behind. Run by `cargo xtask crash`.

mod check;
mod client;
mod report;
mod server;
mod writers;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use lazuli_env::Random;

use report::Report;
use server::Server;
use writers::Written;

/// What went wrong, for a person to read.
type Result<T = ()> = std::result::Result<T, String>;

const WRITERS: usize = 16;

/// The server dies this long after the first writer starts, at least and at most.
const LIFE_MS_MIN: u64 = 30;
const LIFE_MS_MAX: u64 = 700;

/// All writes of all rounds are looked at after every so many rounds; in between only those of the last one.
const FULL_CHECK_ROUNDS: u64 = 10;

struct Options {
    rounds: u64,
    binary: PathBuf,
    folder: PathBuf,
}

fn main() -> ExitCode {
    match options().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("crash: {message}");
            ExitCode::from(1)
        }
    }
}

fn options() -> Result<Options> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = words.iter().position(|word| word == name);
        let value = at.and_then(|at| words.get(at + 1));
        value.cloned().ok_or(format!("{name} needs a value"))
    };
    let rounds = value("--rounds")?.parse().map_err(|_| "--rounds needs a number")?;
    Ok(Options { rounds, binary: value("--binary")?.into(), folder: value("--folder")?.into() })
}

fn run(options: &Options) -> Result {
    let random = lazuli_env::real::env().random;
    let mut report = Report::default();
    let mut all = Vec::new();
    let mut last = Written::default();
    for round in 0..options.rounds {
        let server = start(options, &mut report)?;
        if round == 0 {
            client::Client::connect(server.address())?.create_table()?;
        }
        check::written(server.address(), &last)?;
        all.append(&mut last.keys);
        if round % FULL_CHECK_ROUNDS == FULL_CHECK_ROUNDS - 1 {
            check::everything(server.address(), &all)?;
        }
        last = write_until_killed(server, round, random.as_ref(), &mut report)?;
        server::fsck(&options.binary, &options.folder)?;
    }
    let server = start(options, &mut report)?;
    check::written(server.address(), &last)?;
    all.append(&mut last.keys);
    report.found = check::everything(server.address(), &all)?;
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

/// One life of the server: writers insert as fast as they are answered, until it is killed.
fn write_until_killed(
    server: Server,
    round: u64,
    random: &dyn Random,
    report: &mut Report,
) -> Result<Written> {
    let life = LIFE_MS_MIN + random.below(LIFE_MS_MAX - LIFE_MS_MIN);
    let writers = writers::start(server.address(), round, WRITERS);
    std::thread::sleep(Duration::from_millis(life));
    server.kill()?;
    let written = writers::join(writers)?;
    report.round(Duration::from_millis(life), &written);
    Ok(written)
}
