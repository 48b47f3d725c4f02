//! Kill -9 under uploads, round after round on the same data: no committed blob may be lost or torn, and no file may stay
//! that nothing names.
//!
//! Each round starts the server, checks what the round before wrote, lets writers put, overwrite, copy, lease, snapshot and
//! delete blobs of all sizes, kills the server at a random moment, and has `lazuli fsck` look at what it left behind. At the
//! end everything is deleted, and the garbage must go. Run by `cargo xtask crash blobs`.

mod check;
mod contents;
mod garbage;
mod writers;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use lazuli_env::Random;
use lazuli_trial::client::Client;
use lazuli_trial::options::Options;
use lazuli_trial::server::{self, Server};
use lazuli_trial::{Result, blobs};

use check::Expected;
use writers::Log;

const CONTAINER: &str = "crash";
const WRITERS: usize = 16;

/// The server dies this long after the first writer starts, at least and at most.
const LIFE_MS_MIN: u64 = 50;
const LIFE_MS_MAX: u64 = 900;

/// All blobs of all rounds are looked at after every so many rounds; in between only those of the last one.
const FULL_CHECK_ROUNDS: u64 = 10;

fn main() -> ExitCode {
    match Options::read().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("crash-blobs: {message}");
            ExitCode::from(1)
        }
    }
}

/// What a run has seen.
#[derive(Default)]
struct Figures {
    answered: BTreeMap<&'static str, usize>,
    in_doubt: usize,
    kept: usize,
    start_max: Duration,
}

fn run(options: &Options) -> Result {
    let rounds: u64 = options.value("--rounds")?;
    let random = lazuli_env::real::env().random;
    let mut figures = Figures::default();
    let mut expected = Expected::new();
    let mut last = Vec::new();
    for round in 0..rounds {
        let server = start(options, &mut figures)?;
        if round == 0 {
            let mut client = Client::connect(server.blob_address()?)?;
            writers::send(&mut client, blobs::create_container(CONTAINER))?;
        }
        settle(&server, std::mem::take(&mut last), &mut expected, &mut figures)?;
        if round % FULL_CHECK_ROUNDS == FULL_CHECK_ROUNDS - 1 {
            check::everything(server.blob_address()?, &expected)?;
        }
        last = write_until_killed(server, round, random.as_ref(), &mut figures)?;
        server::fsck(&options.binary, &options.folder)?;
    }
    let server = start(options, &mut figures)?;
    settle(&server, last, &mut expected, &mut figures)?;
    check::everything(server.blob_address()?, &expected)?;
    let files = garbage::collected(&server, &options.folder)?;
    server.stop()?;
    server::fsck(&options.binary, &options.folder)?;
    report(rounds, &figures, &expected, files);
    Ok(())
}

fn start(options: &Options, figures: &mut Figures) -> Result<Server> {
    let before = Instant::now();
    let server = Server::start(&options.binary, &options.folder)?;
    figures.start_max = figures.start_max.max(before.elapsed());
    Ok(server)
}

fn settle(
    server: &Server,
    logs: Vec<Log>,
    expected: &mut Expected,
    figures: &mut Figures,
) -> Result {
    let (mut blobs, kept) = check::settle(server.blob_address()?, logs)?;
    expected.append(&mut blobs);
    figures.kept += kept;
    Ok(())
}

/// One life of the server: writers write as fast as they are answered, until it is killed.
fn write_until_killed(
    server: Server,
    round: u64,
    random: &dyn Random,
    figures: &mut Figures,
) -> Result<Vec<Log>> {
    let life = LIFE_MS_MIN + random.below(LIFE_MS_MAX - LIFE_MS_MIN);
    let writers =
        lazuli_trial::writers::start(server.blob_address()?, round, WRITERS, writers::write);
    std::thread::sleep(Duration::from_millis(life));
    server.kill()?;
    let logs = lazuli_trial::writers::join(writers)?;
    for log in &logs {
        figures.in_doubt += usize::from(log.in_doubt.is_some());
        for kind in &log.answered {
            *figures.answered.entry(kind).or_default() += 1;
        }
    }
    Ok(logs)
}

fn report(rounds: u64, figures: &Figures, expected: &Expected, files: usize) {
    let kinds: Vec<_> =
        figures.answered.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    println!("{rounds} rounds of kill -9 under {WRITERS} connections");
    println!("answered: {}", kinds.join(", "));
    println!("{} in doubt, of which {} were kept", figures.in_doubt, figures.kept);
    println!("0 lost, 0 torn: {} blobs read back, byte for byte", expected.len());
    println!("all {files} block files went once their blobs were deleted");
    println!("start after a kill: {:?} at most", figures.start_max);
    println!("fsck clean after every kill and after the last stop");
}
